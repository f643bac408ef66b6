"""Imports step aside while somebody asks.

Owns the count of questions that are under way, from the moment the daemon hears of one until it is answered, and how
long the threads of an import wait for them at their stepping stones: between items, and between the steps of a commit.
They all share one interpreter, where a search of two milliseconds beside three busy threads takes ten. A question never
waits here; an import that always meets questions still gets a part of the time. Told by the service (``ahead.py``) and
by the engine's face; asked by storing.py, importing.py, indexes.py and the service's StoreMany.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from memxd.threads import watch

P = ParamSpec("P")
T = TypeVar("T")

#: Seconds that an import waits at one stepping stone at most.
_PATIENCE = 0.004
#: Of the time that it has waited, the part that it works before it waits again.
_WORKS = 0.25


class Courtesy:
    """Who goes first. Safe to use from many threads."""

    def __init__(self) -> None:
        self._asking = 0
        self._lock = threading.Lock()
        self._quiet = threading.Event()
        self._quiet.set()
        self._mine = threading.local()
        watch(self, "questions that imports step aside for")

    @property
    def waiting(self) -> int:
        """Questions under way."""
        return self._asking

    def first(self, search: Callable[P, T]) -> Callable[P, T]:
        """``search``, for which imports step aside."""

        def searched(*args: P.args, **kwargs: P.kwargs) -> T:
            self.come()
            try:
                return search(*args, **kwargs)
            finally:
                self.go()

        return searched

    def come(self) -> None:
        """A question has come; ``go`` has to follow, on any thread."""
        with self._lock:
            self._asking += 1
            if self._asking == 1:
                self._quiet.clear()

    def go(self) -> None:
        """It is answered."""
        with self._lock:
            self._asking -= 1
            if not self._asking:
                self._quiet.set()

    def step_aside(self) -> None:
        """Wait while somebody asks, a few milliseconds at most."""
        if not self._asking:
            return
        began = time.monotonic()
        if began < getattr(self._mine, "works_until", 0.0):
            return
        self._quiet.wait(_PATIENCE)
        now = time.monotonic()
        self._mine.works_until = now + _WORKS * (now - began)
