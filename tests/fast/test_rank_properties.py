"""What must hold of factors, scores, order and folding, on anything; and that compiled kernel and twin agree on it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from rank_world import any_columns, assert_same, make_columns, make_legs, make_rules, rank_raw, vector_leg

from memxd._fast import Kernels
from memxd._fast.protocols import LEG_VALUES, LegRanking

I64 = st.integers(-(2**63), 2**63 - 1)
ANY = st.floats(width=64)
UNIT = st.floats(0.0, 1.0)
#: Few different values, so that ties, NaN and infinities meet.
TIES = st.sampled_from([0.0, -0.0, 0.5, 0.25, 1.0, -1.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324])
examples = settings(max_examples=150, deadline=None)


def floats(n: st.SearchStrategy[int], elements: st.SearchStrategy[float]) -> st.SearchStrategy[Any]:
    return n.flatmap(lambda size: arrays.arrays(np.float64, size, elements=elements))


def value(got: LegRanking, name: str) -> Any:
    return got.values[LEG_VALUES.index(name)]


@examples
@given(
    data=st.data(),
    size=st.integers(1, 40),
    now=I64,
    half_life=st.integers(1, 2**62),
    weights=st.tuples(ANY, ANY, ANY, ANY),
    leg_weights=st.tuples(ANY, ANY),
    rrf_k=st.integers(0, 10_000),
    fusion=st.integers(1, 3),
    dedup=st.integers(1, 4),
)
def test_any_rows_and_rules_equal_the_twin(
    compiled: Kernels, twins: Kernels, data: st.DataObject, size: int, now: int, half_life: int,
    weights: tuple[float, ...], leg_weights: tuple[float, float], rrf_k: int, fusion: int, dedup: int,
) -> None:  # fmt: skip
    columns = data.draw(any_columns(size))
    legs = make_legs(size, data.draw(st.integers(0, size // 2)), data.draw(st.integers(0, size // 2)))
    cosines = data.draw(arrays.arrays(np.float64, len(legs.vector_rids), elements=st.one_of(TIES, ANY)))
    rules = make_rules(
        now=now, half_life=half_life, weights=weights, rrf_k=rrf_k, vector_weight=leg_weights[0],
        keyword_weight=leg_weights[1], fusion=fusion, dedup=dedup,
    )  # fmt: skip
    got = compiled.rank.rank_legs(legs._replace(vector_cosines=cosines), columns, rules)
    assert_same(got, twins.rank.rank_legs(legs._replace(vector_cosines=cosines), columns, rules))
    assert ((value(got, "recency") > 0.0) & (value(got, "recency") <= 1.0)).all()
    assert ((value(got, "frequency") >= 0.0) & (value(got, "frequency") <= 1.0)).all()
    rids = np.arange(size, dtype=np.int32)
    args = (rids, legs.vector_rids, legs.keyword_rids, columns, rules, 5)
    assert_same(compiled.rank.rank_all(*args), twins.rank.rank_all(*args))


def test_raw_is_the_weighted_sum_of_the_four_factors_from_left_to_right(kernels: Kernels) -> None:
    weights = (0.45, 0.25, 0.05, 0.1)
    got = kernels.rank.rank_legs(make_legs(200, 70, 60), make_columns(200), make_rules(weights=weights))
    names = ("semantic", "recency", "frequency", "importance")
    s, r, f, m = (w * value(got, name) for w, name in zip(weights, names, strict=True))
    np.testing.assert_array_equal(value(got, "raw"), ((s + r) + f) + m)


@settings(max_examples=300, deadline=None)
@given(age=st.integers(0, 10**12), half_life=st.integers(1, 10**10))
def test_recency_is_two_to_the_minus_age_over_half_life(kernels: Kernels, age: int, half_life: int) -> None:
    columns = make_columns(1)._replace(reference=np.array([10**12 - age]))
    got = kernels.rank.rank_legs(vector_leg([0]), columns, make_rules(now=10**12, half_life=half_life))
    expected = max(2.0 ** -min(1000.0, age / half_life), 2.0**-1000)
    # The age is multiplied by 1 / half-life: one rounding of the exponent more than a division has.
    assert math.isclose(value(got, "recency")[0], expected, rel_tol=1e-15 + 2.0**-52 * min(1000.0, age / half_life))


def test_frequency_grows_and_saturates(kernels: Kernels) -> None:
    counts = np.array([*range(0, 25_000, 7), 22_025, 22_026, 22_027, 2**32 - 1], np.uint32)
    counts.sort()
    columns = make_columns(len(counts))._replace(retrieval=counts, access=np.zeros(len(counts), np.uint32))
    frequency = value(kernels.rank.rank_legs(vector_leg(range(len(counts))), columns, make_rules()), "frequency")
    assert (np.diff(frequency) >= 0.0).all()
    assert frequency[0] == 0.0
    assert frequency[-1] == 1.0
    np.testing.assert_allclose(frequency, np.minimum(1.0, np.log1p(counts) / 10.0), rtol=1e-14)


@examples
@given(raw=floats(st.integers(0, 80), st.one_of(TIES, ANY, UNIT)))
def test_scores_and_order_of_anything_equal_the_twin_and_are_finite(
    compiled: Kernels, twins: Kernels, raw: Any
) -> None:
    got = rank_raw(compiled.rank, raw)
    assert_same(got, rank_raw(twins.rank, raw))
    z, score, order = value(got, "z"), value(got, "score"), got.ids[3]
    assert np.isfinite(z).all()
    assert ((score >= 0.0) & (score <= 1.0)).all()
    assert (np.diff(z[order][np.isfinite(raw[order])]) <= 0.0).all()
    assert not np.isnan(raw[order][: len(raw) - int(np.isnan(raw).sum())]).any()


@examples
@given(number=st.floats(allow_nan=False, allow_infinity=False), n=st.integers(1, 50))
def test_equal_values_are_all_average(kernels: Kernels, number: float, n: int) -> None:
    got = rank_raw(kernels.rank, np.full(n, number))
    assert (value(got, "z") == 0.0).all()
    assert (value(got, "score") == 0.5).all()


@examples
@given(data=st.data(), n=st.integers(0, 60))
def test_order_does_not_depend_on_the_order_of_candidates(kernels: Kernels, data: st.DataObject, n: int) -> None:
    rids = np.array(data.draw(st.permutations(range(n))), np.int32)
    by_rid = data.draw(arrays.arrays(np.float64, n, elements=TIES))
    one = rank_raw(kernels.rank, by_rid).ids[3]
    other = rids[rank_raw(kernels.rank, by_rid[rids], rids).ids[3]]
    assert one.tolist() == other.tolist()


@examples
@given(data=st.data(), n=st.integers(0, 40), mode=st.integers(1, 4))
def test_what_is_kept_repeats_nothing_and_what_is_folded_repeats_what_is_kept(
    kernels: Kernels, data: st.DataObject, n: int, mode: int
) -> None:
    columns, legs = data.draw(any_columns(n)), vector_leg(range(n), np.linspace(0.9, 0.1, n))
    got = kernels.rank.rank_legs(legs, columns, make_rules(dedup=mode))
    kept, folded = got.kept, got.ids[4]
    assert set(folded[folded >= 0].tolist()) <= set(kept.tolist())
    assert (folded[kept] == -1).all()
    assert len(kept) + int((folded >= 0).sum()) == n
    rank = np.argsort(got.ids[3])
    assert (rank[folded[folded >= 0]] < rank[folded >= 0]).all()
    if mode == 1:
        assert len(kept) == n
    else:
        assert len(set(columns.content_hash[kept].tolist())) == len(kept)
