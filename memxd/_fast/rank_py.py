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

from memxd._fast import rank_evidence as evidence
from memxd._fast import rank_math as math_
from memxd._fast.arrays import F32, F64, I32, I64, U8, U32, U64, check_array, check_at_least
from memxd._fast.protocols import LegRanking, RankColumns, RankLegs, RankRules, ScopeRanking, Weights

#: Scopes up to this many rows are ranked whole by ``rank_all``, so that every repetition is seen.
_WHOLE = 512


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


def _check_columns(rids: I32, columns: RankColumns) -> None:
    """Every rid must lie within each of the nine columns."""
    dtypes: tuple[type[np.generic], ...] = (
        np.int64, np.uint32, np.uint32, np.float32, np.uint8, np.uint8, np.uint64, np.uint64, np.uint64,
    )  # fmt: skip
    named = zip(RankColumns._fields, dtypes, strict=True)
    shortest = min(check_array(name, getattr(columns, name), dtype) for name, dtype in named)
    if len(rids) and not 0 <= int(rids.min()) <= int(rids.max()) < shortest:
        raise ValueError(f"a rid lies outside of columns of {shortest}")


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
    by_vector = evidence.first_ranks(vector_rids)
    by_keyword = evidence.first_ranks(keyword_rids)
    rids = sorted(by_vector.keys() | by_keyword.keys())
    vector_rank = [by_vector.get(rid, 0) for rid in rids]
    keyword_rank = [by_keyword.get(rid, 0) for rid in rids]
    score = [
        (vector_weight / (float(k) + v) if v else 0.0) + (keyword_weight / (float(k) + w) if w else 0.0)
        for v, w in zip(vector_rank, keyword_rank, strict=True)
    ]
    return (
        np.array(rids, np.int32),
        np.array(score, np.float64),
        np.array(vector_rank, np.int32),
        np.array(keyword_rank, np.int32),
    )


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
        recency[i] = math_.recency(int(reference[rid]), now, half_life)
        frequency[i] = math_.frequency(int(retrieval[rid]) or int(access[rid]))
        weight[i] = float(importance[rid])
    return recency, frequency, weight


def combine(semantic: F64, recency: F64, frequency: F64, importance: F64, weights: Weights) -> F64:
    """The weighted sum of the four factors: f64[n] each in, raw score f64[n] out; summed from left to right."""
    n = check_array("semantic", semantic, np.float64)
    check_array("recency", recency, np.float64, n)
    check_array("frequency", frequency, np.float64, n)
    check_array("importance", importance, np.float64, n)
    rows = zip(semantic.tolist(), recency.tolist(), frequency.tolist(), importance.tolist(), strict=True)
    return np.array([math_.weighted(*row, weights) for row in rows], np.float64)


def normalise(raw: F64) -> tuple[F64, F64]:
    """Population z-score, then the logistic sigmoid: (z f64[n], score f64[n] in 0..1).

    NaN counts as the smallest finite value, an infinity as the smallest or largest one. Where the values do not
    differ (one value, all equal, none finite, or a deviation that float64 cannot hold), z is 0 and score 0.5.
    Scores above z = 37 round to 1: order by ``raw``, which tells them apart, rather than by score.
    """
    n = check_array("raw", raw, np.float64)
    values = raw.tolist()
    moments = math_.moments(values)
    z = [math_.z_score(value, moments) for value in values]
    assert len(z) == n
    return np.array(z, np.float64), np.array([math_.sigmoid(value) for value in z], np.float64)


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
    rids: I32, vector_rids: I32, keyword_rids: I32, columns: RankColumns, rules: RankRules, k: int
) -> ScopeRanking:
    """Rank every one of ``rids`` and answer the best, repetitions folded.

    ``rids`` i32[n] strictly ascending, >= 0. The semantic factor is the RRF of the two legs (i32, best first, either
    may be empty) over its maximum, 0 for rows of neither. Then ``factors``, ``combine``, ``normalise`` over all rows,
    ``top_k`` by raw score and ``dedup`` of the best: of all rows up to 512, else of the best max(2k, 64), and of
    four times as many again while fewer than ``k`` are kept. Repetitions further down are not looked for.
    """
    n = check_array("rids", rids, np.int32)
    check_at_least("k", k, 0)
    if n and (int(rids[0]) < 0 or (np.diff(rids.astype(np.int64)) <= 0).any()):
        raise ValueError("rids must be 0 or more and strictly ascending")
    _check_columns(rids, columns)
    fused = fuse_rrf(vector_rids, keyword_rids, rules.rrf_k, rules.vector_weight, rules.keyword_weight)
    by_rid = {int(rid): values for rid, *values in zip(*fused, strict=True)}
    found = [by_rid.get(int(rid), (0.0, 0, 0)) for rid in rids]
    rrf = np.array([f[0] for f in found], np.float64)
    semantic = np.array([evidence.of_maximum(value, rules) for value in rrf.tolist()], np.float64)
    three = factors(rids, *columns[:4], rules.now, rules.half_life)
    raw = combine(semantic, *three, rules.weights)
    z, score = normalise(raw)
    order = top_k(raw, rids, n)
    depth = n if n <= _WHOLE else min(n, max(2 * k, 64))
    while True:
        best = order[:depth]
        kept, folded_into = _folded(rids[best], np.arange(depth, dtype=np.int32), columns, rules.dedup)
        if len(kept) >= k or depth == n:
            break
        depth = min(n, 4 * depth)
    values = (rrf, semantic, *three, raw, z, score if rules.normalise else raw)
    ranks = [np.array([f[leg] for f in found], np.int32)[best] for leg in (1, 2)]
    return ScopeRanking(
        np.array([rids[best], *ranks, folded_into], np.int32).reshape(4, depth),
        kept,
        np.array([column[best] for column in values], np.float64).reshape(len(values), depth),
        n,
    )


