"""Handles of the library, closed in the right order whoever lets go of them first.

A handle holds the one that it belongs to (a session its model, or its batch), and views of a session's memory hold the
session. close() lets go; the library's own close runs when nobody holds the handle any more. So a session may be used
after its model's close(), and an array of logits may be read after its session's.

Nothing is closed when the interpreter ends, for threads that it does not wait for may compute until the very end.
"""
from __future__ import annotations

import collections
import threading
import weakref
from typing import Any, Deque, Optional, Tuple

from . import hooks
from ._library import lib
from .errors import ClosedError


class Turn:
    """The lock of a batch and its sessions. Whoever drops the last reference to a session, in whatever thread, does not
    wait for a pass that computes: the session is closed behind it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.calls = hooks.Calls()
        self._ended: Deque[Tuple[str, int, Optional[Handle]]] = collections.deque()

    def __enter__(self) -> None:
        self._lock.acquire()
        self._close_ended()

    def __exit__(self, *_: Any) -> None:
        self._close_ended()
        self._lock.release()

    def end(self, function: str, pointer: int, owner: Optional["Handle"]) -> None:
        """Closes it now, or at the end of the turn."""
        if self._lock.acquire(blocking=False):
            try:
                _close(function, pointer, owner)
            finally:
                self._lock.release()
        else:
            self._ended.append((function, pointer, owner))

    def _close_ended(self) -> None:
        while self._ended:
            _close(*self._ended.popleft())

    def __del__(self) -> None:
        self._close_ended()


class Handle:
    """A pointer and the function that closes it, in its turn where there is one."""

    def __init__(self, pointer: int, close: str, owner: Optional["Handle"] = None, turn: Optional[Turn] = None) -> None:
        self.pointer = pointer
        self.owner = owner
        self._finalizer = weakref.finalize(self, turn.end if turn else _close, close, pointer, owner)
        self._finalizer.atexit = False


def _close(function: str, pointer: int, owner: Optional[Handle]) -> None:
    getattr(lib, function)(pointer)  # `owner` is held until here
    hooks.forget(pointer)


class Closable:
    """What has a handle, is used by one thread at a time, and can be closed by `with`."""

    _what = "object"

    def __init__(self, handle: Handle) -> None:
        self._handle: Optional[Handle] = handle
        self._lock: Any = threading.RLock()

    def _held(self) -> Handle:
        handle: Optional[Handle] = getattr(self, "_handle", None)
        if handle is None:
            raise ClosedError(f"the {self._what} is closed")
        return handle

    @property
    def _p(self) -> int:
        return self._held().pointer

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return getattr(self, "_handle", None) is None

    def close(self) -> None:
        """Lets go of it; again, nothing happens."""
        lock = getattr(self, "_lock", None)
        if lock is None:
            return
        with lock:
            self._handle = None

    def __enter__(self: Any) -> Any:
        self._held()
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __copy__(self) -> Any:
        raise TypeError(f"a {self._what} cannot be copied")

    def __deepcopy__(self, _: Any) -> Any:
        raise TypeError(f"a {self._what} cannot be copied")

    def __reduce__(self) -> Any:
        raise TypeError(f"a {self._what} cannot be pickled; open it again")
