"""The reranker in NumPy, as an honest peer of the kernel: whole-array operations, no Python loop.

Owns the formulas as a NumPy user would write them for speed: float64, as few passes as the formulas allow, partition
instead of a full sort. Called by ``rerank`` alone. Equal to the kernel but for the last bits of sums and of exp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Int32 = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Rows:
    """What a reranker reads, each array [n], row i = record i.

    ``semantic`` f64 0..1; ``reference`` i64 microseconds that ages count from; ``retrieval`` and ``access`` u32 counts;
    ``importance`` f32 0..1; ``mask`` u8; ``content_hash``, ``fold_hash``, ``tag_hash`` u64; ``type`` u8.
    """

    semantic: Float64
    reference: NDArray[np.int64]
    retrieval: NDArray[np.uint32]
    access: NDArray[np.uint32]
    importance: NDArray[np.float32]
    mask: NDArray[np.uint8]
    type: NDArray[np.uint8]
    content_hash: NDArray[np.uint64]
    fold_hash: NDArray[np.uint64]
    tag_hash: NDArray[np.uint64]

    def take(self, rows: Int32) -> Rows:
        """Only these rows."""
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in self.__slots__}
        return Rows(**columns)


def rrf(vector_rids: Int32, keyword_rids: Int32, n: int, k: int) -> Float64:
    """Reciprocal rank fusion of two ranked lists, f64 by rid: 1 / (k + rank), ranks from 1, summed."""
    fused = np.zeros(n)
    fused[vector_rids] += 1.0 / (k + np.arange(1, len(vector_rids) + 1))
    fused[keyword_rids] += 1.0 / (k + np.arange(1, len(keyword_rids) + 1))
    return fused


def rerank(
    rows: Rows, now: int, half_life: int, weights: tuple[float, float, float, float], k: int
) -> tuple[Int32, Float64, Float64]:
    """(row numbers, z, score) of the k best by the weighted sum of the four factors; z over all rows, then sigmoid."""
    age = np.maximum(now - rows.reference, 0)
    recency = np.exp2(age * (-1.0 / half_life))
    counts = np.where(rows.retrieval != 0, rows.retrieval, rows.access)
    frequency = np.minimum(np.log1p(counts) * 0.1, 1.0)
    raw = weights[0] * rows.semantic
    raw += weights[1] * recency
    raw += weights[2] * frequency
    raw += weights[3] * rows.importance
    mean, deviation = raw.mean(), raw.std()
    ordered = np.where(rows.mask != 0, raw, -np.inf)
    best = np.argpartition(-ordered, k)[:k] if k < len(ordered) else np.arange(len(ordered))
    best = best[np.lexsort((best, -ordered[best]))]
    z = (raw[best] - mean) / deviation if deviation > 0.0 else np.zeros(len(best))
    return best.astype(np.int32), z, 1.0 / (1.0 + np.exp(-z))


def fold(rows: Rows, best: Int32) -> Int32:
    """The best without repetitions of content or of folded text."""
    _, by_content = np.unique(rows.content_hash[best], return_index=True)
    kept = best[np.sort(by_content)]
    _, by_fold = np.unique(rows.fold_hash[kept], return_index=True)
    return kept[np.sort(by_fold)]
