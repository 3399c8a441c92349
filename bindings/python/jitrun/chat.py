"""Conversations: what a model answers, as text, reasoning and calls of tools."""
from __future__ import annotations

import ctypes
import json
import math
import numbers
import threading
from typing import (Any, AsyncIterator, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple,
                    Union)

from ._handles import Handle
from ._library import any_text, lib, text_bytes
from .errors import JitrunError
from .generation import Steps, TokenLogprob, Usage, in_thread, not_an_end, parse_value
from .grammar import Before, Grammar, dump
from .session import Session, whole

#: A template for models whose files have none: most of those trained for conversations since 2023 know this form.
CHATML = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + (message['content'] or '') + "
          "'<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


class ToolCall(NamedTuple):
    """A call of a tool; `arguments` is JSON text, which is only complete when the call is whole."""

    id: str
    name: str
    arguments: str
    whole: bool = True

    @property
    def value(self) -> Any:
        """The arguments as Python values."""
        return json.loads(self.arguments)


class Event(NamedTuple):
    """What became known of an answer: kind is "text", "reasoning", "call", "arguments" or "call_end"."""

    kind: str
    text: str = ""
    call: int = 0
    id: Optional[str] = None
    name: Optional[str] = None
    whole: bool = False


class Prompt(NamedTuple):
    """A conversation as the model's chat template writes it."""

    text: str
    ids: List[int]


class Forced(NamedTuple):
    """What makes an answer a call of a tool: what opens it in the prompt, and the grammar. opened None: the answer opens
    it, for it may reason before."""

    ids: List[int]
    grammar: Grammar
    opened: Optional[bytes]


class Reply:
    """A whole answer."""

    def __init__(self, message: Dict[str, Any], calls: List[ToolCall], finish_reason: str, usage: Usage,
                 ids: List[int], seed: int, logprobs: List[TokenLogprob],
                 parse: Optional[Callable[[str], Any]]) -> None:
        #: The message in OpenAI's form: put it behind the others to go on.
        self.message = message
        self.tool_calls = calls
        #: "stop", "length" or "tool_calls".
        self.finish_reason = finish_reason
        self.usage, self.ids, self.seed, self.logprobs, self._parse = usage, ids, seed, logprobs, parse

    @property
    def text(self) -> str:
        """What is neither reasoning nor a call."""
        return str(self.message["content"] or "")

    @property
    def reasoning(self) -> str:
        """The model's reasoning; empty where there is none."""
        return str(self.message.get("reasoning_content", ""))

    @property
    def parsed(self) -> Any:
        """The value of an answer that keeps to a schema: JSON, or an object of the Pydantic model."""
        if self._parse is None:
            raise ValueError("the answer was generated without a schema, so it has no value")
        return parse_value(self._parse, self.text, self.finish_reason)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Reply({self.message!r}, finish_reason={self.finish_reason!r})"


class Reader:
    """Reads an answer as it comes (jitrun_answers.h)."""

    _KINDS = ("", "text", "reasoning", "call", "arguments", "call_end")

    def __init__(self, model: Handle, tools: Optional[str] = None, prompt: str = "", template: Optional[str] = None,
                 opened: Optional[bytes] = None, id: Optional[str] = None, one_call: bool = False,
                 keep_reasoning: bool = False) -> None:
        o = options(tools, prompt, template, opened, id, one_call, keep_reasoning, False)
        self._handle = Handle(lib.get("jit_answer_open", model.pointer, ctypes.byref(o)), "jit_answer_close", model)
        self._lock = threading.Lock()

    def feed(self, text: Union[str, bytes], token: int = -1) -> List[Event]:
        """The next bytes, and the token that they are of: control tokens that are marks have no text of their own."""
        data, token = any_text(text, "text"), whole("token", token)
        p = self._handle.pointer
        with self._lock:
            lib.call("jit_answer_feed", p, data, len(data))
            events = self._events()
            n = ctypes.c_size_t()
            mark = lib.jit_answer_mark(p, token, ctypes.byref(n)) if token >= 0 else None
            if n.value:
                data = ctypes.string_at(mark, n.value)
                lib.call("jit_answer_feed", p, data, len(data))
                events += self._events()
            return events

    def finish(self, cut: bool = False) -> List[Event]:
        """What was held back. cut: the model had more to say."""
        with self._lock:
            lib.call("jit_answer_finish", self._handle.pointer, bool(cut))
            return self._events()

    def _events(self) -> List[Event]:
        out: List[Event] = []
        e = lib.new("jit_answer_event")
        while True:
            lib.call("jit_answer_next", self._handle.pointer, ctypes.byref(e))
            if e.kind == lib.constants["JIT_ANSWER_NOTHING"]:
                return out
            text = ctypes.string_at(e.text, e.n).decode("utf-8", "replace") if e.n else ""
            out.append(Event(self._KINDS[e.kind], text, e.call,
                             ctypes.string_at(e.id).decode("utf-8", "replace") if e.id else None,
                             ctypes.string_at(e.name).decode("utf-8", "replace") if e.name else None, bool(e.whole)))


