#!/usr/bin/env python3
"""bench/first_token.py LLAMA_SERVER [--rounds N] [--threads N] [--layers N] [--tower-layers N] [--family NAME]

How long the first token takes behind a picture: jitserve and llama.cpp's server in turns, each with a picture that it
has not seen, of the same random weights. The widths are those of Qwen2.5-VL-3B (448 x 448 pixels) and Gemma 3 4B (896
x 896); layers are fewer, and those of the text model are Llama's, of Q8_0. Started in the build folder. Prints, for
each round, the processor seconds of both, which other work on the machine changes less than it does time, and the
seconds; then the medians' ratios. Needs numpy.
"""
import argparse
import base64
import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
import zlib

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from make_tower import Writer, gemma, qwen  # noqa: E402

Q8_0, F32 = 8, 0


class TextWriter(Writer):
    def quants(self, name, rows, columns):
        blocks = rows * columns // 32
        data = np.zeros((blocks, 34), np.uint8)
        data[:, :2] = np.frombuffer(struct.pack("<e", 1 / 90 / columns ** 0.5), np.uint8)
        data[:, 2:] = self.r.integers(0, 256, (blocks, 32), np.uint8)
        self.tensors.append((name, (rows, columns), Q8_0, data.tobytes()))

    def list(self, name, kind, values):
        self.n += 1
        body = b"".join(self.text(v) for v in values) if kind == 8 else struct.pack(f"<{len(values)}i", *values)
        self.kv += self.text(name) + struct.pack("<IIQ", 9, kind, len(values)) + body


def byte_tokens():
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return [chr(b) if b in plain else chr(256 + others.index(b)) for b in range(256)]


# name: sizes, special tokens, the template's marks, sides of the picture
FAMILIES = {
    "qwen2.5vl": dict(hidden=2048, ffn=11008, heads=16, kv=2, dim=128, theta=1e6, layers=36, side=448,
                      special=["<|endoftext|>", "<|im_end|>", "<|vision_start|>", "<|image_pad|>", "<|vision_end|>"],
                      mark="<|vision_start|><|image_pad|><|vision_end|>", tower=qwen),
    "gemma3": dict(hidden=2560, ffn=10240, heads=8, kv=4, dim=256, theta=1e6, layers=34, side=896,
                   special=["<eos>", "<end_of_turn>", "<start_of_image>", "<end_of_image>", "<image_soft_token>"],
                   mark="<start_of_image>", tower=gemma),
}


def write_text(path, f, layers):
    w = TextWriter("f32")
    hidden, heads, kv, dim = (f[k] for k in ("hidden", "heads", "kv", "dim"))
    tokens = byte_tokens() + ["ab"] + f["special"]
    tokens += [f"<unused{i}>" for i in range(len(tokens), 512)]
    w.key("general.architecture", "llama")
    for name, value in (("block_count", layers), ("context_length", 8192), ("embedding_length", hidden),
                        ("feed_forward_length", f["ffn"]), ("attention.head_count", heads),
                        ("attention.head_count_kv", kv), ("attention.key_length", dim),
                        ("attention.value_length", dim), ("rope.dimension_count", dim), ("rope.freq_base", f["theta"]),
                        ("vocab_size", len(tokens)), ("attention.layer_norm_rms_epsilon", 1e-6)):
        w.key(f"llama.{name}", value)
    w.key("tokenizer.ggml.model", "gpt2")
    w.key("tokenizer.ggml.pre", "qwen2")
    w.list("tokenizer.ggml.tokens", 8, tokens)
    w.list("tokenizer.ggml.token_type", 5, [1] * 257 + [3] * (len(tokens) - 257))
    w.list("tokenizer.ggml.merges", 8, ["a b"])
    w.key("tokenizer.ggml.eos_token_id", 258)
    w.key("tokenizer.ggml.bos_token_id", 257)
    w.key("tokenizer.ggml.add_bos_token", False)
    w.key("tokenizer.chat_template",
          "{% for m in messages %}{{ m.role + ':' }}{% if m.content is string %}{{ m.content }}{% else %}"
          "{% for p in m.content %}{% if p.type == 'image' %}{{ '" + f["mark"] + "' }}{% else %}{{ p.text }}"
          "{% endif %}{% endfor %}{% endif %}{{ '|' }}{% endfor %}{{ 'assistant:' }}")
    w.quants("token_embd.weight", len(tokens), hidden)
    w.quants("output.weight", len(tokens), hidden)
    w.tensor("output_norm.weight", hidden, around=1.0)
    for i in range(layers):
        name = f"blk.{i}."
        w.tensor(name + "attn_norm.weight", hidden, around=1.0)
        w.tensor(name + "ffn_norm.weight", hidden, around=1.0)
        for part, rows in (("attn_q", heads * dim), ("attn_k", kv * dim), ("attn_v", kv * dim)):
            w.quants(f"{name}{part}.weight", rows, hidden)
        w.quants(name + "attn_output.weight", hidden, heads * dim)
        w.quants(name + "ffn_gate.weight", f["ffn"], hidden)
        w.quants(name + "ffn_up.weight", f["ffn"], hidden)
        w.quants(name + "ffn_down.weight", hidden, f["ffn"])
    w.write(path)


