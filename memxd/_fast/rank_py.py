"""Ranking kernels in plain Python: what two legs found, or a whole scope, by fusion, four factors, score and order.

The twin of ``_rank.pyx``: the oracle of its tests, and what runs without a compiler. Both do the same floating-point
operations in the same order (exp and log are the C library's), so that their results are equal bit for bit. The loops
are plain on purpose. Columns hold one value for each dense internal id (rid). Arrays must be one-dimensional,
C-contiguous and of exactly the named dtype (else ValueError); what they hold is not checked, rids that index columns
excepted. ``engine/`` calls this through ``Kernels``; the arithmetic lies in ``rank_math`` and ``rank_evidence``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memxd._fast import rank_evidence as evidence
from memxd._fast import rank_math as math_
from memxd._fast.arrays import I32, check_array, check_at_least
from memxd._fast.protocols import LegRanking, RankColumns, RankLegs, RankRules, ScopeRanking

#: Scopes up to this many rows are ranked whole by ``rank_all``, so that every repetition is seen.
_WHOLE = 512


def _check_columns(rids: I32, columns: RankColumns) -> None:
    """Every rid must lie within each of the nine columns."""
    dtypes: tuple[type[np.generic], ...] = (
        np.int64, np.uint32, np.uint32, np.float32, np.uint8, np.uint8, np.uint64, np.uint64, np.uint64,
    )  # fmt: skip
    named = zip(RankColumns._fields, dtypes, strict=True)
    shortest = min(check_array(name, getattr(columns, name), dtype) for name, dtype in named)
    if len(rids) and not 0 <= int(rids.min()) <= int(rids.max()) < shortest:
        raise ValueError(f"a rid lies outside of columns of {shortest}")


def _check_rules(rules: RankRules) -> None:
    check_at_least("rrf_k", rules.rrf_k, 0)
    check_at_least("half_life", rules.half_life, 1)
    if rules.fusion not in (1, 2, 3):
        raise ValueError("fusion must be 1, 2 or 3")
    if rules.dedup not in (1, 2, 3, 4):
        raise ValueError("dedup must be 1, 2, 3 or 4")


def _factors(rids: list[int], columns: RankColumns, rules: RankRules) -> list[tuple[float, float, float]]:
    """(recency, frequency, importance) of each row (MemX, arXiv 2603.16171).

    recency = 2^(-max(0, now - reference) / half_life), at least 2^-1000; frequency = min(1, ln(c + 1) / 10) with c =
    retrieval, or access where that is 0; importance as it stands. Each in 0..1 if importance is.
    """
    return [
        (
            math_.recency(int(columns.reference[rid]), rules.now, rules.half_life),
            math_.frequency(int(columns.retrieval[rid]) or int(columns.access[rid])),
            float(columns.importance[rid]),
        )
        for rid in rids
    ]


def _scores(
    semantic: list[float], factors: list[tuple[float, float, float]], rules: RankRules
) -> tuple[list[float], list[float], list[float]]:
    """(raw, z, score): the weighted sum of the four factors, its population z-score, and of that the logistic sigmoid.

    In z, NaN counts as the smallest finite value, an infinity as the smallest or largest one. Where the values do not
    differ (one value, all equal, none finite, or a deviation that float64 cannot hold), z is 0 and its sigmoid 0.5.
    Scores above z = 37 round to 1: rows are ordered by raw, which tells them apart. Not normalised: score = raw.
    """
    raw = [math_.weighted(s, *three, rules.weights) for s, three in zip(semantic, factors, strict=True)]
    moments = math_.moments(raw)
    z = [math_.z_score(value, moments) for value in raw]
    return raw, z, [math_.sigmoid(value) for value in z] if rules.normalise else raw


def _order(raw: list[float], rids: list[int]) -> list[int]:
    """Positions best first: by raw descending, then rid ascending; NaN last."""

    def key(i: int) -> tuple[bool, float, int]:
        return (True, 0.0, rids[i]) if math.isnan(raw[i]) else (False, -raw[i], rids[i])

    return sorted(range(len(raw)), key=key)


def _fold(order: list[int], rids: list[int], columns: RankColumns, mode: int) -> tuple[list[int], list[int]]:
    """Keep the best of what repeats itself: (positions kept, folded_into by position).

    ``order``: positions of ``rids``, best first. ``mode`` (``model.Dedup``): 1 nothing repeats; 2 equal content_hash
    repeats; 3 that, and an equal pair of type and tag_hash where tag_hash is not 0; 4 that of 2, and an equal fold_hash
    that is not 0. Each row is compared with the kept ones only. folded_into[p] = the kept position that p repeats, or
    -1.
    """
    kept: list[int] = []
    folded_into = [-1] * len(rids)
    seen: dict[tuple[str, int, int], int] = {}
    for p in order:
        rid = rids[p]
        keys = [] if mode == 1 else [("content", int(columns.content_hash[rid]), 0)]
        if mode == 3 and columns.tag_hash[rid]:
            keys.append(("tags", int(columns.tag_hash[rid]), int(columns.type[rid])))
        if mode == 4 and columns.fold_hash[rid]:
            keys.append(("fold", int(columns.fold_hash[rid]), 0))
        found = next((seen[key] for key in keys if key in seen), None)
        if found is not None:
            folded_into[p] = found
        else:
            kept.append(p)
            seen.update(dict.fromkeys(keys, p))
    return kept, folded_into


def rank_all(
    rids: I32, vector_rids: I32, keyword_rids: I32, columns: RankColumns, rules: RankRules, k: int
) -> ScopeRanking:
    """Rank every one of ``rids`` and answer the best, repetitions folded.

    ``rids`` i32[n] strictly ascending, >= 0. The semantic factor is the RRF of the two legs (i32, best first, either
    may be empty; a rid that comes twice counts where it came first) over its maximum, 0 for rows of neither: weighted
    reciprocal ranks, the sum of weight / (rrf_k + rank) (Cormack, Clarke, Buettcher 2009). Then the other factors, the
    weighted sum, z over all rows, the sigmoid, the order, and of the best what repeats: of all rows up to 512, else of
    the best max(2k, 64), and of four times as many again while fewer than ``k`` are kept. Repetitions further down are
    not looked for.
    """
    n = check_array("rids", rids, np.int32)
    check_array("vector_rids", vector_rids, np.int32)
    check_array("keyword_rids", keyword_rids, np.int32)
    check_at_least("k", k, 0)
    _check_rules(rules)
    if n and (int(rids[0]) < 0 or (np.diff(rids.astype(np.int64)) <= 0).any()):
        raise ValueError("rids must be 0 or more and strictly ascending")
    _check_columns(rids, columns)
    rows: list[int] = rids.tolist()
    by_vector, by_keyword = evidence.first_ranks(vector_rids), evidence.first_ranks(keyword_rids)
    ranks = [(by_vector.get(rid, 0), by_keyword.get(rid, 0)) for rid in rows]
    rrf = [evidence.rrf(v, w, rules) for v, w in ranks]
    semantic = [evidence.of_maximum(value, rules) for value in rrf]
    factors = _factors(rows, columns, rules)
    raw, z, score = _scores(semantic, factors, rules)
    order = _order(raw, rows)
    depth = n if n <= _WHOLE else min(n, max(2 * k, 64))
    while True:
        best = order[:depth]
        kept, folded_into = _fold(list(range(depth)), [rows[i] for i in best], columns, rules.dedup)
        if len(kept) >= k or depth == n:
            break
        depth = min(n, 4 * depth)
    ids = [(rows[i], *ranks[i], into) for i, into in zip(best, folded_into, strict=True)]
    values = [(rrf[i], semantic[i], *factors[i], raw[i], z[i], score[i]) for i in best]
    return ScopeRanking(_rows(ids, 4, np.int32), np.array(kept, np.int32), _rows(values, 8, np.float64), n)


def _rows(of_each: Sequence[tuple[float, ...]], width: int, dtype: type[np.generic]) -> NDArray[Any]:
    """An array [width, n] of n tuples."""
    return np.ascontiguousarray(np.array(of_each, dtype).reshape(len(of_each), width).T)


def rank_legs(legs: RankLegs, columns: RankColumns, rules: RankRules) -> LegRanking:
    """Rank what the two legs of a search found: everything between the indexes and the answer.

    Candidates are the vector leg's rows, then those that only the keyword leg has; a rid that comes twice in a leg
    counts where it came first. With c the cosine less ``shifts[cjk]``, x its place in the band ((c - low) / (high -
    low) cut to -1..2, 0 for NaN) and w the word match: *by meaning* = x / 2 + 1/4 cut to 0..1, 0 for NaN; *by words* =
    share * w + (1 - share) * BM25 / best BM25 * best w. The semantic factor by ``fusion``: 1 = the mean of both,
    weighted by the legs' weights where they were asked; 2 = RRF over its maximum, as in ``rank_all``; 3 = the cosine, 0
    for NaN. Then the other factors, the weighted sum, its z-score and sigmoid, the order, and what repeats. relevance =
    sigmoid(b0 + b1 x + b2 w), with w in the place of x when the vector leg was not asked.
    """
    cosine, bm25, match, ids = evidence.join(legs)
    rids, vector_rank, keyword_rank = ids
    _check_rules(rules)
    _check_columns(rids, columns)
    rows: list[int] = rids.tolist()
    shifts = [rules.shifts[min(int(columns.cjk[rid]), 2)] for rid in rows]
    levelled = [c - shift for c, shift in zip(cosine.tolist(), shifts, strict=True)]
    places = [evidence.place(c, *rules.band) for c in levelled]
    rrf = [evidence.rrf(v, w, rules) for v, w in zip(vector_rank.tolist(), keyword_rank.tolist(), strict=True)]
    if rules.fusion == 1:
        semantic = evidence.by_scores(levelled, places, bm25.tolist(), match.tolist(), rules)
    elif rules.fusion == 2:
        semantic = [evidence.of_maximum(value, rules) for value in rrf]
    else:
        semantic = [0.0 if c != c else c for c in cosine.tolist()]
    factors = _factors(rows, columns, rules)
    raw, z, score = _scores(semantic, factors, rules)
    b0, b1, b2 = rules.relevance
    both = zip(places if rules.vector_asked else match.tolist(), match.tolist(), strict=True)
    relevance = [math_.sigmoid((b0 + b1 * x) + b2 * w) for x, w in both]
    order = _order(raw, rows)
    kept, folded_into = _fold(order, rows, columns, rules.dedup)
    judged = levelled if rules.fusion == 1 else cosine.tolist()
    three = _rows(factors, 3, np.float64)
    return LegRanking(
        np.array([*ids, order, folded_into], np.int32).reshape(5, len(rids)),
        np.array(kept, np.int32),
        np.array([cosine, bm25, match, rrf, semantic, *three, raw, z, score, relevance]),
        evidence.largest(judged, -1.0),
        evidence.largest(relevance, 0.0),
    )
