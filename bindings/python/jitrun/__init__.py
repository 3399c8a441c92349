"""jitrun: runs language models with machine code of its own.

    from jitrun import Model

    with Model("model.gguf") as model:
        for piece in model.stream("Once upon a time", max_tokens=64):
            print(piece, end="", flush=True)

The same tokens give the same bits on every machine, and in every batch. docs/python.md is the manual;
jitrun.llama_cpp has the names of llama-cpp-python.
"""
from ._library import lib as _lib
from .batch import Batch, Completion
from .chat import CHATML, ChatStream, Event, Prompt, Reader, Reply, ToolCall
from .errors import (ArgumentError, Cancelled, ClosedError, ContextError, DeviceError, FileError, FormatError,
                     JitrunError, OutOfMemoryError, StalledError, UnsupportedError)
from .generation import Generation, TokenLogprob, Usage
from .grammar import Lark
from .model import Device, Metadata, Model, ModelInfo, Needs, Scores, Token, devices, needs
from .sampling import PARAMETERS as SAMPLING_PARAMETERS
from .session import Logprob, Session

__version__: str = _lib.version

__all__ = [
    "ArgumentError", "Batch", "CHATML", "Cancelled", "ChatStream", "ClosedError", "Completion", "ContextError",
    "Device", "DeviceError", "Event", "FileError", "FormatError", "Generation", "JitrunError", "Lark", "Logprob", "Metadata",
    "Model", "ModelInfo", "Needs", "OutOfMemoryError", "Prompt", "Reader", "Reply", "SAMPLING_PARAMETERS", "Scores", "Session",
    "StalledError", "Token", "TokenLogprob", "ToolCall", "UnsupportedError", "Usage", "devices",
    "needs",
]
