"""What a vector search answers. Owns only the shape; made by ``VectorIndex``, read by the engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["VectorHits"]


@dataclass(frozen=True, slots=True)
class VectorHits:
    """The nearest memories by (cosine descending, rid ascending); three arrays of one length.

    ``rids``: int32. ``cosines``: float64 in about -1..1 (exact float32 values of the dot kernel). ``chunks``: int32,
    the number (from 0) of the memory's best chunk.
    """

    rids: npt.NDArray[np.int32]
    cosines: npt.NDArray[np.float64]
    chunks: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.rids)

    @classmethod
    def empty(cls) -> VectorHits:
        """No hit."""
        return cls(np.empty(0, np.int32), np.empty(0, np.float64), np.empty(0, np.int32))
