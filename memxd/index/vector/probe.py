"""How one question is answered: by comparing every allowed vector, or by a walk through the graph.

A small selection is scanned. A large one is asked of the graph, in one kernel call that also compares the rows the
graph does not know; the kernel looks again, and wider, when few rows near the question are selected. When fewer than
``k`` memories come out, or the walk costs as much as a scan, the selection is scanned after all. Every cosine is the
kernel's, so both ways answer the same numbers. Used by ``VectorIndex``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memxd._fast.dot_py import Effort
from memxd._fast.protocols import DotKernel
from memxd.index.selection import Selection
from memxd.index.vector.graph import Graph
from memxd.index.vector.hits import VectorHits
from memxd.index.vector.rows import Rows, RowView
from memxd.index.vector.tuning import VectorTuning
from memxd.model import Deadline

__all__ = ["Snapshot", "plausible", "search"]

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


def search(
    dot: DotKernel,
    tuning: VectorTuning,
    snapshot: Snapshot,
    query: npt.NDArray[np.float32],
    selection: Selection,
    k: int,
    exact: bool,
    deadline: Deadline,
) -> VectorHits:
    """The ``k`` nearest memories of the selection; see ``VectorIndex.search``."""
    if not len(selection) or k <= 0 or not snapshot.live:
        return VectorHits.empty()
    deadline.check()
    view = snapshot.view
    effort = None if exact else _effort(tuning, snapshot, len(selection), k)
    if effort is not None and snapshot.graph is not None:
        rids, cosines, rows, compared = dot.search_graph(
            query,
            view.matrix,
            view.head,
            view.after,
            view.rids,
            snapshot.graph.arrays,
            selection.mask,
            selection.rids,
            snapshot.count,
            k,
            effort,
        )
        if compared <= effort.budget and len(rids) >= min(k, len(selection)):
            return VectorHits(rids, cosines.astype(np.float64), view.chunks[rows])
        deadline.check()
    rids, cosines, rows = dot.search_rids(query, view.matrix, view.head, view.after, selection.rids, k)
    return VectorHits(rids, cosines.astype(np.float64), view.chunks[rows])


def plausible(snapshot: Snapshot, selection: Selection, k: int, hits: VectorHits) -> bool:
    """False when the file no longer holds the unit vectors that were written to it: a cosine beyond 1, or memories that
    have a vector and yet no cosine."""
    if (np.abs(hits.cosines) > _LARGEST).any():
        return False
    if len(hits.rids) >= min(k, len(selection)):
        return True
    head = snapshot.view.head
    first = head[selection.rids[selection.rids < len(head)]]
    return len(hits.rids) >= min(k, int(np.count_nonzero((first >= 0) & (first < snapshot.count))))


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
    # A vector met on a walk costs about two of a scan.
    return Effort(near, some, wide, needed, budget=int(allowed / 2), share=share)
