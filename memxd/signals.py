"""The signals a daemon lives by, turned into something a main loop can wait for.

Owns the handlers while the context is open: SIGTERM and SIGINT ask to stop, a second one to hurry, a third kills (the
default handlers are back by then); SIGHUP asks to read the settings anew. A handler only counts and sets the last
alarm, because it may interrupt code that holds any lock. The main loop is woken by the interpreter's wakeup descriptor:
the kernel may hand a signal to any thread (after a suspension it does), and Python's own handlers run only once the
main thread moves. Called by ``daemon.py`` on the main thread.
"""

from __future__ import annotations

import faulthandler
import os
import select
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

_STOPPING = (signal.SIGTERM, signal.SIGINT)


class Signals:
    """A context manager: inside it, ``wait`` returns when somebody asks to stop.

    ``limit``: seconds from then until the process is ended whatever holds it up, with every thread's stack on standard
    error (exit code 1). None = never. The alarm outlives the context: threads are joined after it, too.
    """

    def __init__(self, limit: float | None = None) -> None:
        self.limit = limit
        self._asked = 0
        #: Whether the daemon stops because it could not go on.
        self.failed = False
        self._read, self._write = os.pipe2(os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
        os.set_blocking(self._write, False)
        self._before: dict[signal.Signals, Any] = {}
        self._wakeup = -1

    def __enter__(self) -> Signals:
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in (*_STOPPING, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._read)
        os.close(self._write)

    def give_up(self) -> None:
        """The daemon cannot go on: as if somebody had asked to stop, but ``failed``. From any thread."""
        self.failed = True
        self._asked = max(1, self._asked)
        if self.limit is not None:
            faulthandler.dump_traceback_later(self.limit, exit=True)
        os.write(self._write, b"\0")

    @property
    def stop(self) -> bool:
        """Whether somebody asked to stop."""
        return self._asked > 0

    @property
    def hurry(self) -> Callable[[], bool]:
        """Tells whether somebody asked twice."""
        return lambda: self._asked > 1

    def wait(self, idle: Callable[[], None], seconds: float, hangup: Callable[[], None]) -> None:
        """Return when somebody asks to stop; at once when that has happened already. Meanwhile calls ``idle`` at least
        every so many ``seconds``, and ``hangup`` for SIGHUP."""
        while not self.stop:
            if select.select([self._read], [], [], seconds)[0] and os.read(self._read, 1) == bytes([signal.SIGHUP]):
                hangup()
            idle()

    def _handle(self, number: int, _: FrameType | None) -> None:
        if number in _STOPPING:
            self._asked += 1
            if self._asked == 1 and self.limit is not None:
                faulthandler.dump_traceback_later(self.limit, exit=True)
            if self._asked > 1:
                for each in _STOPPING:
                    signal.signal(each, signal.SIG_DFL)
