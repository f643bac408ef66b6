"""Ranking kernels in plain Python: fusion, the four factors, the score, its normalisation, top-k and deduplication.

The twin of ``_rank.pyx``: the oracle of its tests, and what runs without a compiler. Both do the same floating-point
operations in the same order (exp and log are the C library's), so that their results are equal bit for bit. The loops
are plain on purpose. Candidates are arrays of one length n; arrays called "by rid" hold one value for each dense
internal id (rid). Arrays must be one-dimensional, C-contiguous and of exactly the named dtype (else ValueError);
what they hold is not checked, rids that index by-rid arrays excepted. ``engine/`` calls this through ``Kernels``.
"""

from __future__ import annotations

import math

import numpy as np

from memxd._fast.arrays import F32, F64, I32, I64, U8, U32, U64, check_array, check_at_least
from memxd._fast.protocols import Weights

#: Sums are taken in this many interleaved lanes, so that the compiled loop can run in vector registers.
_LANES = 8


def _check_by_rid(size: int, reference: I64, retrieval: U32, access: U32, importance: F32) -> None:
    """By-rid arrays may be longer than needed, never shorter."""
    shortest = min(
        check_array("reference", reference, np.int64),
        check_array("retrieval", retrieval, np.uint32),
        check_array("access", access, np.uint32),
        check_array("importance", importance, np.float32),
    )
    if size > shortest:
        raise ValueError(f"a rid lies beyond a by-rid array of {shortest}")


def fuse_rrf(
    vector_rids: I32, keyword_rids: I32, k: int, vector_weight: float, keyword_weight: float
) -> tuple[I32, F64, I32, I32]:
    """Fuse two ranked lists by weighted reciprocal rank (Cormack, Clarke, Buettcher 2009).

    ``vector_rids`` i32[a] and ``keyword_rids`` i32[b]: best first; a rid that comes twice counts where it came first.
    Each list adds weight / (k + rank), ranks from 1, k >= 0. Answers (rids i32[n] ascending, score f64[n],
    vector_rank i32[n], keyword_rank i32[n]); rank 0 = absent.
    """
    check_array("vector_rids", vector_rids, np.int32)
    check_array("keyword_rids", keyword_rids, np.int32)
    check_at_least("k", k, 0)
    by_vector = _first_ranks(vector_rids)
    by_keyword = _first_ranks(keyword_rids)
    rids = sorted(by_vector.keys() | by_keyword.keys())
    vector_rank = [by_vector.get(rid, 0) for rid in rids]
    keyword_rank = [by_keyword.get(rid, 0) for rid in rids]
    score = [
        (vector_weight / (k + v) if v else 0.0) + (keyword_weight / (k + w) if w else 0.0)
        for v, w in zip(vector_rank, keyword_rank, strict=True)
    ]
    return (
        np.array(rids, np.int32),
        np.array(score, np.float64),
        np.array(vector_rank, np.int32),
        np.array(keyword_rank, np.int32),
    )


def _first_ranks(rids: I32) -> dict[int, int]:
    ranks: dict[int, int] = {}
    for rank, rid in enumerate(rids.tolist(), 1):
        ranks.setdefault(rid, rank)
    return ranks


def factors(
    rids: I32, reference: I64, retrieval: U32, access: U32, importance: F32, now: int, half_life: int
) -> tuple[F64, F64, F64]:
    """The factors besides the semantic one, each f64[n] (MemX, arXiv 2603.16171).

    ``rids`` i32[n]; the others by rid; ``reference`` and ``now`` in microseconds since the epoch, ``half_life`` in
    microseconds, >= 1. recency = 2^(-max(0, now - reference) / half_life), at least 2^-1000; frequency =
    min(1, ln(c + 1) / 10) with c = retrieval, or access where that is 0; importance as it stands. Each in 0..1 if
    importance is.
    """
    n = check_array("rids", rids, np.int32)
    check_at_least("half_life", half_life, 1)
    if n and int(rids.min()) < 0:
        raise ValueError("a rid is negative")
    _check_by_rid(int(rids.max()) + 1 if n else 0, reference, retrieval, access, importance)
    recency, frequency, weight = np.empty(n), np.empty(n), np.empty(n)
    for i, rid in enumerate(rids.tolist()):
        recency[i] = _recency(float(reference[rid]), now, half_life)
        frequency[i] = _frequency(int(retrieval[rid]) or int(access[rid]))
        weight[i] = float(importance[rid])
    return recency, frequency, weight


