#!/usr/bin/python3
"""Losses of a GPT-2 that is trained whole, by PyTorch in float64: the witness of tests/train/t_train.c.

    torch_gpt2.py FOLDER

FOLDER has config.json and model.safetensors. Prints the loss before each of seven steps of AdamW (rate 1e-3, weight
decay 0.01) on one row of 24 tokens, and the norm of the gradients of the first step."""
import json
import struct
import sys

import numpy
import torch

IDS = [(i * i * 13 + 5) % 300 for i in range(24)]


def tensors(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    for name, at in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + x for x in at["data_offsets"])
        if at["dtype"] == "BF16":
            wide = numpy.frombuffer(data[begin:end], "<u2").astype("<u4") << 16
            values = wide.view("<f4")
        else:
            values = numpy.frombuffer(data[begin:end], {"F32": "<f4", "F16": "<f2"}[at["dtype"]])
        yield name, torch.tensor(values.reshape(at["shape"]).astype("f8"), requires_grad=True)


def loss_of(w, config):
    n, heads = len(IDS), config["n_head"]
    eps = config["layer_norm_epsilon"]

    def norm(x, name):
        return torch.nn.functional.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], eps)

    def product(x, name):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    def split(x):
        return x.reshape(n, heads, -1).transpose(0, 1)

    ids = torch.tensor(IDS)
    x = w["transformer.wte.weight"][ids] + w["transformer.wpe.weight"][:n]
    hidden = torch.triu(torch.ones(n, n, dtype=torch.bool), 1)
    for layer in range(config["n_layer"]):
        at = "transformer.h.%d." % layer
        q, k, v = (split(part) for part in product(norm(x, at + "ln_1"), at + "attn.c_attn").chunk(3, -1))
        scores = (q @ k.transpose(1, 2) / q.shape[-1] ** 0.5).masked_fill(hidden, float("-inf"))
        mixed = (torch.softmax(scores, -1) @ v).transpose(0, 1).reshape(n, -1)
        x = x + product(mixed, at + "attn.c_proj")
        up = product(norm(x, at + "ln_2"), at + "mlp.c_fc")
        up = 0.5 * up * (1 + torch.tanh((2 / numpy.pi) ** 0.5 * (up + 0.044715 * up ** 3)))
        x = x + product(up, at + "mlp.c_proj")
    logits = norm(x, "transformer.ln_f") @ w["transformer.wte.weight"].T
    return torch.nn.functional.cross_entropy(logits[:-1], ids[1:])


def main():
    folder = sys.argv[1]
    config = json.load(open(folder + "/config.json"))
    w = dict(tensors(folder + "/model.safetensors"))
    adam = torch.optim.AdamW(w.values(), lr=1e-3, weight_decay=0.01)
    for step in range(7):
        adam.zero_grad()
        loss = loss_of(w, config)
        loss.backward()
        if step == 0:
            print("norm %.9g" % sum(float((t.grad ** 2).sum()) for t in w.values()) ** 0.5)
        print("%.9g" % loss.item())
        adam.step()


main()
