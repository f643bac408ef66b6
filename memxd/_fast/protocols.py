"""What each kernel module offers, as protocols: the types behind ``Kernels``.

Owns the signatures that the callers of kernels may rely on; each twin documents its functions. A protocol is
fulfilled by a module, compiled or not: mypy checks the twins against it, tests/fast the compiled ones. Adding a kernel
module adds its protocol here.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from memxd._fast.arrays import F32, F64, I32, I64, U8, U32, U64
from memxd._fast.dot_py import Effort, GraphArrays

#: Weights of semantic, recency, frequency and importance.
Weights = tuple[float, float, float, float]


class RankColumns(NamedTuple):
    """What ranking reads of each row: arrays by rid, which may be longer than needed, never shorter."""

    reference: I64  #: moment that recency counts from, microseconds since 1970
    retrieval: U32
    access: U32
    importance: F32  #: 0..1
    type: U8
    cjk: U8  #: share of the text in such script: 0 none, 1 some, 2 most of it
    content_hash: U64
    fold_hash: U64  #: 0 = none
    tag_hash: U64  #: 0 = none


class RankLegs(NamedTuple):
    """What both legs of a search found, best first, and each candidate's evidence in either leg."""

    vector_rids: I32  #: [a]
    vector_cosines: F64  #: [a]; NaN = no vector
    vector_bm25: F64 | None  #: [a] BM25 of the same rows, 0 = no word in common; None = 0 everywhere
    vector_match: F64 | None  #: [a] their word match, 0..1; None = 0 everywhere
    keyword_rids: I32  #: [b]
    keyword_cosines: F64 | None  #: [b] cosines of the same rows; None = NaN everywhere
    keyword_bm25: F64  #: [b]
    keyword_match: F64  #: [b]


class RankRules(NamedTuple):
    """Every number that decides an order; ``rank_py.rank_legs`` and ``rank_all`` tell what each does."""

    fusion: int  #: semantic factor: 1 = place in the band and words, 2 = RRF over its maximum, 3 = cosine
    vector_asked: bool
    keyword_asked: bool
    rrf_k: int
    vector_weight: float
    keyword_weight: float
    weights: Weights
    now: int  #: microseconds since 1970
    half_life: int  #: microseconds, >= 1
    normalise: bool  #: score = sigmoid of the z-score; else the raw score
    dedup: int  #: ``model.Dedup``: 1 off, 2 content, 3 content or type and tags, 4 content or folded text
    band: tuple[float, float]  #: cosines that are usual between unrelated and between related texts
    shifts: tuple[float, float, float]  #: taken off the cosine of a text of ``cjk`` 0, 1, 2
    word_share: float  #: of the word match in the keyword part, 0..1; the rest is BM25
    relevance: tuple[float, float, float]  #: intercept, slope of the place in the band, slope of the word match


class LegRanking(NamedTuple):
    """Ranked candidates: arrays of n in the order of ``rids`` (vector leg, then what only the keyword leg has)."""

    ids: NDArray[np.int32]  #: [5, n]: rids, vector_rank, keyword_rank (from 1, 0 = absent), order, folded_into
    kept: I32  #: positions best first, without folded ones
    values: NDArray[np.float64]  #: [12, n]: rows named by ``LEG_VALUES``
    best_cosine: float  #: levelled for fusion 1; -1 = none
    best_relevance: float


#: The rows of ``LegRanking.values``.
LEG_VALUES = (
    "cosine", "bm25", "match", "rrf", "semantic", "recency", "frequency", "importance", "raw", "z", "score",
    "relevance",
)  # fmt: skip


class ScopeRanking(NamedTuple):
    """The best of a scope: arrays of m, best first."""

    ids: NDArray[np.int32]  #: [4, m]: rids, vector_rank, keyword_rank, folded_into (position in these arrays or -1)
    kept: I32  #: positions best first, without folded ones; at least k of them when the scope has as many
    values: NDArray[np.float64]  #: [8, m]: rows named by ``SCOPE_VALUES``
    ranked: int  #: how many rows were ranked


#: The rows of ``ScopeRanking.values``.
SCOPE_VALUES = ("rrf", "semantic", "recency", "frequency", "importance", "raw", "z", "score")


class RankKernel(Protocol):
    """Implemented by ``_rank`` and ``rank_py``; the latter documents each function."""

    def rank_all(
        self, rids: I32, vector_rids: I32, keyword_rids: I32, columns: RankColumns, rules: RankRules, k: int
    ) -> ScopeRanking: ...

    def rank_legs(self, legs: RankLegs, columns: RankColumns, rules: RankRules) -> LegRanking: ...


class ChooseKernel(Protocol):
    """Implemented by ``_choose`` and ``choose_py``; the latter documents each function."""

    def choose(
        self,
        rids: I32,
        state: U8,
        type: U8,
        valid_until: I64,
        created: I64,
        event: I64,
        importance: F64,
        tag_set: I32,
        rule: int,
        now: int,
        states: U8 | None,
        types: U8 | None,
        tags: U8 | None,
        created_span: tuple[int, int] | None,
        event_span: tuple[int, int] | None,
        importance_min: float | None,
    ) -> tuple[I32, int, int]: ...

    def group(self, scope: I32, state: U8) -> tuple[I32, I32]: ...


class Look(Protocol):
    """A search of vectors that another thread may be at. It holds its arrays until nobody is."""

    def result(self) -> tuple[I32, F32, I32, int]:
        """What ``search_graph`` would have answered, or ``search_rids`` with 0 behind it; waits for it. Raises
        MemoryError."""
        ...

    def drop(self) -> None:
        """The answer is not wanted: returns as soon as nobody is at it any more."""
        ...


class Helpers(Protocol):
    """Implemented by ``_dot.Helpers`` and its twin in ``helpers``, which documents each function."""

    def enter(self) -> None: ...

    def leave(self) -> None: ...

    def begin_graph(
        self,
        query: F32,
        matrix: NDArray[np.float16],
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
    ) -> Look | None: ...

    def begin_rids(
        self, query: F32, matrix: NDArray[np.float16], head: I32, after: I32, rids: I32, k: int, /
    ) -> Look | None: ...

    def close(self) -> None: ...


class DotKernel(Protocol):
    """Implemented by ``_dot`` and ``dot_py``; the latter documents each function."""

    def dot_rows(self, query: F32, matrix: NDArray[np.float16], rows: I32, /) -> F32: ...

    def best_by_rid(
        self, query: F32, matrix: NDArray[np.float16], head: I32, after: I32, numbers: I32, rids: I32, /
    ) -> tuple[F64, I32]: ...

    def search_rids(
        self, query: F32, matrix: NDArray[np.float16], head: I32, after: I32, rids: I32, k: int, /
    ) -> tuple[I32, F32, I32]: ...

    def search_graph(
        self,
        query: F32,
        matrix: NDArray[np.float16],
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
    ) -> tuple[I32, F32, I32, int]: ...

    def Helpers(self, cores: int, /) -> Helpers: ...  # a class of the module
