"""Columns, legs and rules to rank with, and what it means that two answers are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from memxd._fast.protocols import LEG_VALUES, LegRanking, RankColumns, RankKernel, RankLegs, RankRules

NOW = 1_760_000_000_000_000
DAY = 86_400_000_000
I64 = st.integers(-(2**63), 2**63 - 1)
HASHES = st.sampled_from([0, 1, 2, 2**63, 2**64 - 1])


def make_columns(n: int, seed: int = 7) -> RankColumns:
    """``n`` rows of ages up to five years, few of them retrieved, no two alike."""
    rng = np.random.default_rng(seed)

    def hashes() -> Any:
        return rng.integers(1, 2**63, n).astype(np.uint64)

    return RankColumns(
        rng.integers(NOW - 1_800 * DAY, NOW, n),
        rng.integers(0, 50, n).astype(np.uint32) * (rng.random(n) < 0.5).astype(np.uint32),
        rng.integers(0, 30_000, n).astype(np.uint32),
        rng.random(n).astype(np.float32),
        rng.integers(1, 6, n).astype(np.uint8),
        rng.integers(0, 4, n).astype(np.uint8),
        hashes(),
        hashes(),
        hashes(),
    )


@st.composite
def any_columns(draw: st.DrawFn, size: int) -> RankColumns:
    """``size`` rows of anything; few different hashes, so that rows repeat each other."""

    def u64() -> Any:
        return draw(arrays.arrays(np.uint64, size, elements=HASHES))

    return RankColumns(
        draw(arrays.arrays(np.int64, size, elements=st.one_of(I64, st.sampled_from([0, NOW])))),
        draw(arrays.arrays(np.uint32, size)),
        draw(arrays.arrays(np.uint32, size, elements=st.integers(0, 30_000))),
        draw(arrays.arrays(np.float32, size, elements=st.one_of(st.floats(width=32), st.sampled_from([0.0, 0.5])))),
        draw(arrays.arrays(np.uint8, size, elements=st.integers(1, 2))),
        draw(arrays.arrays(np.uint8, size, elements=st.integers(0, 3))),
        u64(),
        u64(),
        u64(),
    )


def make_legs(n: int, a: int, b: int, seed: int = 7) -> RankLegs:
    """Legs of ``a`` and ``b`` of the rows 0..n-1, a third of the shorter one in both."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(n).astype(np.int32)
    shared = min(a, b) // 3
    vector, keyword = rows[:a].copy(), rng.permutation(rows[a - shared : a - shared + b])
    return RankLegs(
        vector, rng.uniform(0.7, 0.95, a), rng.uniform(0.0, 9.0, a), rng.random(a),
        keyword, rng.uniform(0.7, 0.95, b), rng.uniform(0.1, 9.0, b), rng.random(b),
    )  # fmt: skip


def make_rules(**changes: Any) -> RankRules:
    """Profile balanced with a model's band, and what the test changes."""
    rules = RankRules(
        fusion=1, vector_asked=True, keyword_asked=True, rrf_k=60, vector_weight=0.6, keyword_weight=0.4,
        weights=(0.84, 0.05, 0.01, 0.1), now=NOW, half_life=30 * DAY, normalise=True, dedup=4, band=(0.78, 0.92),
        shifts=(0.0, 0.0, -0.035), word_share=0.75, relevance=(-3.2, 4.2, 2.6),
    )  # fmt: skip
    return rules._replace(**changes)


def vector_leg(rids: Any, cosines: Any = None) -> RankLegs:
    """A vector leg alone, best first; cosines 0 where not told."""
    rids = np.asarray(rids, np.int32)
    told = np.zeros(len(rids)) if cosines is None else np.asarray(cosines, np.float64)
    none = np.empty(0)
    return RankLegs(rids, told, None, None, np.empty(0, np.int32), None, none, none)


def rank_raw(kernel: RankKernel, raw: Any, rids: Any = None, columns: RankColumns | None = None) -> LegRanking:
    """Rank rows whose raw scores are these, bit for bit: by the cosine alone, NaN by way of the importance.

    A weight of -0 adds -0, which changes no number.
    """
    raw = np.asarray(raw, np.float64)
    rids = np.arange(len(raw), dtype=np.int32) if rids is None else np.asarray(rids, np.int32)
    columns = make_columns(int(rids.max(initial=0)) + 1) if columns is None else columns
    importance = columns.importance.copy()
    importance[rids] = np.where(np.isnan(raw), np.float32(np.nan), np.float32(0.5))
    rules = make_rules(fusion=3, weights=(1.0, -0.0, -0.0, -0.0), dedup=1)
    got = kernel.rank_legs(vector_leg(rids, raw), columns._replace(importance=importance), rules)
    assert_same(got.values[LEG_VALUES.index("raw")], raw)
    return got


def assert_same(a: Any, b: Any) -> None:
    """Equal dtype, length and bits (two NaN are equal whatever their payload)."""
    if not isinstance(a, tuple):
        a, b = (a,), (b,)
    for x, y in zip(a, b, strict=True):
        if isinstance(x, np.ndarray):
            assert x.dtype == y.dtype
            assert x.shape == y.shape
            if x.dtype == np.float64:
                np.testing.assert_array_equal(np.isnan(x), np.isnan(y))
                x, y = np.where(np.isnan(x), 0.0, x).view(np.int64), np.where(np.isnan(y), 0.0, y).view(np.int64)
            np.testing.assert_array_equal(x, y)
        else:
            assert x == y
