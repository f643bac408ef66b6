"""Both legs of a search: who might answer, by meaning and by words.

Owns asking the vector and the keyword index for candidates, completing each other's scores (a candidate of one leg gets
its score in the other as well), and what happens when a leg cannot answer. Does not rank. Called by search.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memxd.engine.indexes import Indexes
from memxd.engine.profiles import Plan
from memxd.engine.wordmatch import prior
from memxd.errors import IndexUnavailableError
from memxd.index.lexical.analyzer import query_terms
from memxd.index.lexical.hits import LexicalHits, QueryTerms
from memxd.index.selection import Selection
from memxd.index.vector import VectorHits
from memxd.model import Deadline, Degradation, DegradedCause, IndexKind, Mode

Int32 = NDArray[np.int32]
Float64 = NDArray[np.float64]


@dataclass(slots=True)
class Candidates:
    """What the legs brought. Arrays of the union share the order of ``rids`` (ascending).

    ``vector_rids``/``keyword_rids`` int32 best first; ``rids`` int32[n]; ``cosines`` float64[n], NaN = no vector;
    ``keyword`` float64[n] BM25, 0 = no word in common; ``words`` float64[n] word match, 0..1; ``chunks`` int32[n],
    -1 = none.
    """

    query: str
    terms: QueryTerms
    vector_rids: Int32
    keyword_rids: Int32
    rids: Int32
    cosines: Float64
    keyword: Float64
    words: Float64
    chunks: Int32
    vector_asked: bool
    keyword_asked: bool
    degraded: list[Degradation] = field(default_factory=list)


class Legs:
    """Asks the indexes. One per engine; holds no state of a search."""

    def __init__(self, indexes: Indexes) -> None:
        self._indexes = indexes

    def gather(
        self,
        plan: Plan,
        query: str,
        vector: NDArray[np.float32] | None,
        selection: Selection,
        deadline: Deadline,
        lap: Callable[[str], None],
    ) -> Candidates:
        """Candidates of both legs for ``query`` (``vector`` float32 [d], None = do not look by meaning).

        ``lap(stage)`` is told when a leg is done.

        Raises IndexUnavailableError when no leg that was asked can answer.
        """
        degraded: list[Degradation] = []
        terms = query_terms(query) if plan.mode is not Mode.VECTOR else QueryTerms()
        hits = self._by_meaning(plan, vector, selection, deadline, degraded)
        lap("vector")
        words = self._by_words(plan, terms, hits, selection, deadline, degraded)
        lap("keyword")
        if hits is None and words is None and plan.mode is not Mode.VECTOR:
            raise IndexUnavailableError(
                "neither index can answer now; AdminService.Status tells why, AdminService.Rebuild mends it"
            )
        if hits is None and plan.mode is Mode.VECTOR:
            raise IndexUnavailableError(
                f"{degraded[-1].message if degraded else 'the vector index cannot answer now'}; "
                "mode keyword still answers"
            )
        return self._join(query, terms, hits, words, vector, degraded)

    def _by_meaning(
        self,
        plan: Plan,
        vector: NDArray[np.float32] | None,
        selection: Selection,
        deadline: Deadline,
        degraded: list[Degradation],
    ) -> VectorHits | None:
        if vector is None or plan.mode is Mode.KEYWORD:
            return None
        try:
            self._indexes.require(IndexKind.VECTOR)
            hits = self._indexes.vector.search(vector, selection, plan.candidates, exact=plan.exact, deadline=deadline)
        except IndexUnavailableError as error:
            degraded.append(Degradation(DegradedCause.VECTOR_INDEX_UNAVAILABLE, error.message))
            return None
        if plan.cosine_floor > -1.0:
            near = hits.cosines > plan.cosine_floor
            hits = VectorHits(hits.rids[near], hits.cosines[near], hits.chunks[near])
        return hits

    def _by_words(
        self,
        plan: Plan,
        terms: QueryTerms,
        vector_hits: VectorHits | None,
        selection: Selection,
        deadline: Deadline,
        degraded: list[Degradation],
    ) -> LexicalHits | None:
        if plan.mode is Mode.VECTOR:
            return None
        also = vector_hits.rids if vector_hits is not None else None
        try:
            self._indexes.require(IndexKind.KEYWORD)
            return self._indexes.lexical.search(terms, selection, plan.candidates, also, deadline, prior(terms))
        except IndexUnavailableError as error:
            degraded.append(Degradation(DegradedCause.KEYWORD_INDEX_UNAVAILABLE, error.message))
            return None

    def _join(
        self,
        query: str,
        terms: QueryTerms,
        hits: VectorHits | None,
        words: LexicalHits | None,
        vector: NDArray[np.float32] | None,
        degraded: list[Degradation],
    ) -> Candidates:
        vector_rids = hits.rids if hits is not None else np.empty(0, np.int32)
        keyword_rids = words.rids if words is not None else np.empty(0, np.int32)
        rids = np.union1d(vector_rids, keyword_rids).astype(np.int32)
        cosines = np.full(rids.shape[0], np.nan)
        chunks = np.full(rids.shape[0], -1, np.int32)
        keyword, shares = np.zeros(rids.shape[0]), np.zeros(rids.shape[0])
        if hits is not None:
            at = np.searchsorted(rids, vector_rids)
            cosines[at], chunks[at] = hits.cosines, hits.chunks
        if words is not None:
            if hits is not None:
                at = np.searchsorted(rids, vector_rids)
                keyword[at], shares[at] = words.also_scores, words.also_match
            at = np.searchsorted(rids, keyword_rids)
            keyword[at], shares[at] = words.scores, words.match
        if hits is not None and vector is not None:
            lacking = np.flatnonzero(np.isnan(cosines))
            if lacking.size:
                cosines[lacking], chunks[lacking] = self._indexes.vector.cosines(vector, rids[lacking])
        return Candidates(
            query, terms, vector_rids, keyword_rids, rids, cosines, keyword, shares, chunks,
            hits is not None, words is not None, degraded,
        )  # fmt: skip
