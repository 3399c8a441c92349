"""Grammars."""
from __future__ import annotations

import os
from typing import Any, Union


class LlamaGrammar:
    """Rules, or a JSON Schema, that a text keeps to."""

    def __init__(self, *, _grammar: str = "", _schema: Any = None) -> None:
        self._grammar, self._schema = _grammar, _schema

    @classmethod
    def from_string(cls, grammar: str, verbose: bool = True) -> "LlamaGrammar":
        """Of rules; what is wrong in them is told when they are used."""
        if not isinstance(grammar, str):
            raise TypeError(f"grammar is {type(grammar).__name__}, expected str")
        return cls(_grammar=grammar)

    @classmethod
    def from_file(cls, file: Union[str, "os.PathLike[str]"], verbose: bool = True) -> "LlamaGrammar":
        """Of a file with rules."""
        with open(file, encoding="utf-8") as f:
            text = f.read()
        if not text:
            raise ValueError(f"{os.fspath(file)}: the file is empty")
        return cls(_grammar=text)

    @classmethod
    def from_json_schema(cls, json_schema: str, verbose: bool = True) -> "LlamaGrammar":
        """Of a JSON Schema's text."""
        return cls(_schema=json_schema)

    def options(self) -> Any:
        """As Model.generate takes it."""
        return {"grammar": self._grammar} if self._schema is None else {"schema": self._schema}