def _recency(reference: float, now: int, half_life: int) -> float:
    age = max(float(now) - reference, 0.0)
    return _exp2(-(age / float(half_life)))


#: 2^f on -.5..+.5 as a polynomial in f, lowest power first (Chebyshev nodes); relative error below 2e-16.
_EXP2 = (
    1.0,
    0.6931471805599453,
    0.24022650695910097,
    0.0555041086648216,
    0.009618129107606888,
    0.0013333558146416936,
    0.0001540353044173605,
    1.525273382983612e-05,
    1.321544258792169e-06,
    1.0178062445845774e-07,
    7.072585949269223e-09,
    4.4549605981865186e-10,
)


def _exp2(x: float) -> float:
    """2^x for x <= 0, exact for whole x; not math.exp2, because this one runs in vector registers when compiled."""
    x = max(x, -1000.0)
    k = round(x)
    f = x - k
    f2 = f * f
    f4 = f2 * f2
    a, b, c, d, e, g = (low + high * f for low, high in zip(_EXP2[::2], _EXP2[1::2], strict=True))
    return math.ldexp((a + b * f2) + ((c + d * f2) + (e + g * f2) * f4) * f4, k)


def _frequency(count: int) -> float:
    return min(1.0, math.log(count + 1.0) / 10.0)


def combine(semantic: F64, recency: F64, frequency: F64, importance: F64, weights: Weights) -> F64:
    """The weighted sum of the four factors: f64[n] each in, raw score f64[n] out; summed from left to right."""
    n = check_array("semantic", semantic, np.float64)
    check_array("recency", recency, np.float64, n)
    check_array("frequency", frequency, np.float64, n)
    check_array("importance", importance, np.float64, n)
    rows = zip(semantic.tolist(), recency.tolist(), frequency.tolist(), importance.tolist(), strict=True)
    return np.array([_weighted(*row, weights) for row in rows], np.float64)


def _weighted(semantic: float, recency: float, frequency: float, importance: float, weights: Weights) -> float:
    s, r, f, i = weights
    return ((s * semantic + r * recency) + f * frequency) + i * importance


def normalise(raw: F64) -> tuple[F64, F64]:
    """Population z-score, then the logistic sigmoid: (z f64[n], score f64[n] in 0..1).

    NaN counts as the smallest finite value, an infinity as the smallest or largest one. Where the values do not
    differ (one value, all equal, none finite, or a deviation that float64 cannot hold), z is 0 and score 0.5.
    Scores above z = 37 round to 1: order by ``raw``, which tells them apart, rather than by score.
    """
    n = check_array("raw", raw, np.float64)
    values = raw.tolist()
    moments = _moments(values)
    z = [_z_score(value, moments) for value in values]
    assert len(z) == n
    return np.array(z, np.float64), np.array([_sigmoid(value) for value in z], np.float64)


#: (smallest, largest finite value, mean and deviation of the distances from the smallest); deviation 0 = no spread.
_Moments = tuple[float, float, float, float]


def _moments(values: list[float]) -> _Moments:
    finite = [v for v in values if math.isfinite(v)]
    if not finite:
        return 0.0, 0.0, 0.0, 0.0
    low, high = min(finite), max(finite)
    distances = [_clamp(v, low, high) - low for v in values]
    mean = _lane_sum(distances) / float(len(values))
    deviation = math.sqrt(_lane_sum([(d - mean) * (d - mean) for d in distances]) / float(len(values)))
    return low, high, mean, deviation if low < high and 0.0 < deviation < math.inf else 0.0


def _clamp(value: float, low: float, high: float) -> float:
    value = value if value > low else low
    return value if value < high else high


def _lane_sum(values: list[float]) -> float:
    lanes = [0.0] * _LANES
    for i, value in enumerate(values):
        lanes[i % _LANES] += value
    a, b, c, d, e, f, g, h = lanes
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


def _z_score(value: float, moments: _Moments) -> float:
    low, high, mean, deviation = moments
    return (_clamp(value, low, high) - low - mean) / deviation if deviation > 0.0 else 0.0


def _sigmoid(z: float) -> float:
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


