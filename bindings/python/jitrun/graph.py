"""Graphs of tensors: read from text or ONNX files, derived, batched, compiled, and called with numpy arrays.

    import numpy
    from jitrun.graph import Graph
    from jitrun.kernels import Compute

    MODEL = '''
    size n
    input x f32[n,4]
    input w f32[4]
    p = dot x w left=[1] right=[0]
    loss = reduce_sum p axes=[0]
    output loss
    '''
    with Compute("cpu") as compute, Graph(MODEL, n=8) as graph:
        step = graph.vjp("w").compile(compute)
        x, w = numpy.ones((8, 4), numpy.float32), numpy.zeros(4, numpy.float32)
        out = step(x, w, numpy.float32(1).reshape(()))
        out["loss"], out["grad.w"]

Arrays are read where they are. They must have the input's type and shape, and their elements in C's order; bf16 arrays
are uint16. The results are the same bits on every CPU and card.
"""
from __future__ import annotations

import ctypes
import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from ._handles import Closable, Handle
from ._library import lib, text_bytes
from .arrays import numpy
from .kernels import _TYPES, Compute, Parameter, _check_array, _memory

__all__ = ["Executable", "Graph", "Tensor"]


class Tensor(NamedTuple):
    """An input or output. type: as the language of graphs has it; dtype: numpy's name of its elements."""
    name: str
    type: str
    dtype: str
    shape: Tuple[int, ...]
    bytes: int


