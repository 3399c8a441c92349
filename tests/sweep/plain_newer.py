"""tests/sweep/plain_newer.py - more families as plain loops in double precision: classes as those of plain_families.py.
"""
import math

import numpy as np

from plain_base import Llama, sigmoid, silu, softmax


class Centred(Llama):
    """Norms subtract the mean."""
    norm_bias = False

    def norm(self, x, name, eps=None):
        y = x - x.mean(-1, keepdims=True)
        y = y / np.sqrt((y ** 2).mean(-1, keepdims=True) + self.norm_eps())
        y = y * self.tensor(name + ".weight", x.shape[-1], scale=0.2, about=1.0)
        return y + self.tensor(name + ".bias", x.shape[-1], scale=0.3) if self.norm_bias else y


class Cohere(Centred):
    """Attention and the feed-forward layer read one norm; heads may have norms with weights of their own."""
    defaults = dict(tie_word_embeddings=True, rope_theta=500000.0, logit_scale=0.0625, layer_norm_eps=1e-5,
                    use_qk_norm=False)

    def norm_eps(self):
        return self.get("layer_norm_eps")

    def queries_keys(self, q, k, at, layer):
        if self.get("use_qk_norm"):
            q, k = (self.head_norm(y, at + name) for y, name in ((q, "q_norm"), (k, "k_norm")))
        return self.rotate(q, layer, True), self.rotate(k, layer, True)

    def head_norm(self, x, name):
        y = x - x.mean(-1, keepdims=True)
        y = y / np.sqrt((y ** 2).mean(-1, keepdims=True) + self.norm_eps())
        return y * self.tensor(name + ".weight", *x.shape[1:], scale=0.2, about=1.0)

    def layer(self, x, at, i):
        h = self.norm(x, at + "input_layernorm")
        return x + self.attention(h, at, i) + self.feed_forward(h, at, i)

    def logit_scale(self):
        return self.get("logit_scale")


class Phimoe(Centred):
    """Two experts, each counting among those near it that are left."""
    defaults = dict(num_key_value_heads=8, rms_norm_eps=1e-5, rope_theta=1e6, num_local_experts=16,
                    router_jitter_noise=0.01, lm_head_bias=False)
    norm_bias, count = True, "num_local_experts"

    def norm_eps(self):
        return self.get("rms_norm_eps")

    def windowed(self, layer):
        return True

    def near(self, logits):
        out = []
        for scores in logits:
            left, shares = np.ones(len(scores), bool), {}
            for _ in range(2):
                best = max(np.flatnonzero(left), key=lambda e: scores[e])
                far = (scores[best] - scores) / np.maximum(np.abs(scores), scores[best])
                counted = left & ~(far > 2 * self.get("router_jitter_noise"))
                shares[best] = 1 / np.exp(scores[counted] - scores[best]).sum()
                left[best] = False
            out.append(shares)
        return out

    def feed_forward(self, x, at, layer):
        at = at + "block_sparse_moe."
        choice = self.near(self.linear(x, at + "gate", self.get(self.count)))
        return self.experts(x, at + "experts.", choice, self.get("intermediate_size"), names=("w1", "w3", "w2"))

    def head_bias(self):
        vocab = self.get("vocab_size")
        return self.tensor("lm_head.bias", vocab, scale=0.5) if self.get("lm_head_bias") else 0.0


class Apertus(Llama):
    defaults = dict(rms_norm_eps=1e-5, rope_theta=12000000.0)
    attn_in, ffn_in = "attention_layernorm", "feedforward_layernorm"

    def queries_keys(self, q, k, at, layer):
        return super().queries_keys(self.norm(q, at + "q_norm"), self.norm(k, at + "k_norm"), at, layer)

    def feed_forward(self, x, at, layer):
        above, below = (np.log1p(np.exp(self.tensor(f"{at}mlp.act_fn.{name}", 1, scale=0.7)))
                        for name in ("alpha_p", "alpha_n"))
        both = self.tensor(at + "mlp.act_fn.beta", scale=0.1, about=0.5)
        end = self.tensor(at + "mlp.act_fn.eps", scale=0.0, about=-1e-6)
        h = self.linear(x, at + "mlp.up_proj", self.get("intermediate_size"))
        y = np.where(h > 0, above * h * h + both * h,
                     (np.expm1(np.minimum(h, end)) - h) * (both + below) + both * h)
        return self.linear(y, at + "mlp.down_proj", self.hidden)


