"""tests/sweep/plain_base.py - what families share that plain_families.py and plain_newer.py compute as plain loops.

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
        scale = 1.2 / math.sqrt(shape[-1]) if scale is None else scale
        self.w[name] = np.asarray(about + scale * self.rng.standard_normal(shape), dtype=np.float32)

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
    embed, layers_name = "model.embed_tokens", "model.layers."

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

    def head_bias(self):
        return 0.0

    def logits(self, ids):
        embed = self.tensor(self.embed + ".weight", self.get("vocab_size"), self.hidden, scale=0.7)
        x = embed[ids] * self.embed_scale()
        for i in range(self.layers):
            x = self.layer(x, f"{self.layers_name}{i}.", i)
        x = self.norm(x, self.last_norm)
        head = embed if self.get("tie_word_embeddings") else self.tensor("lm_head.weight", *embed.shape)
        return x @ head.T * self.logit_scale() + self.head_bias()
