"""FEATURES X5: reciprocal rank fusion, recomputed from the explanation's ranks; k and weights are settings."""

from __future__ import annotations

from typing import Any

import pytest

from featurekit import HASHING, World, ask, axis, rrf, why
from memxd.client import Client, rank


def fill(client: Client) -> None:
    """Four memories that the two legs order differently."""
    for number, text in enumerate(("alpha beta gamma", "alpha beta", "alpha", "delta")):
        client.store(text, vector=axis(0, (number + 1, float(3 - number))), model_id=HASHING)


def both_legs(client: Client, **options: Any) -> Any:
    return ask(client, "alpha beta gamma", vector=axis(0), model_id=HASHING, asked_at=0, **options)


@pytest.mark.parametrize(
    ("k", "vector", "keyword"), [(60, 1.0, 1.0), (1, 1.0, 1.0), (10_000, 0.25, 4.0), (7, 0.0, 2.0)]
)
def test_x5_rrf_is_the_sum_over_both_ranks(client: Client, k: int, vector: float, keyword: float) -> None:
    """X5: sum of weight / (k + rank), ranks from 1, divided by its maximum as the semantic factor of memx."""
    fill(client)
    wish = rank("memx", rrf_k=k, vector_weight=vector, keyword_weight=keyword, dedup="off")
    answer = both_legs(client, ranking=wish)
    assert len(answer.hits) >= 3
    for hit in answer.hits:
        explanation = why(hit)
        expected = rrf(explanation, k, vector, keyword)
        assert explanation.rrf == pytest.approx(expected, rel=1e-12)
        assert explanation.semantic.value == pytest.approx(expected / ((vector + keyword) / (k + 1)), rel=1e-12)
        assert 0.0 <= explanation.semantic.value <= 1.0


def test_x5_ranks_begin_at_one_and_have_no_holes(client: Client) -> None:
    """X5: ranks of each leg are 1, 2, 3..."""
    fill(client)
    hits = both_legs(client, ranking=rank("memx", dedup="off")).hits
    for leg in ("vector_rank", "keyword_rank"):
        ranks = sorted(r for h in hits if (r := getattr(why(h), leg)) is not None)
        assert ranks == list(range(1, len(ranks) + 1))


def test_x5_the_fusion_decides_the_order_when_nothing_else_differs(client: Client) -> None:
    """X5, better: RRF does affect the order, and recency (<= 1) does not drown it."""
    fill(client)
    hits = both_legs(client, ranking=rank("memx", dedup="off")).hits
    values = [why(h).rrf for h in hits]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1]


def test_x5_a_hit_by_words_alone_has_a_semantic_value(client: Client) -> None:
    """X5, better: keyword-only hits got semantic 0; here they count with their leg's part."""
    far = client.store("alpha alpha", vector=axis(5), model_id=HASHING).memory.id
    client.store("something near", vector=axis(0), model_id=HASHING)
    for profile in ("memx", "balanced"):
        hit = next(h for h in both_legs(client, profile=profile).hits if h.memory.id == far)
        assert why(hit).keyword_rank == 1
        assert why(hit).semantic.value > 0.15
    assert why(next(h for h in both_legs(client, profile="memx").hits if h.memory.id == far)).vector_rank is None


def test_x5_k_and_half_life_come_from_the_configuration(world: World) -> None:
    """X5: rrf_k is a setting; Status tells it, profile balanced uses it."""
    world.serve("--rrf-k", "7", "--half-life-days", "3")
    with world.client() as client:
        assert client.status().engine.ranking["rrf_k"] == 7
        assert client.status().engine.ranking["half_life_seconds"] == 3 * 86_400
        fill(client)
        answer = both_legs(client)
        for hit in answer.hits:
            assert why(hit).rrf == pytest.approx(rrf(why(hit), 7, 0.6, 0.4))
        assert "half_life=3d" in answer.plan
        assert "rrf_k 7" in answer.plan
