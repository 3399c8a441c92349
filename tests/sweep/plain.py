#!/usr/bin/env python3
"""tests/sweep/plain.py - models of random configurations, computed by jitrun and by plain loops in double precision.

  tests/sweep/plain.py --jitrun build/jitrun [--families NAME,...] [--number N] [--prompts N] [--seed S]

For families whose norms subtract the mean, and those of plain_families.py. Configurations are those that families.py
draws, weights are random float32. The layers are written here from what the classes of transformers define, so neither torch nor transformers is needed:
only numpy. All log probabilities of jitrun are compared, as sweep.py does it. Exit status 1: something differs.
"""
import argparse
import json
import math
import os
import random
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sweep  # noqa: E402
from families import FAMILIES  # noqa: E402
from plain_base import Tensors  # noqa: E402
from plain_families import MODELS  # noqa: E402

erf = np.vectorize(math.erf)
ACTIVATIONS = {
    "gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "gelu_new": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
}
ACTIVATIONS["gelu_pytorch_tanh"] = ACTIVATIONS["gelu_new"]

# What stands before a layer's number, then names: the embedding, the final norm, the output matrix; of a layer: norms,
# Q, K and V (one name: one tensor), the matrix behind attention, those of the feed-forward layer (gate, up, down).
LLAMA = dict(base="model.", layer="model.layers.", embed="embed_tokens", last="norm", head="lm_head",
             norms=("input_layernorm", "post_attention_layernorm"),
             qkv=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), o="self_attn.o_proj",
             mlp=("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"))
GPT = dict(base="transformer.", layer="transformer.h.", embed="wte", last="ln_f", head="lm_head")
NAMES = {
    "starcoder2": dict(LLAMA, mlp=(None, "mlp.c_fc", "mlp.c_proj")),
    "stablelm": LLAMA,
    "nemotron": dict(LLAMA, mlp=(None, "mlp.up_proj", "mlp.down_proj")),
    "olmo": LLAMA,
    "phi": dict(LLAMA, last="final_layernorm", norms=("input_layernorm", None), o="self_attn.dense",
                mlp=(None, "mlp.fc1", "mlp.fc2")),
    "gptj": dict(GPT, norms=("ln_1", None), qkv=("attn.q_proj", "attn.k_proj", "attn.v_proj"), o="attn.out_proj",
                 mlp=(None, "mlp.fc_in", "mlp.fc_out")),
    "gpt_neox": dict(base="gpt_neox.", layer="gpt_neox.layers.", embed="embed_in", last="final_layer_norm",
                     head="embed_out", norms=("input_layernorm", "post_attention_layernorm"),
                     qkv=("attention.query_key_value",), o="attention.dense",
                     mlp=(None, "mlp.dense_h_to_4h", "mlp.dense_4h_to_h")),
    "gpt_bigcode": dict(GPT, norms=("ln_1", "ln_2"), qkv=("attn.c_attn",), o="attn.c_proj",
                        mlp=(None, "mlp.c_fc", "mlp.c_proj")),
    "gpt2": dict(GPT, norms=("ln_1", "ln_2"), qkv=("attn.c_attn",), o="attn.c_proj",
                 mlp=(None, "mlp.c_fc", "mlp.c_proj")),
    "bloom": dict(GPT, embed="word_embeddings", norms=("input_layernorm", "post_attention_layernorm"),
                  qkv=("self_attention.query_key_value",), o="self_attention.dense",
                  mlp=(None, "mlp.dense_h_to_4h", "mlp.dense_4h_to_h")),
    "mpt": dict(GPT, layer="transformer.blocks.", last="norm_f", norms=("norm_1", "norm_2"), qkv=("attn.Wqkv",),
                o="attn.out_proj", mlp=(None, "ffn.up_proj", "ffn.down_proj")),
    "opt": dict(base="model.decoder.", layer="model.decoder.layers.", embed="embed_tokens", last="final_layer_norm",
                head="lm_head", norms=("self_attn_layer_norm", "final_layer_norm"),
                qkv=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), o="self_attn.out_proj",
                mlp=(None, "fc1", "fc2")),
}
ONE_HEAD = ("gpt_bigcode",)
# Classes whose embedding and output matrix are one where a file does not say so.
TIED = ("starcoder2", "gpt_bigcode", "opt", "gpt2", "bloom", "mpt")
# Whose scores lose with distance instead of rotation, and whose matrices lie column by column.
BIASED = ("bloom", "mpt")
TURNED = ("gpt2",)
BY_HEADS = ("gpt_neox", "bloom")


