"""Threads that run gRPC's calls, and the place where a refusal runs.

Owns how a task gets to a thread and how many tasks are held. gRPC takes nothing but a ``ThreadPoolExecutor``, whose own
hand-over makes a Future, two locks and a semaphore for each call and wakes the thread that has slept longest: with one
caller the threads take turns, each with caches and memory gone cold. Here the thread that became free last runs next.
A thread that waits for its caller, who sends no request or reads no answer, does not count: another takes its place,
and when the pool is full such calls are ended (``visits.py``). Which pool a call belongs to is the gate's to say.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias

from memxd.service.visits import Visit
from memxd.threads import watch

log = logging.getLogger("memxd.rpc")

Task: TypeAlias = Callable[[], Any]


def _ended() -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(None)
    return future


def _ignore(_: bool) -> None:
    pass


def _nothing() -> None:
    pass


#: From so many tasks at once on, it is a crowd.
CROWD = 8
#: Seconds that ``shutdown`` waits for threads; what holds one up for longer must not hold up a stop.
_JOIN_SECONDS = 3.0
#: What every ``submit`` answers. gRPC only counts calls by it, for a limit of its own that is not used here.
_TAKEN = _ended()


class Pool(ThreadPoolExecutor):
    """Up to ``threads`` threads, made when needed; knows how many tasks run or wait, and how many it may hold.

    ``on_crowd`` is told when ``CROWD`` tasks or more are held and when they are fewer again, ``on_queue`` when a task
    finds no thread; they must not wait. ``patience``: seconds that a call may wait for its caller while others want its
    room; None = for ever.
    """

    def __init__(
        self,
        threads: int,
        limit: int,
        name: str,
        on_crowd: Callable[[bool], None] | None = None,
        *,
        patience: float | None = None,
        on_queue: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(max_workers=threads, thread_name_prefix=name)
        self.limit = limit
        self.patience = patience
        self._on_queue = on_queue or _nothing
        self._visits: set[Visit] = set()
        self._on_crowd = on_crowd or _ignore
        self._most, self._name = threads, name
        self._lock = threading.Lock()
        self._quiet = threading.Condition(self._lock)
        self._held = 0
        self._workers: list[_Worker] = []
        self._idle: list[_Worker] = []  # the last one ran last
        self._waiting: deque[Task] = deque()
        self._closed = False
        watch(self, name.removeprefix("memxd-"), limit)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run it on a thread; counted until it has run. The limit is the caller's to ask for (``full``).

        The Future has ended already and says nothing. Raises RuntimeError after ``shutdown``.
        """
        task = partial(fn, *args, **kwargs)
        with self._lock:
            if self._closed:
                raise RuntimeError("the pool is shut down")
            self._held += 1
            if self._held == CROWD:
                self._on_crowd(True)
            if self._idle:
                self._idle.pop().give(task)
            elif len(self._workers) < self._most:
                self._begin(task)
            else:
                self._waiting.append(task)
                self._on_queue()
        return _TAKEN

    def _begin(self, task: Task) -> None:
        worker = _Worker(self, f"{self._name}_{len(self._workers)}", task)
        self._workers.append(worker)
        worker.start()

    def next(self, worker: _Worker) -> Task | None:
        """For a worker whose task has run: the task that waits longest; None = be idle (or end, when shut down)."""
        with self._lock:
            self._held -= 1
            if self._held == CROWD - 1:
                self._on_crowd(False)
            if not self._held:
                self._quiet.notify_all()
            if len(self._workers) > self._most and not self._closed:
                self._workers.remove(worker)  # it stood in for one that waited for its caller
                worker.give(None)
                return None
            if self._waiting:
                return self._waiting.popleft()
            if self._closed:
                worker.give(None)
            else:
                self._idle.append(worker)
            return None

    # -- calls that wait for their callers ---------------------------------------------------------------------------

    def visit(self, cancel: Callable[[], object]) -> Visit:
        """A call that has begun on one of our threads, a context manager around its run; it waits for its caller until
        it says otherwise. ``cancel`` ends it, from any thread."""
        visit = Visit(self._leave, cancel)
        with self._lock:
            self._visits.add(visit)
        return visit

    def _leave(self, visit: Visit) -> None:
        with self._lock:
            self._visits.discard(visit)
            if visit.lent:
                self._most -= 1

    def lend(self, seconds: float) -> bool:
        """Let others run in the place of calls that have waited so long for their callers; whether tasks still wait."""
        if not self._waiting:
            return False
        now = time.monotonic()
        with self._lock:
            for visit in self._visits:
                if not self._waiting or self._closed:
                    break
                if not visit.lent and visit.waited(now) > seconds:
                    visit.lent = True
                    self._most += 1
                    self._begin(self._waiting.popleft())
            return bool(self._waiting)

    def takes(self) -> bool:
        """Whether another task may come. When the pool is full, calls that have kept it waiting are ended for it."""
        if self._held < self.limit:
            return True
        if self.patience is None or self._held >= 2 * self.limit:
            return False
        now = time.monotonic()
        idle = [visit for visit in self._present() if visit.waited(now) > self.patience]
        for visit in idle:
            visit.end()
        return bool(idle)

    def end_unbegun(self, seconds: float) -> None:
        """End the calls whose request has not come for so long: they would hold up a stop for nothing."""
        now = time.monotonic()
        for visit in self._present():
            if not visit.begun and visit.waited(now) > seconds:
                visit.end()

    def _present(self) -> list[Visit]:
        with self._lock:
            return list(self._visits)

    # -- the end -----------------------------------------------------------------------------------------------------

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks, drop those that wait (``cancel_futures``), end the threads. Twice is fine. A thread
        that does not end within three seconds is told in the log and left to the end of the process."""
        with self._lock:
            self._closed = True
            if cancel_futures:
                self._held -= len(self._waiting)
                self._waiting.clear()
            while self._idle:
                self._idle.pop().give(None)
            workers = list(self._workers)
        if not wait:
            return
        end = time.monotonic() + _JOIN_SECONDS
        for worker in workers:
            worker.join(max(0.0, end - time.monotonic()))
        if left := [worker.name for worker in workers if worker.is_alive()]:
            log.warning("threads were still at work when their pool closed: %s", ", ".join(left))

    @property
    def waiting(self) -> int:
        """As ``held``."""
        return self._held

    @property
    def held(self) -> int:
        """Tasks running or waiting."""
        return self._held

    @property
    def full(self) -> bool:
        """Whether another task would pass the limit."""
        return self._held >= self.limit

    def wait_idle(self, seconds: float, hurry: Callable[[], bool]) -> bool:
        """Wait until nothing runs or waits; False when the time is over or ``hurry`` says so."""
        end = time.monotonic() + seconds
        while self._held:
            left = end - time.monotonic()
            if left <= 0 or hurry():
                return False
            with self._quiet:
                if self._held:
                    self._quiet.wait(min(left, 0.05))
        return True


class _Worker(threading.Thread):
    """One thread of a pool. A daemon thread: a process that ends without ``shutdown`` does not wait for it."""

    def __init__(self, pool: Pool, name: str, task: Task) -> None:
        super().__init__(name=name, daemon=True)
        self._pool = pool
        self._task: Task | None = task
        self._given = threading.Lock()
        self._given.acquire()

    def give(self, task: Task | None) -> None:
        """Wake the idle thread with its next task; None = end."""
        self._task = task
        self._given.release()

    def run(self) -> None:
        task, self._task = self._task, None
        while task is not None:
            try:
                task()
            except Exception:  # gRPC's tasks catch their own; a thread must not be lost to any other
                log.exception("a task failed")
            del task  # and all that it holds of the call, before waiting
            task = self._pool.next(self)
            if task is None:
                self._given.acquire()
                task, self._task = self._task, None


class AtOnce(ThreadPoolExecutor):
    """Runs a task where it is submitted, which is gRPC's polling thread: only for what never waits."""

    def __init__(self) -> None:
        super().__init__(max_workers=1)  # it never makes one

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run it now; what it raises, the caller gets."""
        fn(*args, **kwargs)
        return _TAKEN
