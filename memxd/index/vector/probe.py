"""How one question is answered: by comparing every allowed vector, or by a walk through the graph.

A small selection is scanned. A large one is asked of the graph, in one kernel call that also compares the rows the
graph does not know; the kernel looks again, and wider, when few rows near the question are selected. When fewer than
``k`` memories come out, or the walk costs as much as a scan, the selection is scanned after all. Every cosine is the
kernel's, so both ways answer the same numbers. Used by ``VectorIndex``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from memxd._fast.dot_py import Effort
from memxd._fast.protocols import DotKernel, Helpers, Look
from memxd.index.selection import Selection
from memxd.index.vector.graph import Graph
from memxd.index.vector.hits import VectorHits
from memxd.index.vector.rows import Rows, RowView
from memxd.index.vector.tuning import VectorTuning
from memxd.model import Deadline

__all__ = ["Probe", "Snapshot"]

Int32: TypeAlias = npt.NDArray[np.int32]
#: A cosine of unit vectors in half precision, with room for rounding.
_LARGEST = 1.01


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a search works on: rows, how many are used and alive, of how many memories, and the graph, if any."""

    view: RowView
    count: int
    live: int
    memories: int
    graph: Graph | None

    @classmethod
    def of(cls, rows: Rows, graph: Graph | None) -> Snapshot:
        """Of this moment."""
        return cls(rows.view(), rows.count, rows.live, rows.memories, graph)


class Probe:
    """One search under way: the ``k`` nearest memories of the selection to ``query``; see ``VectorIndex.search``.

    ``finish`` once. After ``hand_over`` has answered True, ``finish`` or ``drop`` has to follow.
    """

    __slots__ = ("_deadline", "_dot", "_effort", "_k", "_look", "_query", "_selection", "_snapshot")

    def __init__(
        self,
        dot: DotKernel,
        tuning: VectorTuning,
        snapshot: Snapshot,
        query: npt.NDArray[np.float32],
        selection: Selection,
        k: int,
        exact: bool,
        deadline: Deadline,
    ) -> None:
        self._dot, self._snapshot, self._query, self._selection = dot, snapshot, query, selection
        self._k, self._deadline = k, deadline
        self._effort = None if exact or snapshot.graph is None else _effort(tuning, snapshot, len(selection), k)
        self._look: Look | None = None

    def hand_over(self, helpers: Helpers, least: int) -> bool:
        """Whether another thread does it. A scan of fewer than ``least`` memories is not worth that."""
        if self._k <= 0 or not self._snapshot.live:
            return False
        self._deadline.check()
        if self._effort is not None:
            self._look = helpers.begin_graph(*self._of_graph(self._effort))
        elif len(self._selection) >= least:
            self._look = helpers.begin_rids(*self._of_rids())
        return self._look is not None

    def drop(self) -> None:
        """The answer is not wanted; nobody is at it any more when this returns."""
        if self._look is not None:
            self._look.drop()

    def finish(self) -> VectorHits:
        """The answer, waited for when it was handed over. Raises DeadlineExceededError, CancelledError."""
        if not len(self._selection) or self._k <= 0 or not self._snapshot.live:
            return VectorHits.empty()
        look, effort = self._look, self._effort
        if look is None:
            self._deadline.check()
        if effort is not None:
            rids, cosines, rows, compared = (
                self._dot.search_graph(*self._of_graph(effort)) if look is None else look.result()
            )
            if compared <= effort.budget and len(rids) >= min(self._k, len(self._selection)):
                return self._hits(rids, cosines, rows)
            self._deadline.check()
            look = None
        return self._hits(*(self._dot.search_rids(*self._of_rids()) if look is None else look.result()[:3]))

    def _of_graph(self, effort: Effort) -> tuple[Any, ...]:
        view, graph, selection = self._snapshot.view, self._snapshot.graph, self._selection
        arrays = graph.arrays if graph is not None else None  # there is one wherever there is an effort
        return (
            self._query, view.matrix, view.head, view.after, view.rids, arrays, selection.mask, selection.rids,
            self._snapshot.count, self._k, effort,
        )  # fmt: skip

    def _of_rids(self) -> tuple[Any, ...]:
        view = self._snapshot.view
        return self._query, view.matrix, view.head, view.after, self._selection.rids, self._k

    def _hits(self, rids: Int32, cosines: npt.NDArray[np.float32], rows: Int32) -> VectorHits:
        return VectorHits(rids, cosines.astype(np.float64), self._snapshot.view.chunks[rows])

    def plausible(self, hits: VectorHits) -> bool:
        """False when the file no longer holds the unit vectors that were written to it: a cosine beyond 1, or memories
        that have a vector and yet no cosine."""
        if (np.abs(hits.cosines) > _LARGEST).any():
            return False
        selected = self._selection.rids
        if len(hits.rids) >= min(self._k, len(selected)):
            return True
        head = self._snapshot.view.head
        first = head[selected[selected < len(head)]]
        return len(hits.rids) >= min(self._k, int(np.count_nonzero((first >= 0) & (first < self._snapshot.count))))


def _effort(tuning: VectorTuning, snapshot: Snapshot, selected: int, k: int) -> Effort | None:
    """How hard to look in the graph; None = scanning is cheaper, or there is no graph."""
    graph = snapshot.graph
    if graph is None:
        return None
    per_memory = snapshot.live / max(1, snapshot.memories)
    allowed = min(float(snapshot.live), selected * per_memory)
    share = min(1.0, allowed / max(1, graph.entries))
    if allowed <= (tuning.small_limit if share >= 0.5 else tuning.exact_limit):
        return None
    needed = math.ceil(k * per_memory * tuning.over_fetch)
    near = max(tuning.near, min(tuning.near_most, math.ceil(needed / share)))
    # Links between the rows of a thin selection are few, so it needs a wide walk in any case. And the farther the
    # question is from all that is selected, the more rows are about equally near: a part of all.
    wide = max(tuning.wide, tuning.wide_fetch * needed)
    some = wide if share < tuning.thin_share else max(tuning.some, tuning.some_fetch * needed)
    wide = max(wide, int(tuning.wide_share * graph.entries))
    some, wide = (0 if allowed < tuning.kept_cost * beam else beam for beam in (some, wide))
    if not some and near * share < needed:
        return None
    lost = (int(tuning.lost_met * near), tuning.lost_far, tuning.lost_most * near, tuning.lost_floor)
    # A vector met on a walk costs about two of a scan.
    return Effort(near, some, wide, needed, int(allowed / 2), share, *lost)
