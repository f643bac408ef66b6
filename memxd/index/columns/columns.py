"""The face of the columns (signatures first; the bodies follow)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memxd.index.columns.arrays import ColumnArrays
from memxd.index.selection import Selection
from memxd.model import Change, IndexStatus, View


class Columns:
    """Features of every row of every scope. One applier, any number of readers."""

    @classmethod
    def open(cls, directory: Path) -> Columns:
        """Load the snapshot in ``directory`` (made when missing). Damaged, missing or foreign: empty, watermark 0, a
        message in ``status()``; never raises for what lies there."""
        raise NotImplementedError

    @property
    def watermark(self) -> int:
        """The revision the columns reflect."""
        raise NotImplementedError

    @property
    def durable_watermark(self) -> int:
        """The revision that survives a crash."""
        raise NotImplementedError

    def apply(self, change: Change) -> None:
        """Take over a row's features. Called by the writer thread only; idempotent."""
        raise NotImplementedError

    def count_bump(self, counters: Iterable[tuple[int, int, int, int | None]]) -> None:
        """New absolute counters: (rid, access, retrieval, last_retrieved_at). Unknown rids are passed over. The
        watermark does not move."""
        raise NotImplementedError

    def select(
        self, scope_no: int | None, view: View, restrict: npt.NDArray[np.int32] | None = None
    ) -> Selection:
        """The rows of the scope that the view lets through, and that are in ``restrict`` (int32, any order) when given.

        ``filter.ids`` and ``filter.metadata`` are not evaluated here: the caller narrows by ``restrict``
        (``store.rids_matching``). An unknown scope (or None) has no rows."""
        raise NotImplementedError

    def arrays(self) -> ColumnArrays:
        """The present arrays. Taken after ``select``, they cover every selected rid."""
        raise NotImplementedError

    def flush(self) -> None:
        """Write the snapshot; ``durable_watermark`` becomes the watermark as of the call. Any thread. Raises
        StorageFullError or StorageFailedError."""
        raise NotImplementedError

    def rebuild(
        self,
        changes: Iterator[Change],
        total: int = 0,
        progress: Callable[[int, int], None] | None = None,
        *,
        revision: int = 0,
    ) -> None:
        """Fill anew from the store's rows, then swap; as ``VectorIndex.rebuild``."""
        raise NotImplementedError

    def status(self) -> IndexStatus:
        """State, watermarks, rows, bytes of the snapshot, stamp, message."""
        raise NotImplementedError

    def close(self) -> None:
        """Flush. Idempotent."""
        raise NotImplementedError
