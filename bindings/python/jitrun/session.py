"""One conversation with a model, token by token."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple, Union

from . import arrays, hooks, sampling
from ._handles import Closable, Handle, Turn
from ._library import any_text, ids_array, integer, lib, text_bytes
from .errors import ArgumentError
from .grammar import Before, Grammar, Schema
from .grammar import make as make_grammar

Prompt = Union[str, Iterable[int]]
POOLING = {"last": "JIT_POOL_LAST", "mean": "JIT_POOL_MEAN", "none": "JIT_POOL_NONE", "rank": "JIT_POOL_RANK",
           "cls": "JIT_POOL_CLS"}
KV = {"f16": "JIT_KV_F16", "f32": "JIT_KV_F32", "q8_0": "JIT_KV_Q8_0"}


class Logprob(NamedTuple):
    """A token and the natural logarithm of its probability."""

    id: int
    logprob: float


def choose(name: str, value: Any, names: Dict[str, str]) -> int:
    """A constant by the word that stands for it."""
    if not isinstance(value, str) or value not in names:
        raise ValueError(f"{name} is {value!r}, expected {', '.join(names)}")
    return lib.constants[names[value]]


def whole(name: str, value: Any, low: int = -(1 << 31), high: int = (1 << 31) - 1) -> int:
    """An integer of C's int."""
    number = integer(value)
    if number is None:
        raise TypeError(f"{name} is {value!r}, expected an integer")
    if not low <= number <= high:
        raise ValueError(f"{name} is {number}, which is not in {low}..{high}")
    return number


def session_options(context: int, threads: int, batch: int, kv: str, speculate: Union[str, int],
                    profile: bool, p: Any) -> Any:
    """A jit_session_options."""
    words = {"auto": "JIT_SPECULATE_AUTO", "off": "JIT_SPECULATE_OFF"}
    drafts = choose("speculate", speculate, words) if isinstance(speculate, str) else whole("speculate", speculate)
    return lib.new("jit_session_options", context=whole("context", context), threads=whole("threads", threads),
                   batch=whole("batch", batch), kv=choose("kv", kv, KV), speculate=drafts,
                   profile=lib.constants["JIT_PROFILE_SUMS" if profile else "JIT_PROFILE_OFF"], sampling=p)


