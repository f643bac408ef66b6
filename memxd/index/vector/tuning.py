"""The thresholds of the vector index, in one frozen record. Defaults come from measurements at 220,000 vectors of 384
dimensions on two cores; tests make them small."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["VectorTuning"]


@dataclass(frozen=True, slots=True)
class VectorTuning:
    """When to scan, when to walk the graph, when to rebuild it. Counts are vectors (chunks), shares are 0..1."""

    views: int = 2  #: graph searches that run at once; more wait for a view
    exact_limit: int = 25_000  #: a selection of at most so many vectors is scanned
    graph_min: int = 25_000  #: fewer live vectors than this need no graph
    tail_share: float = 0.05  #: rebuild when more than this share of the vectors is outside the graph ...
    tail_min: int = 4_000  #: ... and at least so many
    dead_share: float = 0.10  #: rebuild when more than this share of the rows is dead ...
    dead_min: int = 1_024  #: ... and at least so many
    over_fetch: float = 1.5  #: candidates asked of the graph = k / selectivity times this
    probe_cost: float = 50.0  #: one graph candidate costs as much as scanning so many vectors
    connectivity: int = 16  #: edges of a graph node (M)
    expansion_add: int = 128  #: beam width when building (efConstruction)
    expansion_search: int = 128  #: beam width when searching (ef)
    build_threads: int = 1  #: threads of the building child process
    build_batch: int = 1_024  #: vectors between two looks at whether the parent still lives
    settle_seconds: float = 2.0  #: a rebuild waits for so long without a change, or until it is overdue
    retry_seconds: float = 60.0  #: pause after a rebuild that failed
