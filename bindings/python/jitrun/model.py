"""Models: files made ready to run."""
from __future__ import annotations

import ctypes
import math
import os
import secrets
import threading
from collections.abc import Mapping as MappingABC
from typing import (TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional,
                    Sequence, Tuple, Union)

from . import chat as conversations
from . import sampling
from ._handles import Closable, Handle
from ._library import any_text, ids_array, lib, text_bytes
from .errors import ArgumentError
from .generation import Generation, Steps, check_tokens, in_thread
from .grammar import Grammar, Schema
from .grammar import make as make_grammar
from .grammar import read_choice, tools_text
from .session import POOLING, Prompt, Session, _opened, choose, session_options, whole

if TYPE_CHECKING:
    from .batch import Batch

_TUNE = {"quick": "JIT_TUNE_QUICK", "cached": "JIT_TUNE_CACHED", "off": "JIT_TUNE_OFF"}
_NUMERICS = {"exact": "JIT_NUMERICS_EXACT", "bounded": "JIT_NUMERICS_BOUNDED",
             "always-bounded": "JIT_NUMERICS_ALWAYS_BOUNDED"}
_TOKEN_KINDS = {lib.constants[f"JIT_TOKEN_{k}"]: k.lower()
                for k in ("NORMAL", "UNKNOWN", "CONTROL", "USER", "UNUSED", "BYTE")}


_BOUNDED = {lib.constants["JIT_BOUNDED_NONE"]: "none", lib.constants["JIT_BOUNDED_PROMPTS"]: "prompts",
            lib.constants["JIT_BOUNDED_ALL"]: "all"}


class ModelInfo(NamedTuple):
    """What a model is."""

    description: str
    vocab: int
    layers: int
    hidden: int
    context_trained: int
    has_tokenizer: bool
    has_chat_template: bool
    has_sampling: bool
    file_bytes: int
    weight_bytes: int
    token_bytes: int
    load_seconds: float
    pooling: str
    #: Why packed weights could not be kept; None: they were, or need not be.
    weight_cache_trouble: Optional[str] = None
    #: What is in the bounded class of numerics: "none", "prompts" or "all".
    bounded: str = "none"
    #: How many times as many products of BF16 pairs as of floats this processor makes; 0: nobody asked.
    bounded_gain: float = 0.0
    encodes: bool = False
    embedding: int = 0


class Token(NamedTuple):
    """An entry of the vocabulary: how it is spelled there, the bytes that it adds to a text, and what it is."""

    id: int
    spelling: Optional[bytes]
    bytes: bytes
    kind: str
    is_end: bool


class Scores(NamedTuple):
    """Tokens of a text, and the log probability of each after everything before it."""

    ids: List[int]
    logprobs: Any

    @property
    def total(self) -> float:
        """Their sum."""
        return math.fsum(self.logprobs)


class Device(NamedTuple):
    """A device of this machine; why_not: empty when models can be opened on it."""

    name: str
    about: str
    why_not: str


def devices() -> List[Device]:
    """The devices that models can be opened on, or why they cannot."""
    out = []
    for number in range(lib.jit_device_count()):
        d = lib.new("jit_device_info")
        lib.call("jit_device_get_info", number, ctypes.byref(d))
        out.append(Device(d.name.decode(), d.about.decode("utf-8", "replace"), d.why_not.decode("utf-8", "replace")))
    return out


class Needs(NamedTuple):
    """What a model and one session on it take, in bytes, on this machine's processor; context: of the session."""

    weight_bytes: int
    token_bytes: int
    kv_bytes: int
    pass_bytes: int
    available_bytes: Optional[int]
    context: int
    context_trained: int

    @property
    def fits(self) -> bool:
        """Whether there is memory for it now, as far as that is known."""
        return self.available_bytes is None or (
            self.weight_bytes + self.kv_bytes + self.pass_bytes <= self.available_bytes)


