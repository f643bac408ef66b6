"""Work on its way to the writer thread.

Owns the queue in front of the writer: what waits in it, how callers wait for its outcome within their deadline, and the
orderly end, after which nothing can be queued any more. Knows no SQL. Called by ``writer.py`` from both sides: callers'
threads put jobs in and wait, the writer thread takes them out and answers.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import Any, NamedTuple

from memxd.errors import MemxdError, ShuttingDownError, StorageFailedError
from memxd.model import NO_DEADLINE, Deadline
from memxd.store.transactions import WriteTxn
from memxd.threads import watch

SIZE = 1_024
#: How often a waiting caller is asked whether it is still there, in seconds.
_PATIENCE = 0.05
_FULL_WAIT = 0.001


class Job(NamedTuple):
    """A function to run, until when, and where its result goes."""

    fn: Callable[[WriteTxn], Any]
    deadline: Deadline
    future: Future[Any]

    @classmethod
    def of(cls, fn: Callable[[WriteTxn], Any], deadline: Deadline = NO_DEADLINE) -> Job:
        """A job that nobody has answered yet."""
        return cls(fn, deadline, Future())

    def begin(self) -> bool:
        """True when the job is to be run; False when its caller has left. From then on it cannot be taken back."""
        return self.future.set_running_or_notify_cancel()

    def wait(self) -> Any:
        """Its result or error. A deadline that passes takes the job back, unless it has begun: then only its outcome
        is the truth, and is waited for."""
        if self.deadline is NO_DEADLINE or self.future.done():
            return self.future.result()
        while True:
            left = self.deadline.remaining()
            wait((self.future,), _PATIENCE if left is None else max(0.001, min(left, _PATIENCE)))
            if self.future.done():
                return self.future.result()
            try:
                self.deadline.check()
            except MemxdError:
                if self.future.cancel():
                    raise
                return self.future.result()

    def outcome(self) -> Any:
        """As ``wait``, but a refusal is returned."""
        try:
            return self.wait()
        except MemxdError as refusal:
            return refusal


class Queued:
    """Jobs that were queued together, or why they were not; whoever queued them asks for the ``outcomes`` later."""

    def __init__(self, jobs: Sequence[Job], refusal: MemxdError | None) -> None:
        self._jobs = jobs
        self._refusal = refusal

    def outcomes(self) -> list[Any]:
        """Wait for all; a result or the refusal of each."""
        if self._refusal is not None:
            return [self._refusal for _ in self._jobs]
        try:
            # The last first: when it is done, so are the others, and one wait was enough for all.
            return [job.outcome() for job in reversed(self._jobs)][::-1]
        except BaseException:
            for job in self._jobs:
                job.future.cancel()
            raise

    def is_kept(self, number: int) -> bool:
        """Whether what this one of them did is durable by now."""
        future = self._jobs[number].future
        return self._refusal is None and future.done() and not future.cancelled() and future.exception() is None


class Inbox:
    """The bounded queue of jobs, with an end. Jobs that were put together are taken together."""

    def __init__(self) -> None:
        self._queue: queue.Queue[Sequence[Job] | None] = queue.Queue(SIZE)
        self._gate = threading.Lock()  # held while queueing, so that nothing is queued behind the end
        self._closed = False
        watch(self, "writer", SIZE)

    def put(self, jobs: Sequence[Job], deadline: Deadline) -> None:
        """Queue jobs, waiting for room as long as the deadline allows; ShuttingDownError after ``close``."""
        while True:
            deadline.check()
            with self._gate:
                if self._closed:
                    raise ShuttingDownError("the daemon is stopping")
                if not self._queue.full():
                    self._queue.put_nowait(jobs)
                    return
            time.sleep(_FULL_WAIT)

    def take(self, timeout: float) -> Sequence[Job] | None:
        """The next jobs, None at the end. Raises queue.Empty when there is none in time (seconds; 0 = at once)."""
        return self._queue.get(timeout=timeout) if timeout else self._queue.get_nowait()

    @property
    def waiting(self) -> int:
        """How many are queued; at most ``SIZE``."""
        return self._queue.qsize()

    def close(self) -> None:
        """Let nothing more in and mark the end. Twice is fine."""
        with self._gate:
            first, self._closed = not self._closed, True
        if first:
            self._queue.put(None)

    def refuse_rest(self) -> None:
        """Answer what is still queued, after the writer thread has failed."""
        with self._gate:
            self._closed = True
        while True:
            try:
                jobs = self._queue.get_nowait()
            except queue.Empty:
                return
            for job in jobs or ():
                if job.begin():
                    job.future.set_exception(StorageFailedError("the store takes no more writes; nothing was stored"))
