"""Lists of functions that look at what was generated."""
from __future__ import annotations

from typing import Any, Callable, List


class StoppingCriteriaList(List[Callable[[Any, Any], bool]]):
    """Ends a generation when one of them says so: f(tokens so far, logits)."""

    def __call__(self, input_ids: Any, logits: Any) -> bool:
        return any(f(input_ids, logits) for f in self)


class LogitsProcessorList(List[Callable[[Any, Any], Any]]):
    """A name only: logits that are changed by Python are refused."""

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        for f in self:
            scores = f(input_ids, scores)
        return scores