class Qwen3VlMoe(Llama):
    """All experts' matrices in one tensor, column by column."""
    defaults = dict(num_key_value_heads=16, rope_theta=500000.0, tie_word_embeddings=True, num_experts=60,
                    num_experts_per_tok=4, moe_intermediate_size=1408)

    def queries_keys(self, q, k, at, layer):
        return super().queries_keys(self.norm(q, at + "q_norm"), self.norm(k, at + "k_norm"), at, layer)

    def feed_forward(self, x, at, layer):
        count, width = self.get("num_experts"), self.get("moe_intermediate_size")
        shares = softmax(self.linear(x, at + "mlp.gate", count))
        both = self.tensor(at + "mlp.experts.gate_up_proj", count, self.hidden, 2 * width, scale=0.2)
        down = self.tensor(at + "mlp.experts.down_proj", count, width, self.hidden, scale=0.2)
        choice = self.choose(shares, shares, self.get("num_experts_per_tok"), True)
        out = np.zeros_like(x)
        for i, of in enumerate(choice):
            for e, share in of.items():
                h = x[i] @ both[e]
                out[i] += share * ((silu(h[:width]) * h[width:]) @ down[e])
        return out


class Falcon(Centred):
    """Heads of keys and values: one, as many as of queries, or one for each group of them in one tensor."""
    defaults = dict(layer_norm_epsilon=1e-5, multi_query=True, parallel_attn=True, bias=False, activation="gelu",
                    new_decoder_architecture=False, num_ln_in_parallel_attn=None, tie_word_embeddings=True)
    norm_bias, last_norm = True, "transformer.ln_f"
    embed, layers_name = "transformer.word_embeddings", "transformer.h."

    def norm_eps(self):
        return self.get("layer_norm_epsilon")

    def set_up(self):
        self.new = self.get("new_decoder_architecture")
        heads = self.get("num_kv_heads") or self.heads
        self.kv_heads = heads if self.new else 1 if self.get("multi_query") else self.heads

    def attention(self, x, at, layer):
        t, at, bias = x.shape[0], at + "self_attention.", self.get("bias")
        group = self.heads // self.kv_heads
        y = self.linear(x, at + "query_key_value", (self.heads + 2 * self.kv_heads) * self.dim, bias)
        if self.new or not self.get("multi_query"):
            y = y.reshape(t, self.kv_heads, group + 2, self.dim)
            q, k, v = y[:, :, :-2].reshape(t, self.heads, self.dim), y[:, :, -2], y[:, :, -1]
        else:
            y = y.reshape(t, self.heads + 2, self.dim)
            q, k, v = y[:, :-2], y[:, -2:-1], y[:, -1:]
        return self.linear(self.attend(self.rotate(q, layer), self.rotate(k, layer), v, layer), at + "dense",
                           self.hidden, bias)

    def feed_forward(self, x, at, layer):
        width, bias = self.get("ffn_hidden_size") or 4 * self.hidden, self.get("bias")
        h = self.linear(x, at + "mlp.dense_h_to_4h", width, bias)
        erf = np.vectorize(math.erf)
        return self.linear(0.5 * h * (1 + erf(h / math.sqrt(2))), at + "mlp.dense_4h_to_h", self.hidden, bias)

    def layer(self, x, at, i):
        norms = self.get("num_ln_in_parallel_attn")
        if self.new and (2 if norms is None else norms) == 2:
            return (x + self.attention(self.norm(x, at + "ln_attn"), at, i) +
                    self.feed_forward(self.norm(x, at + "ln_mlp"), at, i))
        h = self.norm(x, at + "input_layernorm")
        y = x + self.attention(h, at, i)
        if not (self.new or self.get("parallel_attn")):
            h = self.norm(y, at + "post_attention_layernorm")
        return y + self.feed_forward(h, at, i)