def _folded(rids: I32, order: I32, columns: RankColumns, mode: int) -> tuple[I32, I32]:
    c = columns
    return dedup(
        order, rids, c.type[rids], c.content_hash[rids], c.fold_hash[rids], c.tag_hash[rids], mode, len(rids)
    )  # fmt: skip


def rank_legs(legs: RankLegs, columns: RankColumns, rules: RankRules) -> LegRanking:
    """Rank what the two legs of a search found: everything between the indexes and the answer.

    Candidates are the vector leg's rows, then those that only the keyword leg has; a rid that comes twice in a leg
    counts where it came first. With c the cosine less ``shifts[cjk]``, x its place in the band ((c - low) / (high -
    low) cut to -1..2, 0 for NaN) and w the word match: *by meaning* = x / 2 + 1/4 cut to 0..1, 0 for NaN; *by words* =
    share * w + (1 - share) * BM25 / best BM25 * best w. The semantic factor by ``fusion``: 1 = the mean of both,
    weighted by the legs' weights where they were asked; 2 = RRF over its maximum; 3 = the cosine, 0 for NaN. Then
    ``factors``, ``combine``, ``normalise``, ``top_k`` by raw score, ``dedup``. relevance = sigmoid(b0 + b1 x + b2 w),
    with w in the place of x when the vector leg was not asked.
    """
    cosine, bm25, match, ids = evidence.join(legs)
    rids, vector_rank, keyword_rank = ids
    if rules.fusion not in (1, 2, 3):
        raise ValueError("fusion must be 1, 2 or 3")
    _check_columns(rids, columns)
    three = factors(rids, *columns[:4], rules.now, rules.half_life)
    shifts = [rules.shifts[min(int(columns.cjk[rid]), 2)] for rid in rids]
    levelled = [c - shift for c, shift in zip(cosine.tolist(), shifts, strict=True)]
    places = [evidence.place(c, *rules.band) for c in levelled]
    rrf = np.array(
        [evidence.rrf(v, w, rules) for v, w in zip(vector_rank.tolist(), keyword_rank.tolist(), strict=True)]
    )
    if rules.fusion == 1:
        semantic = evidence.by_scores(levelled, places, bm25.tolist(), match.tolist(), rules)
    elif rules.fusion == 2:
        semantic = [evidence.of_maximum(value, rules) for value in rrf.tolist()]
    else:
        semantic = [0.0 if c != c else c for c in cosine.tolist()]
    raw = combine(np.array(semantic, np.float64), *three, rules.weights)
    z, score = normalise(raw)
    b0, b1, b2 = rules.relevance
    both = zip(places if rules.vector_asked else match.tolist(), match.tolist(), strict=True)
    relevance = [math_.sigmoid((b0 + b1 * x) + b2 * w) for x, w in both]
    order = top_k(raw, rids, len(rids))
    kept, folded_into = _folded(rids, order, columns, rules.dedup)
    judged = levelled if rules.fusion == 1 else cosine.tolist()
    return LegRanking(
        np.array([*ids, order, folded_into], np.int32).reshape(5, len(rids)),
        kept,
        np.array([cosine, bm25, match, rrf, semantic, *three, raw, z, score if rules.normalise else raw, relevance]),
        evidence.largest(judged, -1.0),
        evidence.largest(relevance, 0.0),
    )
