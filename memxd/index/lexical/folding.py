"""Makes the tail durable: the thread that asks the child process to write what searches already see.

Owns the thread "memxd-lexical", its child and its pauses: after so many documents, after so many seconds, or when asked
to flush. A child that fails or dies is started again, with growing pauses; meanwhile everything stays searchable in
memory and ``message`` says what is wrong. Words of dead documents leave the files within minutes, and at a stop.
Searches are never held up: they meet the result as a new snapshot.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memxd.errors import IndexUnavailableError, MemxdError
from memxd.failpoints import reach
from memxd.index.durable import storage_error
from memxd.index.lexical.child import Child, ChildError
from memxd.index.lexical.files import DamagedError
from memxd.index.lexical.segment import open_folder
from memxd.index.lexical.state import State
from memxd.model import Deadline
from memxd.threads import Steady, at_rest, at_work

_log = logging.getLogger(__name__)
_IDLE_SECONDS = 60.0
_LONGEST_PAUSE = 15.0
_GLANCE_SECONDS = 0.1
#: Words of deleted or replaced texts stay on disk for so long, or for so many times what removing them takes ...
_ERASE_SECONDS = 300.0
_ERASE_SHARE = 20.0
#: ... but not over a stop, unless more bytes than this had to be rewritten first.
_ERASE_AT_STOP = 32 << 20
#: When nothing has changed for so long, small segments are put together: each costs every search some look-ups.
_TIDY_SECONDS = 5.0
#: Fewer segments are not worth it.
_TIDY_SEGMENTS = 3


class Folding:
    """See the module. ``rows`` and ``seconds``: when to fold by itself."""

    def __init__(self, state: State, folder: Path, stamp: str, rows: int, seconds: float) -> None:
        self.message = ""
        self.damaged = False  # the files that lie there are no ground to go on from
        self._error: Exception | None = None
        self._state, self._folder, self._stamp = state, folder, stamp
        self._rows, self._seconds = rows, seconds
        self._wake = threading.Condition()
        self._busy = threading.Lock()  # held for one step, or by whoever needs the folder for himself
        self._child: Child | None = None
        self._asked = False
        self._stopping = False
        self._since: float | None = None  # when the oldest change that is not durable came
        self._dead_since: float | None = None  # when the oldest dead document of the files was seen
        self._erase_took = 0.0
        self._changed_at = time.monotonic()
        self._tidied: tuple[str, ...] = ()  # the segments that the last try left
        self._failures = 0  # in a row
        self._begun = self._failed_last = 0  # tries ever begun; which of them failed last
        self._not_before = 0.0
        self._resting = 0.0  # until when nothing begins by itself
        self._thread = Steady(self._run, "memxd-lexical", "has the keyword index written")
        self._thread.start()

    # -- other threads ----------------------------------------------------------------------------------------------

    def changed(self) -> None:
        """Told by the applier after each change."""
        self._changed_at = time.monotonic()
        if self._since is None or self._state.pending()[0] >= self._rows:
            with self._wake:
                self._since = self._since or time.monotonic()
                self._wake.notify_all()

    def rest(self, seconds: float) -> None:
        """Begin nothing by itself for so long: the cores are wanted elsewhere."""
        with self._wake:
            self._resting = time.monotonic() + seconds

    def flush(self, deadline: Deadline) -> None:
        """Wait until everything applied so far is durable. Raises IndexUnavailableError when a try fails,
        DeadlineExceededError, CancelledError."""
        target = self._state.changes
        with self._wake:
            begun = self._begun  # one that is under way may fail of what is over by now
            while self._state.committed < target:
                if self._failed_last > begun or self._stopping:
                    raise refusal(self._error) if self._error else IndexUnavailableError("the keyword index is closing")
                deadline.check()
                self._asked = True
                self._wake.notify_all()
                self._wake.wait(min(0.5, deadline.remaining() or 0.5))

    @contextmanager
    def paused(self, deadline: Deadline) -> Iterator[None]:
        """The folder to oneself: no child, no step. Raises DeadlineExceededError, CancelledError."""
        while not self._busy.acquire(timeout=_GLANCE_SECONDS):
            deadline.check()
        try:
            self._end_child()
            yield
        finally:
            self._busy.release()

    def renewed(self) -> None:
        """Told in a pause: other files lie in the folder, what was wrong with the former ones is over."""
        with self._wake:
            self.message, self._error, self.damaged = "", None, False
            self._failures, self._not_before = 0, 0.0

    def stop(self, patience: float) -> None:
        """End the thread and its child; a child that is at work after ``patience`` seconds is killed (safe: a commit
        counts whole or not at all)."""
        with self._wake:
            self._stopping = True
            self._wake.notify_all()
        self._thread.join(patience)
        while self._thread.is_alive():
            child = self._child
            if child is not None:
                child.kill()
            self._thread.join(_GLANCE_SECONDS)

    # -- the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while self._wait():
            at_work()
            with self._busy:
                try:
                    self._step()
                except (ChildError, DamagedError, OSError) as error:
                    self._failed(error)
            with self._wake:
                self._wake.notify_all()
        self._erase_last()
        self._end_child()

    def _erase_last(self) -> None:
        """Leave no dead documents behind at a stop, when that is soon done."""
        if self._failures == 0 and 0 < self._state.dead_bytes() <= _ERASE_AT_STOP:
            with self._busy:
                try:
                    self._step()
                    self._merge(erase=True)
                except (ChildError, DamagedError, OSError) as error:
                    self._failed(error)

    def _wait(self) -> bool:
        """Until there is work; False = stop."""
        at_rest()
        idle_at = time.monotonic() + _IDLE_SECONDS
        while True:
            with self._wake:
                if self._stopping:
                    return False
                now = time.monotonic()
                if (self._asked or now >= self._not_before) and self._due(now):
                    return True
                idle = now >= idle_at and self._child is not None
                if not idle:
                    self._wake.wait(self._pause(now))
            if idle:  # not under _wake: whoever is busy may need it, and so does the applier
                with self._busy:
                    self._end_child()

    def _due(self, now: float) -> bool:
        documents, changes = self._state.pending()
        if changes == 0:
            self._since, self._asked = None, False  # what was asked for while the last job was made went along with it
        if self._asked and changes > 0:
            return True
        if now < self._resting:
            return False
        old = self._since is not None and now - self._since >= self._seconds
        return documents >= self._rows or (old and changes > 0) or self._erase_due(now) or self._tidy_in(now) == 0.0

    def _tidy_in(self, now: float) -> float:
        """Seconds until small segments are put together, if nothing changes; 0 = now."""
        known = tuple(self._state.known())
        if len(known) < _TIDY_SEGMENTS or known == self._tidied or self._state.pending()[1]:
            return _IDLE_SECONDS
        return max(0.0, self._changed_at + _TIDY_SECONDS - now)

    def _erase_due(self, now: float) -> bool:
        if not self._state.dead_bytes():
            self._dead_since = None
            return False
        self._dead_since = self._dead_since or now
        return now - self._dead_since >= max(_ERASE_SECONDS, _ERASE_SHARE * self._erase_took)

    def _pause(self, now: float) -> float:
        if now < self._not_before:
            return self._not_before - now
        if now < self._resting:
            return self._resting - now
        if self._since is not None:
            return min(_IDLE_SECONDS, max(0.01, self._since + self._seconds - now))
        return max(0.01, self._tidy_in(now))

    def _step(self) -> None:
        with self._wake:
            self._begun += 1
            self._asked, self._since = False, None
        if self._child is None:
            self._child = Child(self._folder, self._stamp)
        job = self._state.job(seal=True)
        self._child.tell({"op": "fold", "watermark": job.watermark, "deletes": job.deletes}, job.payload)
        reach("keyword.asked")
        self._child.answer()
        reach("keyword.written")
        committed = open_folder(self._folder, self._stamp, self._state.kernel, self._state.known())
        if committed is None:
            raise DamagedError("the commit is not there")
        self._state.swap(committed, job, sealed=True)
        self._failures, self.message, self._error = 0, "", None
        with self._wake:
            self._wake.notify_all()
        if not self._stopping:
            began = time.monotonic()
            erase, tidy = self._erase_due(began), self._tidy_in(began) == 0.0
            self._merge(erase, tidy)
            if tidy:
                self._tidied = tuple(self._state.known())
            if erase:
                self._dead_since, self._erase_took = None, time.monotonic() - began

    def _merge(self, erase: bool, tidy: bool = False) -> None:
        assert self._child is not None
        job = self._state.job(seal=False)
        if not self._child.ask({"op": "merge", "deletes": job.deletes, "erase": erase, "tidy": tidy})["merged"]:
            return
        committed = open_folder(self._folder, self._stamp, self._state.kernel, self._state.known())
        if committed is None:
            raise DamagedError("the merge is not there")
        self._state.swap(committed, job, sealed=False)

    def _failed(self, error: Exception) -> None:
        self._end_child()
        with self._wake:
            self._failures += 1
            self._failed_last = self._begun
            self.message, self._error = refusal(error).message, error
            self.damaged |= isinstance(error, DamagedError) or (isinstance(error, ChildError) and error.damaged)
            self._since = self._since or time.monotonic()
            self._not_before = time.monotonic() + min(_LONGEST_PAUSE, 0.1 * 2.0 ** min(self._failures, 12))
        if not self._stopping:
            _log.warning("the keyword index was not written and stays in memory: %s", self.message)

    def _end_child(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None


def refusal(error: Exception) -> MemxdError:
    """What a failed try to write means to the caller."""
    number = error.errno if isinstance(error, OSError | ChildError) else None
    if number:
        return storage_error(OSError(number, os.strerror(number)), "the keyword index")
    return IndexUnavailableError(f"the keyword index cannot be written: {error}")
