"""Floats as numpy arrays without a copy, or without numpy as memoryviews."""
from __future__ import annotations

import ctypes
from typing import Any, Optional, Tuple

__all__ = ["borrowed", "floats", "numpy"]

try:
    import numpy
except ImportError:  # optional
    numpy = None  # type: ignore[assignment]


def floats(buffer: Any, shape: Optional[Tuple[int, ...]] = None) -> Any:
    """An array over a ctypes array, which it keeps alive: numpy.ndarray, or a memoryview of floats."""
    if numpy is not None:
        array = numpy.frombuffer(buffer, dtype=numpy.float32)
        return array.reshape(shape) if shape else array
    view = memoryview(buffer).cast("B").cast("f", shape) if shape else memoryview(buffer).cast("B").cast("f")
    return view


def borrowed(pointer: int, n: int, holder: Any) -> Any:
    """n floats of the library's, read-only; holder lives as long as the array does."""
    made: Any = type("_Floats", (ctypes.c_float * n,), {})
    buffer = made.from_address(pointer)
    buffer.holder = holder
    view = floats(buffer)
    if numpy is not None:
        view.flags.writeable = False
        return view
    return view.toreadonly()
