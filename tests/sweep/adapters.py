#!/usr/bin/env python3
"""tests/sweep/adapters.py - random adapters beside jitrun, by plain loops in double precision.

  tests/sweep/adapters.py --jitrun build/jitrun [--number N] [--seed S]

A small Llama of random weights gets a PEFT folder with random ranks, patterns of ranks and alphas, rank-stabilised
scales, magnitudes (DoRA), biases of B, layers and matrices left out, or the same pairs as a GGUF adapter's file. All log
probabilities of jitrun with --lora are compared with those of numpy, which needs no other package. Exit status 1:
something differs.
"""
import argparse
import json
import math
import os
import random
import struct
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sweep  # noqa: E402
from plain_base import Llama  # noqa: E402

FORM = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 250, "num_hidden_layers": 2,
        "rms_norm_eps": 1e-5, "hidden_act": "silu", "max_position_embeddings": 256, "tie_word_embeddings": False,
        "rope_theta": 10000.0}
MODULES = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj",
           "mlp.up_proj", "mlp.down_proj")
GGUF = dict(zip(MODULES, ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")))
FAR = 2e-5


class Adapted(Llama):
    """A Llama whose products have what `pairs` adds: by module A, B, the scale, and perhaps a magnitude and a bias."""
    pairs = {}

    def linear(self, x, name, rows, bias=False):
        y = super().linear(x, name, rows, bias)
        if name not in self.pairs:
            return y
        a, b, scale, magnitude, bias_of_b = self.pairs[name]
        more = scale * (x @ a.T @ b.T)
        if bias_of_b is not None:
            more = more + scale * bias_of_b
        if magnitude is None:
            return y + more
        whole = self.w[name + ".weight"].astype(np.float64) + scale * (b @ a)
        return (y + more) * magnitude / np.sqrt((whole ** 2).sum(1))


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, t in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [at, at + t.nbytes]}
        at += t.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(t.tobytes() for t in tensors.values()))


def pairwise(b, dim):
    """Rows of queries and keys as GGUF files of llama have them: those that rotate together are neighbours."""
    return b.reshape(-1, 2, dim // 2, b.shape[-1]).swapaxes(1, 2).reshape(b.shape)


def write_gguf(path, pairs, alpha, dim):
    def text(s):
        return struct.pack("<Q", len(s)) + s.encode()

    keys = [text("general.type") + struct.pack("<I", 8) + text("adapter"),
            text("general.architecture") + struct.pack("<I", 8) + text("llama"),
            text("adapter.type") + struct.pack("<I", 8) + text("lora"),
            text("adapter.lora.alpha") + struct.pack("<If", 6, alpha)]
    infos, blobs, at = [], [], 0
    for name, (a, b) in pairs.items():
        layer, module = name.split(".", 3)[2:]
        if module in MODULES[:2]:
            b = pairwise(b, dim)
        for t, end in ((a, "lora_a"), (b, "lora_b")):
            blob = np.ascontiguousarray(t, dtype="<f4").tobytes()
            infos.append(text("blk.%s.%s.weight.%s" % (layer, GGUF[module], end)) +
                         struct.pack("<IQQIQ", 2, t.shape[1], t.shape[0], 0, at))
            blobs.append(blob + bytes(-len(blob) % 32))
            at += len(blobs[-1])
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(keys)) + b"".join(keys + infos)
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32) + b"".join(blobs))


