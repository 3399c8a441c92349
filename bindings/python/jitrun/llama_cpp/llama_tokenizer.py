"""The tokenizer by itself."""
from __future__ import annotations

from typing import Any, List


class LlamaTokenizer:
    """The tokenizer of a Llama."""

    def __init__(self, llama: Any) -> None:
        self._llama = llama

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = True) -> List[int]:
        """As Llama.tokenize()."""
        return list(self._llama.tokenize(text, add_bos, special))

    def detokenize(self, tokens: List[int], prev_tokens: Any = None, special: bool = False) -> bytes:
        """As Llama.detokenize()."""
        return bytes(self._llama.detokenize(tokens, prev_tokens, special))

    def encode(self, text: str, add_bos: bool = True, special: bool = True) -> List[int]:
        """Of a text."""
        return self.tokenize(text.encode("utf-8", "ignore"), add_bos, special)

    def decode(self, tokens: List[int]) -> str:
        """To a text."""
        return self.detokenize(tokens).decode("utf-8", "ignore")

    @classmethod
    def from_ggml_file(cls, path: str) -> "LlamaTokenizer":
        """Of a file."""
        from .llama import Llama

        return cls(Llama(path))
