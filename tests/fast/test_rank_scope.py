"""rank_all: the compiled kernel answers the twin's bits for any scope, and the twin is the composition of the steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from rank_world import NOW, assert_same, make_columns, make_legs, make_rules

from memxd._fast import Kernels
from memxd._fast.protocols import SCOPE_VALUES, RankColumns

I64 = st.integers(-(2**63), 2**63 - 1)
UNIT = st.floats(0.0, 1.0)
NONE = np.empty(0, np.int32)
HASHES = st.sampled_from([0, 1, 2, 2**63, 2**64 - 1])


@st.composite
def any_columns(draw: st.DrawFn, size: int) -> RankColumns:
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


def test_it_is_the_composition_of_the_steps(kernels: Kernels) -> None:
    n = 400
    kernel, columns, legs = kernels.rank, make_columns(n), make_legs(n, 30, 40)
    rules = make_rules(dedup=1)
    rids = np.arange(0, n, 2, dtype=np.int32)
    got = kernel.rank_all(rids, legs.vector_rids, legs.keyword_rids, columns, rules, 10)
    fused, score, vector_rank, keyword_rank = kernel.fuse_rrf(legs.vector_rids, legs.keyword_rids, 60, 0.6, 0.4)
    semantic = np.zeros(n)
    semantic[fused] = score / (1.0 / 61.0)
    raw = kernel.combine(semantic[rids], *kernel.factors(rids, *columns[:4], rules.now, rules.half_life), rules.weights)
    best = kernel.top_k(raw, rids, len(rids))
    values = dict(zip(SCOPE_VALUES, got.values, strict=True))
    assert got.ids[0].tolist() == rids[best].tolist()
    assert got.kept.tolist() == list(range(len(rids)))
    np.testing.assert_array_equal(values["raw"], raw[best])
    z, sigmoid = kernel.normalise(raw)
    np.testing.assert_array_equal(values["z"], z[best])
    np.testing.assert_array_equal(values["score"], sigmoid[best])
    in_both = np.flatnonzero((got.ids[1] > 0) & (got.ids[2] > 0))
    assert len(in_both)
    for p in in_both.tolist():
        at = int(np.flatnonzero(fused == got.ids[0][p])[0])
        assert (vector_rank[at], keyword_rank[at]) == (got.ids[1][p], got.ids[2][p])
        assert values["rrf"][p] == score[at]
