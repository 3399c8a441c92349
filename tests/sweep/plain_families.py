"""tests/sweep/plain_families.py - families as plain loops in double precision, for plain.py.

A class is a family. Its computation names each tensor with its shape where it reads it, so that a first run over one
token makes all of them. What a configuration leaves out is in `defaults`, from the family's configuration class in
transformers.
"""
import json
import math
import os
import struct

import numpy as np


class Tensors:
    """Weights by name, and the files of a model that has them."""

    def put(self, name, *shape, scale=None, about=0.0):
        scale = scale or 1.2 / math.sqrt(shape[-1])
        self.w[name] = (about + scale * self.rng.standard_normal(shape)).astype(np.float32)

    def save(self, folder):
        header, at, blobs = {}, 0, []
        for name, t in self.w.items():
            header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [at, at + t.nbytes]}
            at += t.nbytes
            blobs.append(t.tobytes())
        text = json.dumps(header).encode()
        with open(os.path.join(folder, "model.safetensors"), "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(self.c, f)


def silu(x):
    return x / (1 + np.exp(-x))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


class Llama(Tensors):
    """Llama, and what its relatives override."""
    defaults = {}
    usual = dict(attention_bias=False, mlp_bias=False, rms_norm_eps=1e-6, tie_word_embeddings=False, sliding_window=None,
                 head_dim=None, num_key_value_heads=None, rope_theta=10000.0, layer_types=None)
    attn_in, ffn_in = "input_layernorm", "post_attention_layernorm"
    attn_out = ffn_out = None
    last_norm = "model.norm"

    def __init__(self, family, c, r):
        self.c, self.w, self.made = c, {}, False
        self.rng = np.random.default_rng(r.randrange(1 << 31))
        self.hidden, self.layers = self.get("hidden_size"), self.get("num_hidden_layers")
        self.heads = self.get("num_attention_heads")
        self.kv_heads = self.get("num_key_value_heads") or self.heads
        self.dim = self.get("head_dim") or self.hidden // self.heads
        self.set_up()
        self.logits([0])
        self.made = True

    def set_up(self):
        pass

    def get(self, field):
        if field in self.c:
            return self.c[field]
        return self.defaults[field] if field in self.defaults else self.usual.get(field)

    # ---- tensors

    def tensor(self, name, *shape, **how):
        if name not in self.w:
            assert not self.made, name
            self.put(name, *shape, **how)
        return self.w[name].astype(np.float64)

    def linear(self, x, name, rows, bias=False):
        y = x @ self.tensor(name + ".weight", rows, x.shape[-1]).T
        return y + self.tensor(name + ".bias", rows, scale=0.3) if bias else y

    def norm(self, x, name, eps=None):
        x = x / np.sqrt((x ** 2).mean(-1, keepdims=True) + (self.get("rms_norm_eps") if eps is None else eps))
        return x * self.tensor(name + ".weight", x.shape[-1], scale=0.2, about=1.0)

    # ---- attention

    def rope(self):
        return dict(self.c.get("rope_scaling") or {}, **(self.c.get("rope_parameters") or {}))

    def theta(self, layer):
        return self.rope().get("rope_theta", self.get("rope_theta"))

    def angles(self, tokens, dims, layer):
        p = self.rope()
        linear = p.get("rope_type", p.get("type", "default")) == "linear"
        frequency = self.theta(layer) ** (-np.arange(0, dims, 2) / dims) / (p.get("factor", 1.0) if linear else 1.0)
        return np.arange(tokens)[:, None] * frequency

    def rotate(self, x, layer, pairs=False):
        """x: tokens, heads, dimensions."""
        n = x.shape[-1]
        angle = self.angles(x.shape[0], n, layer)[:, None]
        first, second = (slice(0, n, 2), slice(1, n, 2)) if pairs else (slice(0, n // 2), slice(n // 2, n))
        out = x.copy()
        out[..., first] = x[..., first] * np.cos(angle) - x[..., second] * np.sin(angle)
        out[..., second] = x[..., second] * np.cos(angle) + x[..., first] * np.sin(angle)
        return out

    def windowed(self, layer):
        types = self.get("layer_types")
        return types[layer] == "sliding_attention" if types else False

    def scale(self):
        return 1 / math.sqrt(self.dim)

    def attend(self, q, k, v, layer, sinks=None):
        t = q.shape[0]
        k, v = (np.repeat(y, q.shape[1] // y.shape[1], axis=1) for y in (k, v))
        scores = np.einsum("thd,shd->hts", q, k) * self.scale()
        distance = np.arange(t)[:, None] - np.arange(t)[None]
        window = self.get("sliding_window") if self.windowed(layer) else None
        seen = (distance >= 0) & (distance < (window or t + 1))
        scores = np.where(seen, scores, -np.inf)
        if sinks is not None:
            scores = np.concatenate([scores, np.broadcast_to(sinks[:, None, None], scores.shape[:2] + (1,))], -1)
        return np.einsum("hts,shd->thd", softmax(scores)[..., :t], v).reshape(t, -1)

    def queries_keys(self, q, k, at, layer):
        return self.rotate(q, layer), self.rotate(k, layer)

    def attention(self, x, at, layer):
        t, bias, at = x.shape[0], self.get("attention_bias"), at + "self_attn."
        q = self.linear(x, at + "q_proj", self.heads * self.dim, bias)
        k, v = (self.linear(x, at + name, self.kv_heads * self.dim, bias) for name in ("k_proj", "v_proj"))
        q, k = self.row_norms(q, k, at)
        q, k, v = (y.reshape(t, -1, self.dim) for y in (q, k, v))
        q, k = self.queries_keys(q, k, at, layer)
        y = self.gate(self.attend(q, k, v, layer, self.sinks(at)), x, at)
        return self.linear(y, at + "o_proj", self.hidden, bias)

    def row_norms(self, q, k, at):
        return q, k

    def sinks(self, at):
        return None

    def gate(self, y, x, at):
        return y

    # ---- the feed-forward layer

    def mlp(self, x, at, width, bias=False, names=("gate_proj", "up_proj", "down_proj")):
        gate, up = (self.linear(x, at + name, width, bias) for name in names[:2])
        return self.linear(silu(gate) * up, at + names[2], x.shape[-1], bias)

    def feed_forward(self, x, at, layer):
        return self.mlp(x, at + "mlp.", self.get("intermediate_size"), self.get("mlp_bias"))

    def experts(self, x, at, choice, width, names=("gate_proj", "up_proj", "down_proj")):
        """The sum of the chosen experts' results; choice: of each token a dictionary of shares."""
        count = self.get(self.count)
        each = [self.mlp(x, f"{at}{e}.", width, names=names) for e in range(count)]
        return sum(each[e] * np.array([of.get(e, 0.0) for of in choice])[:, None] for e in range(count))

    def choose(self, scores, shares, used, normed):
        """By scores; shares become a part of their sum if normed."""
        out = []
        for score, share in zip(scores, shares):
            best = sorted(range(len(score)), key=lambda e: (-score[e], e))[:used]
            total = sum(share[e] for e in best) if normed else 1.0
            out.append({e: share[e] / total for e in best})
        return out

    # ---- the whole

    def layer(self, x, at, i):
        h = self.attention(self.norm(x, at + self.attn_in) if self.attn_in else x, at, i)
        x = x + self.residual() * (self.norm(h, at + self.attn_out) if self.attn_out else h)
        h = self.feed_forward(self.norm(x, at + self.ffn_in) if self.ffn_in else x, at, i)
        return x + self.residual() * (self.norm(h, at + self.ffn_out) if self.ffn_out else h)

    def residual(self):
        return 1.0

    def embed_scale(self):
        return 1.0

    def logit_scale(self):
        return 1.0

    def logits(self, ids):
        embed = self.tensor("model.embed_tokens.weight", self.get("vocab_size"), self.hidden, scale=0.7)
        x = embed[ids] * self.embed_scale()
        for i in range(self.layers):
            x = self.layer(x, f"model.layers.{i}.", i)
        x = self.norm(x, self.last_norm)
        head = embed if self.get("tie_word_embeddings") else self.tensor("lm_head.weight", *embed.shape)
        return x @ head.T * self.logit_scale()


class FlexOlmo(Llama):
    defaults = dict(rope_theta=500000.0, num_experts=7, num_experts_per_tok=5, norm_topk_prob=False)
    attn_in = ffn_in = None
    attn_out, ffn_out = "post_attention_layernorm", "post_feedforward_layernorm"
    count = "num_experts"

    def row_norms(self, q, k, at):
        return self.norm(q, at + "q_norm"), self.norm(k, at + "k_norm")

    def feed_forward(self, x, at, layer):
        shares = softmax(self.linear(x, at + "mlp.gate", self.get(self.count)))
        choice = self.choose(shares, shares, self.get("num_experts_per_tok"), self.get("norm_topk_prob"))
        return self.experts(x, at + "mlp.experts.", choice, self.get("intermediate_size"))


class GraniteWindows(Llama):
    defaults = dict(rms_norm_eps=1e-5, tie_word_embeddings=True, sliding_window=128, num_key_value_heads=4)

    def set_up(self):
        types = ["full_attention"] + 3 * ["sliding_attention"]
        self.types = self.get("layer_types") or [types[i % 4] for i in range(self.layers)]

    def windowed(self, layer):
        return self.types[layer] == "sliding_attention"

    def theta(self, layer):
        bases = self.get("layer_rope_theta")
        return bases[layer] if bases else super().theta(layer)

    def queries_keys(self, q, k, at, layer):
        return super().queries_keys(q, k, at, layer) if self.theta(layer) else (q, k)

    def sinks(self, at):
        return self.tensor(at + "sinks", self.heads, scale=1.5)

    def scale(self):
        return self.c.get("attention_multiplier", 1.0)

    def residual(self):
        return self.c.get("residual_multiplier", 1.0)

    def embed_scale(self):
        return self.c.get("embedding_multiplier", 1.0)

    def logit_scale(self):
        return 1 / self.c.get("logits_scaling", 1.0)


class Afmoe(Llama):
    defaults = dict(rms_norm_eps=1e-5, head_dim=128, sliding_window=1024, num_experts=64, num_experts_per_tok=6,
                    num_shared_experts=2, num_dense_layers=1, moe_intermediate_size=1408, route_scale=1.0,
                    global_attn_every_n_layers=4, mup_enabled=False)
    attn_out, ffn_in, ffn_out = "post_attention_layernorm", "pre_mlp_layernorm", "post_mlp_layernorm"
    count = "num_experts"

    def windowed(self, layer):
        types = self.get("layer_types")
        if types:
            return types[layer] == "sliding_attention"
        return (layer + 1) % self.get("global_attn_every_n_layers") != 0

    def queries_keys(self, q, k, at, layer):
        q, k = self.norm(q, at + "q_norm"), self.norm(k, at + "k_norm")
        return super().queries_keys(q, k, at, layer) if self.windowed(layer) else (q, k)

    def gate(self, y, x, at):
        return y * sigmoid(self.linear(x, at + "gate_proj", y.shape[-1]))

    def feed_forward(self, x, at, layer):
        if layer < self.get("num_dense_layers"):
            return super().feed_forward(x, at, layer)
        at, width = at + "mlp.", self.get("moe_intermediate_size")
        shares = sigmoid(self.linear(x, at + "router.gate", self.get(self.count)))
        scores = shares + self.tensor(at + "expert_bias", self.get(self.count), scale=0.3)
        choice = self.choose(scores, shares * self.get("route_scale"), self.get("num_experts_per_tok"), False)
        total = [sum(of.values()) / self.get("route_scale") for of in choice]
        choice = [{e: share / by for e, share in of.items()} for of, by in zip(choice, total)]
        return (self.experts(x, at + "experts.", choice, width) +
                self.mlp(x, at + "shared_experts.", width * self.get("num_shared_experts")))

    def embed_scale(self):
        return math.sqrt(self.hidden) if self.get("mup_enabled") else 1.0


class Latent(Llama):
    """DeepSeek's attention with heads' own keys and values made from the latent vector, and a dense layer."""
    pairs = True

    def attention(self, x, at, layer):
        t, h, at = x.shape[0], self.heads, at + "self_attn."
        rest, rotating, rank = self.get("qk_nope_head_dim"), self.get("qk_rope_head_dim"), self.get("kv_lora_rank")
        value = self.get("v_head_dim") or self.hidden // h
        self.dim = rest + rotating
        if self.get("q_lora_rank"):
            low = self.norm(self.linear(x, at + "q_a_proj", self.get("q_lora_rank")), at + "q_a_layernorm", 1e-6)
            q = self.linear(low, at + "q_b_proj", h * self.dim)
        else:
            q = self.linear(x, at + "q_proj", h * self.dim)
        q = q.reshape(t, h, -1)
        kv = self.linear(x, at + "kv_a_proj_with_mqa", rank + rotating)
        own = self.linear(self.norm(kv[:, :rank], at + "kv_a_layernorm", 1e-6), at + "kv_b_proj", h * (rest + value))
        own, turned = own.reshape(t, h, -1), self.rotate(kv[:, None, rank:], layer, self.turns())
        q = np.concatenate([q[..., :rest], self.rotate(q[..., rest:], layer, self.turns())], -1)
        k = np.concatenate([own[..., :rest], np.broadcast_to(turned, (t, h, rotating))], -1)
        return self.linear(self.attend(q, k, own[..., rest:], layer), at + "o_proj", self.hidden)

    def turns(self):
        return self.c.get("rope_interleave", self.pairs)


class Youtu(Latent):
    defaults = dict(tie_word_embeddings=True)


class MiniCpm3(Latent):
    defaults = dict(rms_norm_eps=1e-5, tie_word_embeddings=True, scale_emb=12, scale_depth=1.4, dim_model_base=256)

    def turns(self):
        return False

    def embed_scale(self):
        return self.get("scale_emb")

    def residual(self):
        depth = self.get("scale_depth")
        return 1.0 if depth is None else depth / math.sqrt(self.layers)

    def logit_scale(self):
        base = self.get("dim_model_base")
        return 1.0 if base is None else base / self.hidden


class Ernie(Llama):
    defaults = dict(rms_norm_eps=1e-5, tie_word_embeddings=True, rope_theta=500000.0, num_key_value_heads=4,
                    moe_num_experts=64, moe_k=6, moe_num_shared_experts=2, moe_layer_start_index=1,
                    moe_layer_end_index=-1, moe_layer_interval=1, moe_intermediate_size=1536)
    count = "moe_num_experts"

    def queries_keys(self, q, k, at, layer):
        return self.rotate(q, layer, True), self.rotate(k, layer, True)

    def feed_forward(self, x, at, layer):
        last, first = self.get("moe_layer_end_index"), self.get("moe_layer_start_index")
        last = self.layers - 1 if last == -1 else last
        if (layer + 1) % self.get("moe_layer_interval") or not first <= layer <= last:
            return super().feed_forward(x, at, layer)
        at, width, count = at + "mlp.", self.get("moe_intermediate_size"), self.get(self.count)
        shares = softmax(self.linear(x, at + "gate", count))
        scores = shares + self.tensor(at + "moe_statics.e_score_correction_bias", 1, count, scale=0.2)[0]
        y = self.experts(x, at + "experts.", self.choose(scores, shares, self.get("moe_k"), True), width)
        shared = self.get("moe_num_shared_experts")
        return y + self.mlp(x, at + "shared_experts.", width * shared) if shared else y


class BitNet(Llama):
    defaults = dict(rms_norm_eps=1e-5, rope_theta=500000.0, num_key_value_heads=5)

    def gate(self, y, x, at):
        return self.norm(y, at + "attn_sub_norm")

    def feed_forward(self, x, at, layer):
        at, width = at + "mlp.", self.get("intermediate_size")
        gate, up = (self.linear(x, at + name, width) for name in ("gate_proj", "up_proj"))
        return self.linear(self.norm(np.maximum(gate, 0) ** 2 * up, at + "ffn_sub_norm"), at + "down_proj", self.hidden)


class Bamba(Llama):
    """The selective scan step by step, in layers that do not attend."""
    defaults = dict(rms_norm_eps=1e-5, num_key_value_heads=8, mamba_n_heads=128, mamba_n_groups=1, mamba_d_state=256,
                    mamba_d_conv=4, mamba_expand=2, mamba_conv_bias=True)
    ffn_in, last_norm = "pre_ff_layernorm", "model.final_layernorm"

    def attention(self, x, at, layer):
        return super().attention(x, at, layer) if layer in (self.get("attn_layer_indices") or ()) else self.scan(x, at)

    def queries_keys(self, q, k, at, layer):
        n = self.dim // 2
        return (np.concatenate([self.rotate(y[..., :n], layer), y[..., n:]], -1) for y in (q, k))

    def scan(self, x, at):
        t, heads, groups, rows = (x.shape[0], self.get("mamba_n_heads"), self.get("mamba_n_groups"),
                                  self.get("mamba_d_state"))
        at, values, taps = at + "mamba.", self.get("mamba_expand") * self.hidden, self.get("mamba_d_conv")
        channels = values + 2 * groups * rows
        z, mixed, steps = np.split(self.linear(x, at + "in_proj", values + channels + heads), [values, values + channels], -1)
        w = self.tensor(at + "conv1d.weight", channels, 1, taps, scale=0.5)[:, 0]
        before = np.concatenate([np.zeros((taps - 1, channels)), mixed])
        mixed = sum(before[i:i + t] * w[:, i] for i in range(taps))
        if self.get("mamba_conv_bias"):
            mixed = mixed + self.tensor(at + "conv1d.bias", channels, scale=0.3)
        v, b, c = np.split(silu(mixed), [values, values + groups * rows], -1)
        v, b, c = v.reshape(t, heads, -1), b.reshape(t, groups, rows), c.reshape(t, groups, rows)
        b, c = (np.repeat(y, heads // groups, axis=1) for y in (b, c))
        steps = np.log1p(np.exp(steps + self.tensor(at + "dt_bias", heads, scale=0.5)))
        low, high = self.c.get("time_step_limit", (0.0, np.inf))
        steps = np.clip(steps, low, high)
        decay = np.exp(-np.exp(self.tensor(at + "A_log", heads, scale=0.5)) * steps)
        skip, state, out = self.tensor(at + "D", heads, scale=0.5, about=1.0), np.zeros(v.shape[1:] + (rows,)), []
        for i in range(t):
            state = state * decay[i][:, None, None] + (steps[i][:, None] * v[i])[:, :, None] * b[i][:, None]
            out.append(np.einsum("hdn,hn->hd", state, c[i]) + skip[:, None] * v[i])
        y = np.array(out).reshape(t, values) * silu(z)
        return self.linear(self.norm(y, at + "norm"), at + "out_proj", self.hidden)

    def feed_forward(self, x, at, layer):
        return self.mlp(x, at + "feed_forward.", self.get("intermediate_size"), self.get("mlp_bias"))


class CohereExperts(Llama):
    defaults = dict(head_dim=128, tie_word_embeddings=True, sliding_window=4096, num_experts=8, num_experts_per_tok=2,
                    num_shared_experts=0, shared_expert_combination_strategy="average", expert_selection_fn="softmax",
                    prefix_dense_sliding_window_pattern=1, norm_topk_prob=True, sliding_window_pattern=4,
                    logit_scale=0.0625, layer_norm_eps=1e-5, rms_norm_eps=None, prefix_dense_intermediate_size=None)
    count = "num_experts"

    def dense(self, layer):
        types = self.get("mlp_layer_types")
        return types[layer] == "dense" if types else layer < self.c.get("first_k_dense_replace", 0)

    def windowed(self, layer):
        types, before = self.get("layer_types"), self.c.get("first_k_dense_replace", 0)
        if types:
            return types[layer] == "sliding_attention"
        if layer < before:
            return (layer + 1) % self.get("prefix_dense_sliding_window_pattern") != 0
        return (layer - before + 1) % self.get("sliding_window_pattern") != 0

    def queries_keys(self, q, k, at, layer):
        forced = self.dense(layer) and self.get("prefix_dense_sliding_window_pattern") == 1
        return [self.rotate(y, layer, True) for y in (q, k)] if self.windowed(layer) or forced else (q, k)

    def norm(self, x, name, eps=None):
        if self.get("rms_norm_eps") is not None:
            return super().norm(x, name)
        return super().norm(x - x.mean(-1, keepdims=True), name, self.get("layer_norm_eps"))

    def feed_forward(self, x, at, layer):
        at, width = at + "mlp.", self.get("intermediate_size")
        if self.dense(layer):
            return self.mlp(x, at, self.get("prefix_dense_intermediate_size") or width)
        logits = self.linear(x, at + "gate", self.get(self.count))
        by_sigmoid = self.get("expert_selection_fn") == "sigmoid"
        shares = sigmoid(logits) if by_sigmoid else softmax(logits)
        normed = self.get("norm_topk_prob") or not by_sigmoid
        y = self.experts(x, at + "experts.", self.choose(logits, shares, self.get("num_experts_per_tok"), normed), width)
        shared = self.get("num_shared_experts")
        if shared:
            y = y + self.mlp(x, at + "shared_experts.", width * shared)
        return y / 2 if shared and self.get("shared_expert_combination_strategy") == "average" else y

    def layer(self, x, at, i):
        h = self.norm(x, at + self.attn_in)
        return x + self.attention(h, at, i) + self.feed_forward(h, at, i)

    def logit_scale(self):
        return self.get("logit_scale")


MODELS = {"flex_olmo": FlexOlmo, "granite_swa": GraniteWindows, "afmoe": Afmoe, "youtu": Youtu, "minicpm3": MiniCpm3,
          "ernie4_5_moe": Ernie, "bitnet": BitNet, "bamba": Bamba, "cohere2_moe": CohereExperts}
