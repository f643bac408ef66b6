"""The query cache: text -> vector, least recently used out first.

Owns nothing but the map and its lock. Each embedder holds one for its questions, so a key needs no model id.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from memxd.embed.base import Vector


class QueryCache:
    """A thread-safe LRU map of at most ``size`` entries; size 0 remembers nothing. Values are read-only arrays."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: OrderedDict[str, Vector] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, text: str) -> Vector | None:
        """The vector of a text seen before, or None."""
        with self._lock:
            found = self._entries.get(text)
            if found is not None:
                self._entries.move_to_end(text)
            return found

    def put(self, text: str, vector: Vector) -> None:
        """Remember a vector; the least recently used one leaves when there are too many."""
        if self._size <= 0:
            return
        with self._lock:
            self._entries[text] = vector
            self._entries.move_to_end(text)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()

    def __len__(self) -> int:
        with self._lock:
            return len(self._entries)
