"""The thresholds of the vector index, in one frozen record. Defaults come from measurements at 220,000 vectors of 384
dimensions on two cores; tests make them small."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["VectorTuning"]


@dataclass(frozen=True, slots=True)
class VectorTuning:
    """When to scan, when to walk the graph, when to extend it, when to begin anew. Counts are vectors (chunks), shares
    are 0..1."""

    small_limit: int = 8_000  #: a selection of at most so many vectors is scanned
    exact_limit: int = 25_000  #: so is one of so many, when that is less than half of what the graph knows
    graph_min: int = 8_000  #: fewer live vectors than this need no graph
    tail_share: float = 0.02  #: extend the graph when more than this share of the vectors is outside it ...
    tail_min: int = 2_000  #: ... and at least so many ...
    tail_max: int = 8_000  #: ... or when so many are, whatever the share
    overdue_min: int = 24_000  #: while changes go on, wait for so many, which are scanned in a millisecond, ...
    overdue_share: float = 0.05  #: ... or for this share, since each extension writes the whole graph
    dead_share: float = 0.10  #: begin a new generation when more than this share of the rows is dead ...
    dead_min: int = 1_024  #: ... and at least so many
    over_fetch: float = 1.5  #: selected rows that a first look must bring = k times this (and the chunks of a memory)
    near: int = 192  #: rows that a first look keeps (ef), at least
    near_most: int = 512  #: ... and at most, so that enough of what it keeps is selected
    some: int = 384  #: rows that a second look keeps, at least ...
    some_fetch: int = 4  #: ... and at least so many times the rows wanted
    wide: int = 1_536  #: as ``some``, where few rows near the question are selected
    wide_fetch: int = 16  #: as ``some_fetch``, where few rows near the question are selected
    wide_share: float = 0.004  #: ... and at least this share of what the graph knows
    thin_share: float = 0.15  #: a selection of less than this share of the graph's rows is walked so wide always
    lost_met: float = 9.0  #: who meets so many times what a first look keeps is far from everything ...
    lost_far: float = 2.5  #: ... or whose nearest row is nearer to its own neighbours by so much ...
    lost_most: int = 8  #: ... and is looked for up to so many times wider, until the best stay the same, ...
    lost_floor: float = 0.2  #: ... unless even the nearest row's cosine is below this: nothing has to do with it
    kept_cost: int = 24  #: keeping one row on a second look costs as much as scanning so many vectors
    worth: int = 2_000  #: memories of which a scan is worth being handed to another thread
    cores: int = 0  #: processors that searches may use; 0 = those that the process may
    connectivity: int = 16  #: edges of a graph node (M)
    expansion_add: int = 128  #: beam width when building (efConstruction)
    build_threads: int = 1  #: threads of the building child process
    build_batch: int = 1_024  #: vectors between two looks at whether the parent still lives
    settle_seconds: float = 2.0  #: a renewal waits for so long without a change, or until it is overdue
    retry_seconds: float = 60.0  #: pause after a renewal that failed
