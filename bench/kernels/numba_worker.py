#!/usr/bin/env python3
"""bench/kernels/numba_worker.py - the examples as numba compiles them, as a worker of compare.py.

Loops are those of serial.c. No fastmath: it would change results. Rows, points and options are in prange where
NUMBA_NUM_THREADS is above 1.
"""
import math
import os

import numba
import numpy

import python_worker

PARALLEL = int(os.environ.get("NUMBA_NUM_THREADS", "1")) > 1
jit = numba.njit(parallel=PARALLEL)
inline = numba.njit()
f32 = numba.float32


@jit
def mandelbrot(o, width, height):
    dx = f32(3) / f32(width)
    dy = f32(2) / f32(height)
    for j in numba.prange(height):
        for i in range(width):
            c_re, c_im = f32(-2) + f32(i) * dx, f32(-1) + f32(j) * dy
            re, im, count = c_re, c_im, 0
            for _ in range(256):
                if re * re + im * im > f32(4):
                    break
                new_re, new_im = re * re - im * im, f32(2) * re * im
                re, im = c_re + new_re, c_im + new_im
                count += 1
            o[j * width + i] = count


@inline
def grad(perm, x, y, z, dx, dy, dz):
    h = perm[perm[perm[x] + y] + z] & 15
    u = dx if h < 8 or h == 12 or h == 13 else dy
    v = dy if h < 4 or h == 12 or h == 13 else dz
    return (-u if h & 1 else u) + (-v if h & 2 else v)


@inline
def weight(t):
    t3 = t * t * t
    t4 = t3 * t
    return f32(6) * t4 * t - f32(15) * t4 + f32(10) * t3


@inline
def lerp(t, low, high):
    return (f32(1) - t) * low + t * high


@inline
def noise_at(perm, x, y, z):
    one = f32(1)
    fx, fy, fz = f32(math.floor(x)), f32(math.floor(y)), f32(math.floor(z))
    dx, dy, dz = x - fx, y - fy, z - fz
    jx, jy, jz = int(fx) & 255, int(fy) & 255, int(fz) & 255
    w000, w100 = grad(perm, jx, jy, jz, dx, dy, dz), grad(perm, jx + 1, jy, jz, dx - one, dy, dz)
    w010, w110 = grad(perm, jx, jy + 1, jz, dx, dy - one, dz), grad(perm, jx + 1, jy + 1, jz, dx - one, dy - one, dz)
    w001, w101 = grad(perm, jx, jy, jz + 1, dx, dy, dz - one), grad(perm, jx + 1, jy, jz + 1, dx - one, dy, dz - one)
    w011 = grad(perm, jx, jy + 1, jz + 1, dx, dy - one, dz - one)
    w111 = grad(perm, jx + 1, jy + 1, jz + 1, dx - one, dy - one, dz - one)
    wx, wy, wz = weight(dx), weight(dy), weight(dz)
    y0 = lerp(wy, lerp(wx, w000, w100), lerp(wx, w010, w110))
    y1 = lerp(wy, lerp(wx, w001, w101), lerp(wx, w011, w111))
    return lerp(wz, y0, y1)


@jit
def noise(perm, o, width, height):
    dx = f32(20) / f32(width)
    dy = f32(20) / f32(height)
    for j in numba.prange(height):
        for i in range(width):
            x, y = f32(-10) + f32(i) * dx, f32(-10) + f32(j) * dy
            lam, o1, total = f32(1), f32(1), f32(0)
            for _ in range(8):
                total += abs(o1 * noise_at(perm, lam * x, lam * y, lam * f32(0.6)))
                lam *= f32(1.99)
                o1 *= f32(0.6)
            o[j * width + i] = total * f32(0.5)


@jit
def stencil(a, vsq, o, n):
    p = n * n
    for z in numba.prange(4, n - 4):
        for y in range(4, n - 4):
            for x in range(4, n - 4):
                i = z * p + y * n + x
                div = f32(0.5) * a[i] - f32(0.25) * (
                    a[i + 1] + a[i - 1] + a[i + n] + a[i - n] + a[i + p] + a[i - p]) + f32(0.125) * (
                    a[i + 2] + a[i - 2] + a[i + 2 * n] + a[i - 2 * n] + a[i + 2 * p] + a[i - 2 * p]) + f32(-0.0625) * (
                    a[i + 3] + a[i - 3] + a[i + 3 * n] + a[i - 3 * n] + a[i + 3 * p] + a[i - 3 * p])
                o[i] = f32(2) * a[i] - o[i] + vsq[i] * div


@inline
def cnd(x):
    l = abs(x)
    k = f32(1) / (f32(1) + f32(0.2316419) * l)
    k2 = k * k
    k3, k4 = k2 * k, k2 * k2
    k5 = k3 * k2
    w = f32(0.31938153) * k - f32(0.356563782) * k2 + f32(1.781477937) * k3 - f32(1.821255978) * k4 + \
        f32(1.330274429) * k5
    w *= f32(0.39894228040) * math.exp(-l * l * f32(0.5))
    return f32(1) - w if x > 0 else w


