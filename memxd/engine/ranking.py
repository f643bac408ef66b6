"""From candidates to an order: fusion, four factors, normalisation, folding of repetitions.

Owns which kernel is called with what; the arithmetic itself lives in ``_fast`` (rank). Does not ask an index for
candidates and does not touch SQLite. Called by search.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memxd._fast import Kernels
from memxd.embed import ModelInfo
from memxd.engine.candidates import Candidates
from memxd.engine.indexes import Indexes
from memxd.engine.profiles import Fusion, Plan, Reference
from memxd.engine.relevance import Band, relevance, words_alone
from memxd.index.columns import ColumnArrays
from memxd.index.selection import Selection
from memxd.model import Dedup
from memxd.text import cjk_share

Float64 = NDArray[np.float64]
Int32 = NDArray[np.int32]

#: Share of the word match in the keyword part of the semantic factor; the rest is BM25.
WORD_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class Ranked:
    """Ranked candidates. Every array but ``order`` and ``kept`` is in the order of ``rids``.

    ``order`` int32[n] positions best first; ``kept`` the same without folded ones; ``folded_into`` int32[n], -1 = not
    folded. Scores float64[n]. ``vector_rank``/``keyword_rank`` int32[n] from 1, 0 = absent. ``best_cosine``: the best
    one, levelled by script where the profile judges so; -1 = none.
    """

    rids: Int32
    order: Int32
    kept: Int32
    folded_into: Int32
    semantic: Float64
    recency: Float64
    frequency: Float64
    importance: Float64
    raw: Float64
    z: Float64
    score: Float64
    relevance: Float64
    rrf: Float64
    vector_rank: Int32
    keyword_rank: Int32
    best_relevance: float
    best_cosine: float

    @property
    def folded_count(self) -> int:
        """How many candidates repeat a better one."""
        return int(np.count_nonzero(self.folded_into >= 0))


class Ranker:
    """Ranks. One per engine; holds no state of a search."""

    def __init__(self, indexes: Indexes, kernels: Kernels, model: ModelInfo) -> None:
        self._indexes = indexes
        self._rank = kernels.rank
        self._band = Band(model.cosine_low, model.cosine_high, model.cosine_shift_cjk, model.cosine_shift_cross)

    def rank(self, plan: Plan, found: Candidates, selection: Selection, now: int) -> Ranked:
        """Order the candidates of both legs."""
        rids, rrf, vector_rank, keyword_rank = self._rank.fuse_rrf(
            found.vector_rids,
            found.keyword_rids,
            plan.rrf_k,
            plan.vector_weight,
            plan.keyword_weight,
        )
        words = found.words
        cjk = self._indexes.columns.arrays().cjk[rids]
        levelled = self._band.level(found.cosines, cjk_share(found.query), cjk)
        place = self._band.place(levelled)
        likely = relevance(place, words) if found.vector_asked else words_alone(words)
        semantic = self._semantic(plan, found, rrf, words, place)
        judged = levelled if plan.fusion is Fusion.SCORES else found.cosines
        best = float(np.nanmax(judged, initial=-1.0))
        return self._finish(plan, rids, semantic, likely, now, rrf, vector_rank, keyword_rank, best)

    def rank_scope(self, plan: Plan, selection: Selection, now: int) -> Ranked:
        """Order the whole selection by recency, frequency and importance: for plans without relevance."""
        rids = selection.rids
        nothing = np.zeros(rids.shape[0])
        none = np.zeros(rids.shape[0], np.int32)
        return self._finish(plan, rids, nothing, nothing, now, nothing, none, none, -1.0)

    # -- semantic factor ---------------------------------------------------------------------------------------------

    def _semantic(self, plan: Plan, found: Candidates, rrf: Float64, words: Float64, place: Float64) -> Float64:
        """The semantic factor of each candidate, 0..1."""
        if plan.fusion is Fusion.COSINE:
            return np.nan_to_num(found.cosines, nan=0.0)
        if plan.fusion is Fusion.RRF:
            best = (plan.vector_weight + plan.keyword_weight) / (plan.rrf_k + 1)
            return rrf / best
        return self._fused_scores(plan, found, words, place)

    def _fused_scores(self, plan: Plan, found: Candidates, words: Float64, place: Float64) -> Float64:
        """Weighted mean of both legs' scores, each brought to 0..1; a leg that was not asked does not count.

        By meaning: the place in the model's band. By words: three parts word match (which words of the question are
        there), one part BM25 against the best candidate's (how densely), held down when even the best matches little.
        """
        by_meaning = np.where(np.isnan(found.cosines), 0.0, np.clip(place / 2.0 + 0.25, 0.0, 1.0))
        top = found.keyword.max(initial=0.0)
        density = found.keyword / top * words.max(initial=0.0) if top > 0.0 else found.keyword
        by_words = WORD_SHARE * words + (1.0 - WORD_SHARE) * density
        vector_weight = plan.vector_weight if found.vector_asked else 0.0
        keyword_weight = plan.keyword_weight if found.keyword_asked else 0.0
        total = vector_weight + keyword_weight
        if total == 0.0:
            return np.zeros(found.rids.shape[0])
        return (vector_weight * by_meaning + keyword_weight * by_words) / total

    # -- the four factors and the order --------------------------------------------------------------------------------

    def _finish(
        self,
        plan: Plan,
        rids: Int32,
        semantic: Float64,
        likely: Float64,
        now: int,
        rrf: Float64,
        vector_rank: Int32,
        keyword_rank: Int32,
        best_cosine: float,
    ) -> Ranked:
        columns = self._indexes.columns.arrays()
        recency, frequency, importance = self._rank.factors(
            rids,
            _reference(columns, plan.reference),
            columns.retrieval,
            columns.access,
            columns.importance,
            now,
            plan.half_life,
        )
        raw = self._rank.combine(semantic, recency, frequency, importance, plan.weights)
        z, score = self._rank.normalise(raw)
        order = self._rank.top_k(raw, rids, rids.shape[0])
        kept, folded_into = self._fold(plan, columns, order, rids)
        return Ranked(
            rids, order, kept, folded_into, semantic, recency, frequency, importance, raw, z,
            score if plan.normalise else raw, likely, rrf, vector_rank, keyword_rank,
            float(likely.max(initial=0.0)), best_cosine,
        )  # fmt: skip

    def _fold(self, plan: Plan, columns: ColumnArrays, order: Int32, rids: Int32) -> tuple[Int32, Int32]:
        if plan.dedup is Dedup.OFF:
            return order, np.full(rids.shape[0], -1, np.int32)
        return self._rank.dedup(
            order,
            rids,
            columns.type[rids],
            columns.content_hash[rids],
            columns.fold_hash[rids],
            columns.tag_hash[rids],
            int(plan.dedup),
            rids.shape[0],
        )


def _reference(columns: ColumnArrays, reference: Reference) -> NDArray[np.int64]:
    if reference is Reference.CREATED:
        return columns.created
    if reference is Reference.USED_OR_CREATED:
        return columns.retrieved_or_created
    return columns.reference
