"""The face of the columns: features of every row of every scope, and the selections made from them.

Owns the lock, the watermarks and the snapshot's life. The applier changes arrays in place under the lock; readers take
references under it and evaluate outside, so a row may change under them, never vanish. Does not rank and knows no SQL.
Called by the engine and, for changes and counters, by the store's writer thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memxd._fast import choose_py
from memxd._fast.protocols import ChooseKernel
from memxd.index.columns import arrays as by_rid
from memxd.index.columns.arrays import ColumnArrays
from memxd.index.columns.snapshot import FILE_NAME, FORMAT, SnapshotError, read_snapshot, write_snapshot
from memxd.index.columns.table import Asked, Table
from memxd.index.columns.tags import PackedTags, TagSets
from memxd.index.durable import storage_error
from memxd.index.selection import Selection
from memxd.model import NO_DEADLINE, Change, Deadline, IndexKind, IndexState, IndexStatus, View

__all__ = ["Columns"]

Rids = npt.NDArray[np.int32]
_log = logging.getLogger(__name__)


class Columns:
    """Features by rid and the selections of every view. One applier, any number of readers."""

    def __init__(
        self, directory: Path, database_id: str, kernel: ChooseKernel, table: Table, watermark: int, message: str
    ) -> None:
        self._path = directory / FILE_NAME
        self._database_id = database_id
        self._kernel = kernel
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self._table = table
        self._watermark = self._durable = watermark
        self._dirty = False
        self._message = message
        self._catch_up: list[Change] | None = None
        self._rebuilding = threading.Lock()
        self._closed = False

    @classmethod
    def open(cls, directory: Path, *, database_id: str = "", kernel: ChooseKernel = choose_py) -> Columns:
        """Load the snapshot in ``directory`` (made when missing). Damaged, missing or of another database: empty,
        watermark 0, a message in ``status()``; never raises for what lies there. ``kernel``: the plain one unless
        ``load_kernels(...).choose`` is given."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            arrays, tags, watermark = read_snapshot(directory / FILE_NAME, database_id)
            return cls(directory, database_id, kernel, Table(arrays, tags, kernel), watermark, "")
        except FileNotFoundError:
            message = ""
        except (SnapshotError, OSError) as error:
            message = f"the columns snapshot is not usable and will be rebuilt: {_cause(error)}"
            _log.warning("%s", message)
        return cls(directory, database_id, kernel, Table(by_rid.allocate(1024), TagSets(), kernel), 0, message)

    @property
    def watermark(self) -> int:
        """The revision the columns reflect."""
        return self._watermark

    @property
    def durable_watermark(self) -> int:
        """The revision that survives a crash."""
        return self._durable

    def apply(self, change: Change) -> None:
        """``apply_all`` for one."""
        self.apply_all((change,))

    def apply_all(self, changes: Sequence[Change]) -> None:
        """Take over rows' features, in order. Called by the writer thread only; idempotent, the last one wins."""
        if not changes:
            return
        rows = [change.features for change in changes if change.features is not None]
        with self._lock:
            if self._catch_up is not None:
                self._catch_up += changes
            if len(rows) < len(changes) or len(rows) < 2 or not self._table.put_new(rows):
                for change in changes:
                    self._put(self._table, change)
            self._watermark = max(self._watermark, *(change.revision for change in changes))
            self._dirty = True

    @staticmethod
    def _put(table: Table, change: Change) -> None:
        if change.features is None:
            table.remove(change.rid)
        else:
            table.put(change.features)

    def count_bump(self, counters: Iterable[tuple[int, int, int, int | None]]) -> None:
        """New absolute counters: (rid, access, retrieval, last_retrieved_at). Unknown rids are passed over. The
        watermark does not move."""
        with self._lock:
            self._dirty |= by_rid.write_all_counters(self._table.arrays, counters)

    def arrays(self) -> ColumnArrays:
        """The present arrays. Taken after ``select``, they cover every selected rid."""
        return self._table.arrays

    def select(self, scope_no: int | None, view: View, restrict: npt.NDArray[np.int32] | None = None) -> Selection:
        """The rows of the scope that the view lets through, and that are in ``restrict`` (int32, any order) when given.

        ``filter.ids`` and ``filter.metadata`` are not evaluated here: the caller narrows by ``restrict``
        (``store.rids_matching``). An unknown scope (or None) has no rows.
        """
        with self._lock:
            table = self._table
            scope = table.scope(scope_no)
            if scope is None or scope_no is None:
                return Selection(np.empty(0, np.int32), table.end)
            if restrict is None and (kept := table.kept(scope_no, scope, view)) is not None:
                return kept
            asked = Asked(table, scope_no, scope, view, restrict)
        try:
            answer = asked.choose(self._kernel)
        except (
            ValueError
        ):  # a row has just got tags that the question did not know: once more, while nobody changes any
            with self._lock:
                answer = Asked(self._table, scope_no, scope, view, restrict).choose(self._kernel)
        if asked.key is not None:
            with self._lock:
                scope.keep(asked.key, answer)
        return answer.selection

    def count(self, scope_no: int | None, view: View) -> tuple[int, int]:
        """How many rows of the scope the view shows (but for ``filter.ids`` and ``filter.metadata``, as in ``select``),
        and the revision at which that is so."""
        with self._lock:
            scope = self._table.scope(scope_no)
            if scope is None or scope_no is None:
                return 0, self._watermark
            selection = self._table.kept(scope_no, scope, view)
            if selection is None:
                asked = Asked(self._table, scope_no, scope, view, None)
                answer = asked.choose(self._kernel)
                if asked.key is not None:
                    scope.keep(asked.key, answer)
                selection = answer.selection
            return len(selection), self._watermark

    def flush(self, deadline: Deadline = NO_DEADLINE) -> None:
        """Write the snapshot; ``durable_watermark`` becomes the watermark as of the call. Any thread. Raises
        StorageFullError, StorageReadOnlyError or StorageFailedError. ``deadline`` counts before it begins."""
        deadline.check()
        with self._flushing:
            with self._lock:
                if not self._dirty:
                    return
                self._dirty = False
                watermark, table, arrays, rows = self._watermark, self._table, self._table.arrays, self._table.end
            try:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # somebody may have removed it
                write_snapshot(self._path, arrays, rows, self._packer(table), watermark, self._database_id)
            except OSError as error:
                self._dirty = True
                raise storage_error(error, "the columns snapshot") from error
            self._durable = watermark

    def _packer(self, table: Table) -> Callable[[], PackedTags]:
        def pack() -> PackedTags:
            with self._lock:
                return table.tags.pack()

        return pack

    def rebuild(
        self,
        changes: Iterator[Change],
        total: int = 0,
        progress: Callable[[int, int], None] | None = None,
        *,
        revision: int = 0,
        deadline: Deadline = NO_DEADLINE,
    ) -> None:
        """Fill anew from the store's rows beside the present ones, then swap and flush.

        ``changes``: each live row once, from a snapshot that is opened after this call began (a generator does that):
        what ``apply`` brings from now on is in the result. ``total``: expected rows, for ``progress(done, total)``.
        ``revision``: the snapshot's revision; the watermark becomes at least this. One at a time. Raises as ``flush``,
        and once ``deadline`` has passed DeadlineExceededError or CancelledError.
        """
        with self._rebuilding:
            with self._lock:
                self._catch_up = []
                room = self._table.arrays.capacity  # never shrink: a reader may hold larger rids
            fresh = Table(by_rid.allocate(room), TagSets(), self._kernel)
            done = 0
            try:
                for done, change in enumerate(changes, 1):
                    deadline.check()
                    self._put(fresh, change)
                    revision = max(revision, change.revision)
                    if progress is not None and done % 1000 == 0:
                        progress(done, total)
                if progress is not None:
                    progress(done, total)
                with self._lock:
                    for change in self._catch_up:
                        self._put(fresh, change)
                    self._table = fresh
                    self._watermark = max(revision, max((c.revision for c in self._catch_up), default=0))
                    self._durable = min(self._durable, self._watermark)
                    self._dirty = True
                    self._message = ""
            finally:
                self._catch_up = None
        self.flush()

    def status(self) -> IndexStatus:
        """State, watermarks, rows, bytes of the snapshot, stamp, message."""
        size = self._path.stat().st_size if self._path.exists() else 0
        return IndexStatus(
            kind=IndexKind.COLUMNS,
            state=IndexState.READY if self._catch_up is None else IndexState.REBUILDING,
            watermark=self._watermark,
            durable_watermark=self._durable,
            entries=self._table.rows,
            tail_entries=0,
            dead_entries=0,
            size_bytes=size,
            stamp=f"columns format {FORMAT}",
            message=self._message,
        )

    def close(self) -> None:
        """Flush. Idempotent. Raises as ``flush``."""
        if not self._closed:
            self._closed = True
            self.flush()


def _cause(error: Exception) -> str:
    return str(error) if isinstance(error, SnapshotError) else type(error).__name__
