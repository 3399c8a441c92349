"""How tokens are chosen."""
from __future__ import annotations

import ctypes
import math
import numbers
import secrets
from typing import Any, Dict, Iterable, List, Mapping, Union

from ._library import id_of, items, lib, text_bytes

_STRUCT = lib.structs["jit_sampling"]
_KINDS: Dict[str, Any] = {row[0]: row[1] for row in _STRUCT._fields_ if not row[0].startswith("_")}
_POINTERS = ("samplers", "dry_breakers", "logit_bias", "n_dry_breakers", "n_logit_bias", "size")
#: The names of all parameters: fields of jit_sampling, which `man 3 jitrun` and docs/sampling.md explain.
PARAMETERS = tuple(n for n in _KINDS if n not in _POINTERS) + ("samplers", "dry_breakers", "logit_bias")


def _number(name: str, value: Any) -> Union[int, float]:
    whole = _KINDS[name] is not ctypes.c_float
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} is {value!r}, expected a number")
    if whole and not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} is {value!r}, expected an integer")
    if whole:
        bits = ctypes.sizeof(_KINDS[name]) * 8
        low, high = (0, 1 << bits) if _KINDS[name] is ctypes.c_uint64 else (-(1 << (bits - 1)), 1 << (bits - 1))
        number = int(value)
        if not low <= number < high:
            raise ValueError(f"{name} is {value!r}, which is not in {low}..{high - 1}")
        return number
    real = float(value)
    if math.isfinite(real) and abs(real) > 3.4e38:
        raise ValueError(f"{name} is {value!r}, which no float of 32 bits holds")
    return real


def _put_bias(p: Any, bias: Any) -> None:
    if isinstance(bias, (str, bytes)):
        raise TypeError(f"logit_bias is {type(bias).__name__}, expected a dict or pairs")
    pairs = list(bias.items() if isinstance(bias, Mapping) else items(bias, "logit_bias", "a dict or pairs"))
    entry = lib.structs["jit_logit_bias"]
    array = (entry * max(len(pairs), 1))()
    for i, pair in enumerate(pairs):
        try:
            token, value = pair
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                raise TypeError(f"{value!r} is no number")
            id = int(token) if isinstance(token, str) else token  # as JSON has them
            array[i].id, array[i].bias = id_of(id, "logit_bias"), float(value)
        except (TypeError, ValueError, OverflowError) as e:
            raise TypeError(f"logit_bias has {pair!r}, expected a token id and a number: {e}") from None
    p.put("logit_bias", array)
    p.n_logit_bias = len(pairs)


def _put_breakers(p: Any, texts: Iterable[str]) -> None:
    if isinstance(texts, (str, bytes)):
        raise TypeError("dry_breakers is a text, expected a list of texts")
    made = [ctypes.create_string_buffer(text_bytes(t, "dry_breakers"))
            for t in items(texts, "dry_breakers", "a list of texts")]
    array = (ctypes.c_void_p * max(len(made), 1))(*[ctypes.addressof(b) for b in made])
    p._held.extend(made)
    p.put("dry_breakers", array)
    p.n_dry_breakers = len(made)


def make(model: Any, given: Mapping[str, Any]) -> Any:
    """A jit_sampling: what the model's makers say, with the parameters given; without a seed, one is drawn."""
    p = lib.new("jit_sampling")
    if model is not None:
        lib.call("jit_model_sampling_defaults", model, ctypes.byref(p))
    for name, value in given.items():
        if name not in PARAMETERS:
            raise TypeError(f"there is no parameter {name!r}; sampling has {', '.join(sorted(PARAMETERS))}")
        if value is None:
            continue
        if name == "samplers":
            p.put(name, value if isinstance(value, str) else b";".join(
                text_bytes(t, name) for t in items(value, name, "a text or a list of names")))
        elif name == "logit_bias":
            _put_bias(p, value)
        elif name == "dry_breakers":
            _put_breakers(p, value)
        else:
            setattr(p, name, _number(name, value))
    if given.get("seed") is None:
        p.seed = secrets.randbits(63)
    return p


def as_dict(p: Any) -> Dict[str, Any]:
    """The numbers of a jit_sampling."""
    out: Dict[str, Any] = {n: getattr(p, n) for n in PARAMETERS if n not in _POINTERS}
    out["samplers"] = ctypes.string_at(p.samplers).decode() if p.samplers else None
    return out


def texts_array(texts: Union[str, Iterable[str], None], name: str) -> List[bytes]:
    """Stop texts: one or several."""
    if texts is None:
        return []
    if isinstance(texts, (str, bytes)):
        texts = [texts]
    return [text_bytes(t, name) for t in items(texts, name, "a text or a list of texts")]


def take(options: Dict[str, Any]) -> Dict[str, Any]:
    """Takes the parameters of sampling out of keyword arguments; what is left must be nothing."""
    given = {n: options.pop(n) for n in list(options) if n in PARAMETERS}
    if options:
        name = next(iter(options))
        raise TypeError(f"there is no argument {name!r}")
    return given


__all__ = ["PARAMETERS", "as_dict", "make"]
