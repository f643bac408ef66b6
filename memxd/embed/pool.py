"""The threads that run models: a fixed number, named, joined at close; questions go before passages.

Owns the threads and their queue. ``OnnxEmbedder`` holds one. The queue is bounded by its users: a caller that embeds a
question waits for it, a caller that embeds passages has at most ``2 * threads`` of them queued, so that a question
waits for one running text at most, however large an import is.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError as FutureCancelledError
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import PriorityQueue
from typing import Any, TypeVar

from memxd.errors import EmbedderUnavailableError
from memxd.model import Deadline

T = TypeVar("T")

_URGENT, _BULK, _STOP = 0, 1, 2
#: Seconds between two looks at whether a waiting caller went away.
_GLANCE = 0.1


@dataclass(order=True, slots=True)
class _Job:
    priority: int
    number: int
    future: Future[Any] = field(compare=False)
    work: Callable[[], Any] = field(compare=False)


class WorkerPool:
    """``threads`` workers called ``<name>-0``, ``<name>-1``... Jobs of one priority run in the order they came."""

    def __init__(self, threads: int, name: str) -> None:
        if threads < 1:
            raise ValueError(f"a pool needs at least one thread, not {threads}")
        self.size = threads
        self._queue: PriorityQueue[_Job] = PriorityQueue()
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._closed = False
        self._threads = [threading.Thread(target=self._work, name=f"{name}-{i}", daemon=True) for i in range(threads)]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Callable[[], T], *, urgent: bool) -> Future[T]:
        """Queue a job; EmbedderUnavailableError when the pool is closed."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise EmbedderUnavailableError("the embedder is closed")
            job = _Job(_URGENT if urgent else _BULK, next(self._numbers), future, work)
            self._queue.put(job)
        return future

    def close(self) -> None:
        """Let running jobs finish, cancel queued ones, join the threads. Idempotent."""
        with self._lock:
            if not self._closed:
                self._closed = True
                for _ in self._threads:
                    self._queue.put(_Job(_STOP, next(self._numbers), Future(), lambda: None))
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while True:
            job = self._queue.get()
            if job.priority == _STOP:
                return
            if self._closed:
                job.future.cancel()
            if not job.future.set_running_or_notify_cancel():
                continue
            try:
                job.future.set_result(job.work())
            except BaseException as error:  # handed to the waiting caller, whatever it is
                job.future.set_exception(error)


def wait_for(future: Future[T], deadline: Deadline) -> T:
    """The job's result or error.

    DeadlineExceededError or CancelledError when the caller no longer waits (a job that has not begun is dropped),
    EmbedderUnavailableError when the pool was closed meanwhile.
    """
    while True:
        left = deadline.remaining()
        try:
            return future.result(timeout=_GLANCE if left is None else min(left, _GLANCE))
        except FutureCancelledError as error:
            raise EmbedderUnavailableError("the embedder is closed") from error
        except TimeoutError:
            if future.done():
                raise
            try:
                deadline.check()
            except Exception:
                future.cancel()
                raise