def options(tools: Optional[str], prompt: str, template: Optional[str], opened: Optional[bytes], id: Optional[str],
            one_call: bool, keep_reasoning: bool, cut: bool) -> Any:
    """A jit_answer_options."""
    text = any_text(prompt, "prompt")
    return lib.new("jit_answer_options", tools=tools, prompt=ctypes.create_string_buffer(text), n_prompt=len(text),
                   template_text=template, opened=opened, id=id, one_call=bool(one_call),
                   keep_reasoning=bool(keep_reasoning), cut=bool(cut))


class ChatStream:
    """An iterator over events; with `async for` as well. `reply` is the whole answer once it has ended."""

    def __init__(self, session: Session, steps: Steps, reader: Reader, prompt_tokens: int, cached: int,
                 parse: Optional[Callable[[str], Any]], done: Callable[[], None]) -> None:
        self.session, self._steps, self._reader, self._parse, self._done = session, steps, reader, parse, done
        self._usage = (prompt_tokens, cached)
        self._waiting: List[Event] = []
        self._over = self._finished = False
        self._text: List[str] = []
        self._reasoning: List[str] = []
        self._calls: List[ToolCall] = []

    def _keep(self, e: Event) -> None:
        if e.kind == "text":
            self._text.append(e.text)
        elif e.kind == "reasoning":
            self._reasoning.append(e.text)
        elif e.kind == "call":
            self._calls.append(ToolCall(e.id or "", e.name or "", "", False))
        elif e.kind == "arguments":
            c = self._calls[e.call]
            self._calls[e.call] = c._replace(arguments=c.arguments + e.text)
        else:
            self._calls[e.call] = self._calls[e.call]._replace(whole=e.whole)

    def advance(self) -> bool:
        """One token more. False: the answer has ended."""
        if self._over:
            return False
        try:
            self.take(*self._steps.step())
        except BaseException as e:
            self.close()
            raise not_an_end(e)
        return True

    def take(self, data: bytes, token: int) -> None:
        """What a step gave: text, and the token that it is of; -1: the end."""
        events = self._reader.feed(data, token)
        if token < 0:
            events += self._reader.finish(self._steps.reason == "length")
        for e in events:
            self._keep(e)
        self._waiting += events
        if token < 0:
            self._finished = True
            self.close()

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        while not self._waiting:
            if not self.advance():
                raise StopIteration
        return self._waiting.pop(0)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        event: Optional[Event] = await in_thread(lambda: next(self, None), self.session)
        if event is None:
            raise StopAsyncIteration
        return event

    def close(self) -> None:
        """Ends it: nothing more comes."""
        if not getattr(self, "_over", True):
            self._over = True
            self._done()

    def __enter__(self) -> "ChatStream":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    @property
    def finish_reason(self) -> Optional[str]:
        """"stop", "length" or "tool_calls"; None: it goes on."""
        if self._steps.reason == "stop" and any(c.whole for c in self._calls):
            return "tool_calls"
        return self._steps.reason

    @property
    def usage(self) -> Usage:
        """How many tokens so far."""
        return Usage(*self._usage, len(self._steps.ids))

    @property
    def reply(self) -> Reply:
        """The whole answer; what is to come of it is generated first."""
        while self.advance():
            pass
        if not self._finished:
            raise ValueError("the answer was closed before its end")
        message: Dict[str, Any] = {"role": "assistant", "content": "".join(self._text)}
        if self._reasoning:
            message["reasoning_content"] = "".join(self._reasoning)
        if self._calls:
            message["tool_calls"] = [{"id": c.id, "type": "function", "function": {
                "name": c.name, "arguments": c.arguments}} for c in self._calls]
        return Reply(message, list(self._calls), self.finish_reason or "stop", self.usage, list(self._steps.ids),
                     self.session.seed, list(self._steps.logprobs), self._parse)


