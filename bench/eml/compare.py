#!/usr/bin/python3
"""bench/eml/compare.py - trees of eml(x, y) a second: jiteml's kernels, plain C, and numpy, in turns.

    bench/eml/compare.py --jiteml build/jiteml --size 17 --rounds 5

All use one thread, and times are processor time. First the counts of values are compared. Each number is the median of
the rounds; a round runs the three one after the other, so that they share what else the machine does.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile


def last(command):
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(out.strip().split("\n")[-1])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--jiteml", default="build/jiteml")
    p.add_argument("--size", default="17")
    p.add_argument("--rounds", type=int, default=5)
    a = p.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "levels")
        subprocess.run(["gcc", "-O2", "-o", plain, os.path.join(here, "levels.c"), "-lm"], check=True)
        commands = {
            "jiteml": [a.jiteml, "enumerate", "--size", a.size, "--threads", "1", "--json"],
            "C": [plain, a.size],
            "numpy": ["/usr/bin/python3", os.path.join(here, "levels.py"), a.size],
        }
        rows = {name: [] for name in commands}
        for _ in range(a.rounds):
            for name, command in commands.items():
                rows[name].append(last(command))
    counts = {name: r[0]["values"] for name, r in rows.items()}
    trees = rows["jiteml"][0]["trees"]
    print(f"size {a.size}: {trees} trees; values {counts}")
    for name in rows:
        ratios = [
            [o[what] / j[what] for o, j in zip(rows[name], rows["jiteml"])]
            for what in ("kernel_seconds", "processor_seconds")
        ]
        hashing = statistics.median(r["kernel_seconds"] for r in rows[name])
        whole = statistics.median(r["processor_seconds"] for r in rows[name])
        print(
            f"{name:7} hashes {trees / hashing / 1e6:8.2f} million a second ({statistics.median(ratios[0]):6.2f} times"
            f" jiteml's time), level {whole:7.3f} s ({statistics.median(ratios[1]):6.2f})"
        )


main()
