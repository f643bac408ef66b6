"""Cosine by dot product of unit vectors: a float32 query against float16 rows of one flat matrix.

The plain twin and oracle of ``_dot.pyx``; both answer the same bits. The sum is canonical: sixteen float32 lanes,
lane j adds ``query[i] * row[i]`` (product rounded, then added, no FMA) for i = j, j + 16, ... in order; then lane j
adds lane j + 8, j + 4, j + 2, j + 1. Knows row numbers, chains of rows per rid, graphs over rows, and nothing of files.
Called by ``index/vector``. A NaN never counts as a match.
"""

from __future__ import annotations

import heapq
import math
import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memxd._fast.arrays import F32, I32, U8
from memxd._fast.helpers import Helpers

__all__ = ["Effort", "GraphArrays", "Helpers", "best_by_rid", "dot_rows", "search_graph", "search_rids"]

F16 = NDArray[np.float16]

LANES = 16
#: How many rows of a selection a walk through it begins from.
SPREAD = 64


class GraphArrays(NamedTuple):
    """A navigable small-world graph over the first rows of a matrix. A link that is negative or names no row is none.

    ``links``: int32[n, m <= 256], the neighbours of each row on level 0. ``at``: int32[n], where in ``upper`` the
    neighbours of a row on level 1 stand, those on its higher levels following; -1 = it is on level 0 only. ``upper``:
    int32[blocks, u]. ``entry``: the row where a walk begins, on level ``levels``.
    """

    links: I32
    at: I32
    upper: I32
    entry: int
    levels: int


class Effort(NamedTuple):
    """How hard a walk looks. ``near`` (>= 1), ``some``, ``wide``: how many rows it keeps at the first look, at a second
    one, and at a second one when fewer than half of the expected rows near the question are selected; below 1 = such a
    second look is not worth while, and the walk ends as if beyond its budget with nothing found. ``needed``:
    selected rows that make a second look superfluous. ``budget``: vectors compared after which it stops. ``share``:
    which part (0..1) of the graph's rows is selected.

    A question that is far from all rows has many that are about equally near. It is taken for such when its first look
    has compared more than ``many`` vectors, or when the nearest row is more than ``far`` times as far from it as, on
    the average, from its own neighbours (far = 1 - cosine). Its first look then goes on with a beam twice as wide, up
    to ``most``, until the best ``near / 2`` rows stay the same; a second look is of ``wide``."""

    near: int
    some: int
    wide: int
    needed: int
    budget: int
    share: float
    many: int = sys.maxsize
    far: float = math.inf
    most: int = 0


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
    walk = _Walk(query, matrix, head, by_row[:end], graph, mask[:capacity], nodes, effort)
    found = [*walk.look(rids), *range(nodes, end)]
    wanted = dict.fromkeys(int(by_row[row]) for row in found if walk.selected(row))
    asked = np.array(list(wanted), np.int32)
    return (*search_rids(query, matrix, head, after, asked, limit), walk.scored)


