"""tests/sweep/plain_delta.py - families with the delta rule as plain loops in double precision: classes as those of
plain_newer.py.
"""
import numpy as np

from plain_base import Llama, sigmoid, silu


class Delta(Llama):
    """The delta rule step by step, with a number for each element of a key by which the state fades."""

    def convolved(self, x, at, widths, taps):
        """Queries, keys and values, each through its own matrix; their taps lie one behind the other."""
        parts = [self.linear(x, at + name + "_proj", width) for name, width in zip("qkv", widths)]
        w = np.concatenate([self.tensor(f"{at}{name}_conv1d.weight", width, 1, taps, scale=0.5)[:, 0]
                            for name, width in zip("qkv", widths)])
        mixed = np.concatenate(parts, -1)
        before = np.concatenate([np.zeros((taps - 1, sum(widths))), mixed])
        mixed = silu(sum(before[i:i + x.shape[0]] * w[:, i] for i in range(taps)))
        return np.split(mixed, np.cumsum(widths)[:2], -1)

    def rule(self, q, k, v, fades, corrections):
        """q, k and fades: tokens, heads, elements; v: tokens, heads, values; corrections: tokens, heads."""
        q, k = (y / np.sqrt((y ** 2).sum(-1, keepdims=True) + 1e-6) for y in (q, k))
        q = q / np.sqrt(q.shape[-1])
        state, out = np.zeros(k.shape[1:] + v.shape[2:]), []
        for i in range(q.shape[0]):
            state = state * fades[i][..., None]
            change = (v[i] - np.einsum("hkv,hk->hv", state, k[i])) * corrections[i][:, None]
            state = state + k[i][..., None] * change[:, None]
            out.append(np.einsum("hkv,hk->hv", state, q[i]))
        return np.array(out)

    def head_norm(self, x, name, eps):
        x = x / np.sqrt((x ** 2).mean(-1, keepdims=True) + eps)
        return x * self.tensor(name + ".weight", x.shape[-1], scale=0.2, about=1.0)


class OlmoHybrid(Delta):
    """Norms stand before the parts of layers with the delta rule, and behind those of layers with attention."""
    defaults = dict(linear_conv_kernel_dim=4, linear_allow_neg_eigval=True)

    def types(self, i):
        types = self.get("layer_types")
        last = self.layers < 4 and i + 1 == self.layers
        return types[i] if types else "full_attention" if i % 4 == 3 or last else "linear_attention"

    def row_norms(self, q, k, at):
        return self.norm(q, at + "q_norm"), self.norm(k, at + "k_norm")

    def rotate(self, x, layer, pairs=False):
        p = self.c.get("rope_parameters")
        return x if p and p.get("rope_theta", 0) is None else super().rotate(x, layer, pairs)

    def mixed(self, x, at):
        heads = self.get("linear_num_value_heads") or self.heads
        key_heads = self.get("linear_num_key_heads") or self.heads
        dim = self.get("linear_key_head_dim") or int(0.75 * self.hidden / key_heads)
        values = self.get("linear_value_head_dim") or 2 * dim
        t, keys = x.shape[0], key_heads * dim
        q, k, v = self.convolved(x, at, (keys, keys, heads * values), self.get("linear_conv_kernel_dim"))
        q, k = (np.repeat(y.reshape(t, key_heads, dim), heads // key_heads, axis=1) for y in (q, k))
        corrections = sigmoid(self.linear(x, at + "b_proj", heads)) * (2 if self.get("linear_allow_neg_eigval") else 1)
        steps = np.log1p(np.exp(self.linear(x, at + "a_proj", heads) + self.tensor(at + "dt_bias", heads, scale=0.5)))
        fades = np.exp(-np.exp(self.tensor(at + "A_log", heads, scale=0.5)) * steps)
        y = self.rule(q, k, v.reshape(t, heads, values), np.repeat(fades[..., None], dim, -1), corrections)
        gate = self.linear(x, at + "g_proj", heads * values)
        return self.linear(self.head_norm(y, at + "o_norm", 1e-5).reshape(t, -1) * silu(gate), at + "o_proj",
                           self.hidden)

    def layer(self, x, at, i):
        if self.types(i) == "full_attention":
            x = x + self.norm(self.attention(x, at, i), at + "post_attention_layernorm")
            return x + self.norm(self.feed_forward(x, at, i), at + "post_feedforward_layernorm")
        x = x + self.mixed(self.norm(x, at + "attention_layer_norm"), at + "linear_attn.")
        return x + self.feed_forward(self.norm(x, at + "feedforward_layer_norm"), at, i)


DELTA = {"olmo_hybrid": OlmoHybrid}
