"""What the C library's allocator keeps for itself, kept small, in the daemon's own process.

Threads get arenas of their own, and pages that a start, a rebuild or a snapshot has used once stay with the process:
tens of megabytes. Owns two calls of glibc and nothing else; where the C library has no such calls (macOS, musl) nothing
happens. Called by ``daemon.py`` (a program that embeds the engine keeps its own settings) and its idle thread.
"""

from __future__ import annotations

import ctypes
from typing import Any

_M_ARENA_MAX = -8
#: Few threads run at the same time, so they seldom wait for each other here.
_ARENAS = 2


def limit_arenas() -> None:
    """At most two arenas from here on. Before the threads begin."""
    mallopt = _function("mallopt")
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Return unused pages to the system; takes about a millisecond."""
    trim = _function("malloc_trim")
    if trim is not None:
        trim(0)


def _function(name: str) -> Any:
    """A function of the C library; None where it has none of this name."""
    return getattr(ctypes.CDLL(None), name, None)