class Scan(Llama):
    """The selective scan step by step."""
    words = ("mamba_n_heads", "mamba_n_groups", "mamba_d_state", "mamba_d_conv", "mamba_conv_bias")
    parts = (1.0, 1.0, 1.0, 1.0, 1.0)

    def scan(self, x, at, values, name="mamba."):
        heads, groups, rows, taps, conv_bias = (self.get(word) for word in self.words)
        t, at = x.shape[0], at + name
        channels = values + 2 * groups * rows
        y = self.linear(x, at + "in_proj", values + channels + heads)
        z, v, b, c, steps = (part * by for part, by in zip(np.split(y, np.cumsum(
            [values, values, groups * rows, groups * rows]), -1), self.parts))
        mixed = np.concatenate([v, b, c], -1)
        w = self.tensor(at + "conv1d.weight", channels, 1, taps, scale=0.5)[:, 0]
        before = np.concatenate([np.zeros((taps - 1, channels)), mixed])
        mixed = sum(before[i:i + t] * w[:, i] for i in range(taps))
        if conv_bias:
            mixed = mixed + self.tensor(at + "conv1d.bias", channels, scale=0.3)
        v, b, c = np.split(silu(mixed), [values, values + groups * rows], -1)
        v, b, c = v.reshape(t, heads, -1), b.reshape(t, groups, rows), c.reshape(t, groups, rows)
        b, c = (np.repeat(y, heads // groups, axis=1) for y in (b, c))
        steps = np.log1p(np.exp(steps + self.tensor(at + "dt_bias", heads, scale=0.5)))
        steps = np.clip(steps, *self.c.get("time_step_limit", (0.0, np.inf)))
        decay = np.exp(-np.exp(self.tensor(at + "A_log", heads, scale=0.5)) * steps)
        skip, state, out = self.tensor(at + "D", heads, scale=0.5, about=1.0), np.zeros(v.shape[1:] + (rows,)), []
        for i in range(t):
            state = state * decay[i][:, None, None] + (steps[i][:, None] * v[i])[:, :, None] * b[i][:, None]
            out.append(np.einsum("hdn,hn->hd", state, c[i]) + skip[:, None] * v[i])
        return self.linear(self.gated(np.array(out).reshape(t, values), z, at, groups), at + "out_proj", self.hidden)

    def group_norm(self, x, name, groups):
        y = x.reshape(x.shape[0], groups, -1)
        y = y / np.sqrt((y ** 2).mean(-1, keepdims=True) + self.norm_eps())
        return y.reshape(x.shape) * self.tensor(name + ".weight", x.shape[-1], scale=0.2, about=1.0)

    def norm_eps(self):
        return self.get("rms_norm_eps")


class FalconH1(Scan):
    """Attention and the scan read one norm, and both are added."""
    defaults = dict(num_key_value_heads=8, rms_norm_eps=1e-5, mamba_n_heads=128, mamba_n_groups=1, mamba_d_state=256,
                    mamba_d_conv=4, mamba_conv_bias=True, mamba_d_ssm=1024, mamba_expand=2, mamba_rms_norm=False,
                    mamba_norm_before_gate=True, key_multiplier=1.0, attention_in_multiplier=1.0,
                    attention_out_multiplier=1.0, ssm_in_multiplier=1.0, ssm_out_multiplier=1.0,
                    ssm_multipliers=(1.0,) * 5, mlp_multipliers=(1.0, 1.0), embedding_multiplier=1.0,
                    lm_head_multiplier=1.0)
    ffn_in, last_norm = "pre_ff_layernorm", "model.final_layernorm"

    def set_up(self):
        self.parts = self.get("ssm_multipliers")

    def queries_keys(self, q, k, at, layer):
        return super().queries_keys(q, k * self.get("key_multiplier"), at, layer)

    def gated(self, y, z, at, groups):
        if not self.get("mamba_rms_norm"):
            return y * silu(z)
        if self.get("mamba_norm_before_gate"):
            return self.group_norm(y, at + "norm", groups) * silu(z)
        return self.group_norm(y * silu(z), at + "norm", groups)

    def feed_forward(self, x, at, layer):
        width, bias, at = self.get("intermediate_size"), self.get("mlp_bias"), at + "feed_forward."
        of_gate, of_all = self.get("mlp_multipliers")
        gate, up = (self.linear(x, at + name, width, bias) for name in ("gate_proj", "up_proj"))
        return self.linear(silu(gate * of_gate) * up, at + "down_proj", self.hidden, bias) * of_all

    def layer(self, x, at, i):
        values = self.get("mamba_d_ssm") or self.get("mamba_expand") * self.hidden
        h = self.norm(x, at + "input_layernorm")
        scan = self.scan(h * self.get("ssm_in_multiplier"), at, values) * self.get("ssm_out_multiplier")
        attention = self.attention(h * self.get("attention_in_multiplier"), at, i) * self.get("attention_out_multiplier")
        x = x + (scan + attention)
        return x + self.feed_forward(self.norm(x, at + self.ffn_in), at, i)

    def embed_scale(self):
        return self.get("embedding_multiplier")

    def logit_scale(self):
        return self.get("lm_head_multiplier")


class Mamba2(Scan):
    """Groups of heads are normed by themselves, as the models were trained."""
    defaults = dict(layer_norm_epsilon=1e-5, num_heads=128, head_dim=64, n_groups=8, state_size=128, conv_kernel=4,
                    use_conv_bias=True, num_attention_heads=1)
    words = ("num_heads", "n_groups", "state_size", "conv_kernel", "use_conv_bias")
    embed, layers_name, last_norm = "backbone.embeddings", "backbone.layers.", "backbone.norm_f"

    def norm_eps(self):
        return self.get("layer_norm_epsilon")

    def norm(self, x, name, eps=None):
        return super().norm(x, name, self.norm_eps())

    def gated(self, y, z, at, groups):
        return self.group_norm(y * silu(z), at + "norm", groups)

    def layer(self, x, at, i):
        return x + self.scan(self.norm(x, at + "norm"), at, self.get("num_heads") * self.get("head_dim"), "mixer.")


class Channels(Llama):
    """The selective scan of Mamba 1 step by step: each channel has a small state and rates of its own."""

    def scan(self, x, at, rows, taps, rank, conv_bias, bias):
        t, wide = x.shape[0], self.get(self.expand) * self.hidden
        v, z = np.split(self.linear(x, at + "in_proj", 2 * wide, bias), 2, -1)
        w = self.tensor(at + "conv1d.weight", wide, 1, taps, scale=0.5)[:, 0]
        before = np.concatenate([np.zeros((taps - 1, wide)), v])
        v = sum(before[i:i + t] * w[:, i] for i in range(taps))
        v = silu(v + self.tensor(at + "conv1d.bias", wide, scale=0.3) if conv_bias else v)
        parts = np.split(self.linear(v, at + "x_proj", rank + 2 * rows), [rank, rank + rows], -1)
        steps, b, c = (self.step_norm(part, at + name) for part, name in zip(parts, ("dt", "b", "c")))
        steps = np.log1p(np.exp(self.linear(steps, at + "dt_proj", wide, True)))
        rates = -np.exp(self.tensor(at + "A_log", wide, rows, scale=0.5))
        skip, state, out = self.tensor(at + "D", wide, scale=0.5, about=1.0), np.zeros((wide, rows)), []
        for i in range(t):
            state = state * np.exp(rates * steps[i][:, None]) + (steps[i] * v[i])[:, None] * b[i]
            out.append(state @ c[i] + skip * v[i])
        return self.linear(np.array(out) * silu(z), at + "out_proj", self.hidden, bias)

    def step_norm(self, x, name):
        return x

    def rank(self, field):
        rank = self.get(field)
        return -(-self.hidden // 16) if rank == "auto" else rank


class Mamba(Channels):
    defaults = dict(layer_norm_epsilon=1e-5, state_size=16, expand=2, conv_kernel=4, use_conv_bias=True, use_bias=False,
                    time_step_rank="auto", tie_word_embeddings=True, num_attention_heads=1)
    embed, layers_name, last_norm, expand = "backbone.embeddings", "backbone.layers.", "backbone.norm_f", "expand"

    def norm(self, x, name, eps=None):
        return super().norm(x, name, self.get("layer_norm_epsilon"))

    def layer(self, x, at, i):
        return x + self.scan(self.norm(x, at + "norm"), at + "mixer.", self.get("state_size"), self.get("conv_kernel"),
                             self.rank("time_step_rank"), self.get("use_conv_bias"), self.get("use_bias"))


class FalconMamba(Mamba):
    """What the scan's steps, keys and queries are made of is normed, without weights."""
    defaults = dict(Mamba.defaults, mixer_rms_eps=1e-6)

    def step_norm(self, x, name):
        return x / np.sqrt((x ** 2).mean(-1, keepdims=True) + self.get("mixer_rms_eps"))


class Jamba(Channels):
    """A layer of attention without positions among those with a scan; some feed-forward layers are mixtures."""
    defaults = dict(num_key_value_heads=8, num_experts=16, num_experts_per_tok=2, expert_layer_period=2,
                    expert_layer_offset=1, attn_layer_period=8, attn_layer_offset=4, mamba_d_state=16, mamba_d_conv=4,
                    mamba_expand=2, mamba_dt_rank="auto", mamba_conv_bias=True, mamba_proj_bias=False)
    ffn_in, last_norm, count, expand = "pre_ff_layernorm", "model.final_layernorm", "num_experts", "mamba_expand"

    def queries_keys(self, q, k, at, layer):
        return q, k

    def step_norm(self, x, name):
        return self.norm(x, name + "_layernorm")

    def attention(self, x, at, layer):
        if layer % self.get("attn_layer_period") == self.get("attn_layer_offset"):
            return super().attention(x, at, layer)
        return self.scan(x, at + "mamba.", self.get("mamba_d_state"), self.get("mamba_d_conv"),
                         self.rank("mamba_dt_rank"), self.get("mamba_conv_bias"), self.get("mamba_proj_bias"))

    def feed_forward(self, x, at, layer):
        at, width = at + "feed_forward.", self.get("intermediate_size")
        routed = layer % self.get("expert_layer_period") == self.get("expert_layer_offset")
        if self.get("num_experts") == 1 or not routed:
            return self.mlp(x, at, width)
        shares = softmax(self.linear(x, at + "router", self.get("num_experts")))
        return self.experts(x, at + "experts.", self.choose(shares, shares, self.get("num_experts_per_tok"), False),
                            width)


class Llama4(Llama):
    """A token sees its chunk of the text in some layers; one expert's input is multiplied by its share."""
    defaults = dict(num_key_value_heads=8, head_dim=128, rms_norm_eps=1e-5, rope_theta=500000.0, num_local_experts=16,
                    intermediate_size_mlp=16384, interleave_moe_layer_step=1, use_qk_norm=True, floor_scale=8192,
                    attn_scale=0.1, attn_temperature_tuning=True, attention_chunk_size=8192, no_rope_layer_interval=4)

    def rotating(self, layer):
        listed = self.get("no_rope_layers")
        return listed[layer] if listed else (layer + 1) % self.get("no_rope_layer_interval") != 0

    def queries_keys(self, q, k, at, layer):
        if self.rotating(layer):
            q, k = self.rotate(q, layer, True), self.rotate(k, layer, True)
            if self.get("use_qk_norm"):
                q, k = (y / np.sqrt((y ** 2).mean(-1, keepdims=True) + self.get("rms_norm_eps")) for y in (q, k))
        elif self.get("attn_temperature_tuning"):
            steps = np.floor((np.arange(q.shape[0]) + 1) / self.get("floor_scale"))
            q = q * (np.log1p(steps) * self.get("attn_scale") + 1)[:, None, None]
        return q, k

    def attend(self, q, k, v, layer, sinks=None):
        types = self.get("layer_types")
        if types[layer] == "full_attention" if types else not self.rotating(layer):
            return super().attend(q, k, v, layer)
        size = self.get("attention_chunk_size")
        return np.concatenate([super(Llama4, self).attend(q[i:i + size], k[i:i + size], v[i:i + size], layer)
                               for i in range(0, q.shape[0], size)])

    def feed_forward(self, x, at, layer):
        listed, at = self.get("moe_layers"), at + "feed_forward."
        if layer not in listed if listed is not None else (layer + 1) % self.get("interleave_moe_layer_step"):
            return self.mlp(x, at, self.get("intermediate_size_mlp"))
        count, width = self.get("num_local_experts"), self.get("intermediate_size")
        logits = self.linear(x, at + "router", count)
        both = self.tensor(at + "experts.gate_up_proj", count, self.hidden, 2 * width, scale=0.2)
        down = self.tensor(at + "experts.down_proj", count, width, self.hidden, scale=0.2)
        out = self.mlp(x, at + "shared_expert.", width)
        for i, of in enumerate(logits):
            best = int(of.argmax())
            h = x[i] * sigmoid(of[best]) @ both[best]
            out[i] += (silu(h[:width]) * h[width:]) @ down[best]
        return out


NEWER = {"cohere": Cohere, "phimoe": Phimoe, "apertus": Apertus, "qwen3_vl_moe_text": Qwen3VlMoe, "falcon": Falcon,
         "falcon_h1": FalconH1, "mamba2": Mamba2, "mamba": Mamba, "falcon_mamba": FalconMamba, "jamba": Jamba,
         "llama4_text": Llama4}