def png(side, seed):
    pixels = np.random.default_rng(seed).integers(0, 256, (side, side, 3), np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    def __init__(self, name, command):
        self.name, self.port = name, free_port()
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([*command, "--port", str(self.port)], stdout=self.log, stderr=self.log)
        for _ in range(1200):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health") as r:
                    if r.status == 200:
                        return
            except OSError:
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.25)
        self.log.seek(0)
        sys.exit(f"{name} is not ready: {self.log.read().decode(errors='replace')[-2000:]}")

    def processor(self):
        with open(f"/proc/{self.process.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def ask(self, picture):
        url = "data:image/png;base64," + base64.b64encode(picture).decode()
        body = {"max_tokens": 1, "temperature": 0, "messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "What is it?"}]}]}
        q = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/chat/completions", json.dumps(body).encode(),
                                   {"Content-Type": "application/json"})
        used, begun = self.processor(), time.monotonic()
        with urllib.request.urlopen(q) as r:
            answer = json.load(r)
        return self.processor() - used, time.monotonic() - begun, answer["usage"]["prompt_tokens"]


def measure(name, a, directory):
    f = FAMILIES[name]
    text, mmproj = f"{directory}/{name}.gguf", f"{directory}/mmproj-{name}.gguf"
    write_text(text, f, a.layers)
    tower = Writer("f16")
    f["tower"](tower, a.tower_layers)
    tower.write(mmproj)
    threads = str(a.threads)
    servers = [
        Server("jitserve", ["./jitserve", text, "--mmproj", mmproj, "--threads", threads, "--context", "4096",
                            "--quiet"]),
        Server("llama.cpp", [a.llama, "-m", text, "--mmproj", mmproj, "-t", threads, "-c", "4096", "-np", "1",
                             "--jinja", "--no-webui"]),
    ]
    for s in servers:
        s.ask(png(f["side"], 0))  # kernels and memory
    seen = [[], []]
    for i in range(a.rounds):
        for k, s in enumerate(servers):
            seen[k].append(s.ask(png(f["side"], 1 + i)))
        print(f"{name} {i + 1}: " + ", ".join(f"{s.name} {x[-1][0]:.2f} s of processor time, {x[-1][1]:.2f} s, "
                                              f"{x[-1][2]} tokens" for s, x in zip(servers, seen)), flush=True)
    medians = [[statistics.median(x[i] for x in one) for i in range(2)] for one in seen]
    print(f"{name}: jitserve {medians[0][0]:.2f} and llama.cpp {medians[1][0]:.2f} s of processor time "
          f"({medians[1][0] / medians[0][0]:.2f} times), {medians[0][1]:.2f} and {medians[1][1]:.2f} s "
          f"({medians[1][1] / medians[0][1]:.2f} times), {a.layers} and {a.tower_layers} layers, {threads} threads")
    for s in servers:
        s.process.terminate()
        s.process.wait()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("llama", help="llama.cpp's llama-server")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--tower-layers", type=int, default=4)
    p.add_argument("--family", choices=FAMILIES)
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        for name in [a.family] if a.family else FAMILIES:
            measure(name, a, directory)


if __name__ == "__main__":
    main()
