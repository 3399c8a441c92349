#!/usr/bin/env python3
"""bench/train/compare.py - steps of LoRA by jittrain beside the same steps by PyTorch, in turns.

  bench/train/compare.py MODEL TEXT [--build DIR] [--context N] [--batch N] [--rank N] [--steps N] [--rounds N]
                         [--threads N] [--dtype f32|bf16] [--keep] [--processor]

MODEL is a folder of safetensors of a dense Llama or Qwen 3; TEXT has enough text for a step. Both train adapters of all
seven matrices with AdamW, rows of N tokens. PyTorch computes a batch at once, keeps what its gradients need, and runs
the model as written below; peft does the same products. Each round runs both, one after the other; the first step of
each is left out, as it compiles or allocates. Printed are tokens a second, and the ratio, round by round. --keep has
jittrain keep what gradients need, as PyTorch does. --processor counts seconds of processor time, for machines that are
busy otherwise: what jittrain's first step costs is measured by a run of its own, and threads that wait in a loop count.

Needs torch and nothing else. Debian's python3-torch multiplies by the BLAS that is installed: without libopenblas0 that
is the reference one, which no comparison should be made with.
"""
import argparse
import json
import os
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import torch
from torch.nn import functional

HERE = os.path.dirname(os.path.abspath(__file__))
MATRICES = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj",
            "mlp.up_proj", "mlp.down_proj")
TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def read_tensors(folder, dtype):
    tensors = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".safetensors"):
            continue
        with open(os.path.join(folder, name), "rb") as file:
            data = bytearray(file.read())
        size, = struct.unpack("<Q", data[:8])
        for key, about in json.loads(bytes(data[8:8 + size])).items():
            if key != "__metadata__":
                begin, end = about["data_offsets"]
                flat = torch.frombuffer(data, dtype=TYPES[about["dtype"]], offset=8 + size + begin,
                                        count=(end - begin) // (4 if about["dtype"] == "F32" else 2))
                tensors[key] = flat.reshape(about["shape"]).to(dtype)
    return tensors


class Model:
    def __init__(self, folder, rank, dtype):
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            self.config = config = json.load(file)
        self.tensors = read_tensors(folder, dtype)
        self.heads = config["num_attention_heads"]
        self.kv_heads = config.get("num_key_value_heads", self.heads)
        self.dim = config.get("head_dim") or config["hidden_size"] // self.heads
        self.dtype, self.scale = dtype, 2.0
        self.adapters = {}
        for layer in range(config["num_hidden_layers"]):
            for matrix in MATRICES:
                key = f"model.layers.{layer}.{matrix}"
                rows, columns = self.tensors[key + ".weight"].shape
                first = torch.empty(rank, columns).uniform_(-columns ** -0.5, columns ** -0.5)
                self.adapters[key] = (torch.nn.Parameter(first), torch.nn.Parameter(torch.zeros(rows, rank)))
        self.optimiser = torch.optim.AdamW([p for pair in self.adapters.values() for p in pair], lr=1e-4,
                                           weight_decay=0)

    def product(self, key, x):
        first, second = self.adapters[key]
        low = functional.linear(functional.linear(x, first.to(self.dtype)), second.to(self.dtype))
        return functional.linear(x, self.tensors[key + ".weight"]) + self.scale * low

    def norm(self, key, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.config["rms_norm_eps"])
        return wide.to(self.dtype) * self.tensors[key]

    def rotate(self, x, cosine, sine):
        half = self.dim // 2
        return x * cosine + torch.cat((-x[..., half:], x[..., :half]), -1) * sine

    def attention(self, key, x, cosine, sine, mask):
        batch, tokens, _ = x.shape
        q, k, v = (self.product(f"{key}.{name}_proj", x).view(batch, tokens, -1, self.dim) for name in "qkv")
        if key + ".q_norm.weight" in self.tensors:
            q, k = self.norm(key + ".q_norm.weight", q), self.norm(key + ".k_norm.weight", k)
        q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        q, k = self.rotate(q, cosine, sine), self.rotate(k, cosine, sine)
        k, v = (y.repeat_interleave(self.heads // self.kv_heads, 1) for y in (k, v))
        scores = (q @ k.transpose(2, 3) * self.dim ** -0.5 + mask).float()
        out = scores.softmax(-1).to(self.dtype) @ v
        return self.product(key + ".o_proj", out.transpose(1, 2).reshape(batch, tokens, -1))

    def loss(self, ids):
        tokens = ids.shape[1]
        theta = self.config.get("rope_theta") or self.config["rope_parameters"]["rope_theta"]
        angle = torch.outer(torch.arange(tokens).float(), theta ** (-torch.arange(0, self.dim, 2).float() / self.dim))
        angle = torch.cat((angle, angle), -1)
        cosine, sine = angle.cos().to(self.dtype), angle.sin().to(self.dtype)
        mask = torch.full((tokens, tokens), float("-inf")).triu(1).to(self.dtype)
        x = self.tensors["model.embed_tokens.weight"][ids]
        for layer in range(self.config["num_hidden_layers"]):
            key = f"model.layers.{layer}"
            y = self.norm(key + ".input_layernorm.weight", x)
            x = x + self.attention(key + ".self_attn", y, cosine, sine, mask)
            y = self.norm(key + ".post_attention_layernorm.weight", x)
            gate = functional.silu(self.product(key + ".mlp.gate_proj", y))
            x = x + self.product(key + ".mlp.down_proj", gate * self.product(key + ".mlp.up_proj", y))
        x = self.norm("model.norm.weight", x)
        head = self.tensors.get("lm_head.weight", self.tensors["model.embed_tokens.weight"])
        logits = functional.linear(x, head).float()
        return functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())

    def step(self, ids, clock=time.monotonic):
        begin = clock()
        self.optimiser.zero_grad()
        self.loss(ids).backward()
        self.optimiser.step()
        return ids.numel() / (clock() - begin)


def jittrain(arguments, folder, steps):
    command = [os.path.join(arguments.build, "jittrain"), "lora", arguments.model, "--data", arguments.text, "--out",
               folder, "--context", str(arguments.context), "--batch", str(arguments.batch), "--rank",
               str(arguments.rank), "--steps", str(steps), "--threads", str(arguments.threads), "--json", "--quiet",
               "--no-plot", "--save-every", "0"] + (["--keep-activations"] if arguments.keep else [])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if result.returncode:
        sys.exit("compare.py: jittrain failed.")
    events = [json.loads(line) for line in result.stdout.splitlines()]
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return [e for e in events if e["event"] == "step"], seconds


def our_rate(arguments, folder):
    steps, seconds = jittrain(arguments, folder, arguments.steps + 1)
    if not arguments.processor:
        return statistics.median(e["tokens"] / e["seconds"] for e in steps[1:])
    return sum(e["tokens"] for e in steps[1:]) / (seconds - jittrain(arguments, folder, 1)[1])


def main():
    parser = argparse.ArgumentParser(description="LoRA by jittrain beside PyTorch, in turns")
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    parser.add_argument("--dtype", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--processor", action="store_true")
    for name, value in (("context", 512), ("batch", 1), ("rank", 16), ("steps", 3), ("rounds", 3), ("threads", 2)):
        parser.add_argument("--" + name, type=int, default=value)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(arguments.threads)
    model = Model(arguments.model, arguments.rank, torch.float32 if arguments.dtype == "f32" else torch.bfloat16)
    ids = torch.randint(0, model.config["vocab_size"], (arguments.batch, arguments.context))
    model.step(ids)
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.rounds):
            ours = our_rate(arguments, folder)
            clock = time.process_time if arguments.processor else time.monotonic
            theirs = statistics.median(model.step(ids, clock) for _ in range(arguments.steps))
            ratios.append(ours / theirs)
            print(f"jittrain {ours:.1f} tokens/s, PyTorch {torch.__version__} {arguments.dtype} {theirs:.1f}; "
                  f"{ours / theirs:.2f} times as fast", flush=True)
    print(f"median {statistics.median(ratios):.2f}, least {min(ratios):.2f}, greatest {max(ratios):.2f}")


if __name__ == "__main__":
    main()