class _Walk:
    """One walk: what was met, what is open (a heap, nearest first), what was found (a heap, farthest first)."""

    def __init__(
        self, query: F32, matrix: F16, head: I32, by_row: I32, graph: GraphArrays, mask: U8, nodes: int, effort: Effort
    ) -> None:
        self._query, self._matrix, self._head, self._by_row = query, matrix, head, by_row
        self._graph, self._mask, self._nodes, self._effort = graph, mask, nodes, effort
        self._through = False
        self._beam = effort.near
        self.scored = 0
        self._met: set[int] = set()
        self._open: list[tuple[float, int]] = []  # (-cosine, row)
        self._found: list[tuple[float, int]] = []  # (cosine, -row)
        self._offered: list[tuple[float, int]] = []  # all that ever was, likewise
        self._looked_at: set[int] = set()

    def look(self, rids: I32) -> list[int]:
        """The rows found, in no order."""
        if not 0 <= self._graph.entry < self._nodes:
            return []
        effort = self._effort
        self._begin_at(self._descend())
        self._spread()
        lost = bool(self._found) and self._lost(-max(self._found)[1])
        selected, enough = self._selected_found()
        if lost and enough and len(selected) >= effort.needed and effort.most > min(effort.near, self._nodes):
            self._look_wider()
            lost, (selected, enough) = False, self._selected_found()
        if not lost and enough and len(selected) >= effort.needed:
            return selected
        self._beam = effort.some if enough and not lost else effort.wide
        if self._beam < 1:
            self.scored = effort.budget + 1
            return []
        nearest = -max(self._found)[1] if self._found else self._graph.entry
        self._through = True
        self._met, self._open, self._found = set(), [], []
        for row in (nearest, *selected):
            self._begin_at(row)
        for i in range(SPREAD):
            rid = int(rids[i * len(rids) // SPREAD])
            if 0 <= rid < len(self._mask):
                self._begin_at(int(self._head[rid]))
        self._spread()
        return [-row for _, row in self._found]

    def selected(self, row: int) -> bool:
        """Alive, and its rid let through."""
        rid = int(self._by_row[row])
        return 0 <= rid < len(self._mask) and bool(self._mask[rid])

    def _selected_found(self) -> tuple[list[int], bool]:
        """The selected ones of the found rows, and whether they are at least half as many as could be expected."""
        selected = [-row for _, row in self._found if self.selected(-row)]
        return selected, 2.0 * len(selected) >= self._effort.share * len(self._found)

    def _look_wider(self) -> None:
        """Twice the beam, as if it had been so wide from the beginning, until the best stay the same."""
        rank = max(1, min(self._effort.near, self._nodes) // 2)
        best = sorted(self._found)[-rank:]
        while self._beam < (beam := min(2 * self._beam, self._effort.most, self._nodes)):
            if self.scored > self._effort.budget:
                return
            self._beam, before = beam, best
            self._found = sorted(self._offered)[-beam:]
            self._open = [(-cosine, -row) for cosine, row in self._offered if -row not in self._looked_at]
            heapq.heapify(self._open)
            self._spread()
            best = sorted(self._found)[-rank:]
            if best == before:
                return

    def _lost(self, row: int) -> bool:
        """Whether the question is far from everything; ``row`` is the nearest one."""
        effort = self._effort
        if self.scored > effort.budget:
            return False
        if self.scored > effort.many:
            return True
        if not effort.far < math.inf:
            return False
        links = self._graph.links[row]
        links = links[(links >= 0) & (links < self._nodes)]
        place = self._matrix[row].astype(np.float32)
        cosines = [c for c in dot_rows(place, self._matrix, links).tolist() if c == c]
        self.scored += len(cosines)
        own = float(dot_rows(self._query, self._matrix, np.array([row], np.int32))[0])
        total = 0.0
        for cosine in cosines:  # one by one: ``sum`` compensates for rounding
            total += cosine
        return bool(cosines) and 1.0 - own > effort.far * (1.0 - total / len(cosines))

    def _cosine(self, row: int) -> float:
        self.scored += 1
        return float(dot_rows(self._query, self._matrix, np.array([row], np.int32))[0])

    def _descend(self) -> int:
        graph, here = self._graph, self._graph.entry
        best = (self._cosine(here), -here)
        for level in range(graph.levels, 0, -1):
            while True:
                here = -best[1]
                block = int(graph.at[here]) + level - 1
                if graph.at[here] < 0 or block >= graph.upper.shape[0]:
                    break
                for row in graph.upper[block].tolist():
                    if 0 <= row < self._nodes:
                        other = (self._cosine(row), -row)
                        best = max(best, other) if other[0] == other[0] else best
                if -best[1] == here or self.scored > self._effort.budget:
                    break
        return -best[1]

    def _begin_at(self, row: int) -> None:
        if 0 <= row < self._nodes and row not in self._met:
            self._met.add(row)
            self._offer(row, self._cosine(row), not self._through or self.selected(row))

    def _offer(self, row: int, cosine: float, counts: bool) -> None:
        full = len(self._found) == self._beam
        self._offered += [(cosine, -row)] if cosine == cosine else []
        if cosine != cosine or (full and (cosine, -row) <= self._found[0]):
            return
        heapq.heappush(self._open, (-cosine, row))
        if counts:
            heapq.heappush(self._found, (cosine, -row))
            if full:
                heapq.heappop(self._found)

    def _gather(self, row: int) -> list[int]:
        batch: list[int] = []
        detour: list[int] = []
        for other in self._graph.links[row].tolist():
            if 0 <= other < self._nodes and other not in self._met:
                self._met.add(other)
                (batch if not self._through or self.selected(other) else detour).append(other)
        for via in detour:
            for other in self._graph.links[via].tolist():
                if 0 <= other < self._nodes and other not in self._met and self.selected(other):
                    self._met.add(other)
                    batch.append(other)
        return batch

    def _spread(self) -> None:
        while self._open and self.scored <= self._effort.budget:
            distance, row = heapq.heappop(self._open)
            if len(self._found) == self._beam and self._found[0] > (-distance, -row):
                break
            self._looked_at.add(row)
            for other in self._gather(row):
                self._offer(other, self._cosine(other), True)
