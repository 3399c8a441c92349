"""Answers that keep to a JSON Schema, a Pydantic model, a regular expression or rules."""
from __future__ import annotations

import inspect
import json
import typing
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ._library import lib

Schema = Union[Mapping[str, Any], str, bool, type]


class Lark(str):
    """Rules as Lark writes them, which begin with `start`, where `grammar` is expected: grammar=Lark("start: ...")."""


class Before(NamedTuple):
    """What may stand before the grammar's part of a text: reasoning, as the prompt and the template say, and an opening.
    """

    prompt: str
    tools: Optional[str] = None
    template: Optional[str] = None
    opening: Optional[bytes] = None


class Grammar(NamedTuple):
    """What jit_session_begin_grammar takes, and how a text that is right becomes a value."""

    kind: int
    text: bytes
    parse: Optional[Callable[[str], Any]] = None
    before: Optional[Before] = None


def is_pydantic(what: Any) -> bool:
    """Whether it is a class of Pydantic's, of version 1 or 2."""
    return isinstance(what, type) and (hasattr(what, "model_json_schema") or hasattr(what, "__fields__"))


def schema_of(what: Any) -> Dict[str, Any]:
    """The JSON Schema of a Pydantic model."""
    return dict(what.model_json_schema() if hasattr(what, "model_json_schema") else what.schema())


def of_schema(schema: Schema) -> Grammar:
    """Of a JSON Schema as a dict or a text, of a Pydantic model, or True: any JSON value."""
    parse: Callable[[str], Any] = json.loads
    if is_pydantic(schema):
        model: Any = schema
        parse = model.model_validate_json if hasattr(model, "model_validate_json") else model.parse_raw
        schema = schema_of(model)
    if isinstance(schema, bool):
        schema = {} if schema else {"not": {}}
    if isinstance(schema, str):
        text = schema
    elif isinstance(schema, Mapping):
        text = dump(schema, "schema")
    else:
        raise TypeError(f"schema is {type(schema).__name__}, expected a dict, a JSON text, a Pydantic model or True")
    if "\0" in text:
        raise ValueError("schema has a NUL character in it")
    return Grammar(lib.constants["JIT_GRAMMAR_JSON_SCHEMA"], text.encode("utf-8", "surrogatepass"), parse)


def make(schema: Optional[Schema], regex: Optional[str], grammar: Optional[str]) -> Optional[Grammar]:
    """Of the one of the three that is given; None: of none."""
    given = [n for n, v in (("schema", schema), ("regex", regex), ("grammar", grammar)) if v is not None]
    if len(given) > 1:
        raise TypeError(f"{' and '.join(given)} are given, expected one of them")
    if schema is not None:
        return of_schema(schema)
    rules = "JIT_GRAMMAR_LARK" if isinstance(grammar, Lark) else "JIT_GRAMMAR_GBNF"
    text, kind = (regex, "JIT_GRAMMAR_REGEX") if regex is not None else (grammar, rules)
    if text is None:
        return None
    if not isinstance(text, str):
        raise TypeError(f"{given[0]} is {type(text).__name__}, expected str")
    if "\0" in text:
        raise ValueError(f"{given[0]} has a NUL character in it")
    return Grammar(lib.constants[kind], text.encode("utf-8", "surrogatepass"))


def dump(value: Any, name: str) -> str:
    """JSON text, or an exception that names the argument."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as e:
        raise TypeError(f"{name} cannot be written as JSON: {e}") from None


# ---- tools

_JSON_TYPES: Dict[Any, Dict[str, Any]] = {
    str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"}, bool: {"type": "boolean"},
    dict: {"type": "object"}, list: {"type": "array"}, type(None): {"type": "null"}, Any: {},
}


def _schema_of_type(t: Any) -> Dict[str, Any]:
    if t in _JSON_TYPES:
        return dict(_JSON_TYPES[t])
    if is_pydantic(t):
        return schema_of(t)
    origin, args = typing.get_origin(t), typing.get_args(t)
    if origin in (list, Sequence, typing.List, tuple, set) or getattr(origin, "__name__", "") == "Sequence":
        return {"type": "array", "items": _schema_of_type(args[0])} if args else {"type": "array"}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema_of_type(args[1])} if args else {"type": "object"}
    if origin is typing.Literal:
        return {"enum": list(args)}
    if origin is Union or type(t).__name__ == "UnionType":
        return {"anyOf": [_schema_of_type(a) for a in args]}
    raise TypeError(f"a parameter of type {t!r} has no JSON Schema; give the tool as a dict")


def _tool_of_function(function: Callable[..., Any]) -> Dict[str, Any]:
    hints = typing.get_type_hints(function)
    properties: Dict[str, Any] = {}
    required: List[str] = []
    for name, p in inspect.signature(function).parameters.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise TypeError(f"tool {function.__name__} takes *{name}, which has no JSON Schema")
        properties[name] = _schema_of_type(hints.get(name, Any))
        if p.default is p.empty:
            required.append(name)
    return {"name": function.__name__, "description": inspect.getdoc(function) or "",
            "parameters": {"type": "object", "properties": properties, "required": required,
                           "additionalProperties": False}}


def tool_of(tool: Any) -> Dict[str, Any]:
    """A tool in the form of OpenAI's API, of a dict, a Pydantic model or a function with type hints."""
    if isinstance(tool, Mapping):
        if tool.get("type", "function") == "function" and "function" not in tool and "name" in tool:
            return {"type": "function", "function": dict(tool)}
        return dict(tool)
    if is_pydantic(tool):
        schema = schema_of(tool)
        return {"type": "function", "function": {"name": tool.__name__, "parameters": schema,
                                                 "description": inspect.getdoc(tool) or ""}}
    if callable(tool):
        return {"type": "function", "function": _tool_of_function(tool)}
    raise TypeError(f"a tool is {type(tool).__name__}, expected a dict, a Pydantic model or a function")


def tools_text(tools: Optional[Sequence[Any]]) -> Optional[str]:
    """The tools as JSON text; None where there are none."""
    if tools is None:
        return None
    if isinstance(tools, (str, bytes, Mapping)) or not isinstance(tools, Sequence):
        raise TypeError(f"tools is {type(tools).__name__}, expected a list")
    return dump([tool_of(t) for t in tools], "tools") if tools else None


def read_choice(choice: Any, tools: Optional[str]) -> Tuple[str, Optional[str]]:
    """tool_choice: ("auto" | "none" | "required", the name of the one function that must be called)."""
    if choice is None:
        return "auto", None
    if isinstance(choice, str) and choice in ("auto", "none", "required", "any"):
        word, name = ("required" if choice == "any" else choice), None
    elif isinstance(choice, str):
        word, name = "required", choice
    elif isinstance(choice, Mapping) and isinstance(choice.get("function", choice), Mapping) and isinstance(
            choice.get("function", choice).get("name"), str):
        word, name = "required", choice.get("function", choice)["name"]
    else:
        raise TypeError(f"tool_choice is {choice!r}, expected auto, none, required or a function's name")
    if word == "required" and not tools:
        raise ValueError("tool_choice requires a call, and there are no tools")
    return word, name
