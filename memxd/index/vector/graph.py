"""An immutable graph over the first rows of a generation, mapped and ready to be walked by the dot kernel.

USearch builds it in a child process; what is mapped here are its links as flat arrays by row (``build.write_links``),
a seventh of USearch's own file, since the vectors lie in the flat file already. Any number of searches walk it at once.
The kernel checks every link, so a damaged file could not crash the process, but it would lose hits: hence the sums are
checked before use. Used by ``probe`` and ``Generation``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from memxd._fast.dot_py import GraphArrays
from memxd.index.durable import Watched, block_sums
from memxd.index.vector.manifest import GraphFile, ManifestError

__all__ = ["Graph"]


class Graph:
    """``rows``: the graph covers row numbers below this; ``entries`` of them are in it. ``arrays``: for the kernel."""

    def __init__(self, directory: Path, file: GraphFile) -> None:
        """Map and check. Raises ManifestError when the file is damaged, OSError when it is not there."""
        self.file = file
        self.rows = file.rows
        self.entries = file.entries
        path = directory / file.links
        self._watched = Watched(path)
        raw = np.memmap(path, np.uint8, mode="r") if self._watched.size else np.empty(0, np.uint8)
        level_0, upper = file.rows * file.fan, file.blocks * file.upper_fan
        fits = len(raw) == 4 * (level_0 + file.rows + upper)
        if not fits or (len(raw), *block_sums(raw.view(np.ndarray))) != file.links_sums:
            raise ManifestError("the graph file is damaged")
        numbers = raw.view(np.ndarray).view(np.int32)
        self.arrays = GraphArrays(
            links=numbers[:level_0].reshape(file.rows, file.fan),
            at=numbers[level_0 : level_0 + file.rows],
            upper=numbers[level_0 + file.rows :].reshape(file.blocks, file.upper_fan),
            entry=file.entry,
            levels=file.levels,
        )

    def whole(self) -> bool:
        """False when somebody cut the file short: it may not be searched then."""
        return self._watched.holds()
