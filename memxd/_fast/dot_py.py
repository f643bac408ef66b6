"""Cosine by dot product of unit vectors: a float32 query against float16 rows of one flat matrix.

The plain twin and oracle of ``_dot.pyx``; both answer the same bits. The sum is canonical: sixteen float32 lanes,
lane j adds ``query[i] * row[i]`` (product rounded, then added, no FMA) for i = j, j + 16, ... in order; then lane j
adds lane j + 8, j + 4, j + 2, j + 1. Knows row numbers, chains of rows per rid, graphs over rows, and nothing of files.
Called by ``index/vector``. A NaN never counts as a match.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memxd._fast.arrays import F32, I32, U8
from memxd._fast.dot_math import F16, dot_rows
from memxd._fast.dot_walk import Effort, GraphArrays, Walk
from memxd._fast.helpers import Helpers

__all__ = ["Effort", "GraphArrays", "Helpers", "best_by_rid", "dot_rows", "search_graph", "search_rids"]


def best_by_rid(
    query: F32, matrix: F16, head: I32, after: I32, numbers: I32, rids: I32, /
) -> tuple[NDArray[np.float64], I32]:
    """(float64[m], int32[m]): the best cosine of each of ``rids`` and the number of its row; NaN and -1 where it has no
    vector.

    ``head`` (int32[by rid]) is the first row of a rid or -1, ``after`` (int32[by row]) the next row of the same rid or
    -1, ``numbers`` (int32[by row]) what to answer of a row. Of equal cosines the earlier row in the chain counts. Rids
    outside ``head`` and rows outside the matrix have no vector.
    """
    best, rows = _best_rows(query, matrix, head, after[: numbers.shape[0]], rids)
    told = np.full(rids.shape[0], -1, np.int32)
    told[rows >= 0] = numbers[rows[rows >= 0]]
    return best.astype(np.float64), told


def _best_rows(query: F32, matrix: F16, head: I32, after: I32, rids: I32) -> tuple[F32, I32]:
    """The best cosine of each rid and its row; NaN and -1 where it has no vector."""
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
    cosine, rows = _best_rows(query, matrix, head, after, rids)
    found = np.flatnonzero(rows >= 0)
    order = found[np.lexsort((rids[found], -cosine[found]))][:k]
    return rids[order], cosine[order], rows[order]


def search_graph(
    query: F32,
    matrix: F16,
    head: I32,
    after: I32,
    by_row: I32,
    graph: GraphArrays,
    mask: U8,
    rids: I32,
    tail_end: int,
    k: int,
    effort: Effort,
    /,
) -> tuple[I32, F32, I32, int]:
    """About the best ``k`` (>= 0) selected rids, as ``search_rids`` answers them, and how many vectors were compared.

    A walk over ``graph`` (HNSW's search: Malkov & Yashunin 2018, algorithms 2 and 5) looks first among all rows. When
    too few of what it finds is selected, it looks again among selected rows only, going through neighbours that are not
    (as ACORN-1, Patel et al. 2024), from what it found and from a spread of the selection. The rids of the found rows,
    and of the rows that the graph does not know (up to ``tail_end``), are then compared by their best rows.

    ``by_row``: int32[by row], whose a row is, -1 = dead. ``mask``: uint8[by rid], 1 = selected; ``rids``: the selected
    ones, int32[m]. More than ``effort.budget`` comparisons mean that the walk was cut short. Raises ValueError for a
    query of another length, more than 256 links a row, or ``near`` below 1.
    """
    end = min(tail_end, matrix.shape[0], after.shape[0], by_row.shape[0])
    limit, capacity = max(0, min(k, rids.shape[0])), min(mask.shape[0], head.shape[0])
    fits = query.shape[0] == matrix.shape[1] and graph.links.shape[1] <= 256
    if not fits or effort.near < 1:
        raise ValueError("the query has another length than a row, the graph too many links, or the beam is below 1")
    if limit == 0 or end <= 0 or not matrix.shape[1] or not capacity:
        return (*search_rids(query, matrix, head, after, rids, 0), 0)
    nodes = min(graph.links.shape[0], graph.at.shape[0], end)
    walk = Walk(query, matrix, head, by_row[:end], graph, mask[:capacity], nodes, effort)
    found = [*walk.look(rids), *range(nodes, end)]
    wanted = dict.fromkeys(int(by_row[row]) for row in found if walk.selected(row))
    asked = np.array(list(wanted), np.int32)
    return (*search_rids(query, matrix, head, after, asked, limit), walk.scored)
