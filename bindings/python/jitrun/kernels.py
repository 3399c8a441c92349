"""Kernels that you write: compiled from a page of text, called with numpy arrays, which are not copied.

    import numpy
    from jitrun.kernels import Compute

    SAXPY = '''
    const i64 n;
    kernel saxpy(f32 a, in f32 x[n], inout f32 y[n]) over (i in n) { y[i] = fma(a, x[i], y[i]); }
    '''
    with Compute("cpu") as compute:
        saxpy = compute.kernel(SAXPY, n=1000)
        x, y = numpy.ones(1000, numpy.float32), numpy.zeros(1000, numpy.float32)
        saxpy(1.5, x, y)                       # y is written in place
        saxpy(a=0.5, x=x, y=y)

The results are the same bits on every CPU and card. An array must have the parameter's type and shape, and its elements
in C's order; bf16 arrays are uint16. On a card arrays are copied there and back by each call; a Buffer stays there.
Without numpy any object with a buffer does, such as array.array.
"""
from __future__ import annotations

import ctypes
import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

from ._handles import Closable, Handle
from ._library import lib, text_bytes
from .arrays import numpy
from .errors import raise_for

__all__ = ["Buffer", "Compute", "Kernel", "Parameter", "Prediction", "predict"]

# By the number of the type: the language's name, the letters of a buffer's format that fit, numpy's name, and the bytes.
_TYPES: Dict[int, Tuple[str, str, str, int]] = {lib.constants[name]: (word, letters, np, size)
          for name, word, letters, np, size in (
    ("JIT_TYPE_BOOL", "bool", "?", "bool", 1), ("JIT_TYPE_F32", "f32", "f", "float32", 4),
    ("JIT_TYPE_F64", "f64", "d", "float64", 8), ("JIT_TYPE_I32", "i32", "il", "int32", 4),
    ("JIT_TYPE_U32", "u32", "IL", "uint32", 4), ("JIT_TYPE_I64", "i64", "lq", "int64", 8),
    ("JIT_TYPE_U64", "u64", "LQ", "uint64", 8), ("JIT_TYPE_F16", "f16", "e", "float16", 2),
    ("JIT_TYPE_BF16", "bf16", "H", "uint16", 2), ("JIT_TYPE_I8", "i8", "b", "int8", 1),
    ("JIT_TYPE_U8", "u8", "B", "uint8", 1), ("JIT_TYPE_I16", "i16", "h", "int16", 2),
    ("JIT_TYPE_U16", "u16", "H", "uint16", 2))}
_ACCESS = {lib.constants[name]: word for name, word in
           (("JIT_SCALAR", "scalar"), ("JIT_IN", "in"), ("JIT_OUT", "out"), ("JIT_INOUT", "inout"))}
_CODE = {lib.constants[name]: word for name, word in
         (("JIT_CODE_GENERATED", "generated"), ("JIT_CODE_MEMORY", "memory"), ("JIT_CODE_DISK", "disk"),
          ("JIT_CODE_PACK", "pack"))}
_RUNS = {lib.constants[name]: word for name, word in
         (("JIT_RUNS_NATIVE", "native"), ("JIT_RUNS_INTERPRETED", "interpreted"))}


class Parameter(NamedTuple):
    """A kernel's parameter. access: "scalar", "in", "out" or "inout"; dtype: numpy's name of its elements."""
    name: str
    type: str
    dtype: str
    access: str
    shape: Tuple[int, ...]
    bytes: int


class Prediction(NamedTuple):
    """How long a device would take; why_not: why it cannot be chosen, and then there are no numbers."""
    device: str
    seconds: float
    memory_seconds: float
    arithmetic_seconds: float
    copy_seconds: float
    start_seconds: float
    bandwidth: float
    arithmetic: float
    link: float
    why_not: str


def predict(bytes: int = 0, operations: int = 0, copied: int = 0, memory: int = 0) -> List[Prediction]:
    """What each device would take for so many bytes of its memory moved, operations, and bytes copied there and back."""
    work = lib.new("jit_work", bytes=bytes, operations=operations, copied=copied, memory=memory)
    made = []
    for number in range(lib.jit_device_count()):
        out = lib.new("jit_prediction")
        lib.call("jit_device_predict", number, ctypes.byref(work), ctypes.byref(out))
        made.append(Prediction(out.device.decode(), out.seconds, out.memory_seconds, out.arithmetic_seconds,
                               out.copy_seconds, out.start_seconds, out.bandwidth, out.arithmetic, out.link,
                               out.why_not.decode("utf-8", "replace")))
    return made


def _chosen() -> str:
    """The device that is fastest with large arrays."""
    out = lib.new("jit_prediction")
    lib.call("jit_device_choose", ctypes.byref(lib.new("jit_work", bytes=1 << 32, operations=1 << 32)), ctypes.byref(out))
    return out.device.decode()


