"""Imports step aside while somebody searches.

Owns the count of searches that are running, and how long the threads of an import wait for them at their stepping
stones: between items, and between the steps of a commit. They all share one interpreter, where a search of two
milliseconds beside two busy threads takes ten. A search never waits here; an import that always meets searches goes on
after a short while each time. Called by the engine's face (searches), storing.py and indexes.py (imports).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from memxd.threads import watch

P = ParamSpec("P")
T = TypeVar("T")

#: Seconds that an import waits at one stepping stone at most, and between two looks.
_PATIENCE = 0.004
_GLANCE = 0.0005


class Courtesy:
    """Who goes first. Safe to use from many threads."""

    def __init__(self) -> None:
        self._searching: dict[int, None] = {}  # ids of threads; one step each under the interpreter's lock
        watch(self, "searches that imports step aside for")

    @property
    def waiting(self) -> int:
        """Searches under way."""
        return len(self._searching)

    def first(self, search: Callable[P, T]) -> Callable[P, T]:
        """``search``, for which imports step aside."""
        running = self._searching

        def searched(*args: P.args, **kwargs: P.kwargs) -> T:
            mine = threading.get_ident()
            running[mine] = None
            try:
                return search(*args, **kwargs)
            finally:
                running.pop(mine, None)

        return searched

    def step_aside(self) -> None:
        """Wait while somebody searches, a few milliseconds at most."""
        if not self._searching:
            return
        until = time.monotonic() + _PATIENCE
        while self._searching and time.monotonic() < until:
            time.sleep(_GLANCE)
