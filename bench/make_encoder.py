"""Writes a BERT of a usual shape, whose weights are made by chance.

make_encoder.py base|minilm FOLDER [F32|BF16]: a folder with safetensors, without a tokenizer.
make_encoder.py base|minilm FILE.gguf [F32|F16|BF16|Q8_0]: the same as GGUF, whose tokens are w999, w1000 and so on."""
import json
import math
import os
import struct
import sys

SHAPES = {"base": (768, 12, 12, 3072), "minilm": (384, 6, 12, 1536)}
VOCAB, POSITIONS, EPS = 30522, 512, 1e-12
PARTS = (("attention.self.query", "attn_q"), ("attention.self.key", "attn_k"), ("attention.self.value", "attn_v"),
         ("attention.output.dense", "attn_output"), ("attention.output.LayerNorm", "attn_output_norm"),
         ("intermediate.dense", "ffn_up"), ("output.dense", "ffn_down"), ("output.LayerNorm", "layer_output_norm"))


def tensors(hidden, layers, ffn):
    """Name, name in GGUF files, and shape of each."""
    yield "embeddings.word_embeddings.weight", "token_embd.weight", (VOCAB, hidden)
    yield "embeddings.position_embeddings.weight", "position_embd.weight", (POSITIONS, hidden)
    yield "embeddings.token_type_embeddings.weight", "token_types.weight", (2, hidden)
    yield "embeddings.LayerNorm.weight", "token_embd_norm.weight", (hidden,)
    yield "embeddings.LayerNorm.bias", "token_embd_norm.bias", (hidden,)
    for i in range(layers):
        for name, short in PARTS:
            rows = ffn if short == "ffn_up" else hidden
            shape = (rows,) if "norm" in short else (rows, ffn if short == "ffn_down" else hidden)
            for last, dims in (("weight", shape), ("bias", (rows,))):
                yield f"encoder.layer.{i}.{name}.{last}", f"blk.{i}.{short}.{last}", dims


SIGNS = bytes(0x3c if i % 2 else 0xbc for i in range(256))
HALVES = bytes((0x20 if i % 2 else 0xa0) + i % 4 for i in range(256))


def numbers(n, ones, dtype):
    """1, or numbers around 0 of a size between 1/128 and 1/32."""
    if dtype == "Q8_0":
        scale = struct.pack("<e", 1 / 4096)
        return b"".join(scale + os.urandom(32) for _ in range(n // 32))
    if dtype == "F16":
        low, high = os.urandom(n), os.urandom(n).translate(HALVES)
    else:
        low, high = (b"\x80" * n, b"\x3f" * n) if ones else (os.urandom(n), os.urandom(n).translate(SIGNS))
    size = 4 if dtype == "F32" else 2
    data = bytearray(n * size)
    data[size - 2::size] = low
    data[size - 1::size] = high
    return data


def write_folder(folder, shape, dtype):
    hidden, layers, heads, ffn = shape
    os.makedirs(folder, exist_ok=True)
    header, parts, at = {}, [], 0
    for name, _, dims in tensors(hidden, layers, ffn):
        data = numbers(math.prod(dims), name.endswith("LayerNorm.weight"), dtype)
        header[name] = {"dtype": dtype, "shape": list(dims), "data_offsets": [at, at + len(data)]}
        at += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for data in parts:
            f.write(data)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump({"architectures": ["BertModel"], "model_type": "bert", "hidden_size": hidden, "hidden_act": "gelu",
                   "num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": ffn,
                   "layer_norm_eps": EPS, "max_position_embeddings": POSITIONS, "type_vocab_size": 2,
                   "vocab_size": VOCAB, "pad_token_id": 0}, f)


def string(s):
    data = s.encode()
    return struct.pack("<Q", len(data)) + data


def field(name, kind, value):
    """A field of a GGUF file: a number (u, f or b), a text (s), or a list of texts or of numbers."""
    kinds = {"u": (4, "<I"), "i": (5, "<i"), "f": (6, "<f"), "b": (7, "<?")}
    out = string(name)
    if kind == "s":
        return out + struct.pack("<I", 8) + string(value)
    if kind == "[s":
        return out + struct.pack("<IIQ", 9, 8, len(value)) + b"".join(string(s) for s in value)
    if kind[0] == "[":
        number, form = kinds[kind[1]]
        return out + struct.pack("<IIQ", 9, number, len(value)) + b"".join(struct.pack(form, x) for x in value)
    number, form = kinds[kind]
    return out + struct.pack("<I", number) + struct.pack(form, value)


def fields(shape):
    hidden, layers, heads, ffn = shape
    special = {0: "[PAD]", 100: "[UNK]", 101: "[CLS]", 102: "[SEP]", 103: "[MASK]"}
    tokens = [special.get(i, f"[unused{i}]") if i < 999 else f"\u2581w{i}" for i in range(VOCAB)]
    yield field("general.architecture", "s", "bert")
    yield field("general.name", "s", "made by chance")
    for name, kind, value in (("block_count", "u", layers), ("context_length", "u", POSITIONS),
                              ("embedding_length", "u", hidden), ("feed_forward_length", "u", ffn),
                              ("attention.head_count", "u", heads), ("attention.layer_norm_epsilon", "f", EPS),
                              ("attention.causal", "b", False), ("pooling_type", "u", 1)):
        yield field("bert." + name, kind, value)
    yield field("tokenizer.ggml.model", "s", "bert")
    yield field("tokenizer.ggml.pre", "s", "jina-v2-en")
    yield field("tokenizer.ggml.token_type_count", "u", 2)
    yield field("tokenizer.ggml.tokens", "[s", tokens)
    yield field("tokenizer.ggml.token_type", "[i", [3 if t.startswith("[") else 1 for t in tokens])
    for name, value in (("unknown", 100), ("seperator", 102), ("padding", 0), ("cls", 101), ("mask", 103)):
        yield field(f"tokenizer.ggml.{name}_token_id", "u", value)


def write_gguf(path, shape, dtype):
    hidden, layers, _, ffn = shape
    types = {"F32": 0, "F16": 1, "BF16": 30, "Q8_0": 8}
    about, parts, at = [], [], 0
    for _, name, dims in tensors(hidden, layers, ffn):
        own = dtype if len(dims) == 2 and not name.startswith(("position", "token_types")) else "F32"
        data = numbers(math.prod(dims), name.endswith("norm.weight"), own)
        about.append(string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *reversed(dims), types[own], at))
        data += b"\0" * (-len(data) % 32)
        at += len(data)
        parts.append(data)
    head = list(fields(shape))
    text = b"GGUF" + struct.pack("<IQQ", 3, len(about), len(head)) + b"".join(head) + b"".join(about)
    with open(path, "wb") as f:
        f.write(text + b"\0" * (-len(text) % 32))
        for data in parts:
            f.write(data)


def main():
    shape, path, dtype = SHAPES[sys.argv[1]], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "F32"
    if path.endswith(".gguf"):
        write_gguf(path, shape, dtype)
    else:
        write_folder(path, shape, dtype)


main()