class Graph(Closable):
    """A graph of a text, or of a file where source is a path object or ends in ".graph" or ".onnx". Sizes by their
    names."""

    _what = "graph"

    def __init__(self, source: Union[str, bytes, "os.PathLike[str]"], **sizes: int) -> None:
        is_file = isinstance(source, os.PathLike) or (
            isinstance(source, str) and source.endswith((".graph", ".onnx")))
        words = " ".join(f"{name}={int(size)}" for name, size in sizes.items())
        given: Dict[str, Any] = {"path": source} if is_file else {"source": source}
        self._open(lib.get("jit_graph_open", ctypes.byref(lib.new("jit_graph_options", sizes=words, **given))))

    def _open(self, pointer: int) -> None:
        super().__init__(Handle(pointer, "jit_graph_close"))
        self._describe()

    def _describe(self) -> None:
        self.inputs = tuple(_tensor("jit_graph_input", self._p, i) for i in range(lib.jit_graph_inputs(self._p)))
        self.outputs = tuple(_tensor("jit_graph_output", self._p, i) for i in range(lib.jit_graph_outputs(self._p)))

    def _made(self, pointer: int) -> "Graph":
        made = Graph.__new__(Graph)
        made._open(pointer)
        return made

    def add(self, text: str) -> None:
        """Adds statements, a line each, with the sizes that the graph was opened with."""
        with self._lock:
            lib.call("jit_graph_add_text", self._p, text_bytes(text, "text"))
            self._describe()

    def write(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes it as text."""
        lib.call("jit_graph_write", self._p, text_bytes(path, "path"))

    def _numbers(self, names: Sequence[str]) -> Any:
        known = {t.name: i for i, t in enumerate(self.inputs)}
        for name in names:
            if name not in known:
                raise ValueError(f"there is no input {name!r}; there are {', '.join(known)}")
        return (ctypes.c_size_t * len(names))(*[known[name] for name in names])

    def vjp(self, *names: str, with_outputs: bool = True) -> "Graph":
        """The graph of gradients by these inputs, or by all of floats: outputs grad.NAME, new inputs ct.NAME."""
        return self._made(lib.get("jit_graph_vjp", self._p, self._numbers(names), len(names), int(with_outputs)))

    def jvp(self, *names: str, with_outputs: bool = True) -> "Graph":
        """The graph of derivatives where these inputs move, or all of floats: inputs and outputs t.NAME."""
        return self._made(lib.get("jit_graph_jvp", self._p, self._numbers(names), len(names), int(with_outputs)))

    def vmap(self, size: int, **axes: Optional[int]) -> "Graph":
        """The graph for so many sets of inputs. axes: where each input has them (0); None: all share the input."""
        self._numbers(tuple(axes))
        all_axes = [axes.get(t.name, 0) for t in self.inputs]
        numbers = (ctypes.c_int * len(all_axes))(*[-1 if axis is None else axis for axis in all_axes])
        return self._made(lib.get("jit_graph_vmap", self._p, size, numbers, len(all_axes)))

    def interpret(self, *arrays: Any, **named: Any) -> Dict[str, Any]:
        """What it means, by plain loops, slowly: the outputs by their names."""
        return _call("jit_graph_interpret", self, self, arrays, named)

    def compile(self, compute: Compute) -> "Executable":
        """Kernels of a device, for these exact shapes."""
        return Executable(compute, self)


class Executable(Closable):
    """A compiled graph; call it with the inputs, by position or by name. It gives the outputs by their names."""

    _what = "executable"

    def __init__(self, compute: Compute, graph: Graph) -> None:
        owner = compute._held()
        self.inputs, self.outputs = graph.inputs, graph.outputs
        super().__init__(Handle(lib.get("jit_executable_open", owner.pointer, graph._p), "jit_executable_close", owner))

    def __call__(self, *arrays: Any, **named: Any) -> Dict[str, Any]:
        with self._lock:
            return _call("jit_executable_run", self, self, arrays, named)

    def report(self) -> Dict[str, int]:
        """How many kernels it has, how many were generated, its memory, and how long the last call took."""
        out = lib.new("jit_executable_report")
        lib.call("jit_executable_get_report", self._p, ctypes.byref(out))
        return {"kernels": out.kernels, "on_host": out.on_host, "generated": out.generated, "open_ns": out.open_ns,
                "bytes": out.bytes, "all_bytes": out.all_bytes, "constant_bytes": out.constant_bytes,
                "last_ns": out.last_ns}


def _tensor(function: str, pointer: int, number: int) -> Tensor:
    out = lib.new("jit_tensor")
    lib.call(function, pointer, number, ctypes.byref(out))
    word, _, np, _ = _TYPES[out.type]
    name = ctypes.string_at(out.name).decode("utf-8", "replace") if out.name else ""
    return Tensor(name, word, np, tuple(out.dim[:out.rank]), out.bytes)


def _given(inputs: Sequence[Tensor], arrays: Tuple[Any, ...], named: Dict[str, Any]) -> List[Any]:
    """The arrays in the order of the inputs."""
    if len(arrays) > len(inputs):
        raise TypeError(f"{len(arrays)} arrays were given, and there are {len(inputs)} inputs")
    values = dict(zip((t.name for t in inputs), arrays))
    for name, value in named.items():
        if name not in [t.name for t in inputs]:
            raise TypeError(f"there is no input {name!r}; there are {', '.join(t.name for t in inputs)}")
        if name in values:
            raise TypeError(f"{name} is given twice")
        values[name] = value
    for t in inputs:
        if t.name not in values:
            raise TypeError(f"{t.name} is not given")
    return [values[t.name] for t in inputs]


def _call(function: str, what: Closable, about: Union[Graph, Executable], arrays: Tuple[Any, ...],
          named: Dict[str, Any]) -> Dict[str, Any]:
    if numpy is None:
        raise ImportError("graphs need numpy, in whose arrays the outputs are")
    held, pointers = [], []
    nothing = ctypes.create_string_buffer(8)  # where an array without elements is
    for t, value in zip(about.inputs, _given(about.inputs, arrays, named)):
        _check_array(Parameter(t.name, t.type, t.dtype, "in", t.shape, t.bytes), value)
        pointer, _, keep = _memory(value, False, t.name)
        held.append(keep)
        pointers.append(pointer or ctypes.addressof(nothing))
    made = {t.name: numpy.empty(t.shape, t.dtype) for t in about.outputs}
    results = [made[t.name].ctypes.data if t.bytes else ctypes.addressof(nothing) for t in about.outputs]
    ins, outs = (ctypes.c_void_p * (len(pointers) + 1))(*pointers), (ctypes.c_void_p * (len(results) + 1))(*results)
    lib.call(function, what._p, ins, len(pointers), outs, len(results))
    del held
    return made
