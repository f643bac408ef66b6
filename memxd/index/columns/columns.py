"""The face of the columns: features of every row of every scope, and the selections made from them.

Owns the lock, the watermarks and the snapshot's life. The applier changes arrays in place under the lock; readers take
references under it and evaluate outside, so a row may change under them, never vanish. Does not rank and knows no SQL.
Called by the engine and, for changes and counters, by the store's writer thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memxd.index.columns import arrays as by_rid
from memxd.index.columns.arrays import NAMES, ColumnArrays
from memxd.index.columns.scopes import ScopeRows, group_by_scope, select_default
from memxd.index.columns.snapshot import FILE_NAME, FORMAT, SnapshotError, read_snapshot, write_snapshot
from memxd.index.columns.tags import TagSets
from memxd.index.columns.visible import by_filter, by_moment, is_default_moment
from memxd.index.durable import storage_error
from memxd.index.selection import Selection
from memxd.model import NO_DEADLINE, Change, Deadline, Filter, IndexKind, IndexState, IndexStatus, RowFeatures, View

__all__ = ["Columns"]

Rids = npt.NDArray[np.int32]
_log = logging.getLogger(__name__)


class _Table:
    """What a rebuild swaps at once: arrays, tag sets, rows by scope, number of rows."""

    def __init__(self, arrays: ColumnArrays, tags: TagSets) -> None:
        self.arrays = arrays
        self.tags = tags
        self.scopes: dict[int, ScopeRows] = group_by_scope(arrays)
        self.rows = int(np.count_nonzero(arrays.state))

    def put(self, row: RowFeatures) -> None:
        """Insert or replace a row."""
        if row.rid >= self.arrays.capacity:
            self.arrays = by_rid.grown(self.arrays, row.rid + 1)
        known = self.arrays.state[row.rid] != 0
        if known and self.arrays.scope[row.rid] != row.scope_no:
            self.remove(row.rid)
            known = False
        scope = self.scopes.get(row.scope_no)
        if scope is None:
            scope = self.scopes[row.scope_no] = ScopeRows(np.empty(0, np.int32))
        by_rid.write_row(self.arrays, row, *self.tags.number(row.tags))
        if not known:
            scope.add(row.rid)
            self.rows += 1
        scope.touch(row.rid)

    def remove(self, rid: int) -> None:
        """Forget a row; unknown rids are passed over."""
        if not 0 <= rid < self.arrays.capacity or not self.arrays.state[rid]:
            return
        scope = self.scopes[int(self.arrays.scope[rid])]
        self.arrays.state[rid] = 0
        scope.drop()
        scope.touch(rid)
        self.rows -= 1


class Columns:
    """Features by rid and the selections of every view. One applier, any number of readers."""

    def __init__(self, directory: Path, database_id: str, table: _Table, watermark: int, message: str) -> None:
        self._path = directory / FILE_NAME
        self._database_id = database_id
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
    def open(cls, directory: Path, *, database_id: str = "") -> Columns:
        """Load the snapshot in ``directory`` (made when missing). Damaged, missing or of another database: empty,
        watermark 0, a message in ``status()``; never raises for what lies there."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            arrays, tags, watermark = read_snapshot(directory / FILE_NAME, database_id)
            return cls(directory, database_id, _Table(arrays, tags), watermark, "")
        except FileNotFoundError:
            message = ""
        except (SnapshotError, OSError) as error:
            message = f"the columns snapshot is not usable and will be rebuilt: {_cause(error)}"
            _log.warning("%s", message)
        return cls(directory, database_id, _Table(by_rid.allocate(1024), TagSets()), 0, message)

    @property
    def watermark(self) -> int:
        """The revision the columns reflect."""
        return self._watermark

    @property
    def durable_watermark(self) -> int:
        """The revision that survives a crash."""
        return self._durable

    def apply(self, change: Change) -> None:
        """Take over a row's features. Called by the writer thread only; idempotent, the last one wins."""
        with self._lock:
            if self._catch_up is not None:
                self._catch_up.append(change)
            self._put(self._table, change)
            self._watermark = max(self._watermark, change.revision)
            self._dirty = True

    @staticmethod
    def _put(table: _Table, change: Change) -> None:
        if change.features is None:
            table.remove(change.rid)
        else:
            table.put(change.features)

    def count_bump(self, counters: Iterable[tuple[int, int, int, int | None]]) -> None:
        """New absolute counters: (rid, access, retrieval, last_retrieved_at). Unknown rids are passed over. The
        watermark does not move."""
        with self._lock:
            arrays = self._table.arrays
            for rid, access, retrieval, last_retrieved in counters:
                if 0 <= rid < arrays.capacity and arrays.state[rid]:
                    by_rid.write_counters(arrays, rid, access, retrieval, last_retrieved)
                    self._dirty = True

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
            scope = None if scope_no is None else table.scopes.get(scope_no)
            arrays = table.arrays
            if scope is None or scope_no is None:
                return Selection(np.empty(0, np.int32), arrays.capacity)
            epoch, cached, touched = scope.epoch, scope.cached, scope.touched_since_cached()
            everything = scope.rids(arrays) if restrict is None else None
        if everything is None:
            rids = _own(arrays, scope_no, np.asarray(restrict))
            rids = rids[by_moment(arrays, rids, view)]
        elif not is_default_moment(view):
            rids = everything[by_moment(arrays, everything, view)]
        else:
            if cached is None or touched is None or not cached.begin <= view.now < cached.end:
                scope.cached = cached = select_default(arrays, everything, view.now, epoch, scope_no)
            elif touched:
                scope.cached = cached = cached.refreshed(arrays, touched, view.now, epoch)
            if not _narrows(view.filter):
                return cached.selection
            rids = cached.selection.rids

        def passing(wanted: Filter) -> npt.NDArray[np.bool_]:
            with self._lock:
                return table.tags.passing(wanted)

        return Selection(by_filter(arrays, rids, view.filter, passing), arrays.capacity, scope_no)

    def flush(self, deadline: Deadline = NO_DEADLINE) -> None:
        """Write the snapshot; ``durable_watermark`` becomes the watermark as of the call. Any thread. Raises
        StorageFullError, StorageReadOnlyError or StorageFailedError. ``deadline`` counts before it begins."""
        deadline.check()
        with self._flushing:
            with self._lock:
                if not self._dirty:
                    return
                self._dirty = False
                watermark, arrays = self._watermark, self._table.arrays
                copy = ColumnArrays(**{name: getattr(arrays, name).copy() for name in NAMES})
                tags = self._table.tags.pack()
            try:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # somebody may have removed it
                write_snapshot(self._path, copy, tags, watermark, self._database_id)
            except OSError as error:
                self._dirty = True
                raise storage_error(error, "the columns snapshot") from error
            self._durable = watermark

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
            fresh = _Table(by_rid.allocate(room), TagSets())
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


def _narrows(wanted: Filter) -> bool:
    """True when the filter has a condition besides states, ids and metadata."""
    return bool(
        wanted.types
        or wanted.tags_any
        or wanted.tags_all
        or wanted.tags_none
        or wanted.created
        or wanted.event
        or wanted.importance_min is not None
    )


def _own(arrays: ColumnArrays, scope_no: int | None, restrict: npt.NDArray[np.integer]) -> Rids:
    """Ascending distinct rids of ``restrict`` that belong to the scope."""
    rids = np.unique(restrict)
    rids = rids[(rids >= 0) & (rids < arrays.capacity)].astype(np.int32)
    own: Rids = rids[(arrays.scope.take(rids) == scope_no) & (arrays.state.take(rids) != 0)]
    return own


def _cause(error: Exception) -> str:
    return str(error) if isinstance(error, SnapshotError) else type(error).__name__
