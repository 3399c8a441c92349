"""Writes a folder with a BERT of a usual shape, whose weights are made by chance: make_encoder.py base|minilm FOLDER
[F32|BF16]."""
import json
import math
import os
import struct
import sys

SHAPES = {"base": (768, 12, 12, 3072), "minilm": (384, 6, 12, 1536)}
VOCAB, POSITIONS = 30522, 512


def tensors(hidden, layers, ffn):
    """Name and shape of each."""
    for name, rows in (("word", VOCAB), ("position", POSITIONS), ("token_type", 2)):
        yield f"embeddings.{name}_embeddings.weight", (rows, hidden)
    yield "embeddings.LayerNorm.weight", (hidden,)
    yield "embeddings.LayerNorm.bias", (hidden,)
    for i in range(layers):
        at = f"encoder.layer.{i}."
        for name, rows, columns in (("attention.self.query", hidden, hidden), ("attention.self.key", hidden, hidden),
                                    ("attention.self.value", hidden, hidden),
                                    ("attention.output.dense", hidden, hidden),
                                    ("intermediate.dense", ffn, hidden), ("output.dense", hidden, ffn)):
            yield at + name + ".weight", (rows, columns)
            yield at + name + ".bias", (rows,)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            yield at + name + ".weight", (hidden,)
            yield at + name + ".bias", (hidden,)


SIGNS = bytes(0x3c if i % 2 else 0xbc for i in range(256))


def numbers(n, ones, dtype):
    """1, or numbers around 0 of a size between 1/128 and 1/32."""
    low, high = (b"\x80" * n, b"\x3f" * n) if ones else (os.urandom(n), os.urandom(n).translate(SIGNS))
    size = 4 if dtype == "F32" else 2
    data = bytearray(n * size)
    data[size - 2::size] = low
    data[size - 1::size] = high
    return data


def main():
    hidden, layers, heads, ffn = SHAPES[sys.argv[1]]
    folder = sys.argv[2]
    os.makedirs(folder, exist_ok=True)
    dtype = sys.argv[3] if len(sys.argv) > 3 else "F32"
    header, parts, at = {}, [], 0
    for name, shape in tensors(hidden, layers, ffn):
        data = numbers(math.prod(shape), name.endswith("LayerNorm.weight"), dtype)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
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
                   "layer_norm_eps": 1e-12, "max_position_embeddings": POSITIONS, "type_vocab_size": 2,
                   "vocab_size": VOCAB, "pad_token_id": 0}, f)


main()
