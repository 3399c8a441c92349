#!/usr/bin/env python3
"""bench/torch_tower.py - how long image encoders take on the first CUDA card, in turns with PyTorch.

  bench/torch_tower.py BENCH_IMAGES [--rounds N] [--turns N] [--eager]

BENCH_IMAGES is the program bench/images of a build. The encoders have the widths and layers of Qwen2.5-VL-3B (pictures
of 448 pixels a side) and of Gemma 3 4B (896 pixels), and random weights, which jitrun reads from a file of F16. PyTorch
runs the classes of transformers, eagerly and (without --eager) compiled, in float32 (with and without TF32) and in
bfloat16. Prints the median of the rounds, the least and the most, in milliseconds, for each turn. Needs numpy, torch
and transformers.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time


def spread(times):
    t = sorted(1e3 * x for x in times)
    return f"{statistics.median(t):9.2f} ms ({t[0]:.2f} to {t[-1]:.2f})"


def own(program, file, pixels, rounds):
    out = subprocess.run([program, file, str(pixels), str(rounds), "0", "cuda"], check=True, capture_output=True,
                         text=True).stdout.split()
    return [float(out[i + 1]) for i in range(0, len(out), 2) if out[i] == "encoded"]


def qwen(torch, transformers):
    from transformers.models.qwen2_5_vl import modeling_qwen2_5_vl as m
    config = m.Qwen2_5_VLVisionConfig(hidden_size=1280, intermediate_size=3420, depth=32, num_heads=16,
                                      out_hidden_size=2048, patch_size=14, spatial_merge_size=2, window_size=112,
                                      fullatt_block_indexes=[7, 15, 23, 31])
    config._attn_implementation = "sdpa"
    tower = m.Qwen2_5_VisionTransformerPretrainedModel(config)
    grid = torch.tensor([[1, 32, 32]], device="cuda")
    return tower, lambda t, dtype: t(torch.rand(1024, 1176, device="cuda", dtype=dtype), grid_thw=grid)


def gemma(torch, transformers):
    from transformers.models.gemma3 import modeling_gemma3 as m
    config = transformers.SiglipVisionConfig(hidden_size=1152, intermediate_size=4304, num_hidden_layers=27,
                                             num_attention_heads=16, image_size=896, patch_size=14)
    text = transformers.Gemma3TextConfig(hidden_size=2560)
    whole = transformers.Gemma3Config(text_config=text, vision_config=config, mm_tokens_per_image=256)

    class Tower(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.vision = transformers.SiglipVisionModel(config)
            self.projector = m.Gemma3MultiModalProjector(whole)

        def forward(self, x):
            return self.projector(self.vision(pixel_values=x).last_hidden_state)

    return Tower(), lambda t, dtype: t(torch.rand(1, 3, 896, 896, device="cuda", dtype=dtype))


def torchs(torch, make, dtype, tf32, rounds, is_compiled):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    torch.manual_seed(1)
    import transformers
    tower, call = make(torch, transformers)
    tower = tower.to("cuda", dtype).eval()
    run = torch.compile(tower) if is_compiled else tower
    times = []
    with torch.inference_mode():
        for _ in range(rounds + 3):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            call(run, dtype)
            torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
    del tower, run
    torch._dynamo.reset()
    return times[3:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--eager", action="store_true")
    options = parser.parse_args()
    import torch

    here = os.path.dirname(os.path.abspath(__file__))
    cases = (("qwen2.5vl", 448, qwen), ("gemma3", 896, gemma))
    kinds = (("float32", torch.float32, False), ("float32, TF32", torch.float32, True),
             ("bfloat16", torch.bfloat16, False))
    with tempfile.TemporaryDirectory() as folder:
        for name, _, _ in cases:
            subprocess.run([sys.executable, os.path.join(here, "make_tower.py"), name, f"{folder}/{name}.gguf"],
                           check=True)
        for turn in range(options.turns):
            for name, pixels, make in cases:
                times = own(options.program, f"{folder}/{name}.gguf", pixels, options.rounds)
                print(f"{name} {pixels} jitrun: {spread(times)}", flush=True)
                for kind, dtype, tf32 in kinds:
                    for is_compiled in (False,) if options.eager else (False, True):
                        how = "compiled" if is_compiled else "eager"
                        try:
                            times = spread(torchs(torch, make, dtype, tf32, options.rounds, is_compiled))
                        except Exception as error:
                            times = f"{type(error).__name__}: {error}"[:300]
                        print(f"{name} {pixels} PyTorch, {kind}, {how}: {times}", flush=True)


if __name__ == "__main__":
    main()
