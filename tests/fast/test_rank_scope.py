"""rank_all: the compiled kernel answers the twin's bits for any scope, and ranks as rank_legs does."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from rank_world import NOW, any_columns, assert_same, make_columns, make_legs, make_rules, vector_leg

from memxd._fast import Kernels
from memxd._fast.protocols import LEG_VALUES, SCOPE_VALUES

I64 = st.integers(-(2**63), 2**63 - 1)
UNIT = st.floats(0.0, 1.0)
NONE = np.empty(0, np.int32)


@settings(max_examples=200, deadline=None)
@given(
    data=st.data(),
    size=st.integers(0, 40),
    now=I64,
    half_life=st.integers(1, 2**62),
    k=st.integers(0, 50),
    weights=st.tuples(UNIT, UNIT, UNIT, UNIT),
    dedup=st.integers(1, 4),
)
def test_rank_all_equals_its_twin(
    compiled: Kernels,
    twins: Kernels,
    data: st.DataObject,
    size: int,
    now: int,
    half_life: int,
    k: int,
    weights: tuple[float, float, float, float],
    dedup: int,
) -> None:
    columns = data.draw(any_columns(size))
    inside = data.draw(arrays.arrays(np.bool_, size))
    rids = np.flatnonzero(inside).astype(np.int32)
    leg = st.lists(st.integers(-2, size + 2), max_size=12).map(lambda v: np.array(v, np.int32))
    legs = (data.draw(leg), data.draw(leg))
    rules = make_rules(now=now, half_life=half_life, weights=weights, dedup=dedup, normalise=data.draw(st.booleans()))
    got = compiled.rank.rank_all(rids, *legs, columns, rules, k)
    assert_same(got, twins.rank.rank_all(rids, *legs, columns, rules, k))
    assert got.ranked == len(rids)
    assert sorted(got.ids[0].tolist()) == rids.tolist()
    assert set(got.ids[3][got.ids[3] >= 0].tolist()) <= set(got.kept.tolist())


@pytest.mark.parametrize("n", [511, 512, 513, 1_100, 8_191, 8_193, 20_000])
@pytest.mark.parametrize("share", [1.0, 0.6])
def test_large_scopes_equal_the_twin(compiled: Kernels, twins: Kernels, n: int, share: float) -> None:
    legs = make_legs(n, 60, 90)
    rids = np.flatnonzero(np.random.default_rng(n).random(n) < share).astype(np.int32)
    for k in (1, 40):
        args = (rids, legs.vector_rids, legs.keyword_rids, make_columns(n), make_rules(), k)
        assert_same(compiled.rank.rank_all(*args), twins.rank.rank_all(*args))


@pytest.mark.parametrize("order", ["ascending", "descending", "equal", "two values"])
@pytest.mark.parametrize("n", [3_000, 12_000])
def test_no_order_of_the_rows_matters(compiled: Kernels, twins: Kernels, order: str, n: int) -> None:
    columns = make_columns(n)
    reference = {
        "ascending": np.sort(columns.reference),
        "descending": np.sort(columns.reference)[::-1].copy(),
        "equal": np.full(n, NOW),
        "two values": np.where(np.arange(n) % 100 == 7, NOW, 0),
    }[order]
    columns = columns._replace(reference=reference)
    args = (np.arange(n, dtype=np.int32), NONE, NONE, columns, make_rules(weights=(0.0, 1.0, 0.0, 0.0)), 30)
    got = compiled.rank.rank_all(*args)
    assert_same(got, twins.rank.rank_all(*args))
    if order == "equal":
        assert got.ids[0].tolist() == list(range(64))
        assert (got.values[SCOPE_VALUES.index("score")] == 0.5).all()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 3e38])
@pytest.mark.parametrize("share", [0.001, 0.5, 1.0])
def test_values_that_are_not_finite_equal_the_twin(
    compiled: Kernels, twins: Kernels, value: float, share: float
) -> None:
    n = 9_000
    columns = make_columns(n)
    importance = np.where(np.random.default_rng(1).random(n) < share, np.float32(value), columns.importance)
    columns = columns._replace(importance=importance.astype(np.float32))
    args = (np.arange(n, dtype=np.int32), NONE, NONE, columns, make_rules(weights=(0.1, 0.1, 0.1, 1e308)), 30)
    got = compiled.rank.rank_all(*args)
    assert_same(got, twins.rank.rank_all(*args))
    assert np.isfinite(got.values[SCOPE_VALUES.index("z")]).all()


def test_many_copies_of_the_best_do_not_hide_the_rest(compiled: Kernels, twins: Kernels) -> None:
    n, copies = 9_000, 3_000
    columns = make_columns(n)
    columns.importance[:copies] = 1.0
    columns.importance[copies:] *= 0.5
    columns.content_hash[:copies] = 77
    args = (np.arange(n, dtype=np.int32), NONE, NONE, columns, make_rules(weights=(0.0, 0.0, 0.0, 1.0)), 30)
    got = compiled.rank.rank_all(*args)
    assert_same(got, twins.rank.rank_all(*args))
    assert len(got.kept) >= 30
    assert (got.ids[3] == 0).sum() == copies - 1


def test_a_whole_scope_is_ranked_as_legs_that_bring_all_of_it_would_be(kernels: Kernels) -> None:
    n = 400
    kernel, columns, legs = kernels.rank, make_columns(n), make_legs(n, 30, 40)
    rules = make_rules(dedup=1, fusion=2)
    rids = np.arange(0, n, 2, dtype=np.int32)
    got = kernel.rank_all(rids, legs.vector_rids, legs.keyword_rids, columns, rules, 10)
    values = dict(zip(SCOPE_VALUES, got.values, strict=True))
    ranks = [{int(rid): i for i, rid in enumerate(leg, 1)} for leg in (legs.vector_rids, legs.keyword_rids)]
    rrf = [sum(w / (60.0 + of[rid]) if rid in of else 0.0 for w, of in zip((0.6, 0.4), ranks, strict=True))
           for rid in got.ids[0].tolist()]  # fmt: skip
    assert values["rrf"].tolist() == rrf
    assert got.ids[1].tolist() == [ranks[0].get(rid, 0) for rid in got.ids[0].tolist()]
    assert got.ids[2].tolist() == [ranks[1].get(rid, 0) for rid in got.ids[0].tolist()]
    assert ((got.ids[1] > 0) & (got.ids[2] > 0)).any()
    np.testing.assert_array_equal(values["semantic"], np.array(rrf) / (1.0 / 61.0))
    # The same rows as one leg, whose semantic factor is told as their cosine.
    semantic = np.zeros(n)
    semantic[got.ids[0]] = values["semantic"]
    one = kernel.rank_legs(vector_leg(rids, semantic[rids]), columns, rules._replace(fusion=3))
    order = one.ids[3]
    assert got.ids[0].tolist() == one.ids[0][order].tolist()
    assert got.kept.tolist() == list(range(len(rids)))
    for name in SCOPE_VALUES[1:]:
        np.testing.assert_array_equal(values[name], one.values[LEG_VALUES.index(name)][order])


@pytest.mark.parametrize("n", [600, 3_000])
@pytest.mark.parametrize("alike", [0.2, 0.9, 1.0])
@pytest.mark.parametrize("crowd", [0.5, math.nan, -math.inf])
def test_scores_that_crowd_in_a_small_scope_are_ranked_as_the_twin_does(
    compiled: Kernels, twins: Kernels, n: int, alike: float, crowd: float
) -> None:
    """A bucket of the best holds more rows than there is room for: the best are found by a bound then."""
    columns = make_columns(n)
    columns.importance[:] = np.where(np.random.default_rng(n).random(n) < alike, np.float32(crowd), 0.499)
    columns.importance[7] = 1.0
    args = (np.arange(n, dtype=np.int32), NONE, NONE, columns, make_rules(weights=(0.0, 1e-9, 0.0, 1.0)), 20)
    assert_same(compiled.rank.rank_all(*args), twins.rank.rank_all(*args))


@pytest.mark.parametrize("gaps", [False, True])
def test_legs_may_bring_every_row_twice_and_rows_that_are_not_in_the_scope(
    compiled: Kernels, twins: Kernels, gaps: bool
) -> None:
    rids = np.arange(64, 1_500, 2 if gaps else 1, dtype=np.int32)
    rng = np.random.default_rng(5)
    leg = np.tile(rng.permutation(np.arange(-40, 1_600)).astype(np.int32), 2)
    edges = np.array([2**31 - 1, -(2**31), 63, 64, 1_499, 1_500], np.int32)
    for legs in ((leg, leg[::-1].copy()), (edges, leg), (NONE, edges)):
        args = (rids, *legs, make_columns(1_500), make_rules(), 20)
        assert_same(compiled.rank.rank_all(*args), twins.rank.rank_all(*args))