def top_k(score: F64, rids: I32, k: int) -> I32:
    """Positions of the best: i32[min(k, n)], by score descending, then rid ascending, then position; NaN last.

    ``score`` f64[n], ``rids`` i32[n], k >= 0.
    """
    n = check_array("score", score, np.float64)
    check_array("rids", rids, np.int32, n)
    check_at_least("k", k, 0)
    return np.array(_best(score.tolist(), rids.tolist(), k), np.int32)


def _best(values: list[float], rids: list[int], k: int) -> list[int]:
    def key(i: int) -> tuple[bool, float, int, int]:
        value = values[i]
        return (True, 0.0, rids[i], i) if math.isnan(value) else (False, -value, rids[i], i)

    return sorted(range(len(values)), key=key)[:k]


def dedup(
    order: I32, rids: I32, type: U8, content_hash: U64, fold_hash: U64, tag_hash: U64, mode: int, limit: int
) -> tuple[I32, I32]:
    """Keep the best of what repeats itself: (kept i32[<= limit] positions, folded_into i32[n]).

    ``order`` i32[m]: positions in 0..n-1, best first; the others are i32, u8 or u64 [n]. In every mode a rid is kept
    once. ``mode`` (``model.Dedup``): 1 nothing more; 2 equal content_hash repeats; 3 that, and an equal pair of type
    and tag_hash where tag_hash is not 0; 4 that of 2, and an equal fold_hash that is not 0. Each position is compared
    with the kept ones only, and kept while fewer than ``limit`` are. folded_into[p] = the kept position that p
    repeats, or -1.
    """
    n = check_array("rids", rids, np.int32)
    check_array("order", order, np.int32)
    check_array("type", type, np.uint8, n)
    for name, array in (("content_hash", content_hash), ("fold_hash", fold_hash), ("tag_hash", tag_hash)):
        check_array(name, array, np.uint64, n)
    check_at_least("limit", limit, 0)
    if mode not in (1, 2, 3, 4):
        raise ValueError("mode must be 1, 2, 3 or 4")
    if len(order) and not 0 <= int(order.min()) <= int(order.max()) < n:
        raise ValueError("order names a position out of range")
    kept: list[int] = []
    folded_into = np.full(n, -1, np.int32)
    seen: dict[tuple[str, int, int], int] = {}
    for p in order.tolist():
        keys = [("rid", int(rids[p]), 0)]
        if mode != 1:
            keys.append(("content", int(content_hash[p]), 0))
        if mode == 3 and tag_hash[p]:
            keys.append(("tags", int(tag_hash[p]), int(type[p])))
        if mode == 4 and fold_hash[p]:
            keys.append(("fold", int(fold_hash[p]), 0))
        found = next((seen[key] for key in keys if key in seen), None)
        if found is not None:
            folded_into[p] = found
        elif len(kept) < limit:
            kept.append(p)
            seen.update(dict.fromkeys(keys, p))
    return np.array(kept, np.int32), folded_into


def rank_all(
    mask: U8,
    semantic: F64 | None,
    reference: I64,
    retrieval: U32,
    access: U32,
    importance: F32,
    now: int,
    half_life: int,
    weights: Weights,
    k: int,
) -> tuple[I32, F64, F64, F64, int]:
    """Rank every row that the mask lets through: factors, combine, normalise over all of them, top_k by raw score.

    ``mask`` u8 by rid, not 0 = in; ``semantic`` f64 by rid, None = 0 everywhere; the rest as in ``factors`` and
    ``combine``. Answers (rids i32[m], raw f64[m], z f64[m], score f64[m], n): the m = min(k, n) best by raw
    descending, then rid ascending, NaN last, and how many rows were ranked. Equal to the composition of the others.
    """
    size = check_array("mask", mask, np.uint8)
    check_at_least("k", k, 0)
    if semantic is not None and check_array("semantic", semantic, np.float64) < size:
        raise ValueError("semantic is shorter than the mask")
    _check_by_rid(size, reference, retrieval, access, importance)
    rids = np.flatnonzero(mask).astype(np.int32)
    meaning = np.zeros(len(rids)) if semantic is None else semantic[rids]
    raw = combine(meaning, *factors(rids, reference, retrieval, access, importance, now, half_life), weights)
    z, score = normalise(raw)
    best = top_k(raw, rids, k)
    return rids[best], raw[best], z[best], score[best], len(rids)
