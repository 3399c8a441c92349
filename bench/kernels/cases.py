"""bench/kernels/cases.py - the examples that compare.py runs: sizes, arrays and what their results must agree in.

Inputs are those of `jitk example`, made by numpy, so that no worker makes its own.
"""
import os

import numpy

PERM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "programs", "jitk", "permutation.def")


def splitmix64(seed, counter):
    z = numpy.uint64(seed) + counter.astype(numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
    z = (z ^ z >> numpy.uint64(30)) * numpy.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> numpy.uint64(27)) * numpy.uint64(0x94D049BB133111EB)
    return z ^ z >> numpy.uint64(31)


def words(n):
    """Number i is the upper half of splitmix64's number i."""
    return (splitmix64(0x9E3779B97F4A7C15, numpy.arange(n)) >> numpy.uint64(32)).astype(numpy.uint32)


def upper(n, scale=1.0, offset=0.0):
    return ((words(n) >> numpy.uint32(8)) / 2.0 ** 24 * scale + offset).astype(numpy.float32)


def lower(n, scale=1.0, offset=0.0):
    low = splitmix64(0x9E3779B97F4A7C15, 1000000 + numpy.arange(n)).astype(numpy.uint32)
    return ((low >> numpy.uint32(8)) / 2.0 ** 24 * scale + offset).astype(numpy.float32)


def same(value):
    return lambda n: numpy.full(n, value, numpy.float32)


def permutation(n):
    with open(PERM) as f:
        text = "".join(line for line in f if not line.startswith(("/*", " *", "//")))
    one = numpy.array([int(word) for word in text.replace("\n", " ").split(",") if word.strip()], numpy.int32)
    return numpy.resize(one, n)


