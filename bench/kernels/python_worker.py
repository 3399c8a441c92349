"""bench/kernels/python_worker.py - worker.h for Python: what numba_worker.py and triton_worker.py share.

A worker gives a function that makes a case ready: make(case) returns run(), which is done when it returns, or raises.
case.arrays are what run() works on, by name, in the order of the kernel's parameters; a scalar is a number.
"""
import sys
import time

import numpy

TYPES = {"f32": numpy.float32, "f64": numpy.float64, "i32": numpy.int32, "u32": numpy.uint32, "u8": numpy.uint8,
         "i64": numpy.int64, "u64": numpy.uint64}


class Case:
    def __init__(self, words, place, fetch):
        self.name = words[0]
        self.constants = {} if words[1] == "-" else {k: int(v) for k, v in (c.split("=") for c in words[1].split(","))}
        self.arrays, self.first, self.written = {}, {}, []
        self.place, self.fetch = place, fetch
        for text in words[2:]:
            name, kind, access, elements, value = text.split(":", 4)
            if access == "scalar":
                self.arrays[name] = float(value) if kind.startswith("f") else int(value)
                continue
            self.first[name] = numpy.fromfile(value, TYPES[kind]) if value else numpy.zeros(int(elements), TYPES[kind])
            self.arrays[name] = place(self.first[name])
            if access != "in":
                self.written.append(name)

    def reset(self):
        for name, first in self.first.items():
            self.arrays[name][...] = self.place(first)


def answer(line, state, make, place, fetch):
    words = line.split()
    if words[0] == "open":
        state["case"] = Case(words[1:], place, fetch)
        state["run"] = make(state["case"])
        state["run"]()  # compiles
        return "ok"
    if words[0] == "check":
        case = state["case"]
        case.reset()
        state["run"]()
        with open(words[1], "wb") as f:
            for name in case.written:
                f.write(fetch(case.arrays[name]).tobytes())
        return "ok"
    if words[0] == "run":
        runs, limit = 0, float(words[1]) * 1e6
        begin, cpu = time.monotonic_ns(), time.process_time_ns()
        while True:
            state["run"]()
            runs += 1
            took = time.monotonic_ns() - begin
            if took >= limit:
                return "ok %d %d %d" % (runs, took, time.process_time_ns() - cpu)
    state.clear()
    return "ok"


def main(make, place=numpy.copy, fetch=numpy.asarray):
    state = {}
    for line in sys.stdin:
        try:
            text = answer(line, state, make, place, fetch)
        except Exception as e:  # whatever a compiler finds: the comparison goes on without this case
            text = "no " + type(e).__name__ + ": " + " ".join(str(e).split())[:300]
        print(text, flush=True)
