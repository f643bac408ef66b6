"""The reranker in NumPy, as an honest peer of the kernels: whole-array operations, no Python loop over rows.

Owns the formulas of ``memxd/_fast/rank_py.py`` as a NumPy user would write them for speed: float64, as few passes as
they allow, a partition instead of a full sort. Called by ``rerank`` alone. Equal to the kernels but for the last bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from memxd._fast.protocols import RankColumns, RankLegs, RankRules

Float64 = NDArray[np.float64]
Int32 = NDArray[np.int32]


def rank_all(
    vector_rids: Int32, keyword_rids: Int32, columns: RankColumns, rules: RankRules, k: int
) -> tuple[Int32, Float64, Float64]:
    """(rids, z, score) of the best ``k`` of all rows, repetitions folded: semantic factor by RRF, the four factors,
    z over all rows, sigmoid. The rows are 0..n-1, so that no column is gathered."""
    n = len(columns.reference)
    semantic = rrf(vector_rids, keyword_rids, n, rules.rrf_k)
    semantic *= (rules.rrf_k + 1) / 2.0
    raw = _raw(semantic, *_factors(columns, rules), rules)
    mean, deviation = raw.mean(), raw.std()
    wide = min(n, max(2 * k, 64))
    wider = np.argpartition(raw, n - wide)[n - wide :] if wide < n else np.arange(n)
    ordered = wider[np.lexsort((wider, -raw[wider]))]
    best = fold(ordered.astype(np.int32), columns.content_hash[ordered], columns.fold_hash[ordered])[:k]
    return best, *_normalise(raw[best], mean, deviation)


def rank_legs(legs: RankLegs, columns: RankColumns, rules: RankRules) -> tuple[Int32, Float64, Float64]:
    """(rids best first, score, relevance) of the candidates of both legs, repetitions folded."""
    rids = np.union1d(legs.vector_rids, legs.keyword_rids).astype(np.int32)
    at_vector, at_keyword = np.searchsorted(rids, legs.vector_rids), np.searchsorted(rids, legs.keyword_rids)
    cosine, bm25, match = np.empty(len(rids)), np.empty(len(rids)), np.empty(len(rids))
    cosine[at_keyword], cosine[at_vector] = legs.keyword_cosines, legs.vector_cosines
    bm25[at_vector], bm25[at_keyword] = legs.vector_bm25, legs.keyword_bm25
    match[at_vector], match[at_keyword] = legs.vector_match, legs.keyword_match
    gathered: list[Any] = [column[rids] for column in columns]
    few = RankColumns(*gathered)
    levelled = cosine - np.array(rules.shifts)[few.cjk]
    place = np.clip((levelled - rules.band[0]) / (rules.band[1] - rules.band[0]), -1.0, 2.0)
    by_meaning = np.clip(place / 2.0 + 0.25, 0.0, 1.0)
    by_words = rules.word_share * match + (1.0 - rules.word_share) * (bm25 / bm25.max() * match.max())
    total = rules.vector_weight + rules.keyword_weight
    semantic = (rules.vector_weight * by_meaning + rules.keyword_weight * by_words) / total
    raw = _raw(semantic, *_factors(few, rules), rules)
    _, score = _normalise(raw, raw.mean(), raw.std())
    b0, b1, b2 = rules.relevance
    relevance = 1.0 / (1.0 + np.exp(-(b0 + b1 * place + b2 * match)))
    order = np.lexsort((rids, -raw)).astype(np.int32)
    kept = fold(order, few.content_hash[order], few.fold_hash[order])
    return rids[kept], score[kept], relevance[kept]


def rrf(vector_rids: Int32, keyword_rids: Int32, n: int, k: int) -> Float64:
    """Reciprocal rank fusion of two ranked lists, f64[n] by rid: the sum of 1 / (k + rank), ranks from 1."""
    fused = np.zeros(n)
    fused[vector_rids] += 1.0 / (k + np.arange(1, len(vector_rids) + 1))
    fused[keyword_rids] += 1.0 / (k + np.arange(1, len(keyword_rids) + 1))
    return fused


def fold(rows: Int32, content: NDArray[np.uint64], folded: NDArray[np.uint64]) -> Int32:
    """``rows`` (best first) without those that repeat the content, or the folded text, of a better one."""
    first = np.zeros(len(rows), np.bool_)
    first[np.unique(content, return_index=True)[1]] = True
    again = np.ones(len(rows), np.bool_)
    again[np.unique(folded, return_index=True)[1]] = False
    return rows[first & ~again]


def _factors(columns: RankColumns, rules: RankRules) -> tuple[Float64, Float64, NDArray[np.float32]]:
    """Recency, frequency, importance."""
    age = np.maximum(rules.now - columns.reference, 0)
    recency = np.exp2(age * (-1.0 / rules.half_life))
    counts = np.where(columns.retrieval != 0, columns.retrieval, columns.access)
    return recency, np.minimum(np.log1p(counts) * 0.1, 1.0), columns.importance


def _raw(
    semantic: Float64, recency: Float64, frequency: Float64, importance: NDArray[np.float32], rules: RankRules
) -> Float64:
    """The weighted sum."""
    raw = rules.weights[0] * semantic
    raw += rules.weights[1] * recency
    raw += rules.weights[2] * frequency
    raw += rules.weights[3] * importance
    return raw


def _normalise(raw: Float64, mean: float, deviation: float) -> tuple[Float64, Float64]:
    z = (raw - mean) / deviation if deviation > 0.0 else np.zeros(len(raw))
    return z, 1.0 / (1.0 + np.exp(-z))
