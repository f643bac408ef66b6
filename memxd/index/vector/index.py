"""The face of the vector index (signatures first; the bodies follow)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memxd._fast.dot_py import DotKernel
from memxd.index.selection import Selection
from memxd.index.vector.hits import VectorHits
from memxd.index.vector.tuning import VectorTuning
from memxd.model import NO_DEADLINE, Change, Deadline, IndexStatus


class VectorIndex:
    """Cosine search over the chunks of all memories. One applier, any number of searchers."""

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        model_id: str,
        dimension: int,
        dot: DotKernel,
        tuning: VectorTuning = VectorTuning(),  # noqa: B008
    ) -> VectorIndex:
        """Open or begin the index in ``directory`` (made when missing). Never raises for what lies there: damaged,
        missing or foreign files give an empty index with watermark 0 and a message; files of another model or
        dimension are kept, unused (``mismatched``)."""
        raise NotImplementedError

    @property
    def watermark(self) -> int:
        """The revision the index reflects."""
        raise NotImplementedError

    @property
    def durable_watermark(self) -> int:
        """The revision that survives a crash."""
        raise NotImplementedError

    @property
    def mismatched(self) -> bool:
        """True when the files are of another model; ``rebuild`` replaces them, everything else leaves them alone."""
        raise NotImplementedError

    @property
    def available(self) -> bool:
        """True when ``search`` answers; else it raises IndexUnavailableError."""
        raise NotImplementedError

    def apply(self, change: Change) -> None:
        """Take over a row's chunks. Called by the writer thread only; idempotent. Never raises for the disk: the index
        goes to FAILED with a message instead (the record is committed already) and keeps its watermark."""
        raise NotImplementedError

    def search(
        self,
        query: npt.NDArray[np.float32],
        selection: Selection,
        k: int,
        *,
        exact: bool = False,
        deadline: Deadline = NO_DEADLINE,
    ) -> VectorHits:
        """The ``k`` nearest memories of the selection to ``query`` (float32[dimension], unit length); best chunk per
        memory. ``exact`` scans every vector. Raises IndexUnavailableError, DeadlineExceededError, CancelledError."""
        raise NotImplementedError

    def cosines(
        self, query: npt.NDArray[np.float32], rids: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
        """(float64[n], int32[n]): each rid's cosine and best chunk number; NaN and -1 where it has no vector."""
        raise NotImplementedError

    def flush(self) -> None:
        """Make the state durable: ``durable_watermark`` becomes the watermark as of the call. Any thread. Raises
        StorageFullError or StorageFailedError; the index goes on in memory."""
        raise NotImplementedError

    def rebuild(
        self,
        changes: Iterator[Change],
        total: int = 0,
        progress: Callable[[int, int], None] | None = None,
        *,
        revision: int = 0,
    ) -> None:
        """Build anew from the store's rows beside the present files, then swap. What ``apply`` brings meanwhile is in
        the result. ``total``: expected changes, for ``progress(done, total)``. ``revision``: the snapshot's revision
        the changes were read at; the watermark becomes at least this."""
        raise NotImplementedError

    def status(self) -> IndexStatus:
        """State, watermarks, counts (in vectors), bytes on disk, stamp, message."""
        raise NotImplementedError

    def close(self) -> None:
        """Flush, stop the upkeep thread and its child, close files. Idempotent."""
        raise NotImplementedError
