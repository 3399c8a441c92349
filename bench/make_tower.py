#!/usr/bin/env python3
"""bench/make_tower.py - image encoders of the sizes of published ones, with random weights, as mmproj files.

  bench/make_tower.py qwen2.5vl|gemma3 OUT.gguf [--layers N] [--type f16|f32]

The widths are those of Qwen2.5-VL-3B and Gemma 3 4B; fewer layers make it shorter. Needs numpy alone.
"""
import argparse
import struct

import numpy as np

TYPES = {"f32": (0, np.float32), "f16": (1, np.float16)}


class Writer:
    def __init__(self, kind):
        self.kind, self.kv, self.n, self.tensors, self.r = kind, b"", 0, [], np.random.default_rng(1)

    def text(self, s):
        s = s.encode()
        return struct.pack("<Q", len(s)) + s

    def key(self, name, value):
        self.n += 1
        self.kv += self.text(name)
        if isinstance(value, bool):
            self.kv += struct.pack("<IB", 7, value)
        elif isinstance(value, int):
            self.kv += struct.pack("<II", 4, value)
        elif isinstance(value, float):
            self.kv += struct.pack("<If", 6, value)
        elif isinstance(value, str):
            self.kv += struct.pack("<I", 8) + self.text(value)
        else:
            self.kv += struct.pack("<IIQ", 9, 6, len(value)) + struct.pack(f"<{len(value)}f", *value)

    def tensor(self, name, *shape, around=0.0):
        is_matrix = len(shape) == 2 and "position" not in name
        number, kind = TYPES[self.kind if is_matrix else "f32"]
        x = self.r.standard_normal(shape, np.float32) / np.sqrt(shape[-1] if len(shape) > 1 else 400) + around
        self.tensors.append((name, shape, number, x.astype(kind).tobytes()))

    def linear(self, name, rows, columns, bias=True):
        self.tensor(name + ".weight", rows, columns)
        if bias:
            self.tensor(name + ".bias", rows)

    def norm(self, name, n, bias=True):
        self.tensor(name + ".weight", n, around=1.0)
        if bias:
            self.tensor(name + ".bias", n)

    def write(self, path):
        info, at = b"", 0
        for name, shape, number, data in self.tensors:
            info += self.text(name) + struct.pack("<I", len(shape))
            info += b"".join(struct.pack("<Q", d) for d in reversed(shape)) + struct.pack("<IQ", number, at)
            at += (len(data) + 31) // 32 * 32
        head = b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), self.n) + self.kv + info
        with open(path, "wb") as f:
            f.write(head + b"\0" * (-len(head) % 32))
            for _, _, _, data in self.tensors:
                f.write(data + b"\0" * (-len(data) % 32))


def common(w, projector, layers, hidden, ffn, heads, out, size):
    for key, value in (("general.architecture", "clip"), ("general.type", "mmproj"), ("clip.has_vision_encoder", True),
                       ("clip.projector_type", projector), ("clip.vision.projection_dim", out),
                       ("clip.vision.image_size", size), ("clip.vision.patch_size", 14),
                       ("clip.vision.embedding_length", hidden), ("clip.vision.feed_forward_length", ffn),
                       ("clip.vision.block_count", layers), ("clip.vision.attention.head_count", heads),
                       ("clip.vision.attention.layer_norm_epsilon", 1e-6), ("clip.vision.image_mean", [0.5] * 3),
                       ("clip.vision.image_std", [0.5] * 3)):
        w.key(key, value)


def qwen(w, layers):
    hidden, ffn, out = 1280, 3420, 2048
    common(w, "qwen2.5vl_merger", layers, hidden, ffn, 16, out, 560)
    w.key("clip.use_silu", True)
    w.key("clip.vision.n_wa_pattern", min(layers, 8))
    for name in ("v.patch_embd.weight", "v.patch_embd.weight.1"):
        w.tensor(name, hidden, 3, 14, 14)
    for i in range(layers):
        name = f"v.blk.{i}."
        w.norm(name + "ln1", hidden, False)
        w.norm(name + "ln2", hidden, False)
        for part in ("attn_q", "attn_k", "attn_v", "attn_out"):
            w.linear(name + part, hidden, hidden)
        w.linear(name + "ffn_gate", ffn, hidden)
        w.linear(name + "ffn_up", ffn, hidden)
        w.linear(name + "ffn_down", hidden, ffn)
    w.norm("v.post_ln", hidden, False)
    w.linear("mm.0", 4 * hidden, 4 * hidden)
    w.linear("mm.2", out, 4 * hidden)


def gemma(w, layers):
    hidden, ffn, out = 1152, 4304, 2560
    common(w, "gemma3", layers, hidden, ffn, 16, out, 896)
    w.key("clip.use_gelu", True)
    w.tensor("v.patch_embd.weight", hidden, 3, 14, 14)
    w.tensor("v.patch_embd.bias", hidden)
    w.tensor("v.position_embd.weight", 4096, hidden)
    for i in range(layers):
        name = f"v.blk.{i}."
        w.norm(name + "ln1", hidden)
        w.norm(name + "ln2", hidden)
        for part in ("attn_q", "attn_k", "attn_v", "attn_out"):
            w.linear(name + part, hidden, hidden)
        w.linear(name + "ffn_up", ffn, hidden)
        w.linear(name + "ffn_down", hidden, ffn)
    w.norm("v.post_ln", hidden)
    w.tensor("mm.soft_emb_norm.weight", hidden, around=1.0)
    w.tensor("mm.input_projection.weight", hidden, out)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("family", choices=["qwen2.5vl", "gemma3"])
    p.add_argument("out")
    p.add_argument("--layers", type=int)
    p.add_argument("--type", choices=TYPES, default="f16")
    a = p.parse_args()
    w = Writer(a.type)
    if a.family == "gemma3":
        gemma(w, a.layers or 27)
    else:
        qwen(w, a.layers or 32)
    w.write(a.out)


if __name__ == "__main__":
    main()
