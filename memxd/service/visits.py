"""Calls that keep the daemon waiting: who they are, and who runs in their place meanwhile.

Owns ``Visit``, what a pool knows of one running call (whether it works, or waits for its caller and since when), and
``Patience``, the one thread that looks after queued tasks: it lets others run in the place of threads that wait. A
caller who opens calls and sends no request, or reads no answers, holds memory of its own calls, and nobody else's time.
Used by ``pool.py``, ``gate.py`` and ``running.py``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Protocol, TypeVar

from memxd.threads import Steady, at_rest, at_work

T = TypeVar("T")

#: Seconds between two looks while tasks are queued.
_LOOK = 0.025
#: A request that has not come after so many seconds is one that the thread need not wait for.
_PROMPT = 0.05


class Visit:
    """One call on a thread of a pool. It waits for its caller until ``working`` is called."""

    __slots__ = ("_cancel", "_leave", "_since", "begun", "lent")

    def __init__(self, leave: Callable[[Visit], None], cancel: Callable[[], object]) -> None:
        self._leave = leave
        self._cancel = cancel
        self._since: float | None = time.monotonic()
        #: Whether its request has come.
        self.begun = False
        #: Whether another thread runs in the place of this one's.
        self.lent = False

    def __enter__(self) -> Visit:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(self)

    def working(self) -> None:
        """It no longer waits for its caller."""
        self.begun = True
        self._since = None

    def waited(self, now: float) -> float:
        """Seconds that it has waited by ``now`` (monotonic); 0 while it works."""
        since = self._since
        return 0.0 if since is None else now - since

    def end(self) -> None:
        """Cancel it, from any thread: what its thread waits for then fails."""
        self._since = None  # once is enough
        self._cancel()

    def told(self, answers: Iterable[T], note: Callable[[T], object] | None = None) -> Iterator[T]:
        """The answers, waiting for the caller while each is sent; ``note`` is told of each."""
        try:
            for answer in answers:
                if note is not None:
                    note(answer)
                self._since = time.monotonic()
                yield answer
                self._since = None
        finally:
            close: Any = getattr(answers, "close", None)
            if close is not None:
                close()

    def awaited(self, requests: Iterable[T]) -> Iterator[T]:
        """The requests, waiting for the caller until each comes."""
        for request in requests:
            self.working()
            yield request
            self._since = time.monotonic()


class Lender(Protocol):
    """A pool, as ``Patience`` sees it."""

    def lend(self, seconds: float) -> bool: ...


class Patience:
    """A thread that, while tasks are queued, has pools lend the places of threads that wait for their callers. It is
    made when it is first needed, and sleeps when nothing is queued."""

    def __init__(self) -> None:
        #: The pools it looks after.
        self.pools: Sequence[Lender] = ()
        self._queued = threading.Event()
        self._lock = threading.Lock()
        self._closed = False
        self._thread: Steady | None = None

    def wake(self) -> None:
        """Some task was queued."""
        if self._queued.is_set():
            return
        self._queued.set()
        with self._lock:
            if self._thread is None and not self._closed:
                self._thread = Steady(self._run, "memxd-patience", "runs calls in the place of those that wait")
                self._thread.start()

    def close(self) -> None:
        """End the thread and join it. Twice is fine."""
        with self._lock:
            self._closed = True
        self._queued.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._closed:
            at_rest()
            self._queued.wait()
            at_work()
            time.sleep(_LOOK)
            self._queued.clear()
            for pool in self.pools:
                if pool.lend(_PROMPT):
                    self._queued.set()
