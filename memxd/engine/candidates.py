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
from memxd.index.lexical.searching import Asked
from memxd.index.selection import Selection
from memxd.index.vector import Probe, VectorHits, VectorIndex
from memxd.model import Deadline, Degradation, DegradedCause, IndexKind, Mode
from memxd.text import cjk_share

Int32 = NDArray[np.int32]

_NO_RIDS: Int32 = np.empty(0, np.int32)
_NO_SCORES: NDArray[np.float64] = np.empty(0)
#: Characters of a question whose words are remembered.
_SHORT = 200


class Analysed(NamedTuple):
    """What a question's text says by itself; ``script``: ``text.cjk_share``."""

    terms: QueryTerms
    prior: Prior
    script: int


def analyse(query: str) -> Analysed:
    """The words of a question; those of recent ones are remembered, but not of long ones, which may take 400 kB."""
    return _analyse(query) if len(query) <= _SHORT else _analyse.__wrapped__(query)


@lru_cache(maxsize=1_024)
def _analyse(query: str) -> Analysed:
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


class _Look:
    """One look for candidates under way; what a leg could not do is told in ``degraded``, by meaning first."""

    __slots__ = ("deadline", "degraded", "hits", "index", "plan", "question", "selection", "vector", "words")

    def __init__(
        self,
        plan: Plan,
        question: Analysed,
        vector: NDArray[np.float32] | None,
        selection: Selection,
        deadline: Deadline,
        index: VectorIndex,
    ) -> None:
        self.plan, self.question, self.vector, self.selection = plan, question, vector, selection
        self.deadline, self.index = deadline, index
        self.degraded: list[Degradation] = []
        self.hits: VectorHits | None = None
        self.words: LexicalHits | None = None


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

        Where another thread is free, it looks by meaning while this one looks for words. ``lap(stage)`` is told when a
        leg is done.

        Raises IndexUnavailableError when no leg that was asked can answer.
        """
        index = self._indexes.vector  # one for the whole question: another may take its place meanwhile
        helpers = index.helpers
        helpers.enter()
        try:
            look = _Look(plan, analyse(query), vector, selection, deadline, index)
            begun = self._begin(look)
            legs, chunks = self._in_turn(look, lap) if begun is None else self._at_once(look, begun, lap)
        finally:
            helpers.leave()
        hits, words = look.hits, look.words
        if hits is None and words is None and plan.mode is not Mode.VECTOR:
            raise IndexUnavailableError(
                "neither index can answer now; AdminService.Status tells why, AdminService.Rebuild mends it"
            )
        if hits is None and plan.mode is Mode.VECTOR:
            raise IndexUnavailableError(
                f"{look.degraded[-1].message if look.degraded else 'the vector index cannot answer now'}; "
                "mode keyword still answers"
            )
        near = _NO_RIDS if hits is None else hits.chunks
        return Candidates(look.question, legs, near, chunks, hits is not None, words is not None, look.degraded)

    # -- one leg after the other, or both at once ----------------------------------------------------------------------

    def _in_turn(self, look: _Look, lap: Callable[[str], None]) -> tuple[RankLegs, Int32]:
        hits = look.hits = self._by_meaning(look, None)
        lap("vector")
        words, _ = self._by_words(look, _NO_RIDS if hits is None else hits.rids)
        lap("keyword")
        told = None if hits is None or words is None else (words.also_scores, words.also_match)
        cosines, chunks = self._cosines(look) if hits is not None else (None, _NO_RIDS)
        return _completed(look, told, cosines), chunks

    def _at_once(self, look: _Look, begun: Probe, lap: Callable[[str], None]) -> tuple[RankLegs, Int32]:
        """While another thread looks by meaning. What happens here, it has ended when this returns."""
        try:
            _, asked = self._by_words(look, _NO_RIDS)
            cosines, chunks = self._cosines(look)
            lap("keyword")
            hits = look.hits = self._by_meaning(look, begun)
        except BaseException:
            begun.drop()
            raise
        told = None
        if hits is None:
            cosines, chunks = None, _NO_RIDS
        elif asked is not None:
            told = self._indexes.lexical.also(asked, hits.rids)
        lap("vector")  # what it took longer than the words
        return _completed(look, told, cosines), chunks

    # -- each leg ------------------------------------------------------------------------------------------------------

    def _begin(self, look: _Look) -> Probe | None:
        """Both legs at once, when both are asked and it pays. What is wrong with an index ``_by_meaning`` will tell."""
        if look.vector is None or look.plan.mode is not Mode.HYBRID:
            return None
        try:
            self._indexes.require(IndexKind.VECTOR)
            plan, within = look.plan, look.selection
            return look.index.begin(look.vector, within, plan.candidates, exact=plan.exact, deadline=look.deadline)
        except IndexUnavailableError:
            return None

    def _by_meaning(self, look: _Look, begun: Probe | None) -> VectorHits | None:
        plan, index = look.plan, look.index
        if look.vector is None or plan.mode is Mode.KEYWORD:
            return None
        try:
            if begun is not None:
                hits = index.finish(begun)
            else:
                self._indexes.require(IndexKind.VECTOR)
                hits = index.search(
                    look.vector, look.selection, plan.candidates, exact=plan.exact, deadline=look.deadline
                )
        except IndexUnavailableError as error:
            look.degraded.insert(0, Degradation(DegradedCause.VECTOR_INDEX_UNAVAILABLE, error.message))
            return None
        if plan.cosine_floor > -1.0:
            near = hits.cosines > plan.cosine_floor
            hits = VectorHits(hits.rids[near], hits.cosines[near], hits.chunks[near])
        return hits

    def _by_words(self, look: _Look, also: Int32) -> tuple[LexicalHits | None, Asked | None]:
        plan, question = look.plan, look.question
        if plan.mode is Mode.VECTOR:
            return None, None
        try:
            self._indexes.require(IndexKind.KEYWORD)
            look.words, asked = self._indexes.lexical.ask(
                question.terms, look.selection, plan.candidates, also, look.deadline, question.prior
            )
        except IndexUnavailableError as error:
            look.degraded.append(Degradation(DegradedCause.KEYWORD_INDEX_UNAVAILABLE, error.message))
            return None, None
        return look.words, asked

    def _cosines(self, look: _Look) -> tuple[NDArray[np.float64] | None, Int32]:
        """Of the hits by words, with the number of each one's best chunk."""
        if look.vector is None or look.words is None or not len(look.words.rids):
            return None, _NO_RIDS
        return look.index.cosines(look.vector, look.words.rids)


def _completed(
    look: _Look, told: tuple[NDArray[np.float64], NDArray[np.float64]] | None, cosines: NDArray[np.float64] | None
) -> RankLegs:
    """Both legs' hits, each with its evidence in the other leg; ``told``: what the words say of the hits by meaning."""
    hits, words = look.hits, look.words
    return RankLegs(
        _NO_RIDS if hits is None else hits.rids,
        _NO_SCORES if hits is None else hits.cosines,
        None if told is None else told[0],
        None if told is None else told[1],
        _NO_RIDS if words is None else words.rids,
        cosines,
        _NO_SCORES if words is None else words.scores,
        _NO_SCORES if words is None else words.match,
    )
