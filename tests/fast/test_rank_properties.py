"""Compiled kernel and twin answer the same bits on anything; and what must hold of the answers does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from rank_world import assert_same

from memxd._fast import Kernels

I64 = st.integers(-(2**63), 2**63 - 1)
ANY = st.floats(width=64)
UNIT = st.floats(0.0, 1.0)
#: Few different values, so that ties, NaN and infinities meet.
TIES = st.sampled_from([0.0, -0.0, 0.5, 0.25, 1.0, -1.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324])
RIDS = st.lists(st.integers(0, 40), max_size=60).map(lambda v: np.array(v, np.int32))
examples = settings(max_examples=150, deadline=None)


def floats(n: st.SearchStrategy[int], elements: st.SearchStrategy[float]) -> st.SearchStrategy[Any]:
    return n.flatmap(lambda size: arrays.arrays(np.float64, size, elements=elements))


@st.composite
def columns(draw: st.DrawFn, size: int) -> tuple[Any, Any, Any, Any]:
    """reference, retrieval, access, importance by rid."""
    return (
        draw(arrays.arrays(np.int64, size, elements=I64)),
        draw(arrays.arrays(np.uint32, size)),
        draw(arrays.arrays(np.uint32, size, elements=st.integers(0, 30_000))),
        draw(arrays.arrays(np.float32, size, elements=st.floats(width=32))),
    )


@examples
@given(a=RIDS, b=RIDS, k=st.integers(0, 10_000), weights=st.tuples(ANY, ANY))
def test_fuse_rrf_equals_its_twin(
    compiled: Kernels, twins: Kernels, a: Any, b: Any, k: int, weights: tuple[float, float]
) -> None:
    got = compiled.rank.fuse_rrf(a, b, k, *weights)
    assert_same(got, twins.rank.fuse_rrf(a, b, k, *weights))
    assert got[0].tolist() == sorted({*a.tolist(), *b.tolist()})


@examples
@given(data=st.data(), size=st.integers(1, 30), now=I64, half_life=st.integers(1, 2**62))
def test_factors_equal_their_twin(
    compiled: Kernels, twins: Kernels, data: st.DataObject, size: int, now: int, half_life: int
) -> None:
    rids = np.array(data.draw(st.lists(st.integers(0, size - 1), max_size=40)), np.int32)
    reference, retrieval, access, importance = data.draw(columns(size))
    got = compiled.rank.factors(rids, reference, retrieval, access, importance, now, half_life)
    assert_same(got, twins.rank.factors(rids, reference, retrieval, access, importance, now, half_life))
    recency, frequency, _ = got
    assert ((recency > 0.0) & (recency <= 1.0)).all()
    assert ((frequency >= 0.0) & (frequency <= 1.0)).all()


@settings(max_examples=300, deadline=None)
@given(age=st.integers(0, 10**12), half_life=st.integers(1, 10**10))
def test_recency_is_two_to_the_minus_age_over_half_life(kernels: Kernels, age: int, half_life: int) -> None:
    zero = np.zeros(1, np.uint32)
    now = 10**12
    recency = kernels.rank.factors(
        np.zeros(1, np.int32), np.array([now - age]), zero, zero, np.zeros(1, np.float32), now, half_life
    )[0][0]
    expected = max(2.0 ** -min(1000.0, age / half_life), 2.0**-1000)
    # The age is multiplied by 1 / half-life: one rounding of the exponent more than a division has.
    assert math.isclose(recency, expected, rel_tol=1e-15 + 2.0**-52 * min(1000.0, age / half_life))


def test_frequency_grows_and_saturates(kernels: Kernels) -> None:
    counts = np.array([*range(0, 25_000, 7), 22_025, 22_026, 22_027, 2**32 - 1], np.uint32)
    counts.sort()
    n = len(counts)
    zeros = np.zeros(n, np.uint32)
    frequency = kernels.rank.factors(
        np.arange(n, dtype=np.int32), np.zeros(n, np.int64), counts, zeros, np.zeros(n, np.float32), 0, 1
    )[1]
    assert (np.diff(frequency) >= 0.0).all()
    assert frequency[0] == 0.0
    assert frequency[-1] == 1.0
    np.testing.assert_allclose(frequency, np.minimum(1.0, np.log1p(counts) / 10.0), rtol=1e-14)


@examples
@given(data=st.data(), n=st.integers(0, 40), weights=st.tuples(ANY, ANY, ANY, ANY))
def test_combine_equals_its_twin(
    compiled: Kernels, twins: Kernels, data: st.DataObject, n: int, weights: tuple[float, float, float, float]
) -> None:
    columns = [data.draw(arrays.arrays(np.float64, n, elements=ANY)) for _ in range(4)]
    s, r, f, i = columns
    assert_same(compiled.rank.combine(s, r, f, i, weights), twins.rank.combine(s, r, f, i, weights))


@examples
@given(raw=floats(st.integers(0, 70), st.one_of(TIES, ANY, UNIT)))
def test_normalise_equals_its_twin_and_is_finite(compiled: Kernels, twins: Kernels, raw: Any) -> None:
    z, score = compiled.rank.normalise(raw)
    assert_same((z, score), twins.rank.normalise(raw))
    assert np.isfinite(z).all()
    assert ((score >= 0.0) & (score <= 1.0)).all()
    finite = np.isfinite(raw)
    best_first = np.argsort(-raw[finite], kind="stable")
    assert (np.diff(z[finite][best_first]) <= 0.0).all()


@examples
@given(value=st.floats(allow_nan=False, allow_infinity=False), n=st.integers(1, 50))
def test_equal_values_are_all_average(kernels: Kernels, value: float, n: int) -> None:
    z, score = kernels.rank.normalise(np.full(n, value))
    assert (z == 0.0).all()
    assert (score == 0.5).all()


@examples
@given(data=st.data(), score=floats(st.integers(0, 80), st.one_of(TIES, ANY)), k=st.integers(0, 90))
def test_top_k_equals_its_twin_and_a_full_sort(
    compiled: Kernels, twins: Kernels, data: st.DataObject, score: Any, k: int
) -> None:
    rids = data.draw(arrays.arrays(np.int32, len(score), elements=st.integers(0, 20)))
    got = compiled.rank.top_k(score, rids, k)
    assert_same(got, twins.rank.top_k(score, rids, k))
    assert_same(got, twins.rank.top_k(score, rids, len(score))[:k])


@examples
@given(data=st.data(), n=st.integers(0, 60), k=st.integers(0, 20))
def test_order_does_not_depend_on_the_order_of_candidates(
    kernels: Kernels, data: st.DataObject, n: int, k: int
) -> None:
    rids = np.array(data.draw(st.permutations(range(n))), np.int32)
    by_rid = data.draw(arrays.arrays(np.float64, n, elements=TIES))
    forward = np.arange(n, dtype=np.int32)
    one = forward[kernels.rank.top_k(by_rid, forward, k)]
    other = rids[kernels.rank.top_k(by_rid[rids], rids, k)]
    assert one.tolist() == other.tolist()


HASHES = st.sampled_from([0, 1, 2, 3, 2**63, 2**64 - 1])


@examples
@given(data=st.data(), n=st.integers(0, 40), mode=st.integers(1, 4), limit=st.integers(0, 45))
def test_dedup_equals_its_twin(
    compiled: Kernels, twins: Kernels, data: st.DataObject, n: int, mode: int, limit: int
) -> None:
    order = np.array(data.draw(st.permutations(range(n))), np.int32)[: data.draw(st.integers(0, n))]
    rids = data.draw(arrays.arrays(np.int32, n, elements=st.integers(0, 50)))
    types = data.draw(arrays.arrays(np.uint8, n, elements=st.integers(1, 3)))
    content, fold, tag = (data.draw(arrays.arrays(np.uint64, n, elements=HASHES)) for _ in range(3))
    kept, folded = compiled.rank.dedup(order, rids, types, content, fold, tag, mode, limit)
    assert_same((kept, folded), twins.rank.dedup(order, rids, types, content, fold, tag, mode, limit))
    assert len(kept) <= limit
    assert len(set(rids[kept].tolist())) == len(kept)
    assert set(folded[folded >= 0].tolist()) <= set(kept.tolist())
    assert (folded[kept] == -1).all()
    if mode != 1:
        assert len(set(content[kept].tolist())) == len(kept)
