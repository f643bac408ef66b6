"""Cosine by dot product of unit vectors: a float32 query against float16 rows of one flat matrix.

The plain twin and oracle of ``_dot.pyx``; both answer the same bits. The sum is canonical: sixteen float32 lanes,
lane j adds ``query[i] * row[i]`` (product rounded, then added, no FMA) for i = j, j + 16, ... in order; then lane j
adds lane j + 8, j + 4, j + 2, j + 1. Knows row numbers, chains of rows per rid, and nothing of files. Called by
``index/vector``. A NaN never counts as a match.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memxd._fast.arrays import F32, I32

__all__ = ["best_by_rid", "dot_rows", "search_rids"]

F16 = NDArray[np.float16]

LANES = 16


def dot_rows(query: F32, matrix: F16, rows: I32, /) -> F32:
    """float32[m]: the dot product of ``query`` (float32[d]) with ``matrix`` (float16[n, d]) at each of ``rows``
    (int32[m]); NaN where a row is negative or >= n."""
    count, width = matrix.shape
    inside = (rows >= 0) & (rows < count)
    lanes = np.zeros((rows.shape[0], LANES), np.float32)
    with np.errstate(invalid="ignore", over="ignore"):  # infinities in a damaged row make NaN: no match
        values = matrix[rows[inside]].astype(np.float32)
        part = np.zeros((values.shape[0], LANES), np.float32)
        for start in range(0, width, LANES):
            stop = min(start + LANES, width)
            part[:, : stop - start] += query[start:stop] * values[:, start:stop]
        lanes[inside] = part
        step = LANES // 2
        while step:
            lanes[:, :step] += lanes[:, step : 2 * step]
            step //= 2
    out = lanes[:, 0].copy()
    out[~inside] = np.nan
    return out


def best_by_rid(query: F32, matrix: F16, head: I32, after: I32, rids: I32, /) -> tuple[F32, I32]:
    """(float32[m], int32[m]): the best cosine of each of ``rids`` and its row; NaN and -1 where it has no vector.

    ``head`` (int32[by rid]) is the first row of a rid or -1, ``after`` (int32[by row]) the next row of the same rid or
    -1. Of equal cosines the earlier row in the chain counts. Rids outside ``head`` and rows outside the matrix have no
    vector.
    """
    count = min(matrix.shape[0], after.shape[0])
    best = np.full(rids.shape[0], np.nan, np.float32)
    where = np.full(rids.shape[0], -1, np.int32)
    inside = (rids >= 0) & (rids < head.shape[0])
    rows = np.full(rids.shape[0], -1, np.int32)
    rows[inside] = head[rids[inside]]
    at = np.flatnonzero((rows >= 0) & (rows < count))
    while at.size:
        cosine = dot_rows(query, matrix, rows[at])
        better = (cosine > best[at]) | (np.isnan(best[at]) & ~np.isnan(cosine))
        best[at[better]] = cosine[better]
        where[at[better]] = rows[at[better]]
        rows[at] = after[rows[at]]
        at = at[(rows[at] >= 0) & (rows[at] < count)]
    return best, where


def search_rids(query: F32, matrix: F16, head: I32, after: I32, rids: I32, k: int, /) -> tuple[I32, F32, I32]:
    """The best ``k`` (>= 0) of ``rids`` (int32[m], distinct, any order) by (cosine descending, rid ascending).

    Answers (rids int32[j], cosine float32[j], row int32[j]) with j = min(k, rids that have a vector). Chains as in
    ``best_by_rid``.
    """
    cosine, rows = best_by_rid(query, matrix, head, after, rids)
    found = np.flatnonzero(rows >= 0)
    order = found[np.lexsort((rids[found], -cosine[found]))][:k]
    return rids[order], cosine[order], rows[order]
