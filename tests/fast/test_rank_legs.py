"""rank_legs: the compiled kernel answers the twin's bits for whatever two legs bring; factors mean what they say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from rank_world import assert_same, make_columns, make_legs, make_rules

from memxd._fast import Kernels
from memxd._fast.protocols import LEG_VALUES, LegRanking, RankLegs

ANY = st.one_of(st.floats(-1.0, 1.0), st.sampled_from([math.nan, 0.0, -0.0, 0.85, 1.0]))
WEIGHT = st.sampled_from([0.0, 0.4, 1.0, 1_000.0])
NONE = np.empty(0, np.int32)


@st.composite
def any_legs(draw: st.DrawFn, rows: int) -> RankLegs:
    rids = st.lists(st.integers(0, rows - 1), max_size=30).map(lambda v: np.array(v, np.int32))
    vector, keyword = draw(rids), draw(rids)

    def floats(n: int, elements: st.SearchStrategy[float]) -> Any:
        return draw(arrays.arrays(np.float64, n, elements=elements))

    a, b, score = len(vector), len(keyword), st.floats(0.0, 30.0)
    return RankLegs(
        vector,
        floats(a, ANY),
        floats(a, score) if draw(st.booleans()) else None,
        floats(a, st.floats(0.0, 1.0)) if draw(st.booleans()) else None,
        keyword,
        floats(b, ANY) if draw(st.booleans()) else None,
        floats(b, score),
        floats(b, st.floats(0.0, 1.0)),
    )


@settings(max_examples=300, deadline=None)
@given(
    data=st.data(),
    fusion=st.integers(1, 3),
    asked=st.tuples(st.booleans(), st.booleans()),
    weights=st.tuples(WEIGHT, WEIGHT),
    dedup=st.integers(1, 4),
    normalise=st.booleans(),
)
def test_rank_legs_equals_its_twin(
    compiled: Kernels,
    twins: Kernels,
    data: st.DataObject,
    fusion: int,
    asked: tuple[bool, bool],
    weights: tuple[float, float],
    dedup: int,
    normalise: bool,
) -> None:
    columns = make_columns(50)
    for column in (columns.content_hash, columns.fold_hash, columns.tag_hash):
        column[:] = data.draw(arrays.arrays(np.uint64, 50, elements=st.integers(0, 8)))
    legs = data.draw(any_legs(50))
    rules = make_rules(
        fusion=fusion, vector_asked=asked[0], keyword_asked=asked[1], vector_weight=weights[0],
        keyword_weight=weights[1], dedup=dedup, normalise=normalise,
    )  # fmt: skip
    got = compiled.rank.rank_legs(legs, columns, rules)
    assert_same(got, twins.rank.rank_legs(legs, columns, rules))
    assert len(set(got.ids[0].tolist())) == len(got.ids[0])
    assert set(got.ids[0].tolist()) == {*legs.vector_rids.tolist(), *legs.keyword_rids.tolist()}
    assert sorted(got.ids[3].tolist()) == list(range(len(got.ids[0])))
    assert len(got.kept) + int((got.ids[4] >= 0).sum()) == len(got.ids[0])


@pytest.mark.parametrize(("a", "b"), [(0, 0), (1, 0), (0, 1), (100, 100), (600, 600), (3_000, 2_500)])
@pytest.mark.parametrize("fusion", [1, 2, 3])
def test_any_number_of_candidates_equals_the_twin(
    compiled: Kernels, twins: Kernels, a: int, b: int, fusion: int
) -> None:
    columns, legs = make_columns(9_000), make_legs(9_000, a, b)
    rules = make_rules(fusion=fusion)
    assert_same(compiled.rank.rank_legs(legs, columns, rules), twins.rank.rank_legs(legs, columns, rules))


@pytest.mark.parametrize("crowd", [0.5, math.nan, math.inf, -math.inf])
def test_scores_that_crowd_are_ordered_as_the_twin_does(compiled: Kernels, twins: Kernels, crowd: float) -> None:
    """All but a few alike: they fall into one bucket of the sort."""
    columns, legs = make_columns(2_000), make_legs(2_000, 500, 400)
    columns.importance[:] = np.where(np.arange(2_000) % 50 == 3, columns.importance, np.float32(crowd))
    for extreme in (0.7, math.inf, -math.inf):
        columns.importance[int(legs.vector_rids[7])] = extreme
        rules = make_rules(weights=(0.0, 0.0, 0.0, 1.0))
        assert_same(compiled.rank.rank_legs(legs, columns, rules), twins.rank.rank_legs(legs, columns, rules))


def _ranked(kernels: Kernels, legs: RankLegs, **changes: Any) -> tuple[LegRanking, dict[str, Any]]:
    columns = make_columns(20)
    columns.cjk[:] = 0
    got = kernels.rank.rank_legs(legs, columns, make_rules(dedup=1, **changes))
    return got, dict(zip(LEG_VALUES, got.values, strict=True))


def _legs(cosines: list[float], bm25: list[float], match: list[float]) -> RankLegs:
    n = len(cosines)
    return RankLegs(
        np.arange(n, dtype=np.int32), np.array(cosines), np.array(bm25), np.array(match), NONE, None, np.empty(0),
        np.empty(0),
    )  # fmt: skip


def test_the_semantic_factor_by_scores_is_the_weighted_mean_of_both_legs(kernels: Kernels) -> None:
    _, values = _ranked(kernels, _legs([0.85, math.nan, 0.99], [2.0, 4.0, 0.0], [0.5, 1.0, 0.0]))
    by_meaning = [0.5, 0.0, min(1.0, (0.99 - 0.78) / 0.14 / 2 + 0.25)]
    by_words = [0.75 * 0.5 + 0.25 * 0.5 * 1.0, 0.75 + 0.25, 0.0]
    expected = [0.6 * m + 0.4 * w for m, w in zip(by_meaning, by_words, strict=True)]
    np.testing.assert_allclose(values["semantic"], expected, rtol=1e-13)


def test_a_leg_that_was_not_asked_does_not_count(kernels: Kernels) -> None:
    legs = _legs([0.85], [2.0], [0.5])
    assert _ranked(kernels, legs, keyword_asked=False)[1]["semantic"][0] == pytest.approx(0.5)
    assert _ranked(kernels, legs, vector_asked=False)[1]["semantic"][0] == pytest.approx(0.5)
    assert _ranked(kernels, legs, vector_asked=False, keyword_asked=False)[1]["semantic"][0] == 0.0


def test_relevance_takes_the_words_place_when_only_words_were_asked(kernels: Kernels) -> None:
    legs = _legs([0.85], [2.0], [1.0])
    both, words = _ranked(kernels, legs)[0], _ranked(kernels, legs, vector_asked=False)[0]
    assert both.best_relevance == pytest.approx(1.0 / (1.0 + math.exp(3.2 - 4.2 * 0.5 - 2.6)))
    assert words.best_relevance == pytest.approx(1.0 / (1.0 + math.exp(3.2 - 4.2 - 2.6)))


def test_the_best_cosine_is_levelled_only_where_scores_are_fused(kernels: Kernels) -> None:
    legs = _legs([0.80, math.nan, 0.83], [0.0] * 3, [0.0] * 3)
    assert _ranked(kernels, legs, shifts=(0.04, 0.0, 0.0))[0].best_cosine == pytest.approx(0.79)
    assert _ranked(kernels, legs, shifts=(0.04, 0.0, 0.0), fusion=3)[0].best_cosine == 0.83
    nothing = _ranked(kernels, _legs([], [], []))[0]
    assert (nothing.best_cosine, nothing.best_relevance) == (-1.0, 0.0)


def test_the_leader_of_both_legs_has_the_largest_rrf(kernels: Kernels) -> None:
    rids = np.array([4, 2], np.int32)
    legs = RankLegs(rids, np.array([0.9, 0.8]), None, None, rids, None, np.array([3.0, 1.0]), np.array([1.0, 0.5]))
    got, values = _ranked(kernels, legs, fusion=2)
    assert values["semantic"].tolist() == pytest.approx([1.0, 61 / 62])
    assert got.ids[1].tolist() == got.ids[2].tolist() == [1, 2]
    assert values["bm25"].tolist() == [3.0, 1.0]


@pytest.mark.parametrize("dedup", [1, 2, 3, 4])
def test_repetitions_are_found_whatever_their_hashes_and_columns_that_follow_each_other_are_told_apart(
    compiled: Kernels, twins: Kernels, dedup: int
) -> None:
    for seed, kinds in ((1, 3), (2, 40), (3, 1 << 62)):
        rng = np.random.default_rng(seed)
        hashes = {name: rng.integers(0, kinds, 300, np.uint64) for name in ("content_hash", "fold_hash", "tag_hash")}
        columns, legs, rules = (
            make_columns(300)._replace(**hashes),
            make_legs(300, 120, 90, seed),
            make_rules(dedup=dedup),
        )
        expected = twins.rank.rank_legs(legs, columns, rules)
        for _ in range(2):  # the second time the kernel knows these columns
            assert_same(compiled.rank.rank_legs(legs, columns, rules), expected)
        changed = columns._replace(importance=columns.importance[::-1].copy())
        assert_same(compiled.rank.rank_legs(legs, changed, rules), twins.rank.rank_legs(legs, changed, rules))
