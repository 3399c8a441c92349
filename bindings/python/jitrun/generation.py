"""Text as it is generated."""
from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator, Callable, Iterator, List, NamedTuple, Optional, Tuple

from ._library import integer, lib
from .errors import ArgumentError, Cancelled, ContextError
from .session import Logprob, Session


class Usage(NamedTuple):
    """Tokens of the prompt, of them those that need not be computed, and tokens generated."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


class TokenLogprob(NamedTuple):
    """A chosen token, how likely the model held it, and the likeliest ones."""

    id: int
    logprob: float
    top: List[Logprob]


class Steps:
    """Chooses one token after another of a session, until it ends. Shared by streams and batches."""

    def __init__(self, session: Session, max_tokens: Optional[int], ignore_end: bool, logprobs: Optional[int],
                 stop: Optional[Callable[[List[int]], bool]] = None) -> None:
        self.session, self.most, self.ignore_end, self.n_logprobs = session, max_tokens, ignore_end, logprobs
        self.ids: List[int] = []
        self.logprobs: List[TokenLogprob] = []
        self.reason: Optional[str] = None
        if stop is not None and not callable(stop):
            raise TypeError(f"until is {stop!r}, expected a function")
        self.stop = stop

    def step(self) -> Tuple[bytes, int]:
        """The text that the next token completes, and the token; -1: the answer has ended, and this is the rest."""
        s = self.session
        if self.reason is None and self.most is not None and len(self.ids) >= self.most:
            self.reason = "length"
        if self.reason is not None:
            return self._rest(), -1
        try:
            token = s.next()
        except ContextError:
            self.reason = "length"
            return self._rest(), -1
        except ArgumentError:
            if s.grammar_complete is not True:
                raise
            self.reason = "stop"
            return self._rest(), -1
        if not self.ignore_end and lib.jit_model_is_end(s.model._p_of(s), token):
            self.reason = "stop"
            return self._rest(), -1
        self.ids.append(token)
        if self.n_logprobs is not None:
            self.logprobs.append(TokenLogprob(token, *s.logprobs(self.n_logprobs)))
        text = s.text_bytes(token)
        if s.stopped is not None or (self.stop is not None and self.stop(self.ids)):
            self.reason = "stop"
        return text, token

    _ended = False

    def _rest(self) -> bytes:
        if self._ended:
            return b""
        self._ended = True
        return self.session.text_bytes(-1)


def not_an_end(e: BaseException) -> BaseException:
    """What leaves an iterator: StopIteration of a function of the program must not look like the end of a text."""
    if not isinstance(e, StopIteration):
        return e
    out = RuntimeError("until raised StopIteration")
    out.__cause__ = e
    return out


class Generation:
    """An iterator over pieces of text; with `async for` as well. Made by generate() and stream().

    `text`, `ids`, `finish_reason` and `usage` say what came so far. Leaving a loop early ends the generation.
    """

    def __init__(self, session: Session, steps: Steps, prompt_tokens: int, cached: int,
                 parse: Optional[Callable[[str], Any]] = None, done: Optional[Callable[[], None]] = None) -> None:
        self.session, self._steps, self._prompt, self._cached = session, steps, prompt_tokens, cached
        self._parse, self._done, self._pieces = parse, done, []  # type: ignore[var-annotated]
        self._over = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while not self._over:
            try:
                data, token = self._steps.step()
            except BaseException as e:
                self.close()
                raise not_an_end(e)
            if token < 0:
                self.close()
            if data:
                self._pieces.append(data)
                return data.decode("utf-8", "replace")
        raise StopIteration

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        piece: Optional[str] = await in_thread(lambda: next(self, None), self.session)
        if piece is None:
            raise StopAsyncIteration
        return piece

    def close(self) -> None:
        """Ends it: nothing more comes."""
        if not getattr(self, "_over", True):
            self._over = True
            if self._done is not None:
                self._done()

    def __enter__(self) -> "Generation":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def read(self) -> str:
        """Generates all that is to come; the whole text."""
        for _ in self:
            pass
        return self.text

    @property
    def text(self) -> str:
        """All text so far."""
        return b"".join(self._pieces).decode("utf-8", "replace")

    @property
    def ids(self) -> List[int]:
        """The tokens chosen so far, without one that ended the text."""
        return list(self._steps.ids)

    @property
    def logprobs(self) -> List[TokenLogprob]:
        """Of these tokens, where they were asked for."""
        return list(self._steps.logprobs)

    @property
    def seed(self) -> int:
        """The seed of sampling."""
        return self.session.seed

    @property
    def finish_reason(self) -> Optional[str]:
        """"stop": an end token, a stop text, or the grammar's end; "length": a limit; None: it goes on."""
        return self._steps.reason

    @property
    def usage(self) -> Usage:
        """How many tokens so far."""
        return Usage(self._prompt, self._cached, len(self._steps.ids))

    @property
    def parsed(self) -> Any:
        """The value of a whole text that was generated by a schema: JSON, or an object of the Pydantic model."""
        if self._parse is None:
            raise ValueError("the text was generated without a schema, so it has no value")
        return parse_value(self._parse, self.text, self.finish_reason)


def parse_value(parse: Callable[[str], Any], text: str, reason: Optional[str]) -> Any:
    """The value of a text, or why it has none."""
    try:
        return parse(text)
    except ValueError as e:
        if reason == "length":
            raise ValueError("the text was cut off at max_tokens or the context's end, and is no whole JSON") from e
        raise


async def in_thread(work: Callable[[], Any], session: Session) -> Any:
    """Runs it in a thread; where the task is cancelled, what computes is cancelled, too."""
    future = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        session.cancel()
        try:
            await future
        except (Cancelled, Exception):  # what it was about is of no interest any more
            pass
        raise


def check_tokens(max_tokens: Optional[int]) -> Optional[int]:
    """max_tokens: None, or at least 0."""
    if max_tokens is None:
        return None
    number = integer(max_tokens)
    if number is None:
        raise TypeError(f"max_tokens is {max_tokens!r}, expected an integer")
    if number < 0:
        raise ValueError(f"max_tokens is {number}, expected 0 or more, or None")
    return number


__all__ = ["Generation", "TokenLogprob", "Usage"]
