"""Threads that run gRPC's calls, and the place where a refusal runs.

Owns how a task gets to a thread and how many tasks are held. gRPC takes nothing but a ``ThreadPoolExecutor``, whose own
hand-over makes a Future, two locks and a semaphore for each call and wakes the thread that has slept longest: with one
caller the threads take turns, each with caches and memory gone cold. Here the thread that became free last runs next.
Which pool a call belongs to, and what happens when it is full, is the gate's to say (``gate.py``).
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

from memxd.threads import watch

log = logging.getLogger("memxd.rpc")

Task: TypeAlias = Callable[[], Any]


def _ended() -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(None)
    return future


def _ignore(_: bool) -> None:
    pass


#: From so many tasks at once on, it is a crowd.
CROWD = 8
#: What every ``submit`` answers. gRPC only counts calls by it, for a limit of its own that is not used here.
_TAKEN = _ended()


class Pool(ThreadPoolExecutor):
    """Up to ``threads`` threads, made when needed; knows how many tasks run or wait, and how many it may hold.

    ``on_crowd`` is told when ``CROWD`` tasks or more are held and when they are fewer again; it must not wait.
    """

    def __init__(self, threads: int, limit: int, name: str, on_crowd: Callable[[bool], None] | None = None) -> None:
        super().__init__(max_workers=threads, thread_name_prefix=name)
        self.limit = limit
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
                worker = _Worker(self, f"{self._name}_{len(self._workers)}", task)
                self._workers.append(worker)
                worker.start()
            else:
                self._waiting.append(task)
        return _TAKEN

    def next(self, worker: _Worker) -> Task | None:
        """For a worker whose task has run: the task that waits longest; None = be idle (or end, when shut down)."""
        with self._lock:
            self._held -= 1
            if self._held == CROWD - 1:
                self._on_crowd(False)
            if not self._held:
                self._quiet.notify_all()
            if self._waiting:
                return self._waiting.popleft()
            if self._closed:
                worker.give(None)
            else:
                self._idle.append(worker)
            return None

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks, drop those that wait (``cancel_futures``), end the threads. Twice is fine."""
        with self._lock:
            self._closed = True
            if cancel_futures:
                self._held -= len(self._waiting)
                self._waiting.clear()
            while self._idle:
                self._idle.pop().give(None)
        if wait:
            for worker in self._workers:
                worker.join()

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
        with self._quiet:
            while self._held:
                left = end - time.monotonic()
                if left <= 0 or hurry():
                    return False
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
