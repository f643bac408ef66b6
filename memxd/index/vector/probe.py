"""How one question is answered: by scanning every allowed vector, or by the graph and one look at its candidates.

A small selection is scanned. A large one asks the graph once for more candidates than wanted (by how selective the
selection is), adds the rows the graph does not know, and scores all of them with the dot kernel; when fewer than ``k``
memories come out, the selection is scanned after all: asking the graph for ever more loses recall when a filter goes
with a topic. Every cosine is the kernel's, so both ways answer the same numbers. Used by ``VectorIndex``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
    wanted = 0 if exact else _candidates_worth(tuning, snapshot, len(selection), k)
    if wanted and snapshot.graph is not None:
        rows = snapshot.graph.candidates(query, wanted, deadline)
        rids = _survivors(snapshot, snapshot.graph, rows, selection)
        found = dot.search_rids(query, view.matrix, view.head, view.after, rids, k)
        if len(found[0]) >= min(k, len(selection)):
            return _hits(view, found)
        deadline.check()
    return _hits(view, dot.search_rids(query, view.matrix, view.head, view.after, selection.rids, k))


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


def _candidates_worth(tuning: VectorTuning, snapshot: Snapshot, selected: int, k: int) -> int:
    """How many candidates to ask of the graph; 0 = scanning is cheaper, or there is no graph."""
    graph = snapshot.graph
    per_memory = snapshot.live / max(1, snapshot.memories)
    allowed = min(float(snapshot.live), selected * per_memory)
    if graph is None or allowed <= tuning.exact_limit:
        return 0
    share = min(1.0, allowed / max(1, graph.entries))
    wanted = math.ceil(k * per_memory * tuning.over_fetch / share)
    return wanted if wanted * tuning.probe_cost < allowed else 0


def _survivors(
    snapshot: Snapshot, graph: Graph, rows: npt.NDArray[np.int64], selection: Selection
) -> npt.NDArray[np.int32]:
    """Distinct rids of live, selected candidates, and of every selected memory whose rows the graph does not know."""
    view = snapshot.view
    rids = np.concatenate([view.rids[rows], view.rids[graph.rows : snapshot.count]])
    if len(rids) > 1024:
        selection.mask  # noqa: B018 - many look-ups: make the mask, which the selection keeps
    rids = np.sort(rids[selection.contains(rids)])
    distinct = np.ones(len(rids), np.bool_)  # np.unique takes twenty times as long on nearly sorted integers
    np.not_equal(rids[1:], rids[:-1], out=distinct[1:])
    return rids[distinct]


def _hits(
    view: RowView, found: tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], npt.NDArray[np.int32]]
) -> VectorHits:
    rids, cosines, rows = found
    return VectorHits(rids, cosines.astype(np.float64), view.chunks[rows])
