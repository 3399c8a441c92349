"""Caches: prompts that begin alike are computed from where they differ without one, so these hold nothing."""
from __future__ import annotations

from typing import Any


class LlamaRAMCache:
    """Taken by Llama.set_cache()."""

    def __init__(self, capacity_bytes: int = 2 << 30) -> None:
        self.capacity_bytes = capacity_bytes


LlamaCache = LlamaRAMCache


class LlamaDiskCache(LlamaRAMCache):
    """The same; nothing is written."""

    def __init__(self, cache_dir: Any = None, capacity_bytes: int = 2 << 30) -> None:
        super().__init__(capacity_bytes)
        self.cache_dir = cache_dir
