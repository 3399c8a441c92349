#!/usr/bin/env python3
"""bench/torch_decode.py - tokens a second of PyTorch, compiled, on the first CUDA card; for comparisons with jitbench.

  bench/torch_decode.py SHAPE [--sequences N] [--tokens N] [--repetitions N]

A model of that shape (a name of jitbench's --shape) with random BF16 weights generates tokens one by one, greedily,
of N sequences together, with a static cache and a forward pass compiled with CUDA graphs. The host reads each token, as
a program must that prints it; tokens of all sequences count. The last line is the median of the repetitions, for
bench/compare. Needs torch and transformers.
"""
import argparse
import statistics
import sys
import time

SHAPES = {
    "qwen3-0.6b": ("Qwen3", dict(hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16,
                                 num_key_value_heads=8, head_dim=128, vocab_size=151936, tie_word_embeddings=True)),
    "llama-3.2-1b": ("Llama", dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
                                   num_attention_heads=32, num_key_value_heads=8, head_dim=64, vocab_size=128256,
                                   tie_word_embeddings=True)),
    "mistral-7b": ("Llama", dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
                                 num_attention_heads=32, num_key_value_heads=8, head_dim=128, vocab_size=32768,
                                 tie_word_embeddings=False)),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shape", choices=sorted(SHAPES))
    parser.add_argument("--sequences", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()

    import torch
    import transformers

    family, sizes = SHAPES[options.shape]
    config = getattr(transformers, family + "Config")(**sizes, max_position_embeddings=4096)
    torch.set_default_dtype(torch.bfloat16)
    torch.manual_seed(1)
    with torch.device("cuda"):
        model = getattr(transformers, family + "ForCausalLM")(config).eval()
    cache = transformers.StaticCache(config=config, max_cache_len=options.tokens + 64)

    def forward(token, position):
        logits = model(input_ids=token, position_ids=position[None], cache_position=position, past_key_values=cache,
                       use_cache=True).logits
        return logits[:, -1:].argmax(-1)

    step = torch.compile(forward, mode="reduce-overhead", fullgraph=True)

    def generate(tokens):
        cache.reset()
        token = torch.ones(options.sequences, 1, dtype=torch.long, device="cuda")
        position = torch.zeros(1, dtype=torch.long, device="cuda")
        for _ in range(tokens):
            torch.compiler.cudagraph_mark_step_begin()
            token = step(token, position).clone()
            token.tolist()
            position += 1

    with torch.no_grad():
        # The first pass makes the cache's memory, which must not be that of a graph; then the pass is compiled.
        forward(torch.ones(options.sequences, 1, dtype=torch.long, device="cuda"),
                torch.zeros(1, dtype=torch.long, device="cuda"))
        generate(8)
        rates = []
        for _ in range(options.repetitions):
            torch.cuda.synchronize()
            start = time.perf_counter()
            generate(options.tokens)
            rates.append(options.sequences * options.tokens / (time.perf_counter() - start))
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, {torch.cuda.get_device_name()}",
          file=sys.stderr)
    print(f"{options.shape} bf16: {statistics.median(rates):.1f}")


if __name__ == "__main__":
    main()