# ---- messages

def _content(message: Dict[str, Any], number: int) -> Any:
    content = message.get("content")
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        raise TypeError(f"message {number} has content of type {type(content).__name__}, expected str")
    texts = []
    for part in content:
        if not isinstance(part, Mapping) or part.get("type") != "text" or not isinstance(part.get("text"), str):
            what = part.get("type") if isinstance(part, Mapping) else part
            raise ValueError(f"message {number} has content of type {what!r}, which is not supported: only text is")
        texts.append(part["text"])
    return "\n".join(texts)


def messages_text(messages: Any, as_objects: bool) -> Tuple[str, bool]:
    """Messages as JSON text. as_objects: arguments of calls become objects; whether there are any."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    if isinstance(messages, (bytes, Mapping)) or not isinstance(messages, Sequence):
        raise TypeError(f"messages is {type(messages).__name__}, expected a list of messages, or a text")
    out, some = [], False
    for number, message in enumerate(messages):
        if isinstance(message, Reply):
            message = message.message
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise TypeError(f"message {number} is no dict with a role")
        one = {k: v for k, v in message.items() if v is not None}
        one["content"] = _content(dict(message), number)
        calls = one.get("tool_calls")
        if calls and as_objects:
            one["tool_calls"] = [_with_object(c) for c in calls]
            some = True
        out.append(one)
    return dump(out, "messages"), some


def _with_object(call: Any) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("arguments"), str):
        return call
    try:
        value = json.loads(function["arguments"])
    except ValueError:
        return call
    return {**call, "function": {**function, "arguments": value}} if isinstance(value, dict) else call


def seconds_of(now: Optional[float]) -> int:
    """A time as the library takes it."""
    if now is None:
        return 0
    if isinstance(now, bool) or not isinstance(now, numbers.Real) or not math.isfinite(now) or abs(now) >= 1 << 53:
        raise ValueError(f"now is {now!r}, expected seconds since 1970")
    return math.floor(now)


def render(model: int, messages: Any, tools: Optional[str], variables: Mapping[str, Any], template: Optional[str],
           template_name: Optional[str], generation: bool, now: Optional[float]) -> Prompt:
    """jit_chat_render. Most templates want the arguments of calls as objects, some as texts: the others refuse them."""
    if not isinstance(variables, Mapping):
        raise TypeError(f"variables is {type(variables).__name__}, expected a dict")
    more = dump(dict(variables), "variables") if variables else None

    def once(text: str) -> Prompt:
        o = lib.new("jit_chat_options", messages=text_bytes(text, "messages"), tools=tools, variables=more,
                    template_text=template, template_name=template_name, no_generation_prompt=not generation,
                    has_now=now is not None, now=seconds_of(now))
        out = lib.new("jit_chat")
        lib.call("jit_chat_render", model, ctypes.byref(o), ctypes.byref(out))
        try:
            ids = list((ctypes.c_int32 * out.n_ids).from_address(out.ids)) if out.n_ids else []
            return Prompt(ctypes.string_at(out.text, out.n).decode("utf-8", "replace"), ids)
        finally:
            lib.jit_chat_free(ctypes.byref(out))

    text, some = messages_text(messages, True)
    try:
        return once(text)
    except JitrunError:
        if not some:
            raise
        return once(messages_text(messages, False)[0])


def force(model: int, tools: Optional[str], name: Optional[str], template: Optional[str], one_call: bool,
          prompt: str) -> Forced:
    """jit_call_force."""
    text = any_text(prompt, "prompt")
    o = lib.new("jit_forced_options", tools=tools, function=name, template_text=template, one_call=bool(one_call),
                prompt=ctypes.create_string_buffer(text), n_prompt=len(text))
    out = lib.new("jit_forced_call")
    lib.call("jit_call_force", model, ctypes.byref(o), ctypes.byref(out))
    try:
        ids = list((ctypes.c_int32 * out.n_ids).from_address(out.ids)) if out.n_ids else []
        grammar = Grammar(out.kind, ctypes.string_at(out.grammar, out.n_grammar))
        if out.behind_reasoning:
            opening = ctypes.string_at(out.prompt, out.n_prompt)
            return Forced([], grammar._replace(before=Before(prompt, tools, template, opening)), None)
        return Forced(ids, grammar, ctypes.string_at(out.opened))
    finally:
        lib.jit_forced_call_free(ctypes.byref(out))