def draw(model, r, folder):
    """Writes an adapter, and gives the model what it adds. Returns its path and what it is."""
    rng = np.random.default_rng(r.randrange(1 << 31))
    gguf = r.random() < 0.3
    dora, bias, stable = (not gguf and r.random() < 0.4 for _ in range(3))
    rank, alpha = r.choice((1, 2, 3, 5, 8, 17, 64)), float(r.choice((1, 4, 7.5, 16, 32)))
    config = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": rank, "lora_alpha": alpha, "use_rslora": stable,
              "use_dora": dora, "lora_bias": bias, "bias": "none", "lora_dropout": 0.0}
    modules = r.sample(MODULES, r.randint(1, len(MODULES)))
    config["target_modules"] = [m.split(".")[1] for m in modules]
    if not gguf and r.random() < 0.5:
        config["rank_pattern"] = {r.choice(modules).split(".")[1]: r.choice((1, 3, 33))}
    if not gguf and r.random() < 0.5:
        config["alpha_pattern"] = {"layers.%d.%s" % (r.randrange(2), r.choice(modules)): 3.0}
    layers = [r.randrange(2)] if r.random() < 0.3 else [0, 1]
    if len(layers) == 1:
        config["layers_to_transform"] = layers
    files, plain, model.pairs = {}, {}, {}
    for layer in layers:
        for module in modules:
            name = "model.layers.%d.%s" % (layer, module)
            w = model.w[name + ".weight"]
            n = config.get("rank_pattern", {}).get(module.split(".")[1], rank)
            own = config.get("alpha_pattern", {}).get("layers.%d.%s" % (layer, module), alpha)
            a = (rng.standard_normal((n, w.shape[1])) / math.sqrt(w.shape[1])).astype("f4")
            b = (rng.standard_normal((w.shape[0], n)) * 0.3 / max(own, 1)).astype("f4")
            at = "base_model.model." + name
            files[at + ".lora_A.weight"], files[at + ".lora_B.weight"] = a, b
            plain[name] = (a, b)
            magnitude = shift = None
            if dora:
                magnitude = (np.sqrt((w ** 2).sum(1)) * rng.uniform(0.7, 1.4, w.shape[0])).astype("f4")
                files[at + ".lora_magnitude_vector"] = magnitude
            if bias:
                shift = (rng.standard_normal(w.shape[0]) * 0.3 / max(own, 1)).astype("f4")
                files[at + ".lora_B.bias"] = shift
            scale = own / (math.sqrt(n) if stable else n)
            model.pairs[name] = tuple(x if x is None or isinstance(x, float) else x.astype("f8")
                                      for x in (a, b, scale, magnitude, shift))
    path = os.path.join(folder, "adapter.gguf" if gguf else "adapter")
    if gguf:
        write_gguf(path, plain, alpha, model.dim)
    else:
        os.mkdir(path)
        write_safetensors(os.path.join(path, "adapter_model.safetensors"), files)
        with open(os.path.join(path, "adapter_config.json"), "w", encoding="utf-8") as f:
            json.dump(config, f)
    return path, "%s r %d alpha %g%s%s%s" % ("GGUF" if gguf else "PEFT", rank, alpha, " DoRA" * dora, " bias" * bias,
                                             " rslora" * stable)


def one_case(number, seed):
    """The greatest difference of a log probability, as a part of the largest logit; or a sentence; what was drawn."""
    r = random.Random("adapters:%d:%d" % (seed, number))
    form = dict(FORM, hidden_size=64 * r.randint(1, 3), intermediate_size=32 * r.randint(1, 6), num_attention_heads=4,
                num_key_value_heads=r.choice((1, 2, 4)), head_dim=r.choice((32, 64)))
    model = Adapted("llama", form, r)
    with tempfile.TemporaryDirectory(prefix="adapters-") as folder:
        model.save(folder)
        plain = model.logits([1, 2, 3])
        path, what = draw(model, r, folder)
        changes = float(np.abs(model.logits([1, 2, 3]) - plain).max() / np.abs(plain).max())
        if changes < 1e-3:
            return "the adapter changes nothing", what
        ids = [r.randrange(form["vocab_size"]) for _ in range(r.randint(1, 40))]
        sweep.options.option = ["--lora", path]
        run, failed = sweep.run_jitrun(folder, ids, form["vocab_size"])
        if failed:
            return "exit status %d: %s" % failed, what
        rows = model.logits(ids + run["ids"][:-1])[-len(run["ids"]):]
        by, right = sweep.worst_of([list(row) for row in rows], run)
    return by if right else math.inf, what


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--jitrun", default="build/jitrun")
    parser.add_argument("--number", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    sweep.options = parser.parse_args()
    bad = 0
    for number in range(sweep.options.number):
        result, what = one_case(number, sweep.options.seed)
        wrong = isinstance(result, str) or not result < FAR
        bad += wrong
        print("%s %d: %s: %s" % ("DIFFERS" if wrong else "equal", number, what,
                                 result if isinstance(result, str) else "%.1e" % result), flush=True)
    print("%d cases, %d differ" % (sweep.options.number, bad))
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