def slopes(heads, greatest):
    """What a head's scores lose for each position of distance: of a power of two of heads first, then what stands
    between theirs."""
    power = 1 << int(math.log2(heads))
    first = [2.0 ** (-greatest * (i + 1) / power) for i in range(power)]
    between = [2.0 ** (-greatest * (2 * i + 1) / (2 * power)) for i in range(heads - power)]
    return np.array(first + between)


class Model(Tensors):
    """The sizes and switches of a configuration, and weights for it."""

    def __init__(self, family, c, r):
        self.family, self.c, self.names = family, c, NAMES[family]
        self.hidden = next(c[k] for k in ("hidden_size", "n_embd", "n_embed", "d_model") if k in c)
        self.layers = next(c[k] for k in ("num_hidden_layers", "n_layer", "n_layers") if k in c)
        self.heads = next(c[k] for k in ("num_attention_heads", "n_head", "n_heads") if k in c)
        self.kv_heads = 1 if family in ONE_HEAD else c.get("num_key_value_heads", self.heads)
        self.dim = c.get("head_dim") or self.hidden // self.heads
        self.ffn = (c.get("intermediate_size") or c.get("n_inner") or c.get("ffn_dim") or c.get("ffn_hidden_size")
                    or 4 * self.hidden)
        self.eps = next((c[k] for k in ("norm_epsilon", "layer_norm_eps", "norm_eps", "layer_norm_epsilon") if k in c),
                        1e-5)
        act = next((c[k] for k in ("hidden_act", "activation_function", "activation") if k in c), None)
        self.act = ACTIVATIONS[act or {"olmo": "silu", "stablelm": "silu", "bloom": "gelu_new",
                                       "mpt": "gelu"}[family]]
        self.tied = c.get("tie_word_embeddings", family in TIED)
        self.parallel = {"phi": True, "gptj": True}.get(
            family, c.get("use_parallel_residual", False))
        self.positions = {"gpt_bigcode": 0, "gpt2": 0, "opt": 2}.get(family)
        inner = c.get("attn_config") or {}
        self.scale = inner.get("softmax_scale") or 1 / math.sqrt(self.dim)
        self.slopes = slopes(self.heads, inner.get("alibi_bias_max", 8)) if family in BIASED else None
        self.window = c.get("sliding_window") if family == "starcoder2" else None
        self.biases(c)
        self.rotation(c)
        self.rng = np.random.default_rng(r.randrange(1 << 31))
        self.make()

    def biases(self, c):
        has = {"starcoder2": (c.get("use_bias", True),) * 3, "stablelm": (c.get("use_qkv_bias", False), False, False),
               "nemotron": (c.get("attention_bias", False),) * 2 + (c.get("mlp_bias", False),),
               "olmo": (c.get("attention_bias", False),) * 2 + (False,), "phi": (True,) * 3,
               "gptj": (False, False, True), "gpt_neox": (c.get("attention_bias", True),) * 2 + (True,),
               "gpt_bigcode": (True,) * 3, "opt": (True,) * 3, "gpt2": (True,) * 3,
               "bloom": (True,) * 3, "mpt": (False,) * 3}
        self.qkv_bias, self.o_bias, self.mlp_bias = has[self.family]

    def rotation(self, c):
        p = dict(c.get("rope_scaling") or {}, **(c.get("rope_parameters") or {}))
        own = self.family == "gpt_neox"  # whose class has names of its own
        self.theta = p.get("rope_theta", c.get("rotary_emb_base" if own else "rope_theta", 10000.0))
        self.factor = p.get("factor", 1.0) if p.get("rope_type", p.get("type", "default")) == "linear" else 1.0
        usual = {"stablelm": 0.25, "nemotron": 0.5, "phi": 0.5, "gpt_neox": 0.25}.get(self.family, 1.0)
        share = p.get("partial_rotary_factor", c.get("rotary_pct" if own else "partial_rotary_factor", usual))
        self.rotating = c["rotary_dim"] if self.family == "gptj" else int(self.dim * share)
        if self.positions is not None or self.family in BIASED:
            self.rotating = 0
        self.pairs = self.family == "gptj"

    def norm_weights(self, name):
        if self.family == "olmo":
            return
        self.put(name + ".weight", self.hidden, scale=0.2, about=0.0 if self.family == "nemotron" else 1.0)
        if self.family != "mpt":
            self.put(name + ".bias", self.hidden, scale=0.3)

    def matrix(self, name, rows, columns, bias):
        self.put(name + ".weight", *((columns, rows) if self.family in TURNED else (rows, columns)))
        if bias:
            self.put(name + ".bias", rows, scale=0.3)

    def make(self):
        n, self.w = self.names, {}
        vocab, q, kv = self.c["vocab_size"], self.heads * self.dim, self.kv_heads * self.dim
        self.put(n["base"] + n["embed"] + ".weight", vocab, self.hidden, scale=0.7)
        if self.positions is not None:
            rows = self.c.get("n_positions", self.c.get("max_position_embeddings")) + self.positions
            name = "embed_positions" if self.family == "opt" else "wpe"
            self.put(n["base"] + name + ".weight", rows, self.hidden, scale=0.5)
        if self.family == "bloom":
            self.norm_weights(n["base"] + n["embed"] + "_layernorm")
        for i in range(self.layers):
            at = f"{n['layer']}{i}."
            for norm in self.own_norms():
                self.norm_weights(at + norm)
            sizes = (q + 2 * kv,) if len(n["qkv"]) == 1 else (q, kv, kv)
            for name, rows in zip(n["qkv"], sizes):
                self.matrix(at + name, rows, self.hidden, self.qkv_bias)
            self.matrix(at + n["o"], self.hidden, q, self.o_bias)
            for name, rows, columns in zip(n["mlp"], (self.ffn, self.ffn, self.hidden),
                                           (self.hidden, self.hidden, self.ffn)):
                if name:
                    self.matrix(at + name, rows, columns, self.mlp_bias)
        self.norm_weights(n["base"] + n["last"])
        if not self.tied:
            self.put(n["head"] + ".weight", vocab, self.hidden)
        if self.family in ("phi", "gptj"):
            self.put(n["head"] + ".bias", vocab, scale=0.5)

    def own_norms(self):
        first, second = self.names["norms"]
        if second is None or (self.family == "stablelm" and self.parallel):
            return (first,)
        return first, second

    # ---- the plain computation

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x ** 2).mean(-1, keepdims=True) + self.eps)
        if self.family == "olmo":
            return x
        w = self.w[name + ".weight"].astype(np.float64)
        return x * (w + 1 if self.family == "nemotron" else w) + self.w.get(name + ".bias", 0.0)

    def product(self, x, name):
        w = self.w[name + ".weight"].astype(np.float64)
        y = x @ (w if self.family in TURNED else w.T)
        return y + self.w[name + ".bias"] if name + ".bias" in self.w else y

    def rotate(self, x):
        n = self.rotating
        if not n:
            return x
        angle = np.arange(x.shape[0])[:, None] * self.theta ** (-np.arange(0, n, 2) / n) / self.factor
        cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
        out = x.copy()
        first, second = (slice(0, n, 2), slice(1, n, 2)) if self.pairs else (slice(0, n // 2), slice(n // 2, n))
        out[..., first] = x[..., first] * cos - x[..., second] * sin
        out[..., second] = x[..., second] * cos + x[..., first] * sin
        return out

    def split(self, x, at):
        t, h, k, d = x.shape[0], self.heads, self.kv_heads, self.dim
        names = [at + name for name in self.names["qkv"]]
        if len(names) == 3:
            return [self.product(x, name).reshape(t, -1, d) for name in names]
        y = self.product(x, names[0])
        if self.family in BY_HEADS:  # of each head its query, key and value
            y = y.reshape(t, h, 3, d)
            return [y[:, :, i] for i in range(3)]
        return [part.reshape(t, -1, d) for part in np.split(y, [h * d, (h + k) * d], axis=-1)]

    def attention(self, x, at):
        t = x.shape[0]
        q, k, v = self.split(x, at)
        q, k = self.rotate(q), self.rotate(k)
        k, v = (np.repeat(y, self.heads // self.kv_heads, axis=1) for y in (k, v))
        scores = np.einsum("thd,shd->hts", q, k) * self.scale
        distance = np.arange(t)[:, None] - np.arange(t)[None]
        if self.slopes is not None:
            scores = scores - self.slopes[:, None, None] * distance
        seen = (distance >= 0) & (distance < (self.window or t + 1))
        scores = np.where(seen, scores, -np.inf)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        return self.product(np.einsum("hts,shd->thd", scores, v).reshape(t, -1), at + self.names["o"])

    def feed_forward(self, x, at):
        gate, up, down = self.names["mlp"]
        h = self.product(x, at + up)
        h = self.act(self.product(x, at + gate)) * h if gate else self.act(h)
        return self.product(h, at + down)

    def logits(self, ids):
        n = self.names
        embed = self.w[n["base"] + n["embed"] + ".weight"].astype(np.float64)
        x = embed[ids]
        if self.positions is not None:
            name = "embed_positions" if self.family == "opt" else "wpe"
            x = x + self.w[n["base"] + name + ".weight"][self.positions:self.positions + len(ids)]
        if self.family == "bloom":
            x = self.norm(x, n["base"] + n["embed"] + "_layernorm")
        for i in range(self.layers):
            at, norms = f"{n['layer']}{i}.", self.own_norms()
            h = self.norm(x, at + norms[0])
            y = x + self.attention(h, at)
            if not self.parallel:
                h = self.norm(y, at + norms[1])
            elif len(norms) == 2:
                h = self.norm(x, at + norms[1])
            x = y + self.feed_forward(h, at)
        x = self.norm(x, n["base"] + n["last"])
        head = embed if self.tied else self.w[n["head"] + ".weight"].astype(np.float64)
        return x @ head.T + self.w.get(n["head"] + ".bias", 0.0)


def plain_rotation(c):
    """Rotary scalings other than a factor are sweep.py's."""
    for field in ("rope_parameters", "rope_scaling"):
        p = c.get(field)
        if p and "full_attention" not in p and p.get("rope_type", p.get("type")) not in ("default", "linear"):
            kept = {k: p[k] for k in ("rope_theta", "partial_rotary_factor") if k in p}
            c[field] = dict(kept, rope_type="default")
    return c


def one_case(family, number, seed, prompts):
    """Worst difference of a log probability, as a part of the largest logit; or a sentence."""
    r = random.Random(f"plain:{seed}:{family}:{number}")
    c = plain_rotation(FAMILIES[family](r))
    model = MODELS.get(family, Model)(family, dict(c, model_type=family), r)
    worst = 0.0
    with tempfile.TemporaryDirectory(prefix="plain-") as folder:
        model.save(folder)
        for length in (r.randint(20, 75), 1, r.randint(2, 9))[:prompts]:
            ids = [r.randrange(c["vocab_size"]) for _ in range(length)]
            run, failed = sweep.run_jitrun(folder, ids, c["vocab_size"])
            if failed:
                return f"exit status {failed[0]}: {failed[1]}", c
            rows = model.logits(ids + run["ids"][:-1])[-len(run["ids"]):]
            by, right = sweep.worst_of([list(row) for row in rows], run)
            worst = max(worst, by if right else math.inf)
    return worst, c


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jitrun", default="build/jitrun", help="the program to judge")
    parser.add_argument("--families", default=",".join([*NAMES, *MODELS]), help="names with commas between")
    parser.add_argument("--number", type=int, default=8, help="cases of each family")
    parser.add_argument("--prompts", type=int, default=3, help="of each case, 1 to 3")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.option = []
    sweep.options = options
    bad = 0
    for family in options.families.split(","):
        results = [one_case(family, i, options.seed, options.prompts) for i in range(options.number)]
        wrong = [(i, by, c) for i, (by, c) in enumerate(results) if isinstance(by, str) or by > sweep.TOLERANCE]
        worst = max((by for by, c in results if not isinstance(by, str)), default=0.0)
        print(f"{family:12} {len(results)} cases, {len(wrong)} differ, at most {worst:.1e}")
        for i, by, c in wrong[:3]:
            print(f"  case {i}: {by}\n  {json.dumps(c)}")
        bad += len(wrong)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
