"""The face of the vector index.

The applier changes rows under the lock; searches take one reference and no lock. A renewal or a rebuild makes the next
generation or graph beside and swaps it under the lock, then by rename (``holder``, ``renewal``). Does not embed and
does not read the store. Called by the engine and, for changes, by the store's writer thread.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memxd._fast.protocols import DotKernel
from memxd.errors import IndexUnavailableError
from memxd.index.durable import storage_error
from memxd.index.selection import Selection
from memxd.index.vector.files import disk_bytes
from memxd.index.vector.generation import Generation
from memxd.index.vector.hits import VectorHits
from memxd.index.vector.holder import Holder
from memxd.index.vector.loading import load
from memxd.index.vector.manifest import FORMAT, Identity
from memxd.index.vector.probe import Probe, Snapshot
from memxd.index.vector.renewal import Renewal
from memxd.index.vector.rows import DimensionError
from memxd.index.vector.tuning import VectorTuning
from memxd.index.vector.upkeep import Upkeep
from memxd.model import NO_DEADLINE, Change, Deadline, IndexKind, IndexState, IndexStatus

__all__ = ["VectorIndex"]

_DEFAULT = VectorTuning()
#: So many changes at once are an import's, which keeps cores busy for a while (seconds) ...
_BULK, _BULK_SECONDS = 8, 1.0
#: ... so that with fewer cores a search is done sooner without the help of a thread that has to wait for one.
_ROOMY = 4


class VectorIndex:
    """Cosine search over the chunks of all memories. One applier, any number of searchers."""

    def __init__(self, directory: Path, identity: Identity, dot: DotKernel, tuning: VectorTuning) -> None:
        self._dot = dot
        self._cores = tuning.cores or _cores()
        self._bulk_until = 0.0
        self.helpers = dot.Helpers(self._cores)  #: threads of ``begin``, and how many searches there are
        self._holder = Holder(directory, identity, load(directory, identity))
        self._renewal = Renewal(self._holder, tuning)
        self._upkeep = Upkeep(tuning, self._renewal.due, self._renewal.renew, self._renewal_failed)
        self._upkeep.changed(bool(self._renewal.due()))

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
        return self._holder.watermark

    @property
    def durable_watermark(self) -> int:
        """The revision that survives a crash."""
        return self._holder.durable

    @property
    def available(self) -> bool:
        """True when ``search`` answers; else it raises IndexUnavailableError with the ``cause``."""
        return self._holder.state is IndexState.READY and not self._holder.closed

    def apply(self, change: Change) -> None:
        """``apply_all`` for one."""
        self.apply_all((change,))

    def apply_all(self, changes: Sequence[Change]) -> None:
        """Take over rows' chunks, in order. Called by the writer thread only; idempotent, the last one wins.

        A disk that refuses does not raise here, because the records are committed already: the changes wait in memory,
        the index answers nothing and keeps its watermark, until ``retry`` or the next change finds the disk willing.
        What does not pass makes it FAILED until it is rebuilt or opened again.
        """
        holder = self._holder
        if len(changes) >= _BULK:
            self._bulk_until = time.monotonic() + _BULK_SECONDS
        with holder.lock:
            if holder.catch_up is not None:
                holder.catch_up += changes
            if holder.state is IndexState.FAILED or holder.closed or not changes:
                return
            self._take([*holder.waiting, *changes] if holder.waiting else changes)
        self._upkeep.changed(bool(self._renewal.due()))

    @property
    def waits(self) -> bool:
        """Whether changes wait for a disk that refused them."""
        return bool(self._holder.waiting)

    def retry(self) -> None:
        """Take over what a disk refused, if it does not any more."""
        holder = self._holder
        with holder.lock:
            if holder.waiting and not holder.closed:
                self._take(holder.waiting)

    def _take(self, changes: Sequence[Change]) -> None:
        """Take over all of them, or keep the rest for later."""
        holder = self._holder
        if not self._took_new(changes):
            for place, change in enumerate(changes):
                try:
                    holder.current.put(change)
                except (OSError, DimensionError) as error:
                    if isinstance(error, OSError) and holder.current.whole():
                        holder.wait(changes[place:], storage_error(error, "the vector file"))
                    else:
                        holder.fail(f"revision {change.revision} was not taken: {error}")
                    return
                holder.watermark = max(holder.watermark, change.revision)
                holder.dirty = True
        holder.willing()

    def _took_new(self, changes: Sequence[Change]) -> bool:
        """Take them over at once, if all of them bring vectors to rows that have none; else nothing changed."""
        holder = self._holder
        try:
            if len(changes) < 2 or not holder.current.put_new(changes):
                return False
        except (OSError, DimensionError):
            return False  # one by one tells which it was
        holder.watermark = max(holder.watermark, changes[-1].revision)
        holder.dirty = True
        return True

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
        return self.finish(self._probe(query, selection, k, exact, deadline))

    def begin(
        self,
        query: npt.NDArray[np.float32],
        selection: Selection,
        k: int,
        *,
        exact: bool = False,
        deadline: Deadline = NO_DEADLINE,
    ) -> Probe | None:
        """Begin a ``search`` on another thread; None = not worth it, nobody is free, or an import has the cores.
        ``finish``, or ``drop`` of what this answers, has to follow. Raises as ``search``."""
        if self._cores < _ROOMY and time.monotonic() < self._bulk_until:
            return None
        probe = self._probe(query, selection, k, exact, deadline)
        return probe if probe.hand_over(self.helpers, self._renewal.tuning.worth) else None

    def finish(self, probe: Probe) -> VectorHits:
        """What ``search`` would have answered. Raises as it."""
        hits = probe.finish()
        if not probe.plausible(hits):
            raise self._holder.fail("its file holds impossible vectors; rebuild it")
        return hits

    def _probe(
        self, query: npt.NDArray[np.float32], selection: Selection, k: int, exact: bool, deadline: Deadline
    ) -> Probe:
        query, snapshot = self._check(query), self._snapshot()
        return Probe(self._dot, self._renewal.tuning, snapshot, query, selection, k, exact, deadline)

    def cosines(
        self, query: npt.NDArray[np.float32], rids: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
        """(float64[n], int32[n]): each rid's cosine and best chunk number; NaN and -1 where it has no vector. ``rids``:
        int32[n], any order. Raises IndexUnavailableError."""
        query, view = self._check(query), self._generation().rows.view()
        asked = np.ascontiguousarray(rids, np.int32)
        return self._dot.best_by_rid(query, view.matrix, view.head, view.after, view.chunks, asked)

    def _check(self, query: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Once per search, because the kernels trust."""
        if not self.available:
            raise IndexUnavailableError(f"the vector index does not answer: {self._how_it_ended()}")
        wanted = (self._holder.identity.dimension,)
        if query.shape != wanted:
            raise ValueError(f"the query vector has shape {query.shape}, not {wanted}")
        return np.ascontiguousarray(query, np.float32)

    def _how_it_ended(self) -> str:
        if self._holder.closed:
            return "closed"
        return self._holder.message if self._holder.waiting else "failed"

    def _snapshot(self) -> Snapshot:
        current = self._generation()
        return Snapshot.of(current.rows, current.graph)

    def _generation(self) -> Generation:
        """One reference: rows and graph of one generation, whose file is whole."""
        current = self._holder.current
        if not current.whole():
            raise self._holder.fail("its file was cut short; rebuild it")
        return current

    def flush(self, deadline: Deadline = NO_DEADLINE) -> None:
        """Make the state durable: ``durable_watermark`` becomes the watermark as of the call. Any thread. Raises
        StorageFullError, StorageReadOnlyError, StorageFailedError or, before it begins, what ``deadline`` raises."""
        deadline.check()
        self.retry()
        with self._holder.saving:
            if self._holder.refused is not None:
                raise self._holder.refused
            if self._holder.dirty and self._holder.state is IndexState.READY:
                self._holder.save()

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
        self._renewal.rebuild(changes, total, progress, revision, deadline)
        self._upkeep.changed(bool(self._renewal.due()))

    def _renewal_failed(self, message: str) -> None:
        if not self._renewal.gives_way():
            self._holder.message = message

    def status(self) -> IndexStatus:
        """State, watermarks, counts (in vectors), bytes on disk, stamp, message."""
        holder, current = self._holder, self._holder.current
        ready, identity = holder.state is IndexState.READY, holder.identity
        return IndexStatus(
            kind=IndexKind.VECTOR,
            state=holder.state if holder.catch_up is None else IndexState.REBUILDING,
            watermark=holder.watermark,
            durable_watermark=holder.durable,
            entries=current.rows.live if ready else 0,
            tail_entries=current.tail if ready else 0,
            dead_entries=current.dead if ready else 0,
            size_bytes=disk_bytes(holder.directory),
            stamp=f"vector format {FORMAT}, model {identity.model_id}, {identity.dimension} dimensions",
            message=holder.message,
        )

    def close(self) -> None:
        """Stop the threads and the child, flush, close files. Idempotent. Raises as ``flush``."""
        with self._holder.lock:
            if self._holder.closed:
                return
            self._holder.closed = True
        self._upkeep.stop()
        self.helpers.close()
        try:
            self.flush()
        finally:
            self._holder.current.rows.close()


def _cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
