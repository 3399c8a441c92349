#!/usr/bin/env python3
"""tests/vision/plain_towers.py - image encoders of random configurations, computed by plain loops in double precision.

  tests/vision/plain_towers.py DIR [--number N] [--seed S]

Writes folders in the form of transformers, each with tensors.safetensors: what the image processor gives, and the
features. t_tower compares them where JITRUN_TOWERS names DIR. Needs numpy alone; the layers are written here from what
the classes of transformers define.
"""
import argparse
import json
import math
import random
import struct
import sys
from pathlib import Path

import numpy as np

erf = np.vectorize(math.erf)
ACT = {
    "gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "gelu_pytorch_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
    "quick_gelu": lambda x: x / (1 + np.exp(-1.702 * x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, x in tensors.items():
        kind = "I64" if x.dtype == np.int64 else "F32"
        raw = x.tobytes() if kind == "I64" else x.astype("<f4").tobytes()
        header[name] = {"dtype": kind, "shape": list(x.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Tower:
    """Weights by their names, made when they are first asked for."""

    def __init__(self, seed, prefix, out):
        self.r, self.prefix, self.out, self.w = np.random.default_rng(seed), prefix, out, {}

    def weight(self, name, *shape, around=0.0, size=None, out=False):
        name = (self.out if out else self.prefix) + name
        if name not in self.w:
            size = size or 1 / math.sqrt(shape[-1])
            self.w[name] = (around + size * self.r.standard_normal(shape)).astype(np.float32)
        return self.w[name].astype(np.float64)

    def linear(self, name, x, rows, bias=False, out=False):
        y = x @ self.weight(name + ".weight", rows, x.shape[-1], out=out).T
        return y + self.weight(name + ".bias", rows, size=0.2, out=out) if bias else y

    def norm(self, name, x, eps, rms=False, out=False):
        w = self.weight(name + ".weight", x.shape[-1], around=1, size=0.2, out=out)
        if rms:
            return rms_norm(x, eps) * w
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
        return x * w + self.weight(name + ".bias", x.shape[-1], size=0.2, out=out)


def rms_norm(x, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def attend(q, k, v, scale, seen=None):
    """[rows, heads, dim] each; seen: whether a row sees another one."""
    scores = np.einsum("ihd,jhd->hij", q, k) * scale
    if seen is not None:
        scores = np.where(seen[None], scores, -np.inf)
    return np.einsum("hij,jhd->ihd", softmax(scores), v).reshape(q.shape[0], -1)


def rotate(x, angle):
    """Element i turns with that half of the last axis behind it. angle: [rows, 1, half]"""
    a, b = np.split(x, 2, -1)
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1)


def places(height, width, block):
    """Rows and columns of patches, block by block."""
    out = []
    for y in range(0, height, block):
        for x in range(0, width, block):
            out += [(y + j, x + i) for j in range(block) for i in range(block)]
    return np.array(out)


# ---- families: each gives a configuration, and features of patches

def gemma4(r, t, height, width):
    heads, dim = r.choice([1, 2, 3, 5]), 4 * r.choice([1, 2, 3, 6])
    c = {"model_type": "gemma4_vision", "hidden_size": heads * dim, "num_attention_heads": heads,
         "num_key_value_heads": heads, "head_dim": dim, "intermediate_size": r.choice([5, 24, 33]),
         "num_hidden_layers": r.choice([1, 2, 3]), "patch_size": r.choice([2, 4, 5]),
         "pooling_kernel_size": r.choice([1, 2, 3]), "position_embedding_size": 40, "rms_norm_eps": r.choice([1e-6, 1e-3]),
         "use_clipped_linears": r.random() < 0.5, "standardize": r.random() < 0.5,
         "hidden_activation": r.choice(["gelu_pytorch_tanh", "gelu"])}
    if r.random() < 0.5:
        c["rope_parameters"] = {"rope_type": "default", "rope_theta": r.choice([100.0, 37.0])}
    k, eps, hidden, text = c["pooling_kernel_size"], c["rms_norm_eps"], c["hidden_size"], r.choice([7, 32])
    theta = c.get("rope_parameters", {}).get("rope_theta", 100.0)
    at = places(height * k, width * k, 1)
    pixels = t.r.random((len(at), 3 * c["patch_size"] ** 2)).astype(np.float32)

    def linear(name, x, rows):
        low, high = [], []
        if c["use_clipped_linears"]:
            for side in ("input", "output"):
                low.append(t.weight(f"{name}.{side}_min", size=0.3, around=-1.5))
                high.append(t.weight(f"{name}.{side}_max", size=0.3, around=1.5))
            x = np.clip(x, low[0], high[0])
        y = t.linear(name + ".linear", x, rows)
        return np.clip(y, low[1], high[1]) if low else y

    table = t.weight("patch_embedder.position_embedding_table", 2, 40, hidden, size=0.5)
    x = t.linear("patch_embedder.input_proj", 2 * (pixels.astype(np.float64) - 0.5), hidden)
    x += table[0][at[:, 1]] + table[1][at[:, 0]]
    freq = theta ** (-np.arange(0, dim // 2, 2) / (dim // 2))
    for i in range(c["num_hidden_layers"]):
        name = f"encoder.layers.{i}."
        h = t.norm(name + "input_layernorm", x, eps, True)
        q, key, v = (linear(f"{name}self_attn.{n}_proj", h, hidden).reshape(-1, heads, dim) for n in "qkv")
        q, key = t.norm(name + "self_attn.q_norm", q, eps, True), t.norm(name + "self_attn.k_norm", key, eps, True)

        def turned(z):
            first, second = np.split(z, 2, -1)
            return np.concatenate([rotate(first, at[:, 1, None, None] * freq), rotate(second, at[:, 0, None, None] * freq)], -1)
        o = linear(name + "self_attn.o_proj", attend(turned(q), turned(key), rms_norm(v, eps), 1.0), hidden)
        x = x + t.norm(name + "post_attention_layernorm", o, eps, True)
        h = t.norm(name + "pre_feedforward_layernorm", x, eps, True)
        gate = ACT[c["hidden_activation"]](linear(name + "mlp.gate_proj", h, c["intermediate_size"]))
        o = linear(name + "mlp.down_proj", gate * linear(name + "mlp.up_proj", h, c["intermediate_size"]), hidden)
        x = x + t.norm(name + "post_feedforward_layernorm", o, eps, True)
    x = x.reshape(height, k, width, k, hidden).mean((1, 3)).reshape(-1, hidden) * math.sqrt(hidden)
    if c["standardize"]:
        x = (x - t.weight("std_bias", hidden, size=0.5)) * t.weight("std_scale", hidden, around=1, size=0.3)
    f = t.linear("embedding_projection", rms_norm(x, eps), text, out=True)
    return {"model_type": "gemma4", "vision_config": c, "text_config": {"hidden_size": text}}, pixels, (height * k, width * k), f


def qwen25(r, t, height, width):
    heads, dim, merge, patch = r.choice([1, 2, 3]), 4 * r.choice([1, 2, 5]), r.choice([1, 2, 3]), r.choice([2, 4])
    hidden, layers = heads * dim, r.choice([1, 2, 4])
    window = r.choice([1, 2, 3])
    c = {"model_type": "qwen2_5_vl", "hidden_size": hidden, "num_heads": heads, "depth": layers, "in_channels": 3,
         "intermediate_size": r.choice([9, 32]), "patch_size": patch, "spatial_merge_size": merge, "temporal_patch_size": 2,
         "window_size": window * merge * patch, "fullatt_block_indexes": [i for i in range(layers) if r.random() < 0.4],
         "hidden_act": r.choice(["silu", "gelu"]), "out_hidden_size": r.choice([8, 21])}
    at = places(height * merge, width * merge, merge)
    pixels = t.r.standard_normal((len(at), 6 * patch ** 2)).astype(np.float32)
    x = t.linear("patch_embed.proj", pixels.astype(np.float64), hidden)
    t.w[t.prefix + "patch_embed.proj.weight"] = t.w[t.prefix + "patch_embed.proj.weight"].reshape(hidden, 3, 2, patch, patch)
    freq = 10000.0 ** (-np.arange(0, dim // 2, 2) / (dim // 2))
    angle = np.concatenate([at[:, 0, None] * freq, at[:, 1, None] * freq], -1)[:, None]
    own = at // (window * merge)
    same = (own[:, None] == own[None]).all(-1)
    for i in range(layers):
        name = f"blocks.{i}."
        h = t.norm(name + "norm1", x, 1e-6, True)
        q, k, v = (z.reshape(-1, heads, dim) for z in np.split(t.linear(name + "attn.qkv", h, 3 * hidden, True), 3, -1))
        seen = None if i in c["fullatt_block_indexes"] else same
        x = x + t.linear(name + "attn.proj", attend(rotate(q, angle), rotate(k, angle), v, dim ** -0.5, seen), hidden, True)
        h = t.norm(name + "norm2", x, 1e-6, True)
        gate = ACT[c["hidden_act"]](t.linear(name + "mlp.gate_proj", h, c["intermediate_size"], True))
        x = x + t.linear(name + "mlp.down_proj", gate * t.linear(name + "mlp.up_proj", h, c["intermediate_size"], True), hidden, True)
    x = t.norm("merger.ln_q", x, 1e-6, True).reshape(height * width, -1)
    x = ACT["gelu"](t.linear("merger.mlp.0", x, x.shape[-1], True))
    f = t.linear("merger.mlp.2", x, c["out_hidden_size"], True)
    return {"model_type": "qwen2_5_vl", "vision_config": c}, pixels, (height * merge, width * merge), f


def pixtral(r, t, height, width):
    heads, dim, patch = r.choice([1, 2, 3]), 4 * r.choice([1, 2, 5]), r.choice([2, 4])
    hidden, layers, text = heads * dim, r.choice([1, 2, 3]), r.choice([8, 21])
    llava = r.random() < 0.4
    merge = 1 if llava else r.choice([1, 2, 3])
    bias = r.random() < 0.5
    c = {"model_type": "pixtral", "hidden_size": hidden, "num_attention_heads": heads, "head_dim": dim,
         "num_hidden_layers": layers, "intermediate_size": r.choice([9, 32]), "patch_size": patch, "num_channels": 3,
         "image_size": patch * 40, "hidden_act": r.choice(["silu", "gelu"]), "rope_theta": r.choice([10000.0, 123.0])}
    outer = {"model_type": "llava" if llava else "mistral3", "vision_config": c, "projector_hidden_act": "gelu",
             "multimodal_projector_bias": bias, "text_config": {"rms_norm_eps": r.choice([1e-5, 1e-3])},
             "vision_feature_layer": -1}
    if llava:
        outer["vision_feature_select_strategy"] = "full"
    else:
        outer["spatial_merge_size"] = merge
    rows, columns = height * merge, width * merge
    pixels = t.r.standard_normal((1, 3, rows * patch, columns * patch)).astype(np.float32)
    at = places(rows, columns, 1)
    parts = pixels[0].astype(np.float64).reshape(3, rows, patch, columns, patch).transpose(1, 3, 0, 2, 4)
    x = t.linear("patch_conv", parts.reshape(rows * columns, -1), hidden)
    t.w[t.prefix + "patch_conv.weight"] = t.w[t.prefix + "patch_conv.weight"].reshape(hidden, 3, patch, patch)
    x = t.norm("ln_pre", x, 1e-5, True)
    freq = c["rope_theta"] ** (-np.arange(0, dim, 2) / dim)
    angle = np.concatenate([at[:, 0, None] * freq[::2], at[:, 1, None] * freq[1::2]], -1)[:, None]
    for i in range(layers):
        name = f"transformer.layers.{i}."
        h = t.norm(name + "attention_norm", x, 1e-5, True)
        q, k, v = (t.linear(f"{name}attention.{n}_proj", h, hidden).reshape(-1, heads, dim) for n in "qkv")
        x = x + t.linear(name + "attention.o_proj", attend(rotate(q, angle), rotate(k, angle), v, dim ** -0.5), hidden)
        h = t.norm(name + "ffn_norm", x, 1e-5, True)
        gate = ACT[c["hidden_act"]](t.linear(name + "feed_forward.gate_proj", h, c["intermediate_size"]))
        x = x + t.linear(name + "feed_forward.down_proj", gate * t.linear(name + "feed_forward.up_proj", h, c["intermediate_size"]), hidden)
    if not llava:
        x = t.norm("norm", x, outer["text_config"]["rms_norm_eps"], True, out=True)
        x = x.reshape(height, merge, width, merge, hidden).transpose(0, 2, 4, 1, 3).reshape(height * width, -1)
        x = t.linear("patch_merger.merging_layer", x, hidden, out=True)
    x = ACT["gelu"](t.linear("linear_1", x, text, bias, out=True))
    return outer, pixels, None, t.linear("linear_2", x, text, bias, out=True)


FAMILIES = {
    "gemma4": (gemma4, "model.vision_tower.", "model.embed_vision."),
    "qwen25": (qwen25, "visual.", "visual."),
    "pixtral": (pixtral, "vision_tower.", "multi_modal_projector."),
}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("dir", type=Path)
    p.add_argument("--number", type=int, default=4)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    for family, (make, prefix, out) in FAMILIES.items():
        for n in range(a.number):
            seed = f"{a.seed}-{family}-{n}"
            r = random.Random(seed)
            t = Tower(list(seed.encode()), prefix, out)
            config, pixels, grid, f = make(r, t, r.choice([1, 2, 3, 5]), r.choice([1, 2, 4, 7]))
            folder = a.dir / f"{family}-{n}"
            folder.mkdir(parents=True)
            (folder / "config.json").write_text(json.dumps(config))
            write_safetensors(folder / "model.safetensors", t.w)
            more = {"spatial_shapes0": np.array(grid, np.int64)} if grid else {}
            write_safetensors(folder / "tensors.safetensors", {"pixel_values0": pixels, "features0": f, **more})
    return 0


sys.exit(main())
