"""Threads that live as long as the daemon, and what is known of every thread of the process.

Owns ``Steady``, a thread that says what it is for, when it last did something, and how it died if it did: no thread
goes without a word. ``overview`` tells of all threads, those of libraries included, and ``queues`` of what waits, for
Status. Parts of the daemon
make their threads with it; ``daemon.py`` asks to be told when a vital one dies.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import traceback
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from memxd.model import QueueStatus, ThreadStatus

log = logging.getLogger("memxd.threads")

_TASKS = Path("/proc/self/task")
#: What the threads do that come and go, by how their names begin.
_ROLES = {
    "MainThread": "waits for signals, gives signs of life, gives memory back",
    "memxd-open-embedder": "has opened the model",
    "memxd-call": "answers calls",
    "memxd-stream-reader": "reads a caller's stream",
    "memxd-stream-ready": "prepares what a stream brings",
    "memxd-stream": "answers streams",
    "memxd-upkeep": "answers Flush, Rebuild, Backup, Verify and Compact",
    "memxd-swift": "answers health checks",
    "memxd-watch": "tells a watcher of the health",
    "memxd-reflect": "answers reflection",
    "memxd-index-flush": "writes the indexes out, and mends them",
    "memxd-rebuild": "builds an index anew",
    "memxd-backup": "copies the database",
    "memxd-verify": "looks through the database",
}


class Steady(threading.Thread):
    """A thread that ends when its owner wants it to. ``role``: what it does, for people. ``vital``: without it the
    daemon is of no use. What it raises is logged without its text, and known to ``overview`` from then on."""

    def __init__(
        self, target: Callable[[], None], name: str, role: str = "", *, daemon: bool = True, vital: bool = False
    ) -> None:
        super().__init__(name=name, daemon=daemon)
        self._work = target
        self.role, self.vital = role or _role(name), vital
        self.died = ""
        self.working, self.since = True, time.monotonic()
        with _lock:
            _known.add(self)

    def run(self) -> None:
        """Do the work; never raises."""
        try:
            self._work()
        except BaseException as error:
            self.died = f"{type(error).__name__} at {_place(error.__traceback__)}"
            where = "".join(traceback.format_tb(error.__traceback__))
            fields = {"thread": self.name, "type": type(error).__name__, "traceback": where}
            log.critical("a thread died", extra={"fields": fields})
            if self.vital:
                _told()


_lock = threading.Lock()
_known: weakref.WeakSet[Steady] = weakref.WeakSet()


def _nobody() -> None:
    """Where nobody listens."""


_told: Callable[[], None] = _nobody


def on_vital_death(listener: Callable[[], None] = _nobody) -> None:
    """Have ``listener`` called, on the dying thread, when a vital thread dies."""
    global _told
    _told = listener


def at_work() -> None:
    """The calling thread begins with something."""
    _mark(True)


def at_rest() -> None:
    """The calling thread waits for something to do."""
    _mark(False)


def _mark(working: bool) -> None:
    mine = threading.current_thread()
    if isinstance(mine, Steady):
        mine.working, mine.since = working, time.monotonic()


_queues: weakref.WeakKeyDictionary[Any, tuple[str, int]] = weakref.WeakKeyDictionary()


class Waiting(Protocol):
    """Something that others stand in line for."""

    @property
    def waiting(self) -> int:
        """How many do so now."""
        ...


def watch(owner: Waiting, name: str, limit: int = 0) -> None:
    """Have ``owner.waiting`` told by ``queues`` for as long as the owner lives."""
    with _lock:
        _queues[owner] = name, limit


def queues() -> tuple[QueueStatus, ...]:
    """Every queue, in order of their names."""
    with _lock:
        found = list(_queues.items())
    return tuple(sorted((QueueStatus(name, o.waiting, limit) for o, (name, limit) in found), key=lambda q: q.name))


def overview() -> tuple[ThreadStatus, ...]:
    """Every thread of the process, in order of their names; those of libraries last, and together by their names."""
    now, found = time.monotonic(), []
    ours: set[int] = set()
    with _lock:
        steady = list(_known)
    for thread in {*steady, *threading.enumerate()}:
        alive = thread.is_alive()
        if alive and thread.native_id is not None:
            ours.add(thread.native_id)
        cpu = _cpu_seconds(thread.native_id) if alive else None
        if not isinstance(thread, Steady):
            found.append(ThreadStatus(thread.name, _role(thread.name), cpu=cpu))
        elif alive or thread.died:
            age = now - thread.since
            working = alive and thread.working
            found.append(ThreadStatus(thread.name, thread.role, alive, working, age, cpu, message=thread.died))
    found.sort(key=lambda each: each.name)
    return (*found, *_of_libraries(ours))


def _role(name: str) -> str:
    return next((role for begin, role in _ROLES.items() if name.startswith(begin)), "")


def _of_libraries(ours: set[int]) -> list[ThreadStatus]:
    """Threads that Python knows nothing of, by name."""
    number: Counter[str] = Counter()
    spent: dict[str, float] = {}
    for task in _tasks() - ours:
        name = _task_name(task)
        if name:
            number[name] += 1
            spent[name] = spent.get(name, 0.0) + (_cpu_seconds(task) or 0.0)
    return [ThreadStatus(name, "of a library", cpu=spent[name], count=count) for name, count in sorted(number.items())]


def _tasks() -> set[int]:
    try:
        return {int(name) for name in os.listdir(_TASKS)}
    except OSError:
        return set()  # not Linux


def _task_name(task: int) -> str:
    try:
        return (_TASKS / str(task) / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""  # it has ended meanwhile


def _cpu_seconds(task: int | None) -> float | None:
    if task is None or sys.platform != "linux":
        return None
    try:
        return int((_TASKS / str(task) / "schedstat").read_bytes().split()[0]) / 1e9
    except (OSError, ValueError, IndexError):
        return None


def _place(trace: TracebackType | None) -> str:
    """The file and line that raised."""
    place = "?"
    while trace is not None:
        place = f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
