#!/usr/bin/env python3
"""bench/kernels/compare.py - the examples of docs/examples/kernels beside other ways to run the same loops, in turns.

  bench/kernels/compare.py [--build DIR] [--case NAME]... [--against WORKER]... [--jitrun NAME]...
                           [--rounds N] [--ms MS]

Workers: serial (serial.c by gcc -O2, one core), numba (python3-numba), pocl (OpenCL on the CPU). jitrun's: avx2, avx512
(one thread each), and 2t (the best instruction set, two threads). Each round runs every worker once, one after another,
for MS milliseconds. The ratio of two workers is taken round by round, so that what slows the machine falls on both.
Printed are the median, least and greatest ratio. Ratios are of processor time, which other processes disturb little,
but those of 2t are of wall time. First the results are compared: bit for bit, or within the tolerance that cases.py
grants to what sums or rounds in another order.

Needs numpy; numba, gcc and OpenCL where their workers are asked for.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import numpy

import cases

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
FLAGS = ["-O2", "-ffp-contract=off"]
TYPES = {"f32": numpy.float32, "f64": numpy.float64, "i32": numpy.int32, "u32": numpy.uint32, "u8": numpy.uint8}


class Worker:
    def __init__(self, name, command, **options):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)

    def ask(self, line):
        """None and the reason, or the answer behind ok."""
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline().rstrip("\n")
        except BrokenPipeError:
            answer = ""
        if answer.startswith("ok"):
            return answer[3:], None
        return None, answer[3:] or "the worker ended"

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def built(folder, name, extra):
    """A worker's program, built of its source here by a plain compiler."""
    program = os.path.join(folder, name)
    subprocess.run(["gcc"] + FLAGS + ["-o", program, os.path.join(HERE, name + ".c")] + extra + ["-lm"], check=True)
    return program


def start(name, options, folder):
    kernels = os.path.join(TOP, "docs", "examples", "kernels")
    program = os.path.join(options.build, "bench", "kernel_worker")
    threads = {"2t": "2"}.get(name, "1")
    if name in ("avx2", "avx512", "2t"):
        return Worker(name, [program, kernels, "cpu", "-" if name == "2t" else name, threads])
    if name == "cuda":
        return Worker(name, [program, kernels, "cuda"])
    if name == "serial":
        return Worker(name, [built(folder, "serial", [])])
    if name == "pocl":
        return Worker(name, [built(folder, "opencl", ["-lOpenCL"]), os.path.join(HERE, "kernels.cl")],
                      env=dict(os.environ, POCL_MAX_PTHREAD_COUNT="1"))
    python = options.python if name == "numba" else sys.executable
    return Worker(name, [python, os.path.join(HERE, name + "_worker.py")],
                  env=dict(os.environ, NUMBA_NUM_THREADS="1",
                           **({"NUMBA_CPU_NAME": options.numba_cpu} if options.numba_cpu else {})))


def results_of(worker, case, folder):
    path = os.path.join(folder, "result." + worker.name)
    _, why = worker.ask("check " + path)
    if why:
        return None, why
    data, at = open(path, "rb").read(), 0
    arrays = []
    for (name, kind, access, _), elements in zip(case["arrays"], case["elements"]):
        if access in ("out", "inout"):
            bytes_ = elements * numpy.dtype(TYPES[kind]).itemsize
            arrays.append((name, numpy.frombuffer(data[at:at + bytes_], TYPES[kind])))
            at += bytes_
    return arrays, None


CONTRACT = ("triton", "pocl")  # a product and a sum may be rounded together there, which moves steps in a result


def differs(case, a, b, contracted):
    """None, or which array of two results differs, and by how much."""
    tolerance, share = (max(case["tolerance"], 1e-4), 0.02) if contracted else (case["tolerance"], 0)
    for (name, x), (_, y) in zip(a, b):
        if x.tobytes() == y.tobytes():
            continue
        x, y = x.astype(numpy.float64), y.astype(numpy.float64)
        size = numpy.maximum(numpy.maximum(abs(x), abs(y)), numpy.mean(abs(x)))
        off = numpy.abs(x - y) / numpy.maximum(size, 1e-300)
        if numpy.mean(~(off <= tolerance)) > share:
            return "%s differs by %g of its size" % (name, numpy.max(off))
    return None


