"""From candidates to an order: fusion, four factors, normalisation, folding of repetitions.

Owns which kernel is called with what; the arithmetic itself lives in ``_fast`` (rank). Does not ask an index for
candidates and does not touch SQLite. Called by search.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memxd._fast import Kernels
from memxd._fast.protocols import LEG_VALUES, RankColumns, RankRules
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


def _row(array: str, at: int) -> Callable[[Ranked], NDArray[Any]]:
    def of(self: Ranked) -> NDArray[Any]:
        row: NDArray[Any] = getattr(self, array)[at]
        return row

    return of


@dataclass(frozen=True, slots=True)
class Ranked:
    """Ranked candidates, as the kernel answered them; the arrays within are views that are made when asked for.

    ``ids`` int32[5, n], ``values`` float64[12, n] (``protocols.LegRanking``). ``order`` int32[n] positions best first;
    ``kept`` the same without folded ones; ``folded_into`` int32[n], -1 = not folded. Every array but ``order`` and
    ``kept`` is in the order of ``rids``. Evidence and scores float64[n]; ``cosine`` NaN = no vector, ``keyword`` BM25.
    ``vector_rank``, ``keyword_rank`` int32[n] from 1, 0 = absent. ``best_cosine``: the best one, levelled by script
    where the profile judges so; -1 = none. ``ranked``: how many rows were ranked; all are here unless a large scope was
    ranked whole.
    """

    ids: Int32
    values: Float64
    kept: Int32
    ranked: int
    best_cosine: float
    best_relevance: float

    rids = property(_row("ids", 0))
    vector_rank = property(_row("ids", 1))
    keyword_rank = property(_row("ids", 2))
    order = property(_row("ids", 3))
    folded_into = property(_row("ids", 4))
    cosine = property(_row("values", 0))
    keyword = property(_row("values", 1))
    rrf = property(_row("values", 3))
    semantic = property(_row("values", 4))
    recency = property(_row("values", 5))
    frequency = property(_row("values", 6))
    importance = property(_row("values", 7))
    raw = property(_row("values", 8))
    z = property(_row("values", 9))
    score = property(_row("values", 10))
    relevance = property(_row("values", 11))

    @property
    def folded_count(self) -> int:
        """How many of these repeat a better one."""
        return int(self.ids.shape[1] - self.kept.size)


_ranked = quick(Ranked)


class Ranker:
    """Ranks. One per engine; holds no state of a search but the columns' arrays as it hands them to the kernel."""

    def __init__(self, indexes: Indexes, kernels: Kernels) -> None:
        self._indexes = indexes
        self._rank = kernels.rank
        self._known: dict[Reference, RankColumns] = {}
        self._bands: dict[str, Band] = {}  # by model

    def rank(self, model: ModelInfo, plan: Plan, found: Candidates, now: int) -> Ranked:
        """Order the candidates of both legs."""
        rules = self._rules(
            self._band(model), plan, now, found.vector_asked, found.keyword_asked, found.question.script
        )
        ranking = self._rank.rank_legs(found.legs, self._columns(plan), rules)
        count = ranking.ids.shape[1]
        return _ranked(
            ranking.ids, ranking.values, ranking.kept, count, ranking.best_cosine, ranking.best_relevance
        )  # fmt: skip

    def rank_scope(self, model: ModelInfo, plan: Plan, selection: Selection, now: int) -> Ranked:
        """Order the whole selection by recency, frequency and importance: for plans without relevance.

        Of a large one the best are kept, twice as many as asked for at least, since some may be gone from the store.
        """
        rules = self._rules(self._band(model), plan, now, False, False, 0)
        ranking = self._rank.rank_all(selection.rids, _NO_RIDS, _NO_RIDS, self._columns(plan), rules, 2 * plan.k)
        count = ranking.ids.shape[1]
        ids, values = np.empty((5, count), np.int32), np.zeros((len(LEG_VALUES), count))
        ids[:3], ids[3], ids[4] = ranking.ids[:3], np.arange(count), ranking.ids[3]
        values[0], values[3:11] = np.nan, ranking.values  # rrf to score; no cosine, no words, no relevance
        return Ranked(ids, values, ranking.kept, ranking.ranked, -1.0, 0.0)

    def _band(self, model: ModelInfo) -> Band:
        band = self._bands.get(model.id)
        if band is None:
            band = Band(model.cosine_low, model.cosine_high, model.cosine_shift_cjk, model.cosine_shift_cross)
            self._bands[model.id] = band
        return band

    def _rules(
        self, band: Band, plan: Plan, now: int, vector_asked: bool, keyword_asked: bool, script: int
    ) -> RankRules:
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
            band.edges,
            band.shifts(script),
            WORD_SHARE,
            RELEVANCE,
        )

    def _columns(self, plan: Plan) -> RankColumns:
        """The present arrays; the same tuple as long as they are the same, which the kernel need not check again."""
        c = self._indexes.columns.arrays()
        known = self._known.get(plan.reference)
        if known is None or known.importance is not c.importance:
            known = RankColumns(
                _reference(c, plan.reference), c.retrieval, c.access, c.importance, c.type, c.cjk, c.content_hash,
                c.fold_hash, c.tag_hash,
            )  # fmt: skip
            self._known[plan.reference] = known
        return known


def _reference(columns: ColumnArrays, reference: Reference) -> NDArray[np.int64]:
    if reference is Reference.CREATED:
        return columns.created
    if reference is Reference.USED_OR_CREATED:
        return columns.retrieved_or_created
    return columns.reference
