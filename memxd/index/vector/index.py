"""The face of the vector index.

Owns the present generation, the lock, the watermarks and the state. The applier changes rows under the lock; searches
take one reference and no lock. A renewal or a rebuild makes the next generation beside and swaps it under the lock,
then by rename. Does not embed and does not read the store. Called by the engine and, for changes, by the store's writer
thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memxd._fast.protocols import DotKernel
from memxd.errors import IndexUnavailableError
from memxd.index.durable import storage_error
from memxd.index.selection import Selection
from memxd.index.vector.files import disk_bytes, remove_others
from memxd.index.vector.generation import Generation, Successor
from memxd.index.vector.hits import VectorHits
from memxd.index.vector.loading import load
from memxd.index.vector.manifest import FORMAT, Identity
from memxd.index.vector.probe import Snapshot, plausible, search
from memxd.index.vector.rows import DimensionError
from memxd.index.vector.tuning import VectorTuning
from memxd.index.vector.upkeep import GraphBuildError, Upkeep
from memxd.model import NO_DEADLINE, Change, Deadline, IndexKind, IndexState, IndexStatus

__all__ = ["VectorIndex"]

_log = logging.getLogger(__name__)
_DEFAULT = VectorTuning()


class VectorIndex:
    """Cosine search over the chunks of all memories. One applier, any number of searchers."""

    def __init__(self, directory: Path, identity: Identity, dot: DotKernel, tuning: VectorTuning) -> None:
        self._directory, self._identity = directory, identity
        self._dot, self._tuning = dot, tuning
        self._lock = threading.Lock()  # rows and watermark
        self._saving = threading.Lock()  # files; taken before _lock
        self._making = threading.Lock()  # one next generation at a time
        loaded = load(directory, identity, tuning)
        self._current, self._state, self._message = loaded.generation, IndexState.READY, loaded.message
        self._watermark = self._durable = loaded.watermark
        self._dirty = self._closed = False
        self._catch_up: list[Change] | None = None
        self._interrupt = threading.Event()  # the renewal shall give way
        self._upkeep = Upkeep(tuning, self._renewal_due, self._renew, self._renewal_failed)
        self._upkeep.changed(bool(self._renewal_due()))

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        model_id: str,
        dimension: int,
        dot: DotKernel,
        database_id: str = "",
        tuning: VectorTuning = _DEFAULT,
    ) -> VectorIndex:
        """Open or begin the index in ``directory`` (made when missing). Never raises for what lies there: files that
        are damaged, missing or of another model or database give an empty index with watermark 0 and a message."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(directory, Identity(model_id, dimension, database_id), dot, tuning)

    @property
    def watermark(self) -> int:
        """The revision the index reflects."""
        return self._watermark

    @property
    def durable_watermark(self) -> int:
        """The revision that survives a crash."""
        return self._durable

    @property
    def available(self) -> bool:
        """True when ``search`` answers; else it raises IndexUnavailableError with the ``cause``."""
        return self._state is IndexState.READY and not self._closed

    def apply(self, change: Change) -> None:
        """Take over a row's chunks. Called by the writer thread only; idempotent, the last one wins.

        A disk that refuses does not raise here, because the record is committed already: the index becomes FAILED, says
        why, keeps its watermark and takes no further changes until it is rebuilt or opened again.
        """
        with self._lock:
            if self._catch_up is not None:
                self._catch_up.append(change)
            if self._state is not IndexState.READY or self._closed:
                return
            try:
                self._current.put(change)
            except (OSError, DimensionError) as error:
                cause = storage_error(error, "the vector file") if isinstance(error, OSError) else error
                self._fail(f"revision {change.revision} was not taken: {cause}")
                return
            self._watermark = max(self._watermark, change.revision)
            self._dirty = True
        self._upkeep.changed(bool(self._renewal_due()))

    def search(
        self,
        query: npt.NDArray[np.float32],
        selection: Selection,
        k: int,
        *,
        exact: bool = False,
        deadline: Deadline = NO_DEADLINE,
    ) -> VectorHits:
        """The ``k`` nearest memories of the selection to ``query`` (float32[dimension], unit length), the best chunk of
        each. ``exact`` scans every vector. Raises IndexUnavailableError, DeadlineExceededError, CancelledError."""
        query, snapshot = self._check(query), self._snapshot()
        hits = search(self._dot, self._tuning, snapshot, query, selection, k, exact, deadline)
        if not plausible(snapshot, selection, k, hits):
            raise self._fail("its file holds impossible vectors; rebuild it")
        return hits

    def cosines(
        self, query: npt.NDArray[np.float32], rids: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
        """(float64[n], int32[n]): each rid's cosine and best chunk number; NaN and -1 where it has no vector. ``rids``:
        int32[n], any order. Raises IndexUnavailableError."""
        query, view = self._check(query), self._snapshot().view
        asked = np.ascontiguousarray(rids, np.int32)
        best, rows = self._dot.best_by_rid(query, view.matrix, view.head, view.after, asked)
        chunks = np.full(len(rows), -1, np.int32)
        found = rows >= 0
        chunks[found] = view.chunks[rows[found]]
        return best.astype(np.float64), chunks

    def _check(self, query: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Once per search, because the kernels trust."""
        if not self.available:
            raise IndexUnavailableError(f"the vector index does not answer: {'closed' if self._closed else 'failed'}")
        if query.shape != (self._identity.dimension,):
            raise ValueError(f"the query vector has shape {query.shape}, not ({self._identity.dimension},)")
        return np.ascontiguousarray(query, np.float32)

    def _fail(self, message: str) -> IndexUnavailableError:
        self._state, self._message = IndexState.FAILED, message
        _log.error("the vector index failed: %s", message)
        return IndexUnavailableError(f"the vector index failed: {message}", metadata={"cause": "failed"})

    def _snapshot(self) -> Snapshot:
        current = self._current  # one reference: rows and graph of one generation
        if not current.whole():
            raise self._fail("its file was cut short; rebuild it")
        return Snapshot.of(current.rows, current.graph)

    def flush(self, deadline: Deadline = NO_DEADLINE) -> None:
        """Make the state durable: ``durable_watermark`` becomes the watermark as of the call. Any thread. Raises
        StorageFullError, StorageReadOnlyError, StorageFailedError or, before it begins, what ``deadline`` raises."""
        deadline.check()
        with self._saving:
            if self._dirty and self._state is IndexState.READY:
                self._save()

    def _save(self) -> None:
        """Write what is new; the caller holds ``_saving``."""
        with self._lock:
            current, watermark = self._current, self._watermark
            rows, saver = current.rows, current.saver
            alive = rows.view().rids[: rows.count] >= 0
            records = rows.records(saver.saved, rows.count)
            self._dirty = False
        try:
            saver.save(self._identity, watermark, current.graph_file(), alive, records)
        except OSError as error:
            self._dirty = True
            raise storage_error(error, "the vector index") from error
        self._durable = watermark

    # -- new generations ---------------------------------------------------------------------------------------------

    def rebuild(
        self,
        changes: Iterator[Change],
        total: int = 0,
        progress: Callable[[int, int], None] | None = None,
        *,
        revision: int = 0,
        deadline: Deadline = NO_DEADLINE,
    ) -> None:
        """Build anew from the store's rows beside the present files, then swap; the graph follows in the background.

        ``changes``: each live row once, from a snapshot opened after this call began (a generator does that): what
        ``apply`` brings from now on is in the result. ``total``: expected rows, for ``progress(done, total)``.
        ``revision``: the snapshot's; the watermark becomes at least this. One at a time. Raises StorageFullError,
        StorageReadOnlyError, StorageFailedError, DimensionError (a ValueError) and the errors of ``deadline``.
        """
        self._interrupt.set()
        with self._making:
            self._interrupt.clear()
            with self._lock:
                self._catch_up = []
            try:
                fresh = Generation.begin(self._directory, self._current.rows.generation + 1, self._identity.dimension)
                try:
                    revision = max(revision, fresh.fill(self._open_still(changes, deadline), total, progress))
                    self._swap(lambda: fresh.catch_up(self._catch_up or []), revision)
                finally:
                    if self._current is not fresh:
                        fresh.delete_files()
            except OSError as error:
                raise storage_error(error, "the vector index") from error
            finally:
                self._catch_up = None
        self._upkeep.changed(bool(self._renewal_due()))

    def _open_still(self, changes: Iterator[Change], deadline: Deadline) -> Iterator[Change]:
        for change in changes:
            deadline.check()
            if self._closed:
                raise IndexUnavailableError("the vector index was closed", metadata={"cause": "closed"})
            yield change

    def _renew(self) -> None:
        """The next generation from the present one, graph included. On the upkeep thread."""
        with self._making:
            if not self._renewal_due():
                return
            old = self._current
            successor = Successor(self._directory, old, self._tuning)
            try:
                successor.prepare(self._gives_way)
                self._swap(lambda: self._succeed(successor), 0)
            except GraphBuildError:
                if not self._gives_way():
                    raise
            finally:
                if self._current is old:
                    successor.new.delete_files()

    def _succeed(self, successor: Successor) -> tuple[Generation, int]:
        if self._state is not IndexState.READY:  # changes were refused meanwhile: only a rebuild brings them back
            raise GraphBuildError("the index failed meanwhile")
        return successor.finish(), self._watermark

    def _gives_way(self) -> bool:
        return self._closed or self._interrupt.is_set()

    def _swap(self, finish: Callable[[], tuple[Generation, int]], revision: int) -> None:
        """Let ``finish`` complete the next generation while nobody applies, use it, save it, remove the old one."""
        with self._saving:
            with self._lock:
                old = self._current
                self._current, latest = finish()
                self._watermark = max(revision, latest)
                self._state, self._message, self._dirty = IndexState.READY, "", True
            old.rows.close()
            self._save()
            remove_others(self._directory, self._current.rows.generation)

    def _renewal_due(self) -> int:
        if self._state is not IndexState.READY or self._gives_way():
            return 0
        return self._current.renewal_due(self._tuning)

    def _renewal_failed(self, message: str) -> None:
        if not self._gives_way():
            self._message = message

    # -- the rest ----------------------------------------------------------------------------------------------------

    def status(self) -> IndexStatus:
        """State, watermarks, counts (in vectors), bytes on disk, stamp, message."""
        current, ready = self._current, self._state is IndexState.READY
        return IndexStatus(
            kind=IndexKind.VECTOR,
            state=self._state if self._catch_up is None else IndexState.REBUILDING,
            watermark=self._watermark,
            durable_watermark=self._durable,
            entries=current.rows.live if ready else 0,
            tail_entries=current.tail if ready else 0,
            dead_entries=current.dead if ready else 0,
            size_bytes=disk_bytes(self._directory),
            stamp=f"vector format {FORMAT}, model {self._identity.model_id}, {self._identity.dimension} dimensions",
            message=self._message,
        )

    def close(self) -> None:
        """Stop the upkeep thread and its child, flush, close files. Idempotent. Raises as ``flush``."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._upkeep.stop()
        try:
            self.flush()
        finally:
            self._current.rows.close()
