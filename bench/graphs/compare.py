#!/usr/bin/env python3
"""Runs ONNX files beside ONNX Runtime in turns, as compare.mjs does, where its Python package is installed.

    bench/graphs/compare.py --worker build/bench/graph_worker --threads 16 FILE.onnx...

Files that `models.mjs --hollow` has written are filled first, with weights made by chance, and kept in --folder.
"""
import argparse
import math
import os
import statistics
import subprocess
import tempfile
import time

import numpy
import onnx
import onnxruntime

TYPES = {"tensor(float)": numpy.float32, "tensor(int64)": numpy.int64}


def filled(path, folder):
    """The file itself, or one with all weights: a hollow one says their size and middle where they would be."""
    model = onnx.load(path)
    random, hollow = numpy.random.default_rng(1), False
    for tensor in model.graph.initializer:
        if tensor.raw_data or not tensor.doc_string:
            continue
        size, middle = map(float, tensor.doc_string.split())
        data = random.random(math.prod(tensor.dims), numpy.float32) * (2 * size) + (middle - size)
        tensor.raw_data, hollow = data.astype(numpy.float32).tobytes(), True
    if not hollow:
        return path
    to = os.path.join(folder, os.path.basename(path))
    onnx.save(model, to)
    return to


def inputs_of(session):
    """Floats between -1 and 1, integers below 100."""
    random, feeds = numpy.random.default_rng(2), {}
    for i in session.get_inputs():
        if TYPES[i.type] is numpy.float32:
            feeds[i.name] = random.uniform(-1, 1, i.shape).astype(numpy.float32)
        else:
            feeds[i.name] = random.integers(0, 100, i.shape)
    return feeds


class Worker:
    def __init__(self, options, file, folder, threads):
        self.process = subprocess.Popen([options.worker, file, folder, str(threads), ""], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def answer(self):
        words = self.process.stdout.readline().split()
        if not words or words[0] != "ok":
            raise RuntimeError(" ".join(words) or "the worker ended")
        return [int(w) for w in words[1:]]

    def ask(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def turn(session, feeds, ms):
    """Runs, and nanoseconds of wall and processor time."""
    wall, processor, runs = time.monotonic_ns(), time.process_time_ns(), 0
    while True:
        session.run(None, feeds)
        runs += 1
        if time.monotonic_ns() - wall >= ms * 1e6:
            return runs, time.monotonic_ns() - wall, time.process_time_ns() - processor


def difference(outputs, folder):
    """The greatest, beside the greatest number."""
    worst = 0.0
    for k, mine in enumerate(outputs):
        other = numpy.fromfile(os.path.join(folder, f"out{k}"), mine.dtype).reshape(mine.shape)
        worst = max(worst, float(numpy.abs(mine - other).max() / (numpy.abs(mine).max() or 1)))
    return worst


def compare(options, file, threads):
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
    begin = time.monotonic_ns()
    session = onnxruntime.InferenceSession(file, settings, providers=["CPUExecutionProvider"])
    opened = time.monotonic_ns() - begin
    feeds = inputs_of(session)
    with tempfile.TemporaryDirectory() as folder:
        for i, x in enumerate(feeds.values()):
            x.tofile(os.path.join(folder, f"in{i}"))
        outputs = session.run(None, feeds)
        worker = Worker(options, file, folder, threads)
        read, compiled, first = worker.answer()[:3]
        apart = difference(outputs, folder)
        pairs = [(turn(session, feeds, options.ms), worker.ask(options.ms)) for _ in range(options.rounds)]
        if options.report:
            worker.ask(f"report {options.report}.{os.path.basename(file)}.{threads}")
        worker.close()
    ratios = [[a[at] / a[0] / (b[at] / b[0]) for a, b in pairs] for at in (1, 2)]
    theirs, ours = (statistics.median(p[k][1] / p[k][0] for p in pairs) / 1e6 for k in (0, 1))
    wall = statistics.median(ratios[0])
    print(f"{os.path.basename(file)} | {threads} | {theirs:.3f} | {ours:.3f} | {wall:.2f} ({min(ratios[0]):.2f} to "
          f"{max(ratios[0]):.2f}) | {statistics.median(ratios[1]):.2f} | {opened / 1e6:.0f} | {read / 1e6:.0f} | "
          f"{compiled / 1e6:.0f} | {first / 1e6:.1f} | {apart:.1e}", flush=True)
    return wall


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--worker", default="build/bench/graph_worker")
    parser.add_argument("--threads", default="2", help="of each; several with commas")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each")
    parser.add_argument("--ms", type=int, default=200, help="milliseconds of a turn, at least")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="for files that are filled")
    parser.add_argument("--report", help="begins the names of files for the executables' reports")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    threads = [int(n) for n in options.threads.split(",")]
    ratios = {n: [] for n in threads}

    print(f"ONNX Runtime {onnxruntime.__version__}, its time by jitrun's, {os.cpu_count()} processors")
    print("model | threads | ONNX Runtime, ms | jitrun, ms | ratio (least to most) | of processor time | its opening"
          " | ours: reading | compiling | first run | difference")
    for path in options.files:
        file = filled(path, options.folder)
        for n in threads:
            ratios[n].append(compare(options, file, n))
        if file != path:
            os.remove(file)
    for n in threads:
        print(f"{n} threads: geometric mean {statistics.geometric_mean(ratios[n]):.2f}")


main()