def field(n):
    side = round(n ** (1 / 3))
    x = numpy.arange(side)
    z, y, x = numpy.meshgrid(x, x, x, indexing="ij")
    return (numpy.where(x < side // 2, x, y).astype(numpy.float32) / numpy.float32(side)).reshape(-1)


def velocity(n):
    side = round(n ** (1 / 3))
    x = numpy.arange(side)
    z, y, x = numpy.meshgrid(x, x, x, indexing="ij")
    return ((x * y * z).astype(numpy.float32) / numpy.float32(side ** 3)).reshape(-1)


def network(n):
    """first and source of the spiking network with n neurons: incoming edges, by source."""
    counter = numpy.arange(4 * n)
    source = (counter // 4).astype(numpy.uint32)
    target = (splitmix64(0xDEADBEEF12345678, counter) % numpy.uint64(n)).astype(numpy.uint32)
    own = target == source
    target[own] = (target[own] + 1) % n
    order = numpy.argsort(target, kind="stable")
    first = numpy.zeros(n + 1, numpy.uint32)
    first[1:] = numpy.cumsum(numpy.bincount(target, minlength=n))
    return first, source[order]


def spikes(n):
    """n words of bits: about one neuron in 60 has just spiked, as in the network after its first steps."""
    fires = (words(32 * n) % numpy.uint32(60) == 0).reshape(n, 32)
    return (fires << numpy.arange(32, dtype=numpy.uint32)).sum(axis=1).astype(numpy.uint32)


OPTIONS = [("s", "f32", "in", same(100)), ("x", "f32", "in", same(98)), ("t", "f32", "in", same(2)),
           ("r", "f32", "in", same(0.02)), ("v", "f32", "in", same(5)), ("o", "f32", "out", None)]


def case(name, constants, arrays, elements, tolerance=0.0, work=None):
    return {"name": name, "constants": constants, "arrays": arrays, "elements": elements, "tolerance": tolerance,
            "work": work}


def snn(n):
    first, source = network(n)
    fixed = lambda a: (lambda _n: a)
    zeros = lambda dtype: (lambda m: numpy.zeros(m, dtype))
    arrays = [("first", "u32", "in", fixed(first)), ("source", "u32", "in", fixed(source)),
              ("spiked", "u32", "in", spikes), ("next", "u32", "inout", zeros(numpy.uint32)),
              ("clear", "u32", "out", None),
              ("v", "f64", "inout", lambda m: numpy.full(m, -65.0)), ("se", "f64", "inout", zeros(numpy.float64)),
              ("si", "f64", "inout", zeros(numpy.float64)), ("rest", "u8", "inout", zeros(numpy.uint8)),
              ("spikes", "u32", "inout", zeros(numpy.uint32))]
    return case("snn", {"n": n}, arrays, [n + 1, 4 * n] + [(n + 31) // 32] * 3 + [n] * 5)


def all_cases(card=False):
    """By label. On a card arrays are larger, so that a launch is not all there is to measure."""
    n = 1 << 25 if card else 1000000
    options = 1 << 22 if card else 131072
    rows, columns = (16384, 4096) if card else (1000, 1000)
    side = 2048 if card else 256
    width, height = (6144, 4096) if card else (768, 512)
    cube = 384 if card else 256
    stencil = lambda c: case("stencil", {"n": c}, [("a", "f32", "in", field), ("vsq", "f32", "in", velocity),
                                                   ("o", "f32", "inout", lambda m: numpy.zeros(m, numpy.float32))],
                             [c ** 3] * 3, work=2.0 * 4 * c ** 3)
    table = {
        "mandelbrot": lambda: case("mandelbrot", {"width": width, "height": height}, [("o", "i32", "out", None)],
                                   [width * height]),
        "noise": lambda: case("noise", {"width": width, "height": width},
                              [("perm", "i32", "in", permutation), ("o", "f32", "out", None)], [512, width * width]),
        "stencil": lambda: stencil(cube),
        "stencil64": lambda: stencil(64),
        "black_scholes": lambda: case("black_scholes", {"n": options}, OPTIONS, [options] * 6, 1e-5),
        "binomial": lambda: case("binomial", {"n": options // 4}, OPTIONS, [options // 4] * 6, 1e-5),
        "saxpy": lambda: case("saxpy", {"n": n}, [("a", "f32", "scalar", 1.5), ("x", "f32", "in", upper),
                                                  ("y", "f32", "inout", lower)], [1, n, n], 1e-6),
        "silu": lambda: case("silu", {"n": n}, [("x", "f32", "in", lambda m: upper(m, 16, -8)),
                                                ("y", "f32", "out", None)], [n, n], 1e-6),
        "softmax": lambda: case("softmax", {"rows": rows, "n": columns},
                                [("x", "f32", "in", lambda m: upper(m, 16, -8)), ("y", "f32", "out", None)],
                                [rows * columns] * 2, 1e-5),
        "layernorm": lambda: case("layernorm", {"rows": rows, "n": columns},
                                  [("x", "f32", "in", lambda m: upper(m, 16, -8)),
                                   ("scale", "f32", "in", lambda m: lower(m, 1, 0.5)), ("bias", "f32", "in", upper),
                                   ("y", "f32", "out", None)],
                                  [rows * columns, columns, columns, rows * columns], 1e-4),
        "matmul": lambda: case("matmul", dict({"m": side, "n": side, "k": side}, **({"wide": 256} if card else {})),
                               [("a", "f32", "in", upper), ("b", "f32", "in", lower), ("c", "f32", "out", None)],
                               [side * side] * 3, 1e-4),
        "histogram": lambda: case("histogram", {"n": n}, [("x", "u32", "in", words), ("bins", "u32", "inout",
                                  lambda m: numpy.zeros(m, numpy.uint32))], [n, 256]),
        "prefix_sum": lambda: case("prefix_sum", {"n": min(n, 1 << 20)},
                                   [("x", "u32", "in", words), ("y", "u32", "out", None)], [min(n, 1 << 20)] * 2),
        "bitonic_sort": lambda: case("bitonic_sort", {"n": min(n, 1000000)},
                                     [("flip", "u64", "scalar", 1), ("x", "u32", "in", words),
                                      ("y", "u32", "out", None)], [1] + [min(n, 1000000)] * 2),
        "snn": lambda: snn(4000000 if card else 200000),
    }
    return table


def open_line(case, folder):
    """Writes a case's inputs, and returns the line that makes it ready in a worker."""
    constants = ",".join("%s=%d" % pair for pair in case["constants"].items()) or "-"
    words_of = ["open", case["name"], constants]
    for (name, kind, access, make), elements in zip(case["arrays"], case["elements"]):
        value = ""
        if access == "scalar":
            value = repr(make)
        elif make:
            value = os.path.join(folder, "%s.%s" % (case["name"], name))
            make(elements).tofile(value)
        words_of.append("%s:%s:%s:%d:%s" % (name, kind, access, elements, value))
    return " ".join(words_of)
