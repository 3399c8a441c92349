#!/usr/bin/python3
"""bench/eml/levels.py - levels of eml(x, y) by numpy, beside jiteml's kernels: a line of JSON for each size.

"kernel_seconds" is processor time for the hashes of all trees, "processor_seconds" for all of it.
"""
import json
import sys
import time

import numpy as np

POINTS = np.array([0.57721566490153286061, 0.58578643762690495120, 0.56714329040978387300])
A, B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x94D049BB133111EB)
EXPONENT = np.uint64(0x7FF0000000000000)


def hashes(v):
    """v: complex, [trees][points]. 0: it has no value."""
    h = np.zeros(len(v), np.uint64)
    for p in range(v.shape[1]):
        re, im = v[:, p].real, v[:, p].imag
        high = np.maximum(np.maximum(np.abs(re), np.abs(im)), 0.0078125)
        grid = (high.view(np.uint64) & EXPONENT).view(np.float64) * 1572864
        for part in (re, im):
            m = (h ^ ((part + grid) - grid).view(np.uint64)) * A
            h = m << np.uint64(29) | m >> np.uint64(35)
    h = (h ^ h >> np.uint64(32)) * B
    h ^= h >> np.uint64(29)
    h[h == 0] = 1
    h[np.isnan(v).any(axis=1)] = 0
    return h


def operands(v):
    real = np.abs(v.imag) <= np.maximum(1e-11 * np.abs(v.real), 1e-13)
    w = np.where(real, v.real + 0j, v)
    left = (np.abs(v.real) <= 12).all(axis=1)
    right = (np.abs(v) > 1e-11).all(axis=1)
    e, l = np.full(v.shape, np.nan + 0j), np.full(v.shape, np.nan + 0j)
    e[left], l[right] = np.exp(w[left]), np.log(w[right])
    return e, l


def main():
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else 17
    leaves = np.stack([np.ones(3), POINTS]).astype(complex)
    level, seen = {1: operands(leaves)}, np.sort(hashes(leaves))
    np.seterr(all="ignore")
    for size in range(3, largest + 1, 2):
        begun, kernel, found, kept, trees = time.process_time(), 0.0, [], [], 0
        for i in range(1, size - 1, 2):
            e, l = level[i][0], level[size - 1 - i][1]
            rows = max(1, (1 << 16) // len(l))
            for at in range(0, len(e), rows):
                t = time.process_time()
                v = (e[at : at + rows, None, :] - l[None, :, :]).reshape(-1, 3)
                h = hashes(v)
                kernel += time.process_time() - t
                trees += len(v)
                h, first = np.unique(h, return_index=True)
                where = np.searchsorted(seen, h)
                where[where == len(seen)] = 0
                new = (h != 0) & (seen[where] != h)
                found.append(h[new])
                kept.append(v[first[new]])
        h, first = np.unique(np.concatenate(found), return_index=True)
        level[size] = operands(np.concatenate(kept)[first])
        seen = np.sort(np.concatenate([seen, h]))
        print(
            json.dumps(
                {
                    "size": size,
                    "trees": trees,
                    "values": len(h),
                    "processor_seconds": time.process_time() - begun,
                    "kernel_seconds": kernel,
                }
            ),
            flush=True,
        )


main()
