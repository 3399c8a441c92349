"""The shared library: where it is, its structs and its functions.

Everything here is made of jitrun-abi.json, which the build of the library writes: no layout is typed by hand.
"""
from __future__ import annotations

import ctypes
import json
import operator
import os
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple, Type

from .errors import raise_for

_HERE = Path(__file__).resolve().parent
_KINDS: Dict[str, Any] = {
    "int32": ctypes.c_int32, "uint32": ctypes.c_uint32, "int64": ctypes.c_int64, "uint64": ctypes.c_uint64,
    "float": ctypes.c_float, "double": ctypes.c_double, "char": ctypes.c_char, "pointer": ctypes.c_void_p,
}
_SCALARS: Dict[str, Any] = {
    "int": ctypes.c_int, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t, "float": ctypes.c_float, "double": ctypes.c_double, "char": ctypes.c_char,
}


def _find() -> Tuple[str, Path]:
    """The library's file and its description: those of $JITRUN_LIBRARY, of this package, or of the system."""
    given = os.environ.get("JITRUN_LIBRARY")
    if given:
        beside = Path(given).resolve().parent
        for place in (beside, beside.parent, beside.parent / "share" / "jitrun"):
            if (place / "jitrun-abi.json").is_file():
                return given, place / "jitrun-abi.json"
        raise ImportError(f"JITRUN_LIBRARY is {given}, and there is no jitrun-abi.json beside it")
    if (_HERE / "libjitrun.so").is_file():
        return str(_HERE / "libjitrun.so"), _HERE / "jitrun-abi.json"
    for prefix in ("/usr/local", "/usr"):
        about = Path(prefix) / "share" / "jitrun" / "jitrun-abi.json"
        if about.is_file():
            return json.loads(about.read_text())["library"], about
    raise ImportError("libjitrun.so is not in this package, and no jitrun is installed; "
                      "JITRUN_LIBRARY can name the library's file")


_CALLBACK: Any = ctypes.CFUNCTYPE(None).__mro__[1]  # of all functions of C's


class _Struct(ctypes.Structure):
    """A struct of the interface; those that begin with their size have it set."""

    _sized = False

    def __init__(self, **fields: Any) -> None:
        super().__init__()
        if self._sized:
            self.size = ctypes.sizeof(self)
        self._held: List[Any] = []  # what its pointers point to
        for name, value in fields.items():
            self.put(name, value)

    def put(self, name: str, value: Any) -> None:
        """Sets a field; texts, structs and arrays that are pointed to live as long as this struct."""
        if dict(self._fields_)[name] is ctypes.c_void_p:
            value = self._pointer(name, value)
        try:
            setattr(self, name, value)
        except (TypeError, OverflowError) as e:
            raise TypeError(f"{name} is {value!r}, which is not of the type that it takes: {e}") from None

    def _pointer(self, name: str, value: Any) -> Optional[int]:
        """Where it lies; a number is never taken for an address."""
        if value is None:
            return None
        if not isinstance(value, (ctypes.Array, ctypes.Structure, _CALLBACK)):
            value = ctypes.create_string_buffer(text_bytes(value, name))
        self._held.append(value)
        return ctypes.cast(value, ctypes.c_void_p).value if isinstance(value, _CALLBACK) else ctypes.addressof(value)


def text_bytes(text: Any, name: str) -> bytes:
    """UTF-8 without a NUL, as C takes it."""
    if isinstance(text, os.PathLike):
        text = os.fspath(text)
    if isinstance(text, str):
        try:
            text = text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as e:
            raise ValueError(f"{name} has a lone surrogate, which is no character: {e}") from None
    if not isinstance(text, bytes):
        raise TypeError(f"{name} is {type(text).__name__}, expected str")
    if b"\0" in text:
        raise ValueError(f"{name} has a NUL character in it")
    return text