class Compute(Closable):
    """A device on which kernels run: "cpu", "ref", "sim:gfx1100", "cuda", "auto". Options are the fields of
    jit_compute_options: isa, threads, sealed, cache_dir and so on."""

    _what = "device of kernels"

    def __init__(self, device: str = "cpu", **options: Any) -> None:
        if "cancel" in options:
            raise TypeError("cancel is no option here")
        made = lib.new("jit_compute_options", device=_chosen() if device == "auto" else device)
        for name, value in options.items():
            if name not in dict(made._fields_) or name == "size":
                raise TypeError(f"Compute has no option {name!r}")
            made.put(name, value)
        super().__init__(Handle(lib.get("jit_compute_open", ctypes.byref(made)), "jit_compute_close"))

    def kernel(self, source: Union[str, "os.PathLike[str]"], name: Optional[str] = None, check: bool = False,
               **constants: Any) -> "Kernel":
        """A kernel of a text, or of a file where source is a path object or ends in ".jk". Constants by their names.
        check: a subscript out of range raises an exception."""
        return Kernel(self, source, name, check, constants)

    def written(self) -> None:
        """Raises an exception where the files of dump_ir, dump_asm, jitdump, perf_map or trace could not be written whole."""
        lib.call("jit_compute_written", self._p)

    def buffer(self, bytes: int) -> "Buffer":
        """Zeroed memory of the device."""
        return Buffer(self, bytes)

    def info(self) -> Dict[str, Any]:
        """The device, its target and threads, whether arrays are used in place, and how much code was made."""
        out = lib.new("jit_compute_info")
        lib.call("jit_compute_get_info", self._p, ctypes.byref(out))
        made = {name: getattr(out, name) for name in (
            "threads", "generated", "from_disk", "from_pack", "generated_ns", "from_disk_ns", "code_bytes")}
        made["in_place"] = bool(out.in_place)
        made["device"] = ctypes.string_at(out.device).decode()
        made["target"] = ctypes.string_at(out.target).decode()
        return made


class Buffer(Closable):
    """Memory of a device, which stays there from call to call."""

    _what = "buffer"

    def __init__(self, compute: Compute, bytes: int) -> None:
        owner = compute._held()
        super().__init__(Handle(lib.get("jit_buffer_open", owner.pointer, bytes), "jit_buffer_close", owner))

    def __len__(self) -> int:
        return int(lib.jit_buffer_bytes(self._p))

    def write(self, data: Any, at: int = 0) -> None:
        """Copies an array's bytes to the buffer's byte `at` on."""
        pointer, n, held = _memory(data, False, "data")
        lib.call("jit_buffer_write", self._p, at, pointer, n)
        del held

    def read(self, data: Any, at: int = 0) -> Any:
        """Fills an array with the bytes from `at` on; returns it."""
        pointer, n, held = _memory(data, True, "data")
        lib.call("jit_buffer_read", self._p, at, pointer, n)
        del held
        return data


