#!/usr/bin/env python3
"""bench/kernels/threads.py - how much faster two threads run the examples than one, and what the processor allows.

  bench/kernels/threads.py [--build DIR] [--case NAME]... [--rounds N] [--ms MS] [--isa ISA]

Each round does, one after another and for MS milliseconds: one thread; two threads; two processes of one thread each,
at the same time. The processes share no pool, no barrier and no work, so that twice what they gain is all that the
processor's second core has to give: where two threads gain less, jitrun loses it, and where they gain the same, the
machine does. Everything is done in several places: where the system puts it, on the two hyper-threads of one core, and
on two cores, each with its own processor for each thread. By wall time. Needs numpy; Linux alone.
"""
import argparse
import glob
import os
import shutil
import statistics
import sys
import tempfile

import cases
import compare


def siblings():
    """Sets of the processors that are one core, of those that this process may use."""
    allowed, cores = os.sched_getaffinity(0), []
    for path in sorted(glob.glob("/sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list")):
        numbers = set()
        with open(path) as f:
            for part in f.read().strip().split(","):
                first, _, last = part.partition("-")
                numbers |= set(range(int(first), int(last or first) + 1))
        if numbers & allowed not in cores and numbers & allowed:
            cores.append(numbers & allowed)
    return sorted(cores, key=min)


def places():
    """By name: the two processors, or None where the system chooses."""
    table, cores = {"anywhere": None}, siblings()
    pair = [sorted(core) for core in cores if len(core) > 1]
    if pair:
        table["one core"] = pair[-1][:2]
    if len(cores) > 1:
        table["two cores"] = [min(cores[-1]), min(cores[-2])]
    if len(cores) > 3:
        table["far cores"] = [min(cores[0]), min(cores[len(cores) // 2])]
    return table


def start(name, threads, on, options):
    program = os.path.join(options.build, "bench", "kernel_worker")
    kernels = os.path.join(compare.TOP, "docs", "examples", "kernels")
    command = [program, kernels, "cpu", options.isa, str(threads)]
    if on:
        command = ["taskset", "-c", ",".join(map(str, on))] + command
    return compare.Worker(name, command)


def run(workers, ms):
    """Nanoseconds of a run, by the mean of workers that run at the same time."""
    for w in workers:
        w.process.stdin.write("run %g\n" % ms)
        w.process.stdin.flush()
    sum_ = 0
    for w in workers:
        answer = w.process.stdout.readline()
        if not answer.startswith("ok"):
            sys.exit("%s: %s" % (w.name, answer))
        runs, wall, _ = map(int, answer[3:].split())
        sum_ += wall / runs
    return sum_ / len(workers)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(compare.TOP, "build"))
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--ms", type=float, default=20)
    parser.add_argument("--isa", default="-")
    options = parser.parse_args()
    table = cases.all_cases()
    folder = tempfile.mkdtemp(prefix="jitrun-threads-")
    try:
        print("cores: " + " ".join(",".join(map(str, sorted(core))) for core in siblings()))
        for label in options.case or table:
            line = cases.open_line(table[label](), folder)
            for place, on in places().items():
                first, second = (on[:1], on[1:]) if on else (None, None)
                one, two = start("one", 1, first, options), start("two", 2, on, options)
                other = start("other", 1, second, options)
                for w in (one, two, other):
                    _, why = w.ask(line)
                    if why:
                        sys.exit("%s: %s" % (label, why))
                times = [(run([one], options.ms), run([two], options.ms), run([one, other], options.ms))
                         for _ in range(options.rounds)]
                for w in (one, two, other):
                    w.close()
                least = [min(t[i] for t in times) for i in range(3)]
                print("%-14s %-10s one %9.1f us; two threads %s, by the least times %.2f; two processes %s, %.2f" %
                      (label, place, least[0] / 1e3, compare.spread([t[0] / t[1] for t in times]), least[0] / least[1],
                       compare.spread([2 * t[0] / t[2] for t in times]), 2 * least[0] / least[2]))
                sys.stdout.flush()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
