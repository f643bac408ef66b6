"""From candidates to an order: fusion, four factors, normalisation, folding of repetitions.

Owns which kernel is called with what; the arithmetic itself lives in ``_fast`` (rank). Does not ask an index for
candidates and does not touch SQLite. Called by search.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memxd._fast import Kernels
from memxd._fast.protocols import RankColumns, RankRules
from memxd.embed import ModelInfo
from memxd.engine.candidates import Candidates
from memxd.engine.indexes import Indexes
from memxd.engine.profiles import Fusion, Plan, Reference
from memxd.engine.relevance import RELEVANCE, Band
from memxd.index.columns import ColumnArrays
from memxd.index.selection import Selection
from memxd.model.quick import quick

Float64 = NDArray[np.float64]
Int32 = NDArray[np.int32]

#: As the kernel numbers them.
_FUSIONS = {Fusion.SCORES: 1, Fusion.RRF: 2, Fusion.COSINE: 3}
#: Share of the word match in the keyword part of the semantic factor; the rest is BM25.
WORD_SHARE = 0.75
_NO_RIDS: Int32 = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Ranked candidates. Every array but ``order`` and ``kept`` is in the order of ``rids``.

    ``order`` int32[n] positions best first; ``kept`` the same without folded ones; ``folded_into`` int32[n], -1 = not
    folded. Evidence and scores float64[n]; ``cosine`` NaN = no vector, ``keyword`` BM25. ``vector_rank``,
    ``keyword_rank`` int32[n] from 1, 0 = absent. ``best_cosine``: the best one, levelled by script where the profile
    judges so; -1 = none. ``ranked``: how many rows were ranked; all are here unless a large scope was ranked whole.
    """

    rids: Int32
    vector_rank: Int32
    keyword_rank: Int32
    order: Int32
    folded_into: Int32
    cosine: Float64
    keyword: Float64
    rrf: Float64
    semantic: Float64
    recency: Float64
    frequency: Float64
    importance: Float64
    raw: Float64
    z: Float64
    score: Float64
    relevance: Float64
    kept: Int32
    ranked: int
    best_cosine: float
    best_relevance: float

    @property
    def folded_count(self) -> int:
        """How many of these repeat a better one."""
        return int(np.count_nonzero(self.folded_into >= 0))


_ranked = quick(Ranked)


class Ranker:
    """Ranks. One per engine; holds no state of a search."""

    def __init__(self, indexes: Indexes, kernels: Kernels, model: ModelInfo) -> None:
        self._indexes = indexes
        self._rank = kernels.rank
        self._band = Band(model.cosine_low, model.cosine_high, model.cosine_shift_cjk, model.cosine_shift_cross)

    def rank(self, plan: Plan, found: Candidates, now: int) -> Ranked:
        """Order the candidates of both legs."""
        rules = self._rules(plan, now, found.vector_asked, found.keyword_asked, found.question.script)
        ranking = self._rank.rank_legs(found.legs, self._columns(plan), rules)
        rids, vector_rank, keyword_rank, order, folded_into = ranking.ids
        (cosine, keyword, _, rrf, semantic, recency, frequency, importance, raw, z, score, likely) = ranking.values
        return _ranked(
            rids, vector_rank, keyword_rank, order, folded_into, cosine, keyword, rrf, semantic, recency, frequency,
            importance, raw, z, score, likely, ranking.kept, len(rids), ranking.best_cosine, ranking.best_relevance,
        )  # fmt: skip

    def rank_scope(self, plan: Plan, selection: Selection, now: int) -> Ranked:
        """Order the whole selection by recency, frequency and importance: for plans without relevance.

        Of a large one the best are kept, twice as many as asked for at least, since some may be gone from the store.
        """
        rules = self._rules(plan, now, False, False, 0)
        ranking = self._rank.rank_all(selection.rids, _NO_RIDS, _NO_RIDS, self._columns(plan), rules, 2 * plan.k)
        rids, vector_rank, keyword_rank, folded_into = ranking.ids
        rrf, semantic, recency, frequency, importance, raw, z, score = ranking.values
        nothing, order = np.zeros(len(rids)), np.arange(len(rids), dtype=np.int32)
        return Ranked(
            rids, vector_rank, keyword_rank, order, folded_into, np.full(len(rids), np.nan), nothing, rrf, semantic,
            recency, frequency, importance, raw, z, score, nothing, ranking.kept, ranking.ranked, -1.0, 0.0,
        )  # fmt: skip

    def _rules(self, plan: Plan, now: int, vector_asked: bool, keyword_asked: bool, script: int) -> RankRules:
        return RankRules(
            _FUSIONS[plan.fusion],
            vector_asked,
            keyword_asked,
            plan.rrf_k,
            plan.vector_weight,
            plan.keyword_weight,
            plan.weights,
            now,
            plan.half_life,
            plan.normalise,
            int(plan.dedup),
            self._band.edges,
            self._band.shifts(script),
            WORD_SHARE,
            RELEVANCE,
        )

    def _columns(self, plan: Plan) -> RankColumns:
        c = self._indexes.columns.arrays()
        return RankColumns(
            _reference(c, plan.reference), c.retrieval, c.access, c.importance, c.type, c.cjk, c.content_hash,
            c.fold_hash, c.tag_hash,
        )  # fmt: skip


def _reference(columns: ColumnArrays, reference: Reference) -> NDArray[np.int64]:
    if reference is Reference.CREATED:
        return columns.created
    if reference is Reference.USED_OR_CREATED:
        return columns.retrieved_or_created
    return columns.reference