def needs(path: Union[str, "os.PathLike[str]"], *, context: int = 0, kv: str = "f16", batch: int = 0,
          speculate: Union[str, int] = "auto") -> Needs:
    """Reads the headers of a model's files, and allocates nothing of what it measures."""
    out = lib.new("jit_needs")
    wanted = session_options(context, 0, batch, kv, speculate, False, None)
    lib.call("jit_model_needs", text_bytes(path, "path"), ctypes.byref(wanted), ctypes.byref(out))
    available = out.available_bytes if out.available_bytes != (1 << 64) - 1 else None
    return Needs(out.weight_bytes, out.token_bytes, out.kv_bytes, out.pass_bytes, available, out.context,
                 out.context_trained)


class Metadata(MappingABC):  # type: ignore[type-arg]
    """What a model's files say of themselves, by key. Arrays are lists."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def _value(self, m: Any, number: int) -> Any:
        kind = lib.constants
        if m.kind == kind["JIT_METADATA_STRING"]:
            return ctypes.string_at(m.text, m.n).decode("utf-8", "replace") if m.n else ""
        if m.kind == kind["JIT_METADATA_INTEGER"]:
            return m.integer
        if m.kind == kind["JIT_METADATA_BOOL"]:
            return bool(m.integer)
        if m.kind == kind["JIT_METADATA_REAL"]:
            return m.real
        if m.kind == kind["JIT_METADATA_ARRAY"] and number >= 0:
            out, item = [], lib.new("jit_metadata")
            for i in range(m.n):
                lib.call("jit_model_metadata_item", self._handle.pointer, number, i, ctypes.byref(item))
                out.append(self._value(item, -1))
            return out
        return None

    def _row(self, number: int) -> Any:
        m = lib.new("jit_metadata")
        lib.call("jit_model_metadata", self._handle.pointer, number, ctypes.byref(m))
        return m

    def __getitem__(self, key: str) -> Any:
        if not isinstance(key, str) or "\0" in key:
            raise KeyError(key)
        number = lib.jit_model_metadata_find(self._handle.pointer, key.encode("utf-8", "surrogatepass"))
        if number < 0:
            raise KeyError(key)
        return self._value(self._row(number), number)

    def __iter__(self) -> Iterator[str]:
        for number in range(len(self)):
            yield ctypes.string_at(self._row(number).key).decode("utf-8", "replace")

    def __len__(self) -> int:
        return int(lib.jit_model_metadata_count(self._handle.pointer))


class Model(Closable):
    """A model, ready to run. It may be used from any number of threads.

    path: a .gguf file, a .safetensors file with config.json beside it, or a directory with either.
    device: "cpu", "cuda", "cuda:1", "ref"... (devices() lists them); isa: "avx2" and so on, None: the best there is.
    threads: of loading and of each session; 0: one per core. context: positions of sessions; 0: as trained, at most
    4096. kv: "f16", "f32" or "q8_0". speculate: "auto", "off", 4, 8 or 16. progress: called with bytes done and all;
    True ends loading. The other arguments are those of jit_model_options in jitrun.h.
    """

    _what = "model"

    def __init__(self, path: Union[str, "os.PathLike[str]"], *, device: Optional[str] = None,
                 isa: Optional[str] = None, threads: int = 0, context: int = 0, kv: str = "f16",
                 speculate: Union[str, int] = "auto", sealed: bool = False, cache_dir: Optional[str] = None,
                 cache_limit: int = 0, weight_cache: Optional[str] = None, weight_cache_limit: int = 0,
                 f32_activations: bool = False, numerics: str = "exact", tune: str = "quick",
                 copy_weights: bool = False, progress: Optional[Callable[[int, int], Any]] = None) -> None:
        raised: List[BaseException] = []
        if progress is not None and not callable(progress):
            raise TypeError(f"progress is {progress!r}, expected a function")

        def report(_: Any, done: int, total: int) -> int:
            try:
                if progress and progress(done, total):
                    raised.append(ArgumentError(f"{path}: progress asked to give up"))
            except BaseException as e:  # goes on behind the library's call
                raised.append(e)
            return len(raised)

        file = text_bytes(path, "path")
        self.path = os.fspath(path)
        self._session_options = (context, threads, kv, speculate)
        wanted = session_options(context, threads, 0, kv, speculate, False, None)
        o = lib.new("jit_model_options", device=device, isa=isa, threads=whole("threads", threads), sealed=bool(sealed),
                    cache_dir=cache_dir, cache_limit=whole("cache_limit", cache_limit, 0, (1 << 64) - 1),
                    f32_activations=bool(f32_activations), bounded_numerics=choose("numerics", numerics, _NUMERICS),
                    tune=choose("tune", tune, _TUNE), copy_weights=bool(copy_weights), weight_cache=weight_cache,
                    weight_cache_limit=whole("weight_cache_limit", weight_cache_limit, 0, (1 << 64) - 1),
                    progress=lib.callbacks["jit_progress_fn"](report) if progress else None, session=wanted)
        try:
            pointer = lib.get("jit_model_open", file, ctypes.byref(o))
        except Exception:
            if raised:
                raise raised[0] from None
            raise
        super().__init__(Handle(pointer, "jit_model_close"))
        if raised:  # in the last call of progress
            super().close()
            raise raised[0]
        self._idle: List[Session] = []
        self._idle_lock = threading.Lock()
        self.info = self._read_info()

    def _read_info(self) -> ModelInfo:
        i = lib.new("jit_model_info")
        lib.call("jit_model_get_info", self._p, ctypes.byref(i))
        pooling = {lib.constants[c]: n for n, c in POOLING.items()}.get(i.pooling, "none")
        return ModelInfo(ctypes.string_at(i.description).decode("utf-8", "replace"), i.vocab, i.layers, i.hidden,
                         i.context_trained, bool(i.has_tokenizer), bool(i.has_chat_template), bool(i.has_sampling),
                         i.file_bytes, i.weight_bytes, i.token_bytes, i.load_seconds, pooling,
                         ctypes.string_at(i.weight_cache_trouble).decode("utf-8", "replace")
                         if i.weight_cache_trouble else None, _BOUNDED.get(i.bounded, "none"), i.bounded_gain,
                         bool(i.encodes), i.embedding)

    @staticmethod
    def _p_of(session: Session) -> int:
        handle = session._held()
        while handle.owner is not None:
            handle = handle.owner
        return handle.pointer

    def close(self) -> None:
        """Lets go of it. Its memory is given back when its sessions and batches are closed, too."""
        with self._lock:
            with self._idle_lock:
                self._idle = []
            super().close()

    def __repr__(self) -> str:
        return f"<jitrun.Model {self.path!r}: {self.info.description}{', closed' if self.closed else ''}>"

    # ---- what there is

    @property
    def metadata(self) -> Metadata:
        """What the files say, by key."""
        return Metadata(self._held())

    @property
    def stop(self) -> List[str]:
        """The texts with which the model's files say that an answer ends; sessions begin with them."""
        out: List[str] = []
        while True:
            p = lib.jit_model_stop(self._p, len(out))
            if not p:
                return out
            out.append(ctypes.string_at(p).decode("utf-8", "replace"))

    def check_device(self) -> None:
        """Raises DeviceError where the model's card has failed for good."""
        lib.call("jit_model_alive", self._p)

    @property
    def sampling_defaults(self) -> Dict[str, Any]:
        """How the model's makers say that tokens are to be chosen."""
        p = lib.new("jit_sampling")
        lib.call("jit_model_sampling_defaults", self._p, ctypes.byref(p))
        return sampling.as_dict(p)

    @property
    def roles(self) -> Dict[str, Optional[int]]:
        """The tokens with a task: "bos", "eos", "fim_prefix" and so on; None: the model has none."""
        out: Dict[str, Optional[int]] = {}
        number, token = 0, ctypes.c_int32()
        while True:
            p = lib.jit_token_role(number)
            if not p:
                return out
            name = ctypes.string_at(p)
            lib.call("jit_model_role", self._p, name, ctypes.byref(token))
            out[name.decode()] = token.value if token.value >= 0 else None
            number += 1

    def token(self, id: int) -> Token:
        """An entry of the vocabulary."""
        out, room = lib.new("jit_token"), ctypes.create_string_buffer(256)
        id = whole("id", id)
        lib.call("jit_model_token", self._p, id, ctypes.byref(out), room, 256)
        if out.n_bytes > 256:
            room = ctypes.create_string_buffer(out.n_bytes)
            lib.call("jit_model_token", self._p, id, ctypes.byref(out), room, out.n_bytes)
        return Token(id, ctypes.string_at(out.text, out.n_text) if out.text else None, room.raw[:out.n_bytes],
                     _TOKEN_KINDS.get(out.kind, "unused"), bool(out.is_end))

    def find_token(self, spelling: Union[str, bytes]) -> Optional[int]:
        """The token that the vocabulary spells exactly so."""
        data = any_text(spelling, "spelling")
        found = lib.jit_model_find_token(self._p, data, len(data))
        return None if found < 0 else found

    def is_end(self, id: int) -> bool:
        """Whether the token ends a generation."""
        return bool(lib.jit_model_is_end(self._p, whole("id", id)))

    # ---- text and tokens

    def tokenize(self, text: Union[str, bytes], *, add_special: bool = False, special: bool = False) -> List[int]:
        """Text to ids. add_special: BOS and EOS as the model wants; special: "<|im_start|>" becomes that token."""
        data = any_text(text, "text")
        ids, n = ctypes.c_void_p(), ctypes.c_size_t()
        lib.call("jit_model_tokenize", self._p, data, len(data), bool(add_special), bool(special), ctypes.byref(ids),
                 ctypes.byref(n))
        return lib.take_ids(ids.value, n.value)

    def tokenize_pair(self, first: Union[str, bytes], second: Union[str, bytes], *,
                      special: bool = False) -> Tuple[List[int], List[int]]:
        """Two texts as one, as models that score pairs want them: ids, and their types."""
        given = [any_text(first, "first"), any_text(second, "second")]
        texts, sizes = (ctypes.c_char_p * 2)(*given), (ctypes.c_size_t * 2)(*map(len, given))
        ids, types, n = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        lib.call("jit_model_tokenize_pair", self._p, texts, sizes, bool(special), ctypes.byref(ids),
                 ctypes.byref(types), ctypes.byref(n))
        return lib.take_ids(ids.value, n.value), lib.take_ids(types.value, n.value)

    def detokenize_bytes(self, ids: Iterable[int]) -> bytes:
        """Ids to bytes, which may be a part of a character."""
        given, n = ids_array(ids), ctypes.c_size_t()
        return lib.take_text(lib.get("jit_model_detokenize", self._p, given, len(given), ctypes.byref(n)), n.value)

    def detokenize(self, ids: Iterable[int]) -> str:
        """Ids to text."""
        return self.detokenize_bytes(ids).decode("utf-8", "replace")

    def prompt_ids(self, prompt: Union[Prompt, bytes], special: bool = False) -> List[int]:
        """The tokens of a prompt: BOS before a text where the model wants it, and nothing behind."""
        if not isinstance(prompt, (str, bytes)):
            return list(ids_array(prompt, "prompt"))
        if not prompt:  # nothing tells what belongs before it from what belongs behind it, as another text does
            begun = self.prompt_ids("a")
            return begun[:len(begun) - len(self.tokenize("a"))]
        plain, whole_text = self.tokenize(prompt, special=special), self.tokenize(prompt, add_special=True,
                                                                                 special=special)
        for at in (0, 1):
            if whole_text[at:at + len(plain)] == plain:
                return whole_text[:at + len(plain)]
        return whole_text

    # ---- sessions

    def session(self, *, context: Optional[int] = None, threads: Optional[int] = None, batch: int = 0,
                kv: Optional[str] = None, speculate: Union[str, int, None] = None, profile: bool = False,
                **parameters: Any) -> Session:
        """A new session; what is not given is as the model was opened with. parameters: of sampling."""
        given = sampling.take(dict(parameters))
        own_context, own_threads, own_kv, own_speculate = self._session_options
        kv = own_kv if kv is None else kv
        handle = self._held()
        p = sampling.make(handle.pointer, given)
        o = session_options(own_context if context is None else context, own_threads if threads is None else threads,
                            batch, kv, own_speculate if speculate is None else speculate, profile, p)
        return _opened(self, lib.get("jit_session_open", handle.pointer, ctypes.byref(o)), handle, p.seed, kv)

    def batch(self, *, context: Optional[int] = None, threads: Optional[int] = None, tokens: int = 0,
              kv: Optional[str] = None, speculate: Union[str, int, None] = None, max_pass_ms: int = 0,
              kv_bytes: int = 0) -> "Batch":
        """Many sessions computed together: see Batch."""
        from .batch import Batch

        own_context, own_threads, own_kv, own_speculate = self._session_options
        return Batch(self, own_context if context is None else context, own_threads if threads is None else threads,
                     tokens, own_kv if kv is None else kv, own_speculate if speculate is None else speculate,
                     max_pass_ms, kv_bytes)

    def _borrow(self) -> Session:
        self._held()
        with self._idle_lock:
            if self._idle:
                return self._idle.pop()
        return self.session()

    def _give_back(self, s: Session) -> None:
        if s.closed:
            return
        with self._idle_lock:
            if not self.closed and not s.cancelled and len(self._idle) < 4:
                self._idle.append(s)
                return
        s.close()

    # ---- generating

    def _begin(self, s: Session, ids: List[int], given: Mapping[str, Any], stop: Any, g: Optional[Grammar]) -> int:
        """Makes a session stand behind these tokens; how many of them it had."""
        with s._lock:
            had = s.ids
            same = 0
            for a, b in zip(had, ids):
                if a != b:
                    break
                same += 1
            same = min(same, max(len(ids) - 1, 0))
            s._set_grammar(None)
            s.text_bytes(-1)
            s.set_stop(stop)
            s.set_sampling(**given)
            s.rewind(same)
            s.feed(ids[same:])
            s._set_grammar(g)
        return same

    def stream(self, prompt: Prompt, *, max_tokens: Optional[int] = None, stop: Any = None, special: bool = False,
               schema: Optional[Schema] = None, regex: Optional[str] = None, grammar: Optional[str] = None,
               ignore_end: bool = False, logprobs: Optional[int] = None, session: Optional[Session] = None,
               until: Optional[Callable[[List[int]], bool]] = None, **parameters: Any) -> Generation:
        """Goes on from a prompt, a text or token ids: an iterator over pieces of text.

        max_tokens: None: up to the end of the context. stop: texts that end it and are not given. special: text such
        as "<|im_start|>" becomes that token. schema, regex, grammar: what the text keeps to. logprobs: of how many of
        the likeliest tokens. until: called with the tokens so far, True ends it. session: used instead of one of the
        model's own. parameters: of sampling (temperature, top_k, seed and so on).
        """
        given, g = sampling.take(dict(parameters)), make_grammar(schema, regex, grammar)
        most = check_tokens(max_tokens)
        n_logprobs = None if logprobs is None else whole("logprobs", logprobs, 0, lib.constants["JIT_LOGPROBS_MOST"])
        ids = self.prompt_ids(prompt, special)
        s, done = self._lent(session)
        try:
            cached = self._begin(s, ids, given, stop, g)
        except BaseException:
            done()
            raise
        return Generation(s, Steps(s, most, ignore_end, n_logprobs, until), len(ids), cached, g.parse if g else None,
                          done)

    def _lent(self, session: Optional[Session]) -> Tuple[Session, Callable[[], None]]:
        if session is not None:
            if not isinstance(session, Session) or session.model is not self:
                raise TypeError("session is not one of this model")
            return session, lambda: None
        s = self._borrow()
        return s, lambda: self._give_back(s)

    def generate(self, prompt: Prompt, **options: Any) -> Generation:
        """The same as stream(), generated to its end: its text, ids, finish_reason, usage and parsed value."""
        g = self.stream(prompt, **options)
        g.read()
        return g

    async def generate_async(self, prompt: Prompt, **options: Any) -> Generation:
        """generate() in a thread; when the task is cancelled, the computation is."""
        lent = options.get("session")
        s = self._borrow() if lent is None else lent
        try:
            done: Generation = await in_thread(lambda: self.generate(prompt, **{**options, "session": s}), s)
            return done
        finally:
            if lent is None:
                self._give_back(s)

    # ---- conversations

    def render(self, messages: Any, *, tools: Optional[Sequence[Any]] = None,
               variables: Optional[Mapping[str, Any]] = None, template: Optional[str] = None,
               template_name: Optional[str] = None, generation: bool = True,
               now: Optional[float] = None) -> conversations.Prompt:
        """A conversation as the model's chat template writes it: its text and its tokens.

        messages: dicts with "role" and "content", or a text of the user. tools: dicts in OpenAI's form, Pydantic
        models, or functions with type hints. variables: what the template knows beside, {"enable_thinking": False}.
        template: instead of the model's own. now: seconds since 1970, for templates that write the date.
        """
        return conversations.render(self._p, messages, tools_text(tools), {} if variables is None else variables,
                                    template, template_name, generation, now)

    def parse(self, text: Union[str, bytes], *, tools: Optional[Sequence[Any]] = None, prompt: str = "",
              template: Optional[str] = None, cut: bool = False, id: Optional[str] = None,
              keep_reasoning: bool = False) -> Dict[str, Any]:
        """A whole answer as a message in OpenAI's form: content, reasoning_content and tool_calls."""
        import json

        data = any_text(text, "text")
        o = conversations.options(tools_text(tools), prompt, template, None, id, False, keep_reasoning, cut)
        said = lib.take_text(lib.get("jit_chat_parse", self._p, data, len(data), ctypes.byref(o)))
        return dict(json.loads(said))

    def reader(self, *, tools: Optional[Sequence[Any]] = None, prompt: str = "", template: Optional[str] = None,
               id: Optional[str] = None, keep_reasoning: bool = False) -> conversations.Reader:
        """Reads an answer as it comes."""
        return conversations.Reader(self._held(), tools_text(tools), prompt, template, None, id, False, keep_reasoning)

    def _conversation(self, messages: Any, tools: Optional[Sequence[Any]], tool_choice: Any, g: Optional[Grammar],
                      thinking: Optional[bool], variables: Optional[Mapping[str, Any]], template: Optional[str],
                      now: Optional[float], parallel: bool
                      ) -> Tuple[List[int], Optional[Grammar], conversations.Reader]:
        """The tokens of a prompt, what its answer keeps to, and what reads it."""
        text = tools_text(tools)
        word, name = read_choice(tool_choice, text)
        text = None if word == "none" else text
        if variables is not None and not isinstance(variables, Mapping):
            raise TypeError(f"variables is {type(variables).__name__}, expected a dict")
        more = dict(variables or {})
        if thinking is not None:
            more.setdefault("enable_thinking", bool(thinking))
        handle = self._held()
        prompt = conversations.render(handle.pointer, messages, text, more, template, None, True, now)
        ids, opened = prompt.ids, None
        if g is not None:
            reasons = more.get("enable_thinking") is not False
            g = g._replace(before=conversations.Before(prompt.text, text, template if reasons else ""))
        if word == "required":
            if g is not None:
                raise TypeError("tool_choice requires a call, and schema, regex or grammar another form")
            forced = conversations.force(handle.pointer, text, name, template, not parallel, prompt.text)
            ids, g, opened = ids + forced.ids, forced.grammar, forced.opened
        reader = conversations.Reader(handle, text, prompt.text, template, opened, f"call_{secrets.token_hex(8)}",
                                      not parallel)
        return ids, g, reader

    def chat_stream(self, messages: Any, *, tools: Optional[Sequence[Any]] = None, tool_choice: Any = None,
                    schema: Optional[Schema] = None, regex: Optional[str] = None, grammar: Optional[str] = None,
                    thinking: Optional[bool] = None, variables: Optional[Mapping[str, Any]] = None,
                    template: Optional[str] = None, max_tokens: Optional[int] = None, stop: Any = None,
                    parallel_tool_calls: bool = True, logprobs: Optional[int] = None,
                    session: Optional[Session] = None, now: Optional[float] = None, ignore_end: bool = False,
                    until: Optional[Callable[[List[int]], bool]] = None, **parameters: Any) -> conversations.ChatStream:
        """Answers a conversation: an iterator over events.

        tool_choice: "auto", "none", "required", or the name of the function that must be called: then a grammar
        leaves nothing but a call with arguments that are right by the function's schema. thinking: the template's
        switch of reasoning, where it has one. A model that reasons does so before the call, or before what schema,
        regex or grammar say. The others are those of render() and stream().
        """
        given, g = sampling.take(dict(parameters)), make_grammar(schema, regex, grammar)
        most = check_tokens(max_tokens)
        n_logprobs = None if logprobs is None else whole("logprobs", logprobs, 0, lib.constants["JIT_LOGPROBS_MOST"])
        ids, keeps, reader = self._conversation(messages, tools, tool_choice, g, thinking, variables, template, now,
                                                parallel_tool_calls)
        s, done = self._lent(session)
        try:
            cached = self._begin(s, ids, given, stop, keeps)
        except BaseException:
            done()
            raise
        return conversations.ChatStream(s, Steps(s, most, ignore_end, n_logprobs, until), reader, len(ids), cached,
                               g.parse if g else None, done)

    def chat(self, messages: Any, **options: Any) -> conversations.Reply:
        """The whole answer of a conversation; the arguments are those of chat_stream()."""
        return self.chat_stream(messages, **options).reply

    async def chat_async(self, messages: Any, **options: Any) -> conversations.Reply:
        """chat() in a thread; when the task is cancelled, the computation is."""
        lent = options.get("session")
        s = self._borrow() if lent is None else lent
        try:
            reply: conversations.Reply = await in_thread(
                lambda: self.chat(messages, **{**options, "session": s}), s)
            return reply
        finally:
            if lent is None:
                self._give_back(s)

    # ---- numbers

    def embed(self, texts: Any, *, pooling: Optional[str] = None, normalise: bool = False) -> Any:
        """The embedding of a text, or of token ids: an array of floats; of a list of texts, a list of arrays.

        pooling: "last", "mean", "cls", "none" (a row for each token) or "rank"; None: as the model's files say, else "last".
        """
        if pooling is None:
            pooling = "last" if self.info.pooling == "none" else self.info.pooling
        if not isinstance(texts, str) and isinstance(texts, Sequence) and (
                not texts or not hasattr(texts[0], "__index__")):
            return [self.embed(t, pooling=pooling, normalise=normalise) for t in texts]
        ids = self.tokenize(texts, add_special=True) if isinstance(texts, str) else list(ids_array(texts, "texts"))
        s = self._borrow()
        try:
            with s._lock:
                s.rewind(0)
                return s.embed(ids, pooling=pooling, normalise=normalise)
        finally:
            self._give_back(s)

    async def embed_async(self, texts: Any, **options: Any) -> Any:
        """embed() in a thread."""
        import asyncio

        return await asyncio.get_running_loop().run_in_executor(None, lambda: self.embed(texts, **options))

    def score(self, text: Prompt, *, given: Prompt = "", special: bool = False) -> Scores:
        """How likely the model holds each token of a text behind `given`; the first one of all has 0."""
        before = self.prompt_ids(given, special) if given else []
        if isinstance(text, str):
            ids = self.tokenize(text, special=special) if before else self.prompt_ids(text, special)
        else:
            ids = list(ids_array(text, "text"))
        s = self._borrow()
        try:
            with s._lock:
                s.rewind(0)
                s._set_grammar(None)
                if before:
                    s.feed(before)
                return Scores(ids, s.score(ids))
        finally:
            self._give_back(s)

