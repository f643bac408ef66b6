"""Building a derived index anew from the store, and knowing which indexes must not be asked meanwhile.

Owns the state "failed" (could not take a change over) and "unready" (misses most of what is stored), and every rebuild:
at start, on request with progress, and by itself after a failure. Owns no index. Called by indexes.py.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from queue import SimpleQueue
from typing import Protocol

from memxd.engine.content import public_text
from memxd.errors import IndexUnavailableError, MemxdError, ShuttingDownError
from memxd.model import NO_DEADLINE, Change, Deadline, IndexKind, IndexState, IndexStatus, Progress
from memxd.store import Store

log = logging.getLogger(__name__)

#: How often a waiting rebuild looks whether it is still wanted.
_GLANCE_SECONDS = 0.1


class Index(Protocol):
    """What this module asks of each index."""

    @property
    def watermark(self) -> int: ...
    @property
    def durable_watermark(self) -> int: ...
    def apply(self, change: Change) -> None: ...
    def apply_all(self, changes: Sequence[Change]) -> None: ...
    def rebuild(
        self,
        changes: Iterator[Change],
        total: int = 0,
        progress: Callable[[int, int], None] | None = None,
        *,
        revision: int = 0,
        deadline: Deadline = NO_DEADLINE,
    ) -> None: ...
    def flush(self, deadline: Deadline = NO_DEADLINE) -> None: ...
    def status(self) -> IndexStatus: ...
    def close(self) -> None: ...


def public(change: Change) -> Change:
    """The change as the indexes may see it: without the text of private spans."""
    if change.text is None:
        return change
    shown = public_text(change.text)
    return change if shown is change.text else replace(change, text=shown)


class Rebuilding:
    """The rebuilds of one set of indexes. ``stopping`` ends a running one early."""

    def __init__(self, store: Store, by_kind: Mapping[IndexKind, Index], stopping: threading.Event) -> None:
        self._store = store
        self._by_kind = by_kind
        self._stopping = stopping
        self._running = {kind: threading.Lock() for kind in by_kind}
        self._unready: set[IndexKind] = set()
        self._failed: set[IndexKind] = set()
        self._deaf: set[IndexKind] = set()  # failed, and not told of changes, because no rebuild has begun yet

    # -- which indexes may be asked ----------------------------------------------------------------------------------

    def mark_unready(self, kind: IndexKind) -> None:
        """The index lacks most of what is stored, until its rebuild is done."""
        self._unready.add(kind)

    def mark_failed(self, kind: IndexKind) -> None:
        """The index lacks a change; it is told of none until it is rebuilt."""
        self._failed.add(kind)
        self._deaf.add(kind)

    def mark_whole(self, kind: IndexKind) -> None:
        """Another index, which lacks nothing, has taken the place of this kind's."""
        for marks in (self._failed, self._unready, self._deaf):
            marks.discard(kind)

    def is_deaf(self, kind: IndexKind) -> bool:
        """Whether changes are to pass the index by: what it misses comes with its rebuild."""
        return kind in self._deaf

    def is_whole(self, kind: IndexKind) -> bool:
        """Whether ``require`` would let the index be asked."""
        return kind not in self._failed and kind not in self._unready

    def require(self, kind: IndexKind) -> None:
        """Raise IndexUnavailableError for an index whose answers would lack something."""
        if kind in self._failed:
            raise IndexUnavailableError(f"the {kind.name.lower()} index failed and is to be rebuilt")
        if kind in self._unready:
            raise IndexUnavailableError(f"the {kind.name.lower()} index is being built; see AdminService.Status")

    def status(self, kind: IndexKind) -> IndexStatus:
        """The index's own status, corrected by what is known here."""
        status = self._by_kind[kind].status()
        if kind in self._failed:
            return replace(status, state=IndexState.FAILED, message="it could not take a change over")
        if kind in self._unready or self._running[kind].locked():
            return replace(status, state=IndexState.REBUILDING)
        return status

    # -- rebuilding --------------------------------------------------------------------------------------------------

    def mend(self) -> None:
        """Rebuild what failed since the last look."""
        for kind in IndexKind:
            if self.status(kind).state is IndexState.FAILED:
                self.mark_failed(kind)
                self.run_logged(kind)

    def run_logged(self, kind: IndexKind) -> None:
        """Rebuild without anybody waiting; a failure is logged and the index stays marked."""
        reason = self._by_kind[kind].status().message or "it is missing, too old or incomplete"
        log.warning("rebuilding the %s index from the store: %s", kind.name.lower(), reason)
        try:
            self.run(kind, lambda _done, _total: None)
        except ShuttingDownError:
            log.info("the rebuild of the %s index begins again at the next start", kind.name.lower())
        except MemxdError as error:
            log.error("rebuilding the %s index failed: %s", kind.name.lower(), error.message)
        except Exception:  # a fault of ours must not end the thread that would try again
            log.exception("rebuilding the %s index failed", kind.name.lower())

    def run(self, kind: IndexKind, progress: Callable[[int, int], None], deadline: Deadline = NO_DEADLINE) -> None:
        """Rebuild one index; ``progress(done, total)``. Raises what kept it from becoming whole."""
        deadline = self._or_stopping(deadline)
        self._store.require_present()
        with self._alone(kind, deadline):
            with self._store.read() as read:
                total, revision = read.totals().memories, read.revision()
            self._deaf.discard(kind)  # it notes what commits from here on, and the snapshot begins later
            try:
                with closing(self._rows(kind)) as rows:
                    self._by_kind[kind].rebuild(rows, total, progress, revision=revision, deadline=deadline)
            except BaseException:
                if kind in self._failed or kind in self._unready:
                    self.mark_failed(kind)
                self._check_stopping()
                raise
            self._failed.discard(kind)
            self._unready.discard(kind)

    def _rows(self, kind: IndexKind) -> Generator[Change, None, None]:
        """Every row, read in short snapshots that begin at the first step: one for all of them would keep the log from
        being emptied for as long as the rebuild takes. An index notes what commits from then on, so a row that is
        newer here than the first snapshot, or gone, is told to it once more; all rows count as of the first."""
        with self._store.read() as read:
            revision = read.revision()
        last = 0
        while True:
            with self._store.read() as read:
                page = read.rows_after(last, revision, chunks=kind is IndexKind.VECTOR)
            if not page:
                return
            for change in page:
                self._check_stopping()  # an early end would look like a complete rebuild
                yield public(change)
            last = page[-1].rid

    def _check_stopping(self) -> None:
        if self._stopping.is_set():
            raise ShuttingDownError("the daemon is stopping; the rebuild begins again at the next start")

    def _or_stopping(self, deadline: Deadline) -> Deadline:
        """The same deadline, over as well when the daemon stops."""
        return replace(deadline, is_cancelled=lambda: self._stopping.is_set() or deadline.is_cancelled())

    @contextmanager
    def _alone(self, kind: IndexKind, deadline: Deadline) -> Iterator[None]:
        """One rebuild of a kind at a time. Raises what ``deadline.check`` raises."""
        while not self._running[kind].acquire(timeout=_GLANCE_SECONDS):
            self._check_stopping()
            deadline.check()
        try:
            yield
        finally:
            self._running[kind].release()

    def stream(self, kind: IndexKind, deadline: Deadline = NO_DEADLINE) -> Iterator[Progress]:
        """Rebuild one index and make it durable; yields progress, the last one ``finished``. A caller that goes away
        takes the rebuild along: the old index stays."""
        events: SimpleQueue[Progress | BaseException | None] = SimpleQueue()

        def work() -> None:
            try:
                self.run(kind, lambda done, total: events.put(Progress(kind, done, total)), deadline)
                self._by_kind[kind].flush(self._or_stopping(deadline))
                events.put(None)
            except BaseException as error:  # handed over to the caller below, whatever it is
                events.put(error)

        thread = threading.Thread(target=work, name=f"memxd-rebuild-{kind.name.lower()}")
        thread.start()
        last = Progress(kind, 0, 0)
        try:
            while (event := events.get()) is not None:
                if isinstance(event, BaseException):
                    raise event
                last = event
                yield event
        finally:
            thread.join()
        yield Progress(kind, last.total, last.total, True, self._by_kind[kind].watermark)
