"""The threads that run models: a fixed number, named, joined at close; questions go before passages.

Owns the threads and their queue. ``OnnxEmbedder`` holds one. What somebody waits for alone (a question, one text to be
stored) runs on its caller's thread; the pool's own threads run imports, at a lower priority of the system where it has
priorities of threads, so that an import takes no core from the searches beside it. The queue is bounded by its users:
a caller that embeds passages has at most ``2 * threads`` of them queued.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError as FutureCancelledError
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from memxd.errors import EmbedderUnavailableError
from memxd.model import Deadline
from memxd.threads import Steady, at_rest, at_work, watch

T = TypeVar("T")

_URGENT, _BULK = 0, 1
_log = logging.getLogger(__name__)
#: How much the pool's own threads stand behind others, in steps of nice(2).
_BEHIND = 5
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

    Beside them as many run on their callers' threads at once.
    """

    def __init__(self, threads: int, name: str) -> None:
        if threads < 1:
            raise ValueError(f"a pool needs at least one thread, not {threads}")
        self.size = threads
        self._waiting: list[_Job] = []  # a heap
        self._numbers = itertools.count()
        self._change = threading.Condition(threading.Lock())
        self._here = 0  # jobs running on their callers' threads
        self._closed = False
        watch(self, "embed")
        self._threads = [Steady(self._work, f"{name}-{i}", "embeds imports") for i in range(threads)]
        for thread in self._threads:
            thread.start()

    def run(self, work: Callable[[], T], deadline: Deadline) -> T:
        """Do an urgent job and return its result or raise its error: here and now when there is room, because the way
        to another thread and back costs as much as a short text does on a busy machine; else as soon as there is."""
        with self._change:
            self._check_open()
            here = self._here < self.size
            self._here += here
        if not here:
            return wait_for(self.submit(work, urgent=True), deadline)
        try:
            return work()
        finally:
            with self._change:
                self._here -= 1
                if self._closed:  # else nobody waits for that, and each thread that wakes up takes the interpreter
                    self._change.notify_all()

    def submit(self, work: Callable[[], T], *, urgent: bool) -> Future[T]:
        """Queue a job; EmbedderUnavailableError when the pool is closed."""
        future: Future[T] = Future()
        with self._change:
            self._check_open()
            heapq.heappush(self._waiting, _Job(_URGENT if urgent else _BULK, next(self._numbers), future, work))
            self._change.notify()
        return future

    @property
    def waiting(self) -> int:
        """Jobs that are queued."""
        return len(self._waiting)

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
            self._change.wait_for(lambda: not self._here)

    def _check_open(self) -> None:
        if self._closed:
            raise EmbedderUnavailableError("the embedder is closed")

    def _next(self) -> _Job | None:
        """The next job, once there is one; None at the end."""
        at_rest()
        with self._change:
            self._change.wait_for(lambda: self._closed or self._waiting)
            at_work()
            return None if self._closed else heapq.heappop(self._waiting)

    def _work(self) -> None:
        if sys.platform == "linux":  # elsewhere this would slow the whole process down
            mine = threading.get_native_id()
            try:
                os.setpriority(os.PRIO_PROCESS, mine, os.getpriority(os.PRIO_PROCESS, mine) + _BEHIND)
            except PermissionError as error:  # a sandbox: the thread works on, as one among equals
                _log.info("embedding does not step back behind other threads: %s", error)
        while (job := self._next()) is not None:
            try:
                if job.future.set_running_or_notify_cancel():
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
