"""The walk over a graph of the dot kernel's plain twin.

Owns the shapes of a graph and of how hard to look, and the walk itself, which walk.h does in the same order. Called by
``dot_py``, which says what comes of it.
"""

from __future__ import annotations

import heapq
import math
import sys
from typing import NamedTuple

import numpy as np

from memxd._fast.arrays import F32, I32, U8
from memxd._fast.dot_math import F16, dot_rows

__all__ = ["Effort", "GraphArrays", "Walk"]

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
    to ``most``, until the best ``near / 2`` rows stay the same; a second look is of ``wide``. Not when the nearest
    row's cosine is below ``floor``: nothing has to do with such a question, and in which order is worth no time."""

    near: int
    some: int
    wide: int
    needed: int
    budget: int
    share: float
    many: int = sys.maxsize
    far: float = math.inf
    most: int = 0
    floor: float = -math.inf


class Walk:
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
        own = float(dot_rows(self._query, self._matrix, np.array([row], np.int32))[0])
        if own < effort.floor:
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
