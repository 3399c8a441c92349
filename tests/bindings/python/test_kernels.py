"""The kernels of jitrun.kernels, beside plain Python: called with arrays that are not copied, on every kind of device."""
import array
import os
import sys
import tempfile
import unittest
from pathlib import Path

import jitrun
from jitrun.kernels import Buffer, Compute, predict

try:
    import numpy
except ImportError:
    numpy = None

SAXPY = """
const i64 n;
kernel saxpy(f32 a, in f32 x[n], inout f32 y[n]) over (i in n) { y[i] = a * x[i] + y[i]; }
"""
TWO = """
const i64 n = 3;
const i64 two = 2;
tune block in {64, 128};
kernel first(out i32 y[n][two]) over (i in n, j in two) block(block) { y[i][j] = i32(i) * 10 + i32(j); }
kernel scale(u64 by, bool twice, in u8 x[n], out f64 y[n]) over (i in n) {
	f64 v = f64(x[i]) * f64(by);
	y[i] = twice ? v + v : v;
}
"""
DEVICES = ("cpu", "ref", "sim:gfx1100", "sim:sm90")


def floats(values):
    return array.array("f", values)


class Kernels(unittest.TestCase):
    def test_every_device(self):
        for device in DEVICES:
            with self.subTest(device), Compute(device, cache_dir="", threads=2) as compute:
                saxpy = compute.kernel(SAXPY, n=37)
                x, y = floats(range(37)), floats([1] * 37)
                saxpy(0.5, x, y)
                saxpy(a=0.5, y=y, x=x)
                self.assertEqual(list(y), [1 + i for i in range(37)])
                self.assertEqual([p.name for p in saxpy.parameters], ["a", "x", "y"])
                self.assertEqual([p.access for p in saxpy.parameters], ["scalar", "in", "inout"])
                self.assertEqual(saxpy.parameters[2].shape, (37,))
                report = saxpy.report()
                self.assertEqual(report["launches"], 2)
                self.assertEqual(report["runs"], "interpreted" if device == "ref" else "native")
                self.assertTrue(report["key"].startswith("user."))
                info = compute.info()
                self.assertEqual(info["device"], device)
                self.assertEqual(info["in_place"], not device.startswith("sim"))

    @unittest.skipUnless(numpy, "without numpy")
    def test_numpy_in_place(self):
        with Compute(cache_dir="") as compute:
            saxpy = compute.kernel(SAXPY, n=1000)
            x = numpy.random.default_rng(1).random(1000, numpy.float32)
            y = numpy.zeros(1000, numpy.float32)
            at = y.ctypes.data
            saxpy(2.0, x, y)
            self.assertEqual(y.ctypes.data, at)
            self.assertTrue((y == x * numpy.float32(2)).all())
            x.flags.writeable = False  # it is only read
            saxpy(2.0, x, y)
            with self.assertRaisesRegex(ValueError, "x has shape .*expected .1000,."):
                saxpy(2.0, x[:10], y)
            with self.assertRaisesRegex(TypeError, "x has elements of format 'd', expected float32"):
                saxpy(2.0, x.astype(numpy.float64), y)
            with self.assertRaisesRegex(ValueError, "y is read-only"):
                saxpy(2.0, y, x)
            with self.assertRaisesRegex(ValueError, "not contiguous"):
                saxpy(2.0, numpy.zeros(2000, numpy.float32)[::2], y)
            first = compute.kernel(TWO, "first")
            out = numpy.zeros((3, 2), numpy.int32)
            first(out)
            self.assertEqual(out.tolist(), [[0, 1], [10, 11], [20, 21]])

    def test_scalars(self):
        with Compute(cache_dir="") as compute:
            scale = compute.kernel(TWO, "scale")
            x, y = array.array("B", [1, 2, 255]), array.array("d", [0] * 3)
            scale(1 << 40, True, x, y)
            self.assertEqual(list(y), [v * 2.0 ** 41 for v in x])
            scale(2.0, False, x, y)
            self.assertEqual(list(y), [2, 4, 510])
            for wrong in (1 << 64, -1, 0.5):
                with self.assertRaises((ValueError, jitrun.ArgumentError)):
                    scale(wrong, True, x, y)
            with self.assertRaises((ValueError, jitrun.ArgumentError)):
                scale(1, 2, x, y)
            with self.assertRaisesRegex(TypeError, "by is str, expected a number"):
                scale("1", True, x, y)

    def test_arguments(self):
        with Compute(cache_dir="") as compute:
            saxpy = compute.kernel(SAXPY, n=2)
            x, y = floats([1, 2]), floats([0, 0])
            for call, says in ((lambda: saxpy(1, x), "y is not given"),
                               (lambda: saxpy(1, x, y, 3), "4 arguments were given"),
                               (lambda: saxpy(1, x, y, y=y), "y is given twice"),
                               (lambda: saxpy(1, x, y, z=y), "there is no parameter 'z'"),
                               (lambda: saxpy(1, [1, 2], y), "x is list, expected an array")):
                with self.assertRaisesRegex(TypeError, says):
                    call()
            with self.assertRaisesRegex(jitrun.ArgumentError, "overlap"):
                saxpy(1, y, y)
            with self.assertRaisesRegex(TypeError, "no option 'colour'"):
                Compute(colour=1)
            with self.assertRaises(jitrun.ArgumentError):
                Compute("toaster")

    def test_messages(self):
        with Compute(cache_dir="") as compute:
            with self.assertRaises(jitrun.FormatError) as caught:
                compute.kernel("kernel f(out f32 y[4]) over (i in 4) { y[i] = z; }")
            self.assertRegex(str(caught.exception), r"kernel:1:\d+: ")
            self.assertIn("^", str(caught.exception))
            with self.assertRaises(jitrun.FormatError):
                compute.kernel(SAXPY)
            with self.assertRaises(jitrun.FormatError):
                compute.kernel(TWO, "third")
            with self.assertRaises(jitrun.FileError):
                compute.kernel(Path("/nonexistent/a.jk"))
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "saxpy.jk"
                path.write_text(SAXPY)
                for source in (path, str(path)):
                    y = floats([0, 0])
                    compute.kernel(source, n=2)(1, floats([1, 2]), y)
                    self.assertEqual(list(y), [1, 2])

    def test_check(self):
        text = "const i64 n = 4;\nkernel f(i64 at, in f32 x[n], out f32 y[n]) over (i in n) { y[i] = x[i + at]; }"
        x, y = floats([1, 2, 3, 4]), floats([9] * 4)
        for device in DEVICES:
            with self.subTest(device), Compute(device, cache_dir="") as compute:
                try:
                    compute.kernel(text)(2, x, y)
                except jitrun.UnsupportedError as e:  # of targets without the instructions of such accesses
                    self.assertRegex(str(e), "has no instruction")
                    continue
                self.assertEqual(list(y), [3, 4, 0, 0])
                with self.assertRaisesRegex(jitrun.ArgumentError, "kernel:2:"):
                    compute.kernel(text, check=True)(2, x, y)

    def test_buffers(self):
        for device in DEVICES:
            with self.subTest(device), Compute(device, cache_dir="") as compute:
                saxpy = compute.kernel(SAXPY, n=4)
                x, y = compute.buffer(16), compute.buffer(16)
                self.assertIsInstance(x, Buffer)
                self.assertEqual(len(x), 16)
                x.write(floats([1, 2, 3, 4]))
                for _ in range(3):
                    saxpy(1, x, y)
                self.assertEqual(list(y.read(floats([0] * 4))), [3, 6, 9, 12])
                with self.assertRaises(jitrun.ArgumentError):
                    x.write(floats([0] * 5))

    def test_tune(self):
        with tempfile.TemporaryDirectory() as folder:
            with Compute(cache_dir=folder) as compute:
                out = array.array("i", [0] * 6)
                view = memoryview(out).cast("B").cast("i", (3, 2))
                first = compute.kernel(TWO, "first")
                first.tune(view)
                self.assertEqual(list(out), [0] * 6)  # copies were used
                again = compute.kernel(TWO, "first")
                self.assertIn(again.report()["tuned"], ("", "block=128"))
                again(view)
                self.assertEqual(list(out), [0, 1, 10, 11, 20, 21])
                compute.written()
                self.assertTrue([f for f in os.listdir(folder) if f.startswith("tuned-")])

    def test_closed(self):
        compute = Compute(cache_dir="")
        saxpy = compute.kernel(SAXPY, n=1)
        compute.close()
        saxpy(1, floats([1]), floats([1]))  # it holds what it needs
        saxpy.close()
        with self.assertRaises(jitrun.ClosedError):
            saxpy(1, floats([1]), floats([1]))
        with self.assertRaises(jitrun.ClosedError):
            compute.kernel(SAXPY, n=1)

    def test_predict(self):
        by_name = {p.device: p for p in predict(bytes=1 << 30, operations=1 << 20)}
        self.assertGreater(by_name["cpu"].seconds, 0)
        self.assertGreaterEqual(by_name["cpu"].seconds, by_name["cpu"].memory_seconds)
        self.assertTrue(by_name["ref"].why_not)
        with Compute("auto", cache_dir="") as compute:
            self.assertIn(compute.info()["device"], by_name)


if __name__ == "__main__":
    sys.exit(unittest.main())
