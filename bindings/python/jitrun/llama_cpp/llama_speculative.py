"""Draft tokens."""
from __future__ import annotations


class LlamaPromptLookupDecoding:
    """Drafts from the text itself, which jitrun does in any case where it pays. The text is the same."""

    def __init__(self, max_ngram_size: int = 2, num_pred_tokens: int = 10) -> None:
        self.max_ngram_size, self.num_pred_tokens = max_ngram_size, num_pred_tokens
