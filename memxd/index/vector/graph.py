"""An immutable USearch graph over the first rows of a generation, opened once per concurrent search.

Calls on one USearch object run one at a time and a view takes no additions, hence a pool of views over one mapped file.
Owns the pool and the check of the file before it is mapped (a damaged graph would crash the process). What it answers
are candidates only: rows by about their nearness, dead ones among them. Used by ``probe`` and ``VectorIndex``.
"""

from __future__ import annotations

import queue
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memxd.index.durable import Watched, block_sums
from memxd.index.vector.manifest import GraphFile, ManifestError
from memxd.index.vector.tuning import VectorTuning
from memxd.model import Deadline
from memxd.native import Index

__all__ = ["Graph"]


class Graph:
    """A pool of views. ``rows``: the graph covers row numbers below this; ``entries`` of them are in it."""

    def __init__(self, directory: Path, file: GraphFile, dimension: int, tuning: VectorTuning) -> None:
        """Check and map. Raises ManifestError when the file is damaged, OSError when it is not there."""
        self.file = file
        self.rows = file.rows
        self.entries = file.entries
        path = directory / file.name
        self._watched = Watched(path)
        raw = np.memmap(path, np.uint8, mode="r") if path.stat().st_size else np.empty(0, np.uint8)
        if len(raw) != file.size or block_sums(raw.view(np.ndarray)) != file.sums:
            raise ManifestError("the graph file is damaged")
        self._views: queue.SimpleQueue[Index] = queue.SimpleQueue()
        for _ in range(tuning.views):
            self._views.put(_view(path, dimension, tuning))

    def whole(self) -> bool:
        """False when somebody cut the file short: it may not be searched then."""
        return self._watched.holds()

    def candidates(self, query: npt.NDArray[np.float32], count: int, deadline: Deadline) -> npt.NDArray[np.int64]:
        """Up to ``count`` rows near the query. Waits for a free view; raises what the deadline raises."""
        try:
            view = self._views.get(timeout=deadline.remaining())
        except queue.Empty:
            deadline.check()
            raise
        try:
            return view.search(query, min(count, self.entries), threads=1).keys.astype(np.int64)
        finally:
            self._views.put(view)


def _view(path: Path, dimension: int, tuning: VectorTuning) -> Index:
    index = Index(
        ndim=dimension,
        metric="cos",
        dtype="f16",
        connectivity=tuning.connectivity,
        expansion_add=tuning.expansion_add,
        expansion_search=tuning.expansion_search,
    )
    index.view(str(path))
    return index