def spread(ratios):
    return "%.2f (%.2f to %.2f)" % (statistics.median(ratios), min(ratios), max(ratios))


def measure(workers, options):
    """By worker: for each round (wall, processor) nanoseconds of a run."""
    times = {w.name: [] for w in workers}
    for _ in range(options.rounds):
        for w in workers:
            answer, why = w.ask("run %g" % options.ms)
            if why:
                sys.exit("%s: %s" % (w.name, why))
            runs, wall, cpu = map(int, answer.split())
            times[w.name].append((wall / runs, cpu / runs))
    return times


def report(label, times, others, jitruns, options):
    for name in times:
        wall, cpu = [t[0] for t in times[name]], [t[1] for t in times[name]]
        print("%-14s %-8s least %10.1f us wall, %10.1f us processor" % (label, name, min(wall) / 1e3, min(cpu) / 1e3))
    for theirs in others:
        for ours in jitruns:
            which = 0 if "2t" in (ours, theirs) or ours == "cuda" else 1
            ratios = [a[which] / b[which] for a, b in zip(times[theirs], times[ours])]
            least = min(a[which] for a in times[theirs]) / min(b[which] for b in times[ours])
            print("%-14s %s is %s times as fast as %s; by the least times %.2f" %
                  (label, ours, spread(ratios), theirs, least))
    if "avx2" in times and "avx512" in times:
        print("%-14s avx512 is %s times as fast as avx2" %
              (label, spread([a[1] / b[1] for a, b in zip(times["avx2"], times["avx512"])])))
    if "2t" in times and "avx512" in times:
        walls = lambda name: [t[0] for t in times[name]]
        print("%-14s 2t is %s times as fast as avx512; by the least times %.2f" %
              (label, spread([a / b for a, b in zip(walls("avx512"), walls("2t"))]),
               min(walls("avx512")) / min(walls("2t"))))
    sys.stdout.flush()


def one_case(label, make, workers, options, folder):
    case = make()
    line = cases.open_line(case, folder)
    ready, reference = [], None
    for w in workers:
        facts, why = w.ask(line)
        result, why = (None, why) if why else results_of(w, case, folder)
        if why:
            print("%-14s %-8s has none: %s" % (label, w.name, why))
            continue
        reference = reference or result
        wrong = differs(case, reference, result, w.name in CONTRACT or (ready and ready[0].name in CONTRACT))
        if wrong:
            print("%-14s %-8s WRONG, beside %s: %s" % (label, w.name, ready[0].name, wrong))
            options.wrong = True
            continue
        if facts.strip():
            print("%-14s %-8s %s" % (label, w.name, facts.strip()))
        ready.append(w)
    times = measure(ready, options)
    names = [w.name for w in ready]
    report(label, times, [n for n in options.against if n in names], [n for n in options.jitrun if n in names], options)
    for w in workers:
        w.ask("close")
    for name in os.listdir(folder):
        if name.startswith(case["name"] + "."):
            os.remove(os.path.join(folder, name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(TOP, "build"))
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--ms", type=float, default=20)
    parser.add_argument("--against", action="append", default=[])
    parser.add_argument("--jitrun", action="append", default=[])
    parser.add_argument("--python", default="/usr/bin/python3", help="the Python that has numba")
    parser.add_argument("--numba-cpu", default="", help="NUMBA_CPU_NAME: what numba generates code for")
    options = parser.parse_args()
    options.wrong = False
    options.card = "cuda" in options.jitrun
    options.against = options.against or ["serial"]
    options.jitrun = options.jitrun or ["avx2", "avx512"]
    table = cases.all_cases(options.card)
    unknown = [name for name in options.case if name not in table]
    if unknown:
        sys.exit("no case %s; there are %s" % (unknown[0], " ".join(table)))
    folder = tempfile.mkdtemp(prefix="jitrun-kernels-")
    workers = []
    try:
        workers = [start(name, options, folder) for name in options.against + options.jitrun]
        with open("/proc/loadavg") as f:
            print("load before: " + f.read().split()[0])
        for label in options.case or table:
            one_case(label, table[label], workers, options, folder)
        with open("/proc/loadavg") as f:
            print("load behind: " + f.read().split()[0])
    finally:
        for w in workers:
            w.close()
        shutil.rmtree(folder)
    return 1 if options.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
