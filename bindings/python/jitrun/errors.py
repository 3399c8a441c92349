"""What goes wrong, as exceptions with the library's sentence."""
from __future__ import annotations

from typing import Dict, Type


class JitrunError(Exception):
    """An error of the library. str() is its sentence, `code` is enum jit_status of jitrun.h."""

    code = 0


class FileError(JitrunError, OSError):
    """A file could not be opened or read."""

    code = 1


class FormatError(JitrunError, ValueError):
    """A file breaks its format's rules, or its weights lead to logits that are not finite."""

    code = 2


class UnsupportedError(JitrunError):
    """Well formed, but jitrun does not do it."""

    code = 3


class OutOfMemoryError(JitrunError, MemoryError):
    """Not enough memory."""

    code = 4


class ArgumentError(JitrunError, ValueError):
    """A value is out of range."""

    code = 5


class DeviceError(JitrunError):
    """The device cannot run this."""

    code = 6


class ContextError(JitrunError):
    """The session's context is full."""

    code = 7


class Cancelled(JitrunError):
    """cancel() asked for it."""

    code = 8


class StalledError(JitrunError):
    """A step of a batch computed none of the tokens that are due: a fault of jitrun."""

    code = 9


class ClosedError(JitrunError, ValueError):
    """A model, session or batch was used after it was closed."""


_BY_CODE: Dict[int, Type[JitrunError]] = {
    c.code: c for c in (FileError, FormatError, UnsupportedError, OutOfMemoryError, ArgumentError, DeviceError,
                        ContextError, Cancelled, StalledError)
}


def raise_for(code: int, sentence: str) -> None:
    """Raises the exception of a status."""
    raise _BY_CODE.get(code, JitrunError)(sentence)