class Kernel(Closable):
    """A kernel that is compiled; call it with its arguments, by position or by name."""

    _what = "kernel"

    def __init__(self, compute: Compute, source: Any, name: Optional[str], check: bool,
                 constants: Dict[str, Any]) -> None:
        is_file = isinstance(source, os.PathLike) or (isinstance(source, str) and source.endswith(".jk"))
        messages = ctypes.create_string_buffer(1 << 14)
        words = " ".join(f"{key}={_constant(key, value)}" for key, value in constants.items())
        options = lib.new("jit_kernel_options", kernel=name, constants=words, check=int(check), messages=messages,
                          n_messages=len(messages), **({"path": source} if is_file else {"source": source}))
        owner = compute._held()
        err = lib.Error()
        pointer = lib.jit_kernel_open(owner.pointer, ctypes.byref(options), ctypes.byref(err))
        if not pointer:
            all_of_them = messages.value.decode("utf-8", "replace").strip()
            raise_for(err.code, all_of_them or err.message.decode("utf-8", "replace"))
        kernel = Handle(pointer, "jit_kernel_close", owner)
        self._launch = Handle(lib.get("jit_launch_open", pointer), "jit_launch_close", kernel)
        super().__init__(kernel)
        self.parameters = tuple(self._parameter(i) for i in range(lib.jit_kernel_parameters(pointer)))
        self._numbers = {p.name: i for i, p in enumerate(self.parameters)}
        self._held_arrays: Dict[int, Any] = {}

    def _parameter(self, number: int) -> Parameter:
        out = lib.new("jit_parameter")
        lib.call("jit_kernel_parameter", self._p, number, ctypes.byref(out))
        word, _, np, _ = _TYPES[out.type]
        return Parameter(ctypes.string_at(out.name).decode(), word, np, _ACCESS[out.access],
                         tuple(out.extent[:out.dims]), out.bytes)

    def close(self) -> None:
        """Lets go of it; again, nothing happens."""
        with self._lock:
            self._held_arrays.clear()
            self._launch = None  # type: ignore[assignment]
            super().close()

    def report(self) -> Dict[str, Any]:
        """Whether it is native or interpreted, where its code came from, and how long the last call took."""
        out = lib.new("jit_kernel_report")
        lib.call("jit_kernel_get_report", self._p, ctypes.byref(out))
        made = {name: getattr(out, name) for name in ("code_ns", "code_bytes", "units", "bytes_read", "bytes_written",
                                                      "operations", "launches", "last_ns")}
        for name in ("name", "key", "tuned"):
            made[name] = ctypes.string_at(getattr(out, name)).decode()
        made["runs"] = _RUNS[out.runs]
        made["code"] = _CODE[out.code]
        return made

    def __call__(self, *arguments: Any, **named: Any) -> None:
        with self._lock:
            self._held()
            self._set(arguments, named)
            lib.call("jit_launch_run", self._launch.pointer)

    def tune(self, *arguments: Any, **named: Any) -> None:
        """Tries the constants that the text lists behind `tune`, on copies of these arguments. Kernels that are opened
        later have the fastest ones."""
        with self._lock:
            self._held()
            self._set(arguments, named)
            lib.call("jit_launch_tune", self._launch.pointer)

    def _set(self, arguments: Tuple[Any, ...], named: Dict[str, Any]) -> None:
        if len(arguments) > len(self.parameters):
            raise TypeError(f"{len(arguments)} arguments were given, and there are {len(self.parameters)} parameters")
        given = dict(enumerate(arguments))
        for name, value in named.items():
            number = self._numbers.get(name)
            if number is None:
                raise TypeError(f"there is no parameter {name!r}; there are {', '.join(self._numbers)}")
            if number in given:
                raise TypeError(f"{name} is given twice")
            given[number] = value
        for number, p in enumerate(self.parameters):
            if number not in given:
                raise TypeError(f"{p.name} is not given")
            (self._set_scalar if p.access == "scalar" else self._set_array)(number, p, given[number])

    def _set_scalar(self, number: int, p: Parameter, value: Any) -> None:
        if isinstance(value, (bool, int)) or hasattr(value, "__index__"):
            value = int(value)
            if p.type == "u64" and 1 << 63 <= value < 1 << 64:
                lib.call("jit_launch_set_bits", self._launch.pointer, number, value)
            elif not -1 << 63 <= value < 1 << 63:
                raise ValueError(f"{p.name} is {value}, which {p.type} does not have")
            else:
                lib.call("jit_launch_set_integer", self._launch.pointer, number, value)
        elif hasattr(value, "__float__"):
            lib.call("jit_launch_set_real", self._launch.pointer, number,
                     ctypes.byref(ctypes.c_double(value)))
        else:
            raise TypeError(f"{p.name} is {type(value).__name__}, expected a number")

    def _set_array(self, number: int, p: Parameter, value: Any) -> None:
        if isinstance(value, Buffer):
            lib.call("jit_launch_set_buffer", self._launch.pointer, number, value._p, 0)
            self._held_arrays[number] = value._held()
            return
        _check_array(p, value)
        pointer, n, held = _memory(value, p.access != "in", p.name)
        lib.call("jit_launch_set_memory", self._launch.pointer, number, pointer, n)
        self._held_arrays[number] = held


def _constant(name: str, value: Any) -> str:
    text = repr(value) if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
    if not text or any(c in text for c in " ,\t\n="):
        raise ValueError(f"the constant {name} is {value!r}, expected a number")
    return text


def _check_array(p: Parameter, value: Any) -> None:
    """That it has the parameter's type and shape."""
    letters, size = next((t[1], t[3]) for t in _TYPES.values() if t[0] == p.type)
    try:
        view = memoryview(value)
    except TypeError:
        raise TypeError(f"{p.name} is {type(value).__name__}, expected an array") from None
    kind = view.format.lstrip("@=<")
    if kind not in letters or view.itemsize != size:
        raise TypeError(f"{p.name} has elements of format {view.format!r}, expected {p.dtype} ({p.type})")
    if tuple(view.shape) != p.shape:
        raise ValueError(f"{p.name} has shape {tuple(view.shape)}, expected {p.shape}")
    if not view.c_contiguous:
        raise ValueError(f"{p.name} is not contiguous in C's order (numpy.ascontiguousarray)")


def _memory(value: Any, writes: bool, name: str) -> Tuple[Optional[int], int, Any]:
    """Where an object's bytes are, how many there are, and what must live as long as they are used."""
    view = memoryview(value)
    if not view.c_contiguous:
        raise ValueError(f"{name} is not contiguous in C's order")
    if writes and view.readonly:
        raise ValueError(f"{name} is read-only, and is written")
    if not view.nbytes:
        return None, 0, value
    if numpy is not None and isinstance(value, numpy.ndarray):
        return int(value.ctypes.data), view.nbytes, value
    flat = view.cast("B")
    if view.readonly:
        copy = ctypes.create_string_buffer(bytes(flat), view.nbytes)
        return ctypes.addressof(copy), view.nbytes, copy
    held = (ctypes.c_char * view.nbytes).from_buffer(flat)
    return ctypes.addressof(held), view.nbytes, held
