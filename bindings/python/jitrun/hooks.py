"""Functions of the caller's that the library calls while it computes: what changes logits, and what hears of prompts.

A function must not use its session, nor its batch. What it raises is raised again by the call that it was called in.
"""
from __future__ import annotations

import ctypes
import threading
from typing import Any, Callable, Dict, List, Optional

from . import arrays
from ._library import lib

LogitsFn = Callable[[Any, List[int]], Any]
PromptFn = Callable[[int, int], Any]

# By the session's pointer, until that is closed: a pass of another thread may call them for as long.
_kept: Dict[int, Dict[str, Any]] = {}


def forget(pointer: int) -> None:
    """The session is closed."""
    _kept.pop(pointer, None)


class Calls:
    """Those of a session, or of all sessions of a batch: what was raised in them, and in which thread one runs."""

    def __init__(self) -> None:
        self.raised: List[BaseException] = []
        self.thread: Optional[int] = None

    def inside(self) -> bool:
        """Whether the caller is such a function."""
        return self.thread == threading.get_ident()

    def run(self, fn: Callable[..., Any], *arguments: Any) -> int:
        """What it gave: whether it asks to give up."""
        self.thread = threading.get_ident()
        try:
            return int(bool(fn(*arguments)))
        except BaseException as e:  # goes on behind the library's call
            self.raised.append(e)
            return 1
        finally:
            self.thread = None

    def check(self) -> None:
        """Raises what was raised."""
        if self.raised:
            first, self.raised[:] = self.raised[0], []
            raise first


def _set(pointer: int, name: str, made: Any) -> None:
    lib.call(name, pointer, made, None)
    _kept.setdefault(pointer, {})[name] = made  # the one before is held until the library knows this one


def set_logits(pointer: int, calls: Calls, fn: Optional[LogitsFn]) -> None:
    """fn(logits, ids): the logits can be written to, and hold during the call."""
    if fn is not None and not callable(fn):
        raise TypeError(f"fn is {fn!r}, expected a function")
    if fn is None:
        _set(pointer, "jit_session_set_logits_fn", None)
        return
    given: LogitsFn = fn

    def call(_: Any, logits: int, n: int, ids: int, n_ids: int) -> int:
        view = arrays.floats((ctypes.c_float * n).from_address(logits))
        told = list((ctypes.c_int32 * n_ids).from_address(ids)) if n_ids else []
        return calls.run(given, view, told)

    _set(pointer, "jit_session_set_logits_fn", lib.callbacks["jit_logits_fn"](call))


def set_prompt(pointer: int, calls: Calls, fn: Optional[PromptFn]) -> None:
    """fn(computed, length)."""
    if fn is not None and not callable(fn):
        raise TypeError(f"fn is {fn!r}, expected a function")
    if fn is None:
        _set(pointer, "jit_session_set_prompt_fn", None)
        return
    given: PromptFn = fn

    def call(_: Any, computed: int, length: int) -> int:
        return calls.run(given, computed, length)

    _set(pointer, "jit_session_set_prompt_fn", lib.callbacks["jit_prompt_fn"](call))
