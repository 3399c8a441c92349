"""The dicts that answers are."""
from __future__ import annotations

import time
import uuid
from typing import Any, Dict, Iterator, List, Optional


def head(kind: str, prefix: str, model: str) -> Dict[str, Any]:
    """What all of an answer's dicts begin with."""
    return {"id": f"{prefix}-{uuid.uuid4()}", "object": kind, "created": int(time.time()), "model": model}


def usage_of(prompt: int, completion: int) -> Dict[str, int]:
    """How many tokens."""
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def text_choice(text: str, logprobs: Any, reason: Optional[str]) -> Dict[str, Any]:
    """A choice of a completion."""
    return {"text": text, "index": 0, "logprobs": logprobs, "finish_reason": reason}


def spell(model: Any, id: int) -> str:
    """A token's text; a control token has none."""
    token = model.token(id)
    return "" if token.kind == "control" else str(token.bytes.decode("utf-8", "replace"))


def flat_logprobs(model: Any, rows: List[Any], offset: int) -> Dict[str, Any]:
    """Log probabilities of completions: lists side by side. A row is (id, logprob or None, likeliest or None)."""
    out: Dict[str, Any] = {"tokens": [], "text_offset": [], "token_logprobs": [], "top_logprobs": []}
    for id, logprob, top in rows:
        text = spell(model, id)
        out["tokens"].append(text)
        out["text_offset"].append(offset)
        out["token_logprobs"].append(logprob)
        out["top_logprobs"].append(None if top is None else {**{spell(model, t.id): t.logprob for t in top},
                                                             text: logprob})
        offset += len(text)
    return out


def chat_logprobs(model: Any, rows: List[Any]) -> Dict[str, Any]:
    """The same of conversations: a list of objects."""
    def one(id: int, logprob: float) -> Dict[str, Any]:
        data = model.token(id).bytes
        return {"token": data.decode("utf-8", "replace"), "bytes": list(data), "logprob": logprob}

    return {"content": [{**one(r.id, r.logprob), "top_logprobs": [one(t.id, t.logprob) for t in r.top]}
                        for r in rows], "refusal": None}


def chat_message(reply: Any, functions: bool) -> Dict[str, Any]:
    """A message; content is None beside calls."""
    message = dict(reply.message)
    if reply.tool_calls:
        message["content"] = message["content"] or None
        first = message["tool_calls"][0]["function"]
        if functions:
            del message["tool_calls"]
            message["function_call"] = first
    return message


def chat_chunks(stream: Any, start: Dict[str, Any], functions: bool, logprobs: Any) -> Iterator[Dict[str, Any]]:
    """Chunks of an answer as it comes."""
    def chunk(delta: Dict[str, Any], reason: Optional[str] = None, lp: Any = None) -> Dict[str, Any]:
        return {**start, "choices": [{"index": 0, "delta": delta, "logprobs": lp, "finish_reason": reason}]}

    def call(e: Any, function: Dict[str, str], first: bool) -> Dict[str, Any]:
        if functions:
            return {"function_call": function}
        more = {"id": e.id, "type": "function"} if first else {}
        return {"tool_calls": [{"index": e.call, **more, "function": function}]}

    told = 0
    with stream:
        yield chunk({"role": "assistant"})
        for e in stream:
            rows = stream._steps.logprobs
            lp = logprobs(rows[told:]) if logprobs and len(rows) > told else None
            told = len(rows)
            if e.kind == "text":
                yield chunk({"content": e.text}, lp=lp)
            elif e.kind == "reasoning":
                yield chunk({"reasoning_content": e.text}, lp=lp)
            elif e.kind == "call" and not (functions and e.call):
                yield chunk(call(e, {"name": e.name, "arguments": ""}, True), lp=lp)
            elif e.kind == "arguments" and not (functions and e.call):
                yield chunk(call(e, {"arguments": e.text}, False), lp=lp)
        reason = stream.finish_reason
        yield chunk({}, "function_call" if functions and reason == "tool_calls" else reason)