class Session(Closable):
    """A KV cache, a position and a state of sampling on a model. Made by Model.session().

    One thread at a time computes on a session; a second one waits. cancel() may be called from any thread.
    """

    _what = "session"

    def __init__(self, model: Any, handle: Handle, seed: int) -> None:
        super().__init__(handle)
        self._calls = hooks.Calls()
        self.model = model
        #: What sampling was seeded with, so that the same choices can be made again.
        self.seed = seed

    def _held(self) -> Handle:
        calls = getattr(self, "_calls", None)
        if calls is not None and calls.inside():
            raise ArgumentError("a function that a session calls must not use it, nor its batch")
        return super()._held()

    def _compute(self, function: str, *arguments: Any) -> None:
        """Calls what may call functions of the caller's, and raises what these have raised."""
        try:
            lib.call(function, self._p, *arguments)
        except Exception:
            self._calls.check()
            raise
        self._calls.check()

    # ---- tokens in

    def feed(self, prompt: Prompt, *, special: bool = False) -> "Session":
        """Appends a text or token ids and computes them.

        special: text such as "<|im_start|>" becomes that token; leave it out for text that others wrote.
        """
        with self._lock:
            if isinstance(prompt, str):
                data = prompt.encode("utf-8", "surrogatepass")
                self._compute("jit_session_feed_text", data, len(data), bool(special))
            else:
                ids = ids_array(prompt, "prompt")
                self._compute("jit_session_feed", ids, len(ids))
        return self

    def feed_logits(self, ids: Iterable[int]) -> Any:
        """Appends tokens; the logits after each of them, as an array of one row of vocab floats a token."""
        with self._lock:
            given, vocab = ids_array(ids), self.model.info.vocab
            out = (ctypes.c_float * max(len(given) * vocab, 1))()
            self._compute("jit_session_feed_logits", given, len(given), out, len(given) * vocab)
        return arrays.floats(out, (len(given), vocab)) if len(given) else []

    def rewind(self, n: int = 0) -> "Session":
        """Forgets every token from position n on."""
        with self._lock:
            lib.call("jit_session_rewind", self._p, whole("n", n, 0, (1 << 63) - 1))
        return self

    # ---- tokens out

    def next(self) -> int:
        """Chooses the next token."""
        out = ctypes.c_int32()
        with self._lock:
            self._compute("jit_session_next", ctypes.byref(out))
        return out.value

    def text(self, token: int = -1) -> str:
        """The text that this token completes: once for each token, in order; -1 gives what is held back."""
        return self.text_bytes(token).decode("utf-8", "replace")

    def text_bytes(self, token: int = -1) -> bytes:
        """The same as bytes."""
        n, err = ctypes.c_size_t(), lib.Error()
        with self._lock:
            p = lib.jit_session_text(self._p, whole("token", token), ctypes.byref(n), ctypes.byref(err))
            lib.check(err.code, err)
            return ctypes.string_at(p, n.value) if p else b""

    def logits(self, copy: bool = False) -> Any:
        """The logits after the last token: vocab floats, read-only, as numpy array, or memoryview without numpy.

        Nothing is copied unless asked for: they hold until the next call on the session.
        """
        with self._lock:
            handle = self._held()
            err = lib.Error()
            p = lib.jit_session_logits(handle.pointer, ctypes.byref(err))
            lib.check(err.code, err)
            if not p:
                raise ArgumentError("nothing was fed to the session, so it has no logits")
            view = arrays.borrowed(p, self.model.info.vocab, (handle, self._held()))
            if not copy:
                return view
            return view.copy() if arrays.numpy is not None else memoryview(bytearray(view)).cast("f")

    def logprobs(self, n: int = 0) -> Tuple[float, List[Logprob]]:
        """Right after next(): how likely the model held the token it chose, and the n likeliest."""
        n = whole("n", n, 0, lib.constants["JIT_LOGPROBS_MOST"])
        chosen, top = ctypes.c_float(), (lib.structs["jit_logprob"] * max(n, 1))()
        with self._lock:
            lib.call("jit_session_logprobs", self._p, ctypes.byref(chosen), top, n)
        return chosen.value, [Logprob(t.id, t.logprob) for t in top[:n]]

    def sampled_logprobs(self, n: int = 0) -> Tuple[float, List[Logprob]]:
        """The same as they were drawn from, behind the samplers and a grammar."""
        n = whole("n", n, 0, lib.constants["JIT_LOGPROBS_MOST"])
        chosen, top, have = ctypes.c_float(), (lib.structs["jit_logprob"] * max(n, 1))(), ctypes.c_size_t()
        with self._lock:
            lib.call("jit_session_sampled_logprobs", self._p, ctypes.byref(chosen), top, n, ctypes.byref(have))
        return chosen.value, [Logprob(t.id, t.logprob) for t in top[:min(n, have.value)]]

    def score(self, ids: Iterable[int]) -> Any:
        """Appends tokens; the log probability of each after everything before it, as an array of floats."""
        with self._lock:
            given = ids_array(ids)
            out = (ctypes.c_float * len(given))()
            self._compute("jit_session_score", given, len(given), out)
        return arrays.floats(out) if len(given) else out

    def embed(self, ids: Iterable[int], *, pooling: str = "last", normalise: bool = False) -> Any:
        """Appends tokens and gives their embedding, as an array of floats: one row, or with "none" one a token."""
        with self._lock:
            given = ids_array(ids)
            kind, hidden = choose("pooling", pooling, POOLING), self.model.info.hidden
            rows = len(given) if pooling == "none" else 1
            n = 1 if pooling == "rank" else rows * hidden if pooling == "none" else self.model.info.embedding
            out = (ctypes.c_float * max(n, 1))()
            options = lib.new("jit_embedding_options", pooling=kind, normalise=bool(normalise))
            self._compute("jit_session_embed", given, len(given), ctypes.byref(options), out, n)
        return arrays.floats(out, (rows, hidden) if pooling == "none" else None)

    def embed_texts(self, texts: Iterable[Iterable[int]], *, pooling: str = "mean", normalise: bool = False,
                    types: Optional[Iterable[Iterable[int]]] = None) -> Any:
        """The embeddings of texts, each by itself, as a list of arrays of floats; models that encode compute several
        at once. types: of each text, its tokens' types, for models that have such."""
        with self._lock:
            kind, info = choose("pooling", pooling, POOLING), self.model.info
            given = [ids_array(ids) for ids in texts]
            kinds = [ids_array(t) for t in types] if types is not None else [None] * len(given)
            if len(kinds) != len(given) or any(k is not None and len(k) != len(g) for k, g in zip(kinds, given)):
                raise ValueError("types: expected one for each token of each text")
            rows = [len(ids) if pooling == "none" else 1 for ids in given]
            width = 1 if pooling == "rank" else info.hidden if pooling == "none" else info.embedding
            out = (ctypes.c_float * max(sum(rows) * width, 1))()
            list_of = (lib.structs["jit_embedding_text"] * max(len(given), 1))()
            for text, ids, kind_of in zip(list_of, given, kinds):
                text.ids, text.n = ctypes.addressof(ids), len(ids)
                if kind_of is not None:
                    text.types = ctypes.addressof(kind_of)
            options = lib.new("jit_embedding_options", pooling=kind, normalise=bool(normalise))
            self._compute("jit_session_embed_texts", list_of, len(given), ctypes.byref(options), out, sum(rows) * width)
        made, at = [], 0
        for n in rows:
            row = (ctypes.c_float * (n * width)).from_buffer_copy(out, at * 4)
            made.append(arrays.floats(row, (n, width) if pooling == "none" else None))
            at += n * width
        return made

    # ---- how tokens are chosen

    def set_sampling(self, **parameters: Any) -> "Session":
        """From the next choice on: the model's own parameters, with these. Without a seed, one is drawn."""
        with self._lock:
            p = sampling.make(self.model._p_of(self), sampling.take(dict(parameters)))
            lib.call("jit_session_set_sampling", self._p, ctypes.byref(p))
            self.seed = p.seed
        return self

    def set_stop(self, texts: Union[str, Iterable[str], None]) -> "Session":
        """From now on text() ends before the first of these texts."""
        made = sampling.texts_array(texts, "stop")
        array = (ctypes.c_char_p * max(len(made), 1))(*made)
        with self._lock:
            lib.call("jit_session_set_stop", self._p, array, len(made))
        return self

    @property
    def stopped(self) -> Optional[int]:
        """The number of the stop text that was found."""
        with self._lock:
            found = lib.jit_session_stopped(self._p)
        return None if found < 0 else found

    def set_logits_fn(self, fn: Optional[hooks.LogitsFn]) -> "Session":
        """From the next choice on, fn(logits, ids) may change the logits before the grammar and the samplers see them.

        logits: vocab floats to write to, which hold during the call; minus infinity bans a token. ids: all tokens so
        far. True ends the choice with Cancelled. None: no function. It must not use the session, nor its batch.
        """
        with self._lock:
            hooks.set_logits(self._p, self._calls, fn)
        return self

    def set_prompt_fn(self, fn: Optional[hooks.PromptFn]) -> "Session":
        """From the next pass on, fn(computed, length) hears how many tokens of the session are computed, of all.

        True ends what computes with Cancelled. None: no function. It must not use the session, nor its batch.
        """
        with self._lock:
            hooks.set_prompt(self._p, self._calls, fn)
        return self

    def set_grammar(self, *, schema: Optional[Schema] = None, regex: Optional[str] = None,
                    grammar: Optional[str] = None, behind_reasoning: Optional[str] = None,
                    template: Optional[str] = None, additional_properties: bool = False) -> "Session":
        """From now on the text keeps to a JSON Schema, a regular expression or rules; nothing given: to none.

        behind_reasoning: the prompt as it was rendered (Model.render). Then the model may reason first, and what
        follows keeps to it; None: the text does from its first token on. template: as in render().
        additional_properties: objects whose schema does not say may have members that it does not name.
        """
        g = make_grammar(schema, regex, grammar)
        if additional_properties and schema is None:
            raise TypeError("additional_properties is given, and no schema")
        if g is not None and additional_properties:
            g = g._replace(kind=g.kind | lib.constants["JIT_GRAMMAR_ADDITIONAL"])
        if behind_reasoning is not None and not isinstance(behind_reasoning, str):
            raise TypeError(f"behind_reasoning is {type(behind_reasoning).__name__}, expected str")
        if g is not None and behind_reasoning is not None:
            g = g._replace(before=Before(behind_reasoning, template=template))
        return self._set_grammar(g)

    def _set_grammar(self, g: Optional[Grammar]) -> "Session":
        o = lib.new("jit_grammar_options", kind=lib.constants["JIT_GRAMMAR_NONE"])
        if g is not None:
            b = g.before
            prompt = any_text(b.prompt, "behind_reasoning") if b else b""
            o = lib.new("jit_grammar_options", kind=g.kind, text=g.text, n=len(g.text), behind_reasoning=b is not None,
                        prompt=ctypes.create_string_buffer(prompt), n_prompt=len(prompt), tools=b and b.tools,
                        template_text=b and b.template, opening=b and b.opening)
        with self._lock:
            lib.call("jit_session_begin_grammar", self._p, ctypes.byref(o))
        return self

    @property
    def grammar_complete(self) -> Optional[bool]:
        """Whether the text keeps to the grammar as it stands; None: there is no grammar."""
        with self._lock:
            said = lib.jit_session_grammar_complete(self._p)
        return None if said < 0 else bool(said)

    # ---- what there is

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        with self._lock:
            return int(lib.jit_session_length(self._p))

    @property
    def ids(self) -> List[int]:
        """All tokens so far."""
        with self._lock:
            n, p = lib.jit_session_length(self._p), lib.jit_session_ids(self._p)
            return list((ctypes.c_int32 * n).from_address(p)) if n and p else []

    @property
    def stats(self) -> Dict[str, Any]:
        """Tokens, seconds and kernels so far: the numbers of jit_session_stats."""
        out = lib.new("jit_session_stats")
        with self._lock:
            lib.call("jit_session_get_stats", self._p, ctypes.byref(out))
        return numbers_of(out)

    def report(self, as_json: bool = False) -> str:
        """Every kernel that was used, as a table, or as JSON text."""
        with self._lock:
            return lib.take_text(lib.get("jit_session_report", self._p, bool(as_json))).decode("utf-8", "replace")

    # ---- elsewhere

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the tokens and the KV cache to a file."""
        with self._lock:
            lib.call("jit_session_save", self._p, text_bytes(path, "path"))

    def restore(self, path: Union[str, "os.PathLike[str]"]) -> "Session":
        """Reads them back, into a session without tokens."""
        with self._lock:
            lib.call("jit_session_restore", self._p, text_bytes(path, "path"))
        return self

    def fork(self, *, context: int = 0, threads: int = 0, kv: Optional[str] = None,
             speculate: Union[str, int] = "auto", **parameters: Any) -> "Session":
        """A session with the same tokens and a copy of the cache."""
        with self._lock:
            p = sampling.make(self.model._p_of(self), sampling.take(dict(parameters)))
            o = session_options(context or self.stats["context"], threads, 0, kv or self._kv, speculate, False, p)
            return _opened(self.model, lib.get("jit_session_fork", self._p, ctypes.byref(o)),
                           self._held().owner, p.seed, kv or self._kv)

    _kv = "f16"
    #: Whether cancel() was called.
    cancelled = False

    def cancel(self) -> None:
        """From any thread: what computes, or else what computes next, raises Cancelled."""
        handle = getattr(self, "_handle", None)
        if handle is not None:
            self.cancelled = True
            lib.jit_session_cancel(handle.pointer)


def _opened(model: Any, pointer: int, owner: Optional[Handle], seed: int, kv: str, turn: Optional[Turn] = None
            ) -> Session:
    s = Session(model, Handle(pointer, "jit_session_close", owner, turn), seed)
    if turn is not None:
        s._lock, s._calls = turn, turn.calls
    s._kv = kv
    return s


def numbers_of(struct: Any) -> Dict[str, Any]:
    """The fields of a struct of results as plain values."""
    out: Dict[str, Any] = {}
    for name, _ in struct._fields_:
        value = getattr(struct, name)
        if name.startswith("_") or name in ("size", "reserved"):
            continue
        if isinstance(value, ctypes.Array) and hasattr(value, "__iter__") and not isinstance(value, bytes):
            out[name] = [numbers_of(v) if isinstance(v, ctypes.Structure) else v for v in value]
        else:
            out[name] = value
    return out
