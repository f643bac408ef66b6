"""Both legs of a search: who might answer, by meaning and by words.

Owns asking the vector and the keyword index for candidates, completing each other's scores (a candidate of one leg gets
its score in the other as well), and what happens when a leg cannot answer. Does not rank. Called by search.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memxd._fast.protocols import RankLegs
from memxd.engine.indexes import Indexes
from memxd.engine.profiles import Plan
from memxd.engine.wordmatch import prior
from memxd.errors import IndexUnavailableError
from memxd.index.lexical.analyzer import query_terms
from memxd.index.lexical.hits import LexicalHits, Prior, QueryTerms
from memxd.index.selection import Selection
from memxd.index.vector import VectorHits
from memxd.model import Deadline, Degradation, DegradedCause, IndexKind, Mode
from memxd.text import cjk_share

Int32 = NDArray[np.int32]

_NO_RIDS: Int32 = np.empty(0, np.int32)
_NO_SCORES: NDArray[np.float64] = np.empty(0)


class Analysed(NamedTuple):
    """What a question's text says by itself; ``script``: ``text.cjk_share``."""

    terms: QueryTerms
    prior: Prior
    script: int


@lru_cache(maxsize=1_024)
def analyse(query: str) -> Analysed:
    """The words of a question; those of recent ones are remembered."""
    terms = query_terms(query)
    return Analysed(terms, prior(terms), cjk_share(query))


@dataclass(slots=True)
class Candidates:
    """What the legs brought: ``legs`` as the rank kernel takes it.

    ``vector_chunks`` int32[a], ``keyword_chunks`` int32[b]: number of each candidate's best chunk, -1 = none.
    """

    question: Analysed
    legs: RankLegs
    vector_chunks: Int32
    keyword_chunks: Int32
    vector_asked: bool
    keyword_asked: bool
    degraded: list[Degradation] = field(default_factory=list)

    @property
    def most(self) -> int:
        """How many candidates the leg with more of them brought."""
        return max(len(self.legs.vector_rids), len(self.legs.keyword_rids))


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
        question = analyse(query)
        hits = self._by_meaning(plan, vector, selection, deadline, degraded)
        lap("vector")
        words = self._by_words(plan, question, hits, selection, deadline, degraded)
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
        return self._complete(question, hits, words, vector, degraded)

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
        question: Analysed,
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
            return self._indexes.lexical.search(
                question.terms, selection, plan.candidates, also, deadline, question.prior
            )
        except IndexUnavailableError as error:
            degraded.append(Degradation(DegradedCause.KEYWORD_INDEX_UNAVAILABLE, error.message))
            return None

    def _complete(
        self,
        question: Analysed,
        hits: VectorHits | None,
        words: LexicalHits | None,
        vector: NDArray[np.float32] | None,
        degraded: list[Degradation],
    ) -> Candidates:
        """Both legs' hits, each with its evidence in the other leg."""
        cosines, chunks = None, _NO_RIDS
        if hits is not None and words is not None and vector is not None and len(words.rids):
            cosines, chunks = self._indexes.vector.cosines(vector, words.rids)
        legs = RankLegs(
            _NO_RIDS if hits is None else hits.rids,
            _NO_SCORES if hits is None else hits.cosines,
            None if words is None or hits is None else words.also_scores,
            None if words is None or hits is None else words.also_match,
            _NO_RIDS if words is None else words.rids,
            cosines,
            _NO_SCORES if words is None else words.scores,
            _NO_SCORES if words is None else words.match,
        )
        vector_chunks = _NO_RIDS if hits is None else hits.chunks
        return Candidates(question, legs, vector_chunks, chunks, hits is not None, words is not None, degraded)
