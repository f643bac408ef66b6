"""The threads that run models: a fixed number, named, joined at close; questions go before passages.

Owns the threads and their queue. ``OnnxEmbedder`` holds one. The queue is bounded by its users: a caller that embeds a
question waits for it, a caller that embeds passages has at most ``2 * threads`` of them queued, so that a question
waits for one running text at most, however large an import is.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError as FutureCancelledError
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from memxd.errors import EmbedderUnavailableError
from memxd.model import Deadline

T = TypeVar("T")

_URGENT, _BULK = 0, 1
#: Seconds between two looks at whether a waiting caller went away.
_GLANCE = 0.1


@dataclass(order=True, slots=True)
class _Job:
    priority: int
    number: int
    future: Future[Any] = field(compare=False)
    work: Callable[[], Any] = field(compare=False)


class WorkerPool:
    """``threads`` workers called ``<name>-0``, ``<name>-1``... Jobs of one priority run in the order they came.

    As many jobs run at once as there are threads, those that ``run`` does on its caller's thread included.
    """

    def __init__(self, threads: int, name: str) -> None:
        if threads < 1:
            raise ValueError(f"a pool needs at least one thread, not {threads}")
        self.size = threads
        self._waiting: list[_Job] = []  # a heap
        self._numbers = itertools.count()
        self._change = threading.Condition(threading.Lock())
        self._running = 0
        self._closed = False
        self._threads = [threading.Thread(target=self._work, name=f"{name}-{i}", daemon=True) for i in range(threads)]
        for thread in self._threads:
            thread.start()

    def run(self, work: Callable[[], T], deadline: Deadline) -> T:
        """Do an urgent job and return its result or raise its error: here and now when there is room, because the way
        to another thread and back costs as much as a short text does on a busy machine; else as soon as there is."""
        with self._change:
            self._check_open()
            here = self._running < self.size and not self._waiting
            self._running += here
        if not here:
            return wait_for(self.submit(work, urgent=True), deadline)
        try:
            return work()
        finally:
            self._leave()

    def submit(self, work: Callable[[], T], *, urgent: bool) -> Future[T]:
        """Queue a job; EmbedderUnavailableError when the pool is closed."""
        future: Future[T] = Future()
        with self._change:
            self._check_open()
            heapq.heappush(self._waiting, _Job(_URGENT if urgent else _BULK, next(self._numbers), future, work))
            self._change.notify()
        return future

    def close(self) -> None:
        """Let running jobs finish, cancel queued ones, join the threads. Idempotent."""
        with self._change:
            self._closed = True
            self._change.notify_all()
            for job in self._waiting:
                job.future.cancel()
            self._waiting.clear()
        for thread in self._threads:
            thread.join()
        with self._change:
            self._change.wait_for(lambda: not self._running)

    def _check_open(self) -> None:
        if self._closed:
            raise EmbedderUnavailableError("the embedder is closed")

    def _enter(self) -> _Job | None:
        """The next job, once there is room for it; None at the end."""
        with self._change:
            self._change.wait_for(lambda: self._closed or (self._waiting and self._running < self.size))
            if self._closed:
                return None
            self._running += 1
            return heapq.heappop(self._waiting)

    def _leave(self) -> None:
        with self._change:
            self._running -= 1
            if self._closed:
                self._change.notify_all()
            elif self._waiting:
                self._change.notify()

    def _work(self) -> None:
        while (job := self._enter()) is not None:
            try:
                if job.future.set_running_or_notify_cancel():
                    job.future.set_result(job.work())
            except BaseException as error:  # handed to the waiting caller, whatever it is
                job.future.set_exception(error)
            finally:
                self._leave()


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