def _fields(rows: List[Dict[str, Any]], name: str) -> Tuple[List[Tuple[str, Any]], int]:
    fields: List[Tuple[str, Any]] = []
    at = 0
    for row in rows:
        if row["offset"] > at:  # what the compiler left free
            fields.append((f"_{at}", ctypes.c_char * (row["offset"] - at)))
        if "fields" in row:
            kind: Any = _struct(f"{name}.{row['name']}", row["fields"], row["size"] // row.get("count", 1))
        else:
            kind = _KINDS[row["kind"]]
        if "count" in row:
            kind = kind * row["count"]
        fields.append((row["name"], kind))
        at = row["offset"] + row["size"]
    return fields, at


def _struct(name: str, rows: List[Dict[str, Any]], size: int) -> Type[_Struct]:
    fields, at = _fields(rows, name)
    if size > at:
        fields.append((f"_{at}", ctypes.c_char * (size - at)))
    # Packed, with the free places written out: so that offsets are those of the file, and nothing else.
    made = type(name, (_Struct,), {"_pack_": 1, "_fields_": fields, "_sized": rows[0]["name"] == "size"})
    assert ctypes.sizeof(made) == size, name
    return made


def _argument(text: str, structs: Dict[str, Type[_Struct]]) -> Any:
    if "*" not in text:
        return _SCALARS.get(text, ctypes.c_void_p)
    return ctypes.c_void_p


def _load_all(paths: List[Path]) -> List[ctypes.CDLL]:
    """Libraries that need one another, in any order: those that fail are tried again behind those that load."""
    loaded: List[ctypes.CDLL] = []
    while paths:
        left = []
        for path in paths:
            try:
                loaded.append(ctypes.CDLL(str(path)))
            except OSError:
                left.append(path)
        if len(left) == len(paths):
            ctypes.CDLL(str(left[0]))  # says why
        paths = left
    return loaded


class Library:
    """The functions by their names, and the structs and constants by theirs."""

    def __init__(self) -> None:
        path, about = _find()
        abi = json.loads(about.read_text())
        if abi["pointer"] != ctypes.sizeof(ctypes.c_void_p):
            raise ImportError(f"{about} is for pointers of {abi['pointer']} bytes")
        bundled = Path(path).resolve().parent / "libs"
        # What libjitrun.so needs and this package contains: loaded before, it is found by its name.
        self._needed = _load_all(sorted(bundled.glob("*.so*")) if bundled.is_dir() else [])
        try:
            self._so = ctypes.CDLL(path)
        except OSError as e:
            raise ImportError(f"libjitrun.so cannot be loaded: {e}") from None
        self.path, self.version = path, abi["version"]
        self.constants: Dict[str, int] = {k: v for e in abi["enums"] for k, v in e["values"].items()}
        self.structs = {s["name"]: _struct(s["name"], s["fields"], s["size"]) for s in abi["structs"]}
        self.callbacks = {c["name"]: ctypes.CFUNCTYPE(
            _SCALARS[c["returns"]], *[_argument(p["type"], self.structs) for p in c["parameters"]])
            for c in abi["callbacks"]}
        for f in abi["functions"]:
            function = getattr(self._so, f["name"], None)
            if function is None:
                raise ImportError(f"{path} has no {f['name']}: it is older than {about}")
            function.restype = None if f["returns"] == "void" else _argument(f["returns"], self.structs)
            function.argtypes = [_argument(p["type"], self.structs) for p in f["parameters"]]
            setattr(self, f["name"], function)
        self.Error = self.structs["jit_error"]

    def __getattr__(self, name: str) -> Any:  # only for what is set above, by name
        raise AttributeError(f"libjitrun has no {name}")

    def new(self, name: str, **fields: Any) -> Any:
        """A struct, with these fields."""
        return self.structs[name](**fields)

    def check(self, status: int, err: Any) -> None:
        """Raises what a status says."""
        if status:
            raise_for(status, err.message.decode("utf-8", "replace"))

    def call(self, function: str, *arguments: Any) -> None:
        """Calls a function that returns a status; an error is raised."""
        err = self.Error()
        self.check(getattr(self, function)(*arguments, ctypes.byref(err)), err)

    def get(self, function: str, *arguments: Any) -> int:
        """Calls a function that returns a pointer, which is NULL when there is an error."""
        err = self.Error()
        p = getattr(self, function)(*arguments, ctypes.byref(err))
        if not p:
            raise_for(err.code or self.constants["JIT_ERROR_MEMORY"],
                      err.message.decode("utf-8", "replace") or f"{function} gave nothing")
        return int(p)

    def take_text(self, p: int, n: Optional[int] = None) -> bytes:
        """The bytes of a text that the library gave to its caller, which is given back."""
        try:
            return ctypes.string_at(p) if n is None else ctypes.string_at(p, n)
        finally:
            self.jit_free(p)

    def take_ids(self, p: Optional[int], n: int) -> List[int]:
        """The same of token ids."""
        ids = list((ctypes.c_int32 * n).from_address(p)) if p and n else []
        self.jit_free(p)
        return ids


lib = Library()


def ids_array(ids: Any, name: str = "ids") -> Any:
    """Token ids as C takes them: a copy, for other threads may change theirs while the library computes."""
    if isinstance(ids, (str, bytes, bytearray)):
        raise TypeError(f"{name} is {type(ids).__name__}, expected token ids")
    try:
        view = memoryview(ids)
        if view.format == "i" and view.itemsize == 4 and view.c_contiguous and view.ndim == 1:
            return (ctypes.c_int32 * len(view)).from_buffer_copy(view)
    except TypeError:
        pass
    numbers = [id_of(i, name) for i in items(ids, name, "token ids")]
    return (ctypes.c_int32 * len(numbers))(*numbers)


def integer(value: Any) -> Optional[int]:
    """The value of an integer of any type; None: it is none."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def id_of(value: Any, name: str) -> int:
    """A token id."""
    number = integer(value)
    if number is None:
        raise TypeError(f"{name} has {value!r}, expected integers")
    if not -(1 << 31) <= number < 1 << 31:
        raise ValueError(f"{name} has {number}, which is no token id")
    return number


def items(values: Any, name: str, expected: str) -> Iterator[Any]:
    """The items of an iterable, or an exception that names the argument."""
    try:
        return iter(values)
    except TypeError:
        raise TypeError(f"{name} is {type(values).__name__}, expected {expected}") from None


def any_text(text: Any, name: str) -> bytes:
    """A text, or bytes, with any characters."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if not isinstance(data, bytes):
        raise TypeError(f"{name} is {type(text).__name__}, expected str or bytes")
    return data
