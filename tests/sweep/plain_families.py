"""tests/sweep/plain_families.py - families as plain loops in double precision, for plain.py.
"""
import math

import numpy as np

from plain_base import Llama, sigmoid, silu, softmax
from plain_delta import DELTA
from plain_newer import NEWER


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


class Laguna(Llama):
    defaults = dict(head_dim=128, num_key_value_heads=8, sliding_window=512, num_experts=256, num_experts_per_tok=8,
                    moe_intermediate_size=512, shared_expert_intermediate_size=512, moe_routed_scaling_factor=1.0,
                    rope_parameters={"full_attention": {"rope_theta": 500000.0, "partial_rotary_factor": 0.5},
                                     "sliding_attention": {"rope_theta": 10000.0}})
    count = "num_experts"

    def set_up(self):
        self.each = self.get("num_attention_heads_per_layer") or [self.heads] * self.layers

    def rope_of(self, layer):
        return self.get("rope_parameters")["sliding_attention" if self.windowed(layer) else "full_attention"]

    def rope(self):
        return self.rope_of(self.now)

    def queries_keys(self, q, k, at, layer):
        self.now, n = layer, int(self.dim * self.rope_of(layer).get("partial_rotary_factor", 1.0))
        return (np.concatenate([self.rotate(y[..., :n], layer), y[..., n:]], -1)
                for y in (self.norm(q, at + "q_norm"), self.norm(k, at + "k_norm")))

    def attention(self, x, at, layer):
        self.heads = self.each[layer]
        return super().attention(x, at, layer)

    def gate(self, y, x, at):
        by = np.log1p(np.exp(self.linear(x, at + "g_proj", self.heads)))
        return (y.reshape(len(x), self.heads, -1) * by[..., None]).reshape(len(x), -1)

    def feed_forward(self, x, at, layer):
        types, at = self.get("mlp_layer_types"), at + "mlp."
        if (types[layer] == "dense") if types else layer == 0:
            return self.mlp(x, at, self.get("intermediate_size"))
        shares = sigmoid(self.linear(x, at + "gate", self.get(self.count)))
        scores = shares + self.tensor(at + "experts.e_score_correction_bias", self.get(self.count), scale=0.3)
        choice = self.choose(scores, shares, self.get("num_experts_per_tok"), True)
        y = self.experts(x, at + "experts.", choice, self.get("moe_intermediate_size"))
        return (y * self.get("moe_routed_scaling_factor") +
                self.mlp(x, at + "shared_expert.", self.get("shared_expert_intermediate_size")))


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


MODELS = {"flex_olmo": FlexOlmo, "granite_swa": GraniteWindows, "afmoe": Afmoe, "laguna": Laguna, "youtu": Youtu, "minicpm3": MiniCpm3,
          "ernie4_5_moe": Ernie, "bitnet": BitNet, "bamba": Bamba, "cohere2_moe": CohereExperts}
MODELS.update(NEWER, **DELTA)
