"""The class Llama."""
from __future__ import annotations

import glob
import os
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Union

from .. import arrays
from ..errors import ContextError
from ..model import Model, devices
from ..session import Session
from . import llama_chat_format, names, replies
from .llama_grammar import LlamaGrammar
from .llama_lists import StoppingCriteriaList
from .llama_speculative import LlamaPromptLookupDecoding
from .llama_tokenizer import LlamaTokenizer

_KV = {names.GGML_TYPE_F32: "f32", names.GGML_TYPE_F16: "f16", names.GGML_TYPE_Q8_0: "q8_0"}
_POOLING = {names.LLAMA_POOLING_TYPE_UNSPECIFIED: None, names.LLAMA_POOLING_TYPE_NONE: "none",
            names.LLAMA_POOLING_TYPE_MEAN: "mean", names.LLAMA_POOLING_TYPE_LAST: "last",
            names.LLAMA_POOLING_TYPE_RANK: "rank"}
# What only concerns speed, memory or what is printed; the text is the same.
_HARMLESS = {"use_mmap", "use_mlock", "n_batch", "n_ubatch", "n_threads_batch", "verbose", "numa", "flash_attn",
             "offload_kqv", "op_offload", "logits_all", "embedding", "embeddings", "swa_full", "no_perf", "main_gpu",
             "f16_kv", "low_vram", "n_gqa", "mul_mat_q"}
# What would change a text or where it is computed, and the value with which it does not.
_NOT_DONE: Dict[str, Any] = {
    "split_mode": names.LLAMA_SPLIT_MODE_LAYER, "tensor_split": None, "vocab_only": False, "kv_overrides": None,
    "rope_scaling_type": -1, "rope_freq_base": 0.0, "rope_freq_scale": 0.0, "yarn_ext_factor": -1.0,
    "yarn_attn_factor": 1.0, "yarn_beta_fast": 32.0, "yarn_beta_slow": 1.0, "yarn_orig_ctx": 0,
    "lora_base": None, "lora_path": None, "lora_scale": 1.0, "chat_handler": None, "tokenizer": None,
    "spm_infill": False, "rpc_servers": None, "attention_type": -1,
}


class LlamaState(NamedTuple):
    """The tokens of a Llama, from which all else is computed again, bit for bit."""

    ids: List[int]


def _refuse(name: str, value: Any) -> None:
    raise ValueError(f"{name}={value!r} is not supported by jitrun")


def _seed_of(seed: int) -> Optional[int]:
    """Of 32 bits; None: one is to be drawn, which -1 asks for as well."""
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise TypeError(f"seed is {seed!r}, expected an integer")
    seed &= 0xFFFFFFFF
    return None if seed == names.LLAMA_DEFAULT_SEED else seed


def _device(n_gpu_layers: int) -> Optional[str]:
    if n_gpu_layers == 0:
        return None
    cards = [d for d in devices() if d.name == "cuda" or d.name.startswith("cuda:")]
    if not any(not d.why_not for d in cards):
        return None  # as there: without a card, the processor computes
    if 0 < n_gpu_layers < 999:
        _refuse("n_gpu_layers", n_gpu_layers)  # a part of the layers: all of them go to the card, or none
    return "cuda"


