"""How what two legs found becomes evidence of each candidate: one value at a time, as rank_legs.h does it.

Owns the join of the legs, RRF, the place in the model's band and the semantic factor by scores. Called by ``rank_py``
only, whose ``rank_legs`` documents the formulas.
"""

from __future__ import annotations

import math

import numpy as np

from memxd._fast.arrays import F64, I32, check_array
from memxd._fast.protocols import RankLegs, RankRules
from memxd._fast.rank_math import clamp


def first_ranks(rids: I32) -> dict[int, int]:
    """Rank from 1 by rid, where it comes first; in the order of the list."""
    ranks: dict[int, int] = {}
    for rank, rid in enumerate(rids.tolist(), 1):
        ranks.setdefault(rid, rank)
    return ranks


def of_maximum(rrf: float, rules: RankRules) -> float:
    """RRF divided by that of a row that leads both legs; 0 where no leg weighs."""
    most = (rules.vector_weight + rules.keyword_weight) / (float(rules.rrf_k) + 1.0)
    return rrf / most if most > 0.0 else 0.0


def join(legs: RankLegs) -> tuple[F64, F64, F64, tuple[I32, I32, I32]]:
    """Both legs' rows, each once: (cosine, bm25, match, (rids, vector_rank, keyword_rank))."""
    a, b = _leg_lengths(legs)
    by_vector, by_keyword = first_ranks(legs.vector_rids), first_ranks(legs.keyword_rids)
    rids = [*by_vector, *(rid for rid in by_keyword if rid not in by_vector)]
    rows: list[tuple[float, float, float]] = []
    zeros, unknown = np.zeros(a), np.full(b, math.nan)
    vector_bm25 = zeros if legs.vector_bm25 is None else legs.vector_bm25
    vector_match = zeros if legs.vector_match is None else legs.vector_match
    keyword_cosines = unknown if legs.keyword_cosines is None else legs.keyword_cosines
    for rid in rids:
        v, w = by_vector.get(rid, 0) - 1, by_keyword.get(rid, 0) - 1
        cosine = legs.vector_cosines[v] if v >= 0 else keyword_cosines[w]
        bm25, match = (legs.keyword_bm25[w], legs.keyword_match[w]) if w >= 0 else (vector_bm25[v], vector_match[v])
        rows.append((float(cosine), float(bm25), float(match)))
    cosine, bm25, match = np.array(rows, np.float64).reshape(len(rids), 3).T
    ranks = [np.array([of.get(rid, 0) for rid in rids], np.int32) for of in (by_vector, by_keyword)]
    return cosine, bm25, match, (np.array(rids, np.int32), ranks[0], ranks[1])


def _leg_lengths(legs: RankLegs) -> tuple[int, int]:
    a = check_array("vector_rids", legs.vector_rids, np.int32)
    b = check_array("keyword_rids", legs.keyword_rids, np.int32)
    for name, array in zip(RankLegs._fields, legs, strict=True):
        if not name.endswith("_rids") and array is not None:
            check_array(name, array, np.float64, a if name.startswith("vector") else b)
    return a, b


def place(cosine: float, low: float, high: float) -> float:
    """Where a levelled cosine lies in the band: 0 at low, 1 at high, cut to -1..2; NaN = 0."""
    x = (cosine - low) * (1.0 / (high - low) if high != low else math.inf)
    return 0.0 if x != x else clamp(x, -1.0, 2.0)


def rrf(vector_rank: int, keyword_rank: int, rules: RankRules) -> float:
    """Weighted reciprocal ranks, summed; rank 0 = absent."""
    k = float(rules.rrf_k)
    return (rules.vector_weight / (k + vector_rank) if vector_rank else 0.0) + (
        rules.keyword_weight / (k + keyword_rank) if keyword_rank else 0.0
    )


def by_scores(
    levelled: list[float], places: list[float], bm25: list[float], match: list[float], rules: RankRules
) -> list[float]:
    """The semantic factor of fusion 1: weighted mean of both legs' scores; a leg that was not asked does not count."""
    vector_weight = rules.vector_weight if rules.vector_asked else 0.0
    keyword_weight = rules.keyword_weight if rules.keyword_asked else 0.0
    total = vector_weight + keyword_weight
    vector_share, keyword_share = (vector_weight / total, keyword_weight / total) if total > 0.0 else (0.0, 0.0)
    top = largest(bm25, 0.0)
    scale = largest(match, 0.0) / top if top > 0.0 else 1.0
    semantic = []
    for c, x, b, w in zip(levelled, places, bm25, match, strict=True):
        by_meaning = 0.0 if c != c else clamp(x * 0.5 + 0.25, 0.0, 1.0)
        by_words = rules.word_share * w + (1.0 - rules.word_share) * (b * scale)
        semantic.append(vector_share * by_meaning + keyword_share * by_words)
    return semantic


def largest(values: list[float], least: float) -> float:
    """The largest of the values and ``least``; NaN does not count."""
    for value in values:
        least = value if value > least else least
    return least
