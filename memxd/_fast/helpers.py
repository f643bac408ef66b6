"""Threads that search vectors beside the thread that asks: the plain twin of ``_dot.Helpers``, and what both mean.

The compiled one has its threads from ``beside.h``. A search is handed over only while fewer searches are under way than
there are processors, and taken back when nobody has begun with it by the time its answer is wanted: that never waits
for a thread that does not run. Answers are those of ``search_graph`` and ``search_rids``, bit for bit.
The twin has no threads: Python threads would only take the interpreter's lock from each other. Called by index/vector.
"""

from __future__ import annotations

__all__ = ["Helpers"]


class Helpers:
    """Hands nothing over. ``cores``: processors that may be used; threads are started when first needed."""

    def __init__(self, cores: int) -> None:
        self._cores = cores

    def enter(self) -> None:
        """One more search has begun (not only by meaning)."""

    def leave(self) -> None:
        """It is over."""

    def begin_graph(self, *_asked: object) -> None:
        """``dot_py.search_graph`` of the same arguments on another thread: a ``Look``; None = nobody is free, or nobody
        ought to be, with as many searches as processors. Raises as ``search_graph``."""

    def begin_rids(self, *_asked: object) -> None:
        """``dot_py.search_rids`` likewise."""

    def close(self) -> None:
        """Take nothing over any more and end the threads, once what they do is done. Twice is fine."""
