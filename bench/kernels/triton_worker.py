#!/usr/bin/env python3
"""bench/kernels/triton_worker.py - the examples as Triton kernels on the first CUDA card, as a worker of compare.py.

Each is what one writes after Triton's tutorials: a program for a block of elements or a row, masks at the ends.
Products of matrices keep f32 (input_precision ieee), as jitrun's do. binomial has none, because Triton has no arrays
that a program indexes; sorting has none either.
"""
import torch
import triton
import triton.language as tl

import python_worker


@triton.jit
def saxpy_kernel(a, x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(y + i, a * tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@triton.jit
def silu_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    v = tl.load(x + i, mask=m)
    tl.store(y + i, v / (1 + tl.exp(-v)), mask=m)


@triton.jit
def softmax_kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    j = tl.arange(0, BLOCK)
    v = tl.load(x + row + j, mask=j < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row + j, e / tl.sum(e, axis=0), mask=j < n)


@triton.jit
def layernorm_kernel(x, scale, bias, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    j = tl.arange(0, BLOCK)
    m = j < n
    v = tl.load(x + row + j, mask=m, other=0.0)
    mean = tl.sum(v, axis=0) / n
    d = tl.where(m, v - mean, 0.0)
    by = 1 / tl.sqrt(tl.sum(d * d, axis=0) / n + 0.00001)
    tl.store(y + row + j, d * by * tl.load(scale + j, mask=m) + tl.load(bias + j, mask=m), mask=m)


@triton.jit
def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    y = tl.program_id(0) * BM + tl.arange(0, BM)
    x = tl.program_id(1) * BN + tl.arange(0, BN)
    p = tl.arange(0, BK)
    s = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + y[:, None] * K + (k + p)[None, :], mask=(y[:, None] < M) & ((k + p)[None, :] < K), other=0.0)
        right = tl.load(b + (k + p)[:, None] * N + x[None, :], mask=((k + p)[:, None] < K) & (x[None, :] < N),
                        other=0.0)
        s = tl.dot(left, right, s, input_precision="ieee")
    tl.store(c + y[:, None] * N + x[None, :], s, mask=(y[:, None] < M) & (x[None, :] < N))


@triton.jit
def stencil_kernel(a, vsq, o, n, BLOCK: tl.constexpr):
    x = 4 + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    p = n * n
    i = (tl.program_id(2) + 4) * p + (tl.program_id(1) + 4) * n + x
    m = x < n - 4
    v = tl.load(a + i, mask=m)
    one = tl.load(a + i + 1, mask=m) + tl.load(a + i - 1, mask=m) + tl.load(a + i + n, mask=m) + \
        tl.load(a + i - n, mask=m) + tl.load(a + i + p, mask=m) + tl.load(a + i - p, mask=m)
    two = tl.load(a + i + 2, mask=m) + tl.load(a + i - 2, mask=m) + tl.load(a + i + 2 * n, mask=m) + \
        tl.load(a + i - 2 * n, mask=m) + tl.load(a + i + 2 * p, mask=m) + tl.load(a + i - 2 * p, mask=m)
    three = tl.load(a + i + 3, mask=m) + tl.load(a + i - 3, mask=m) + tl.load(a + i + 3 * n, mask=m) + \
        tl.load(a + i - 3 * n, mask=m) + tl.load(a + i + 3 * p, mask=m) + tl.load(a + i - 3 * p, mask=m)
    div = 0.5 * v - 0.25 * one + 0.125 * two - 0.0625 * three
    tl.store(o + i, 2 * v - tl.load(o + i, mask=m) + tl.load(vsq + i, mask=m) * div, mask=m)


@triton.jit
def histogram_kernel(x, bins, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bin_of = (tl.load(x + i, mask=i < n, other=0) >> 24) & 255
    h = tl.histogram(bin_of, 256)
    k = tl.arange(0, 256)
    lost = tl.sum((i >= n).to(tl.int32), axis=0)
    tl.atomic_add(bins + k, h - tl.where(k == 0, lost, 0))


@triton.jit
def sums_kernel(x, sums, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(sums + tl.program_id(0), tl.sum(tl.load(x + i, mask=i < n, other=0), axis=0))


@triton.jit
def scan_kernel(x, before, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.cumsum(tl.load(x + i, mask=i < n, other=0), axis=0)
    tl.store(y + i, v + tl.load(before + tl.program_id(0)), mask=i < n)


@triton.jit
def mandelbrot_kernel(o, width, height, dx, dy, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c_re = -2.0 + (at % width).to(tl.float32) * dx
    c_im = -1.0 + (at // width).to(tl.float32) * dy
    re, im = c_re, c_im
    count = tl.zeros((BLOCK,), dtype=tl.int32)
    k = tl.sum(count, axis=0)
    left = k + BLOCK
    while (k < 256) & (left > 0):
        inside = re * re + im * im <= 4.0
        inside = inside & (count == k)
        count += inside.to(tl.int32)
        new_re = re * re - im * im
        new_im = 2.0 * re * im
        re = tl.where(inside, c_re + new_re, re)
        im = tl.where(inside, c_im + new_im, im)
        left = tl.sum(inside.to(tl.int32), axis=0)
        k += 1
    tl.store(o + at, count, mask=at < width * height)


@triton.jit
def cnd(x):
    l = tl.abs(x)
    k = 1 / (1 + 0.2316419 * l)
    k2 = k * k
    k3 = k2 * k
    k4 = k2 * k2
    w = 0.31938153 * k - 0.356563782 * k2 + 1.781477937 * k3 - 1.821255978 * k4 + 1.330274429 * k3 * k2
    w = w * 0.39894228040 * tl.exp(-l * l * 0.5)
    return tl.where(x > 0, 1 - w, w)


@triton.jit
def black_scholes_kernel(ps, px, pt, pr, pv, po, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    s = tl.load(ps + i, mask=m, other=1.0)
    x = tl.load(px + i, mask=m, other=1.0)
    t = tl.load(pt + i, mask=m, other=1.0)
    r = tl.load(pr + i, mask=m, other=1.0)
    v = tl.load(pv + i, mask=m, other=1.0)
    root = tl.sqrt(t)
    d1 = (tl.log(s / x) + (r + v * v * 0.5) * t) / (v * root)
    tl.store(po + i, s * cnd(d1) - x * tl.exp(-r * t) * cnd(d1 - v * root), mask=m)


@triton.jit
def grad(perm, x, y, z, dx, dy, dz):
    h = tl.load(perm + tl.load(perm + tl.load(perm + x) + y) + z) & 15
    u = tl.where((h < 8) | (h == 12) | (h == 13), dx, dy)
    v = tl.where((h < 4) | (h == 12) | (h == 13), dy, dz)
    return tl.where((h & 1) != 0, -u, u) + tl.where((h & 2) != 0, -v, v)


@triton.jit
def weight(t):
    t3 = t * t * t
    t4 = t3 * t
    return 6 * t4 * t - 15 * t4 + 10 * t3


@triton.jit
def lerp(t, low, high):
    return (1 - t) * low + t * high


@triton.jit
def noise_kernel(perm, o, width, height, step_x, step_y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x0 = -10.0 + (at % width).to(tl.float32) * step_x
    y0 = -10.0 + (at // width).to(tl.float32) * step_y
    z0 = tl.zeros((BLOCK,), dtype=tl.float32) + 0.6
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    lam = tl.zeros((BLOCK,), dtype=tl.float32) + 1.0
    o1 = tl.zeros((BLOCK,), dtype=tl.float32) + 1.0
    for _ in range(8):
        x = lam * x0
        y = lam * y0
        z = lam * z0
        fx = tl.floor(x)
        fy = tl.floor(y)
        fz = tl.floor(z)
        dx = x - fx
        dy = y - fy
        dz = z - fz
        jx = fx.to(tl.int32) & 255
        jy = fy.to(tl.int32) & 255
        jz = fz.to(tl.int32) & 255
        wx = weight(dx)
        wy = weight(dy)
        wz = weight(dz)
        a = lerp(wx, grad(perm, jx, jy, jz, dx, dy, dz), grad(perm, jx + 1, jy, jz, dx - 1, dy, dz))
        b = lerp(wx, grad(perm, jx, jy + 1, jz, dx, dy - 1, dz), grad(perm, jx + 1, jy + 1, jz, dx - 1, dy - 1, dz))
        c = lerp(wx, grad(perm, jx, jy, jz + 1, dx, dy, dz - 1), grad(perm, jx + 1, jy, jz + 1, dx - 1, dy, dz - 1))
        d = lerp(wx, grad(perm, jx, jy + 1, jz + 1, dx, dy - 1, dz - 1),
                 grad(perm, jx + 1, jy + 1, jz + 1, dx - 1, dy - 1, dz - 1))
        total += tl.abs(o1 * lerp(wz, lerp(wy, a, b), lerp(wy, c, d)))
        lam = lam * 1.99
        o1 = o1 * 0.6
    tl.store(o + at, total * 0.5, mask=at < width * height)


@triton.jit
def snn_kernel(first, source, spiked, following, clear, pv, pse, psi, prest, pspikes, n, slope, per10, per5,
               BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    excitatory = n // 5 * 4
    begin = tl.load(first + i, mask=m, other=0)
    end = tl.load(first + i + 1, mask=m, other=0)
    e = tl.load(pse + i, mask=m, other=0.0)
    h = tl.load(psi + i, mask=m, other=0.0)
    gain = tl.where(i < excitatory, tl.full((BLOCK,), 0.2, tl.float64), tl.full((BLOCK,), 0.3, tl.float64))
    most = tl.max(end - begin, axis=0)
    for k in range(0, most):
        there = m & (begin + k < end)
        come = tl.load(source + begin + k, mask=there, other=0)
        fires = there & (((tl.load(spiked + (come >> 5), mask=there, other=0) >> (come & 31)) & 1) != 0)
        e += tl.where(fires & (come < excitatory), gain, 0.0)
        h += tl.where(fires & (come >= excitatory), tl.full((BLOCK,), 0.3, tl.float64), 0.0)
    e -= e * per10
    h -= h * per5
    tl.store(pse + i, e, mask=m)
    tl.store(psi + i, h, mask=m)
    waits = tl.load(prest + i, mask=m, other=0).to(tl.int32)
    v = tl.load(pv + i, mask=m, other=0.0)
    drive = 45.0 + i.to(tl.float64) * slope + e - h
    moved = v + per10 * 10.0 * (-65.0 - v + drive) / 10.0
    spike = (waits == 0) & (moved >= -50.0)
    tl.store(pv + i, tl.where((waits != 0) | spike, -70.0, moved), mask=m)
    tl.store(prest + i, tl.where(waits != 0, waits - 1, tl.where(spike, 20, 0)).to(tl.uint8), mask=m)
    tl.store(clear + i, tl.zeros((BLOCK,), dtype=tl.int32), mask=i < (n + 31) // 32)
    fired = m & spike
    tl.atomic_or(following + (i >> 5), tl.full((BLOCK,), 1, tl.int32) << (i & 31), mask=fired)
    tl.store(pspikes + i, tl.load(pspikes + i, mask=fired, other=0) + 1, mask=fired)


def flat(kernel, arrays, n, extra=(), block=1024, **options):
    grid = (triton.cdiv(n, block),)
    return lambda: kernel[grid](*arrays, n, *extra, BLOCK=block, **options)


def prefix_sum(arrays, n):
    block = 8192
    parts = triton.cdiv(n, block)
    sums = torch.empty(parts, dtype=torch.int32, device="cuda")
    before = torch.zeros(parts, dtype=torch.int32, device="cuda")

    def run():
        sums_kernel[(parts,)](arrays[0], sums, n, BLOCK=block)
        before[1:] = torch.cumsum(sums, 0, dtype=torch.int32)[:-1]
        scan_kernel[(parts,)](arrays[0], before, arrays[1], n, BLOCK=block)
    return run


def of_case(case):
    arrays, c = list(case.arrays.values()), case.constants
    if case.name == "saxpy":
        return flat(saxpy_kernel, arrays, c["n"])
    if case.name in ("silu", "black_scholes", "histogram"):
        kernel = {"silu": silu_kernel, "black_scholes": black_scholes_kernel, "histogram": histogram_kernel}[case.name]
        return flat(kernel, arrays, c["n"], block=4096 if case.name == "histogram" else 1024)
    if case.name in ("softmax", "layernorm"):
        kernel = softmax_kernel if case.name == "softmax" else layernorm_kernel
        block = triton.next_power_of_2(c["n"])
        return lambda: kernel[(c["rows"],)](*arrays, c["n"], BLOCK=block, num_warps=8)
    if case.name == "matmul":
        grid = (triton.cdiv(c["m"], 128), triton.cdiv(c["n"], 64))
        return lambda: matmul_kernel[grid](*arrays, c["m"], c["n"], c["k"], BM=128, BN=64, BK=16, num_warps=4)
    if case.name == "stencil":
        n = c["n"]
        return lambda: stencil_kernel[(triton.cdiv(n - 8, 256), n - 8, n - 8)](*arrays, n, BLOCK=256)
    if case.name == "prefix_sum":
        return prefix_sum(arrays, c["n"])
    if case.name in ("mandelbrot", "noise"):
        w, h = c["width"], c["height"]
        kernel, wide, high = (mandelbrot_kernel, 3.0, 2.0) if case.name == "mandelbrot" else (noise_kernel, 20.0, 20.0)
        grid = (triton.cdiv(w * h, 256),)
        return lambda: kernel[grid](*arrays, w, h, wide / w, high / h, BLOCK=256)
    if case.name == "snn":
        return flat(snn_kernel, arrays, c["n"], (20.0 / c["n"], 0.1 / 10, 0.1 / 5), block=256)
    raise ValueError("Triton has no arrays that a program indexes, and no sort")


def make(case):
    run = of_case(case)

    def finished():
        run()
        torch.cuda.synchronize()
    return finished


def place(array):
    """32 bits without sign are 32 bits with it: sums wrap alike."""
    return torch.from_numpy(array.view("int32") if array.dtype == "uint32" else array).to("cuda", copy=True)


if __name__ == "__main__":
    python_worker.main(make, place, lambda tensor: tensor.cpu().numpy())
