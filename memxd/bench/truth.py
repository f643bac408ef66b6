"""What a store holds, independent of memxd, and the nearest of it by numpy.

Owns reading the stores' recipe again (vectors as the store keeps them, in half precision; tags) and exact nearest
neighbours in float32, block by block. Uses no code of the indexes. Called by the questions about vectors and filters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memxd.bench.stores import records
from memxd.errors import MemxdError

if TYPE_CHECKING:
    from memxd.bench.context import Bench

Float32 = NDArray[np.float32]
_BLOCK = 20_000


@dataclass(frozen=True, slots=True)
class Stored:
    """``vectors`` float16[size, d] and ``tags`` of the records of a store, in the order they were stored."""

    vectors: NDArray[np.float16]
    tags: list[tuple[str, ...]]

    @classmethod
    def of(cls, bench: Bench, size: int) -> Stored:
        """Of the store with ``size`` records."""
        vectors = np.empty((size, bench.vectors.dimension), np.float16)
        tags = []
        for number, item in enumerate(records(bench.recipe(size))):
            if isinstance(item, MemxdError):
                raise item
            tags.append(item[1].tags)
            vectors[number] = item[1].vector
        return cls(vectors, tags)

    @property
    def size(self) -> int:
        """How many records."""
        return len(self.tags)

    def passing(self, tag: str) -> NDArray[np.bool_]:
        """bool[size]: which records carry the tag; "" = all."""
        return np.fromiter((not tag or tag in tags for tags in self.tags), np.bool_, self.size)


def nearest(
    vectors: NDArray[np.float16], queries: Float32, depth: int, passing: NDArray[np.bool_] | None = None
) -> Float32:
    """float32[q, depth]: the largest dot products of each query with the vectors that pass, descending; -inf where
    there are fewer. ``vectors`` float16[n, d], ``queries`` float32[q, d], ``passing`` bool[n]."""
    best = np.full((len(queries), depth), -np.inf, np.float32)
    for first in range(0, len(vectors), _BLOCK):
        block = vectors[first : first + _BLOCK]
        if passing is not None:
            block = block[passing[first : first + _BLOCK]]
        if not len(block):
            continue
        scores = np.concatenate([best, queries @ block.astype(np.float32).T], axis=1)
        best = -np.partition(-scores, depth - 1, axis=1)[:, :depth]
    return -np.sort(-best, axis=1)