class Llama:
    """A model, by llama-cpp-python's interface. It may be used from several threads."""

    def __init__(self, model_path: str, *, n_gpu_layers: int = 0, seed: int = names.LLAMA_DEFAULT_SEED,
                 n_ctx: int = 512, n_threads: Optional[int] = None, last_n_tokens_size: int = 64,
                 pooling_type: int = names.LLAMA_POOLING_TYPE_UNSPECIFIED, chat_format: Optional[str] = None,
                 draft_model: Any = None, type_k: Optional[int] = None, type_v: Optional[int] = None,
                 **others: Any) -> None:
        for name, value in others.items():
            if name in _NOT_DONE:
                if value is not None and value != _NOT_DONE[name]:
                    _refuse(name, value)
            elif name not in _HARMLESS:
                raise TypeError(f"Llama has no argument {name!r}")
        if draft_model is not None and not isinstance(draft_model, LlamaPromptLookupDecoding):
            _refuse("draft_model", draft_model)
        if pooling_type not in _POOLING:
            _refuse("pooling_type", pooling_type)
        kv, other = ("f16" if t is None else _KV.get(t) for t in (type_k, type_v))
        if kv is None or kv != other:
            _refuse("type_k, type_v", (type_k, type_v))
        llama_chat_format.check(chat_format)
        self.model_path, self.chat_format, self.chat_handler, self.verbose = model_path, chat_format, None, False
        self.last_n_tokens_size, self._pooling = last_n_tokens_size, _POOLING[pooling_type]
        self._seed: Optional[int] = None
        self.set_seed(seed)
        self._model = Model(model_path, device=_device(n_gpu_layers), threads=n_threads or 0, context=n_ctx,
                            kv=kv or "f16")
        self._own: Optional[Session] = None
        self._n_ctx = int(self._session().stats["context"])
        self.cache: Any = None

    @classmethod
    def from_pretrained(cls, repo_id: str, filename: Optional[str], additional_files: Any = None,
                        local_dir: Optional[str] = None, cache_dir: Optional[str] = None, **options: Any) -> "Llama":
        """A model of Hugging Face's hub that is on this machine already: in local_dir, or in the hub's cache."""
        cache = cache_dir or os.environ.get("HF_HUB_CACHE") or os.path.join(
            os.environ.get("HF_HOME") or os.path.join(os.path.expanduser("~"), ".cache", "huggingface"), "hub")
        folders = [local_dir] if local_dir else sorted(glob.glob(os.path.join(
            glob.escape(cache), "models--" + glob.escape(repo_id.replace("/", "--")), "snapshots", "*")))
        found = sorted(f for d in folders for f in glob.glob(os.path.join(glob.escape(d), filename or "*.gguf")))
        if not found:
            raise ValueError(f"no file {filename or '*.gguf'} of {repo_id} is on this machine, and this package "
                             f"downloads nothing; get it first: jitrun pull hf.co/{repo_id}")
        names_of = {os.path.basename(f) for f in found}
        if len(names_of) > 1 and "-00001-of-" not in found[0]:
            raise ValueError(f"{filename} of {repo_id} is several files: {', '.join(sorted(names_of))}")
        return cls(found[0], **options)

    # ---- text and tokens

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = False) -> List[int]:
        """Text to ids."""
        if not isinstance(text, bytes):
            raise TypeError(f"text is {type(text).__name__}, expected bytes")
        return self._model.prompt_ids(text, special) if add_bos else self._model.tokenize(text, special=special)

    def detokenize(self, tokens: Sequence[int], prev_tokens: Optional[Sequence[int]] = None,
                   special: bool = False) -> bytes:
        """Ids to bytes. special: control tokens are spelled."""
        if special:
            return b"".join(self._model.token(int(t)).bytes for t in tokens)
        if not prev_tokens:
            return self._model.detokenize_bytes(tokens)
        before = self._model.detokenize_bytes(prev_tokens)
        return self._model.detokenize_bytes([*prev_tokens, *tokens])[len(before):]

    def tokenizer(self) -> LlamaTokenizer:
        """The tokenizer by itself."""
        return LlamaTokenizer(self)

    def token_eos(self) -> int:
        """The token that ends a text; -1: there is none."""
        return self._role("eos")

    def token_bos(self) -> int:
        """The token that begins a text; -1: there is none."""
        return self._role("bos")

    def token_nl(self) -> int:
        """The token of a line's end."""
        ids = self._model.tokenize("\n")
        return ids[-1] if ids else -1

    def _role(self, name: str) -> int:
        token = self._model.roles[name]
        return -1 if token is None else token

    def n_ctx(self) -> int:
        """Positions of the context."""
        return self._n_ctx

    def n_embd(self) -> int:
        """Floats of an embedding."""
        return self._model.info.hidden

    def n_vocab(self) -> int:
        """Tokens of the vocabulary."""
        return self._model.info.vocab

    @property
    def metadata(self) -> Dict[str, str]:
        """What the file says, as texts; without arrays."""
        return {k: str(v) for k, v in self._model.metadata.items() if not isinstance(v, list)}

    # ---- options

    def _sampling(self, o: Mapping[str, Any]) -> Dict[str, Any]:
        tfs = o.get("tfs_z", 1.0)
        if tfs != 1.0:
            _refuse("tfs_z", tfs)
        if o.get("logits_processor"):
            _refuse("logits_processor", o["logits_processor"])
        seed = self._seed if o.get("seed") is None else _seed_of(o["seed"])
        bias = o.get("logit_bias")
        return {"temperature": o["temperature"], "top_p": o["top_p"], "min_p": o["min_p"],
                "typical_p": o["typical_p"], "top_k": max(o["top_k"], 0), "repeat_penalty": o["repeat_penalty"],
                "frequency_penalty": o["frequency_penalty"], "presence_penalty": o["presence_penalty"],
                "mirostat": o.get("mirostat_mode", 0), "mirostat_tau": o.get("mirostat_tau", 5.0),
                "mirostat_eta": o.get("mirostat_eta", 0.1), "repeat_window": self.last_n_tokens_size,
                "seed": seed,
                "logit_bias": {int(k): float(v) for k, v in bias.items()} if bias else None}

    def _until(self, criteria: Any, prompt: List[int], session: Session) -> Optional[Callable[[List[int]], bool]]:
        if not criteria:
            return None
        every = criteria if callable(criteria) else StoppingCriteriaList(criteria)

        def until(ids: List[int]) -> bool:
            all_ids: Any = prompt + ids
            if arrays.numpy is not None:
                all_ids = arrays.numpy.array(all_ids, dtype=arrays.numpy.intc)
            try:
                logits = session.logits()
            except ContextError:  # no position is left for the token that was chosen last
                return False
            return bool(every(all_ids, logits))

        return until

    def _limit(self, ids: List[int], max_tokens: Optional[int]) -> Optional[int]:
        if len(ids) > self._n_ctx:
            raise ValueError(f"Requested tokens ({len(ids)}) exceed context window of {self._n_ctx}")
        room = self._n_ctx - len(ids)
        return room if max_tokens is None or max_tokens <= 0 else min(max_tokens, room)

    # ---- completions

    def __call__(self, prompt: Any, suffix: Optional[str] = None, max_tokens: Optional[int] = 16,
                 **options: Any) -> Any:
        """The same as create_completion()."""
        return self.create_completion(prompt, suffix, max_tokens, **options)

    def create_completion(self, prompt: Union[str, List[int]], suffix: Optional[str] = None,
                          max_tokens: Optional[int] = 16, temperature: float = 0.8, top_p: float = 0.95,
                          min_p: float = 0.05, typical_p: float = 1.0, logprobs: Optional[int] = None,
                          echo: bool = False, stop: Any = None, frequency_penalty: float = 0.0,
                          presence_penalty: float = 0.0, repeat_penalty: float = 1.0, top_k: int = 40,
                          stream: bool = False, seed: Optional[int] = None, tfs_z: float = 1.0,
                          mirostat_mode: int = 0, mirostat_tau: float = 5.0, mirostat_eta: float = 0.1,
                          model: Optional[str] = None, stopping_criteria: Any = None, logits_processor: Any = None,
                          grammar: Optional[LlamaGrammar] = None,
                          logit_bias: Optional[Mapping[Any, float]] = None) -> Any:
        """Goes on from a prompt: a dict in OpenAI's form, or with stream an iterator over such dicts."""
        given = self._sampling(locals())
        ids = self._prompt(prompt, suffix)
        most = self._limit(ids, max_tokens)
        start = replies.head("text_completion", "cmpl", model or self.model_path)
        shown = prompt if isinstance(prompt, str) else self.detokenize(prompt).decode("utf-8", "replace")
        session = self._model._borrow() if stopping_criteria else None
        keeps = grammar.options() if grammar is not None else {}
        try:
            g = self._model.stream(ids, max_tokens=most, stop=stop, logprobs=logprobs, session=session,
                                   until=self._until(stopping_criteria, ids, session) if session else None,
                                   **keeps, **given)
        except BaseException:
            if session:
                self._model._give_back(session)
            raise
        rows = self._prompt_rows(ids, logprobs) if echo and logprobs is not None else []
        chunks = self._chunks(g, start, shown if echo else "", rows, logprobs, session)
        if stream:
            return chunks
        for _ in chunks:
            pass
        own = rows + [(r.id, r.logprob, r.top) for r in g.logprobs]
        flat = replies.flat_logprobs(self._model, own, 0 if echo else len(shown)) if logprobs is not None else None
        text = (shown if echo else "") + g.text
        return {**start, "choices": [replies.text_choice(text, flat, g.finish_reason)],
                "usage": replies.usage_of(len(ids), len(g.ids))}

    def _chunks(self, g: Any, start: Dict[str, Any], shown: str, rows: List[Any], logprobs: Optional[int],
                session: Optional[Session]) -> Iterator[Dict[str, Any]]:
        at, told = len(shown), 0
        try:
            with g:
                if shown:
                    lp = replies.flat_logprobs(self._model, rows, 0) if logprobs is not None else None
                    yield {**start, "choices": [replies.text_choice(shown, lp, None)]}
                for piece in g:
                    new, told = g._steps.logprobs[told:], len(g._steps.logprobs)
                    lp = replies.flat_logprobs(self._model, [(r.id, r.logprob, r.top) for r in new], at) if (
                        logprobs is not None) else None
                    yield {**start, "choices": [replies.text_choice(piece, lp, None)]}
                    at += len(piece)
                yield {**start, "choices": [replies.text_choice("", None, g.finish_reason)]}
        finally:
            if session is not None:
                self._model._give_back(session)

    def _prompt(self, prompt: Any, suffix: Optional[str]) -> List[int]:
        if isinstance(prompt, str):
            ids = self._model.prompt_ids(prompt, special=True)
        else:
            ids = [int(t) for t in prompt]
        if suffix:
            roles = self._model.roles
            marks = [roles[f"fim_{n}"] for n in ("prefix", "suffix", "middle")]
            if None in marks:
                raise ValueError("suffix is given, and the model has no tokens for a gap to be filled")
            bos, plain = self.token_bos(), ids
            if isinstance(prompt, str):
                plain = self._model.tokenize(prompt)
            begins = [bos] if ids[:1] == [bos] and plain[:1] != [bos] else []
            ids = begins + [marks[0], *plain, marks[1], *self._model.tokenize(suffix), marks[2]]  # type: ignore
        return ids if ids or self.token_bos() < 0 else [self.token_bos()]

    def _prompt_rows(self, ids: List[int], n: int) -> List[Any]:
        scores = list(self._model.score(ids).logprobs)
        rows: List[Any] = [(ids[0], None, None)] if ids else []
        with self._model.session(temperature=0) as s:
            for i in range(1, len(ids)):
                s.feed(ids[i - 1:i])
                s.next()
                rows.append((ids[i], float(scores[i]), s.logprobs(n)[1]))
                s.rewind(i)
        return rows

    # ---- conversations

    def create_chat_completion(self, messages: List[Any], functions: Optional[List[Any]] = None,
                               function_call: Any = None, tools: Optional[List[Any]] = None, tool_choice: Any = None,
                               temperature: float = 0.2, top_p: float = 0.95, top_k: int = 40, min_p: float = 0.05,
                               typical_p: float = 1.0, stream: bool = False, stop: Any = None,
                               seed: Optional[int] = None, response_format: Optional[Mapping[str, Any]] = None,
                               max_tokens: Optional[int] = None, presence_penalty: float = 0.0,
                               frequency_penalty: float = 0.0, repeat_penalty: float = 1.0, tfs_z: float = 1.0,
                               mirostat_mode: int = 0, mirostat_tau: float = 5.0, mirostat_eta: float = 0.1,
                               model: Optional[str] = None, logits_processor: Any = None,
                               grammar: Optional[LlamaGrammar] = None,
                               logit_bias: Optional[Mapping[Any, float]] = None, logprobs: Optional[bool] = None,
                               top_logprobs: Optional[int] = None) -> Any:
        """Answers a conversation: a dict in OpenAI's form, or with stream an iterator over chunks."""
        given = self._sampling(locals())
        if functions is not None and tools is not None:
            raise ValueError("functions and tools are given, expected one of them")
        if functions is not None:
            tools = [{"type": "function", "function": f} for f in functions]
            tool_choice = ({"type": "function", "function": function_call} if isinstance(function_call, Mapping)
                           else function_call)
        keeps = {} if grammar is None else grammar.options()
        if response_format is not None:
            if keeps:
                raise ValueError("grammar and response_format are given, expected one of them")
            keeps = _format_options(response_format)
        n = (top_logprobs or 0) if logprobs else None
        template = llama_chat_format.template_of(self.chat_format, self._model, bool(tools))
        prompt = self._model.render(messages, tools=tools, template=template)
        s = self._model.chat_stream(messages, tools=tools, tool_choice=tool_choice, template=template, stop=stop,
                                    max_tokens=self._limit(prompt.ids, max_tokens), logprobs=n, **keeps, **given)
        name = model or self.model_path
        if stream:
            start = replies.head("chat.completion.chunk", "chatcmpl", name)
            return replies.chat_chunks(s, start, functions is not None,
                                       (lambda r: replies.chat_logprobs(self._model, r)) if logprobs else None)
        reply = s.reply
        reason = reply.finish_reason
        if functions is not None and reason == "tool_calls":
            reason = "function_call"
        return {**replies.head("chat.completion", "chatcmpl", name),
                "choices": [{"index": 0, "message": replies.chat_message(reply, functions is not None),
                             "logprobs": replies.chat_logprobs(self._model, reply.logprobs) if logprobs else None,
                             "finish_reason": reason}],
                "usage": replies.usage_of(reply.usage.prompt_tokens, reply.usage.completion_tokens)}

    def create_chat_completion_openai_v1(self, *args: Any, **options: Any) -> Any:
        """The same as objects of the package openai, where it is installed."""
        try:
            from openai.types.chat import ChatCompletion, ChatCompletionChunk
        except ImportError:
            raise ImportError("create_chat_completion_openai_v1 needs the package openai") from None
        said = self.create_chat_completion(*args, **options)
        return (ChatCompletionChunk(**c) for c in said) if options.get("stream") else ChatCompletion(**said)

    # ---- embeddings

    def embed(self, input: Union[str, List[str]], normalize: bool = False, truncate: bool = True,
              return_count: bool = False) -> Any:
        """The embedding of a text, or of each of a list, as lists of floats."""
        texts, total, out = [input] if isinstance(input, str) else list(input), 0, []
        for text in texts:
            ids = self._model.tokenize(text, add_special=True)
            ids = ids[:self._n_ctx] if truncate else ids
            if len(ids) > self._n_ctx:
                raise ValueError(f"Requested tokens ({len(ids)}) exceed context window of {self._n_ctx}")
            total += len(ids)
            out.append(self._model.embed(ids, pooling=self._pooling, normalise=normalize).tolist())
        said: Any = out[0] if isinstance(input, str) else out
        return (said, total) if return_count else said

    def create_embedding(self, input: Union[str, List[str]], model: Optional[str] = None) -> Dict[str, Any]:
        """The same as a dict in OpenAI's form."""
        rows, total = self.embed([input] if isinstance(input, str) else input, return_count=True)
        return {"object": "list", "model": model or self.model_path,
                "data": [{"object": "embedding", "embedding": row, "index": i} for i, row in enumerate(rows)],
                "usage": {"prompt_tokens": total, "total_tokens": total}}

    # ---- token by token

    def _session(self) -> Session:
        if self._own is None:
            self._own = self._model.session()
        return self._own

    @property
    def n_tokens(self) -> int:
        """Tokens that eval() has taken."""
        return len(self._session())

    @property
    def input_ids(self) -> Any:
        """These tokens."""
        ids = self._session().ids
        return arrays.numpy.array(ids, dtype=arrays.numpy.intc) if arrays.numpy is not None else ids

    @property
    def eval_tokens(self) -> List[int]:
        """The same as a list."""
        return self._session().ids

    def reset(self) -> None:
        """Forgets all tokens."""
        self._session().rewind(0)

    def eval(self, tokens: Sequence[int]) -> None:
        """Appends tokens and computes them."""
        if len(self._session()) + len(tokens) > self._n_ctx:
            raise ValueError(f"Requested tokens ({len(self._session()) + len(tokens)}) exceed context window of "
                             f"{self._n_ctx}")
        self._session().feed(tokens)

    def sample(self, top_k: int = 40, top_p: float = 0.95, min_p: float = 0.05, typical_p: float = 1.0,
               temp: float = 0.80, repeat_penalty: float = 1.0, frequency_penalty: float = 0.0,
               presence_penalty: float = 0.0, tfs_z: float = 1.0, mirostat_mode: int = 0, mirostat_eta: float = 0.1,
               mirostat_tau: float = 5.0, penalize_nl: bool = True, logits_processor: Any = None,
               grammar: Optional[LlamaGrammar] = None, idx: Optional[int] = None) -> int:
        """Chooses the next token; eval() appends it."""
        if grammar is not None:
            _refuse("grammar", grammar)
        if idx is not None:
            _refuse("idx", idx)
        s = self._session()
        s.set_sampling(**self._sampling({**locals(), "temperature": temp}))
        token, n = s.next(), len(s) - 1
        last = s.ids[n - 1:n]
        s.rewind(n - 1)
        s.feed(last)
        return token

    def generate(self, tokens: Sequence[int], top_k: int = 40, top_p: float = 0.95, min_p: float = 0.05,
                 typical_p: float = 1.0, temp: float = 0.80, repeat_penalty: float = 1.0, reset: bool = True,
                 frequency_penalty: float = 0.0, presence_penalty: float = 0.0, tfs_z: float = 1.0,
                 mirostat_mode: int = 0, mirostat_tau: float = 5.0, mirostat_eta: float = 0.1,
                 penalize_nl: bool = True, logits_processor: Any = None, stopping_criteria: Any = None,
                 grammar: Optional[LlamaGrammar] = None) -> Iterator[int]:
        """Tokens one after another, with no end of their own; end tokens among them."""
        given = self._sampling({**locals(), "temperature": temp})
        s, ids = self._session(), [int(t) for t in tokens]
        if not reset:
            ids = s.ids + ids
        until = self._until(stopping_criteria, ids, s)
        g = self._model.stream(ids, session=s, ignore_end=True, until=until,
                               **({} if grammar is None else grammar.options()), **given)
        with g:
            token = g._steps.step()[1]
            while token >= 0:
                yield token
                token = g._steps.step()[1]

    def save_state(self) -> LlamaState:
        """The tokens that eval() has taken."""
        return LlamaState(self._session().ids)

    def load_state(self, state: LlamaState) -> None:
        """Takes them again."""
        self.reset()
        if state.ids:
            self._session().feed(state.ids)

    def set_seed(self, seed: int) -> None:
        """The seed of what follows."""
        self._seed = _seed_of(seed)

    def set_cache(self, cache: Any) -> None:
        """Taken, and not needed: prompts that begin alike are computed from where they differ."""
        self.cache = cache

    def close(self) -> None:
        """Lets go of the model."""
        if self._own is not None:
            self._own.close()
        self._model.close()

    def __enter__(self) -> "Llama":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _format_options(response_format: Mapping[str, Any]) -> Dict[str, Any]:
    kind = response_format.get("type") if isinstance(response_format, Mapping) else None
    if kind == "text":
        return {}
    if kind == "json_object":
        return {"schema": response_format.get("schema") or {"type": "object"}}
    if kind == "json_schema" and isinstance(response_format.get("json_schema"), Mapping):
        return {"schema": response_format["json_schema"].get("schema") or {"type": "object"}}
    raise ValueError(f"response_format is {response_format!r}, expected the type text, json_object or json_schema")