@jit
def black_scholes(s, x, t, r, v, o):
    for i in numba.prange(len(s)):
        root = math.sqrt(t[i])
        d1 = (math.log(s[i] / x[i]) + (r[i] + v[i] * v[i] * f32(0.5)) * t[i]) / (v[i] * root)
        d2 = d1 - v[i] * root
        o[i] = s[i] * cnd(d1) - x[i] * math.exp(-r[i] * t[i]) * cnd(d2)


@jit
def binomial(s, x, t, r, v, o):
    for i in numba.prange(len(s)):
        value = numpy.empty(64, numpy.float32)
        dt = t[i] / f32(64)
        up = math.exp(v[i] * math.sqrt(dt))
        down = f32(1) / up
        interest = math.exp(r[i] * dt)
        chance = (interest - down) / (up - down)
        for j in range(64):
            value[j] = max(f32(0), x[i] - s[i] * up ** f32(2 * j - 64))
        for j in range(1, 64):
            for k in range(64 - j):
                value[k] = ((f32(1) - chance) * value[k] + chance * value[k + 1]) / interest
        o[i] = value[0]


@jit
def saxpy(a, x, y):
    for i in numba.prange(len(x)):
        y[i] = a * x[i] + y[i]


@jit
def silu(x, y):
    for i in numba.prange(len(x)):
        y[i] = x[i] / (f32(1) + math.exp(-x[i]))


@jit
def softmax(x, y, rows, n):
    for r in numba.prange(rows):
        m, s = f32(-math.inf), f32(0)
        for j in range(n):
            m = max(m, x[r * n + j])
        for j in range(n):
            s += math.exp(x[r * n + j] - m)
        for j in range(n):
            y[r * n + j] = math.exp(x[r * n + j] - m) * (f32(1) / s)


@jit
def layernorm(x, scale, bias, y, rows, n):
    for r in numba.prange(rows):
        mean, variance = f32(0), f32(0)
        for j in range(n):
            mean += x[r * n + j]
        mean /= f32(n)
        for j in range(n):
            variance += (x[r * n + j] - mean) * (x[r * n + j] - mean)
        by = f32(1) / math.sqrt(variance / f32(n) + f32(0.00001))
        for j in range(n):
            y[r * n + j] = (x[r * n + j] - mean) * by * scale[j] + bias[j]


@jit
def matmul(a, b, c, m, n, k):
    for y in numba.prange(m):
        for x in range(n):
            s = f32(0)
            for p in range(k):
                s += a[y * k + p] * b[p * n + x]
            c[y * n + x] = s


@inline
def histogram(x, bins):
    for i in range(len(x)):
        bins[x[i] >> numpy.uint32(24)] += numpy.uint32(1)


@inline
def prefix_sum(x, y):
    total = numpy.uint32(0)
    for j in range(len(x)):
        total = numpy.uint32(total + x[j])
        y[j] = total


@inline
def sort(x, y):
    y[:] = numpy.sort(x)


@inline
def snn(first, source, spiked, following, clear, v, se, si, rest, spikes, n):
    excitatory = n // 5 * 4
    clear[:] = 0
    for i in range(n):
        e, h = se[i], si[i]
        gain = 0.2 if i < excitatory else 0.3
        for k in range(first[i], first[i + 1]):
            if spiked[source[k] >> 5] >> (source[k] & 31) & 1:
                if source[k] < excitatory:
                    e += gain
                else:
                    h += 0.3
        e -= e * (0.1 / 10)
        h -= h * (0.1 / 5)
        se[i], si[i] = e, h
        waits = rest[i]
        drive = 45.0 + float(i) * (20.0 / float(n)) + e * 1.0 - h * 1.0
        moved = v[i] + 0.1 * (-65.0 - v[i] + drive) / 10.0
        spike = waits == 0 and moved >= -50.0
        v[i] = -70.0 if waits != 0 or spike else moved
        rest[i] = waits - 1 if waits != 0 else (20 if spike else 0)
        if spike:
            following[i >> 5] |= numpy.uint32(1) << numpy.uint32(i & 31)
            spikes[i] += 1


KERNELS = {f.__name__: f for f in (mandelbrot, noise, stencil, black_scholes, binomial, saxpy, silu, softmax, layernorm,
                                   matmul, histogram, prefix_sum, snn)}


def make(case):
    arrays, sizes = list(case.arrays.values()), list(case.constants.values())
    if case.name == "bitonic_sort":
        return lambda: sort(arrays[1], arrays[2])
    if case.name == "saxpy":
        return lambda: saxpy(numpy.float32(arrays[0]), arrays[1], arrays[2])
    kernel = KERNELS[case.name]
    if case.name in ("black_scholes", "binomial", "silu", "histogram", "prefix_sum"):
        return lambda: kernel(*arrays)
    return lambda: kernel(*arrays, *sizes)


if __name__ == "__main__":
    python_worker.main(make)
