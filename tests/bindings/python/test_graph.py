"""Graphs of jitrun.graph, beside numpy: read, derived, batched, compiled, and called with arrays that are not copied."""
import os
import tempfile
import unittest
from pathlib import Path

import jitrun
from jitrun.graph import Executable, Graph
from jitrun.kernels import Compute

try:
    import numpy
except ImportError:
    numpy = None

MODEL = """
size n
input x f64[n,2]
input w f64[2]
p = dot x w left=[1] right=[0]
q = mul p p
loss = reduce_sum q axes=[0]
output loss
output p as product
"""


@unittest.skipIf(numpy is None, "there is no numpy")
class Graphs(unittest.TestCase):
    def setUp(self):
        self.x = numpy.arange(6, dtype=numpy.float64).reshape(3, 2)
        self.w = numpy.array([0.5, -2.0])
        self.p = self.x @ self.w

    def test_run(self):
        for device in ("cpu", "ref", "sim:gfx1101"):
            with Compute(device) as compute, Graph(MODEL, n=3) as graph:
                self.assertEqual([t.name for t in graph.inputs], ["x", "w"])
                self.assertEqual(graph.inputs[0].shape, (3, 2))
                self.assertEqual(graph.outputs[1], ("product", "f64", "float64", (3,), 24))
                run = graph.compile(compute)
                self.assertIsInstance(run, Executable)
                for out in run(self.x, self.w), run(w=self.w, x=self.x), graph.interpret(self.x, w=self.w):
                    self.assertEqual(out["loss"], (self.p ** 2).sum())
                    self.assertTrue((out["product"] == self.p).all())
                self.assertGreaterEqual(run.report()["kernels"], 1)
                self.assertGreater(run.report()["last_ns"], 0)

    def test_derived(self):
        with Compute("cpu") as compute, Graph(MODEL, n=3) as graph:
            step = graph.vjp("w")
            step.add("rate = constant f64[2] 0.5 0.5\npart = mul rate grad.w\nnext = sub w part\noutput next")
            self.assertEqual([t.name for t in step.outputs], ["loss", "product", "grad.w", "next"])
            zero = numpy.zeros(3)
            out = step.compile(compute)(self.x, self.w, numpy.ones(()), **{"ct.product": zero})
            gradient = 2 * self.p @ self.x
            self.assertTrue((out["grad.w"] == gradient).all())
            self.assertTrue((out["next"] == self.w - 0.5 * gradient).all())
            alone = graph.vjp(with_outputs=False)
            self.assertEqual([t.name for t in alone.outputs], ["grad.x", "grad.w"])
            moved = graph.jvp("w").interpret(self.x, self.w, numpy.array([1.0, 0.0]))
            self.assertEqual(moved["t.loss"], gradient[0])
            sets = graph.vmap(2, w=None).interpret(numpy.stack([self.x, self.x + 1]), self.w)
            self.assertTrue((sets["product"][1] == (self.x + 1) @ self.w).all())

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder, Graph(MODEL, n=3) as graph:
            path = Path(folder) / "model.graph"
            graph.write(path)
            for again in Graph(path), Graph(str(path)):
                self.assertEqual(again.interpret(self.x, self.w)["loss"], (self.p ** 2).sum())

    def test_no_elements(self):
        out = Graph(MODEL, n=0).interpret(numpy.zeros((0, 2)), self.w)
        self.assertEqual(out["loss"], 0)
        self.assertEqual(out["product"].shape, (0,))

    def test_refused(self):
        with self.assertRaisesRegex(jitrun.JitrunError, "size n has no value"):
            Graph(MODEL)
        with Compute("cpu") as compute, Graph(MODEL, n=3) as graph:
            run = graph.compile(compute)
            for arrays, named, error, why in (
                    ((self.x,), {}, TypeError, "w is not given"),
                    ((self.x, self.w, self.w), {}, TypeError, "3 arrays were given"),
                    ((self.x, self.w), {"x": self.x}, TypeError, "x is given twice"),
                    ((self.x,), {"v": self.w}, TypeError, "no input 'v'"),
                    ((self.x.astype("float32"), self.w), {}, TypeError, "expected float64"),
                    ((self.x[:2], self.w), {}, ValueError, "shape"),
                    ((self.x.T.copy().T, self.w), {}, ValueError, "contiguous")):
                with self.assertRaisesRegex(error, why):
                    run(*arrays, **named)
            with self.assertRaisesRegex(ValueError, "there is no input 'y'"):
                graph.vjp("y")
            with self.assertRaisesRegex(jitrun.JitrunError, "text:1"):
                graph.add("y = frob x")
        with self.assertRaises(jitrun.ClosedError):
            graph.interpret(self.x, self.w)


if __name__ == "__main__":
    unittest.main()
