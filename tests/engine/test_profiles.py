"""Profiles resolve to complete plans; wishes that make no sense are refused by name."""

import pytest

from memxd.engine.profiles import Fusion, RankingDefaults, Reference, resolve
from memxd.errors import InvalidArgumentError
from memxd.model import DAY, Dedup, Mode, Profile, Ranking


def _plan(ranking: Ranking = Ranking(), mode: Mode | None = None, k: int = 10):  # noqa: B008
    return resolve(ranking, mode=mode, k=k, exact=False, model_tau=0.8, defaults=RankingDefaults())


def test_memx_is_the_papers_table() -> None:
    plan = _plan(Ranking(profile=Profile.MEMX))
    assert plan.weights == (0.45, 0.25, 0.05, 0.10)
    assert (plan.rrf_k, plan.half_life, plan.tau, plan.candidates) == (60, 30 * DAY, 0.5, 30)
    assert (plan.fusion, plan.reference, plan.dedup) == (Fusion.RRF, Reference.USED_OR_CREATED, Dedup.TAGS)
    assert plan.cosine_floor == 0.3
    assert plan.reject


def test_memex_is_the_services_formula() -> None:
    plan = _plan(Ranking(profile=Profile.MEMEX, alpha=0.6), k=80)
    assert plan.weights == (0.6, 0.4, 0.0, 0.0)
    assert (plan.candidates, plan.mode, plan.reject, plan.dedup) == (150, Mode.VECTOR, False, Dedup.OFF)
    assert not plan.normalise


@pytest.mark.parametrize(
    ("ranking", "field"),
    [
        (Ranking(alpha=0.5), "ranking.alpha"),
        (Ranking(semantic=-1.0), "ranking.weights.semantic"),
        (Ranking(semantic=float("nan")), "ranking.weights.semantic"),
        (Ranking(semantic=0, recency=0, frequency=0, importance=0), "ranking.weights"),
        (Ranking(vector_weight=0, keyword_weight=0), "ranking.vector_weight"),
        (Ranking(rrf_k=0), "ranking.rrf_k"),
        (Ranking(half_life=1), "ranking.half_life"),
        (Ranking(tau=2.0), "ranking.tau"),
    ],
)
def test_a_senseless_wish_names_its_field(ranking: Ranking, field: str) -> None:
    with pytest.raises(InvalidArgumentError) as error:
        _plan(ranking)
    assert error.value.violations[0].field == field


def test_memex_refuses_another_mode() -> None:
    with pytest.raises(InvalidArgumentError, match="mode"):
        _plan(Ranking(profile=Profile.MEMEX), mode=Mode.KEYWORD)


def test_no_weight_on_relevance_means_the_whole_scope() -> None:
    assert _plan(Ranking(semantic=0.0)).whole_scope


def test_a_plan_reads_as_one_line() -> None:
    text = str(_plan())
    assert "profile=balanced" in text
    assert "\n" not in text
