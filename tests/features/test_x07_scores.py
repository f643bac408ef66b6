"""FEATURES X7: scores within one answer, relevance between answers."""

from __future__ import annotations

import pytest

from featurekit import HASHING, ask, axis, fresh_scope, raw_score, relevance, sigmoid, why, z_scores
from memxd.client import Client, rank


def test_x7_z_score_then_sigmoid(client: Client) -> None:
    """X7: population z-score over the candidates, then the logistic function, recomputed from the explanations."""
    for n in range(7):
        client.store(f"alpha {'beta ' * n} {n}", importance=n / 7)
    answer = ask(client, "alpha beta", ranking=rank(dedup="off"))
    assert answer.candidates == len(answer.hits) == 7
    zs = z_scores([raw_score(why(h)) for h in answer.hits])
    assert [why(h).z_score for h in answer.hits] == pytest.approx(zs, abs=1e-9)
    assert [h.score for h in answer.hits] == pytest.approx([sigmoid(z) for z in zs], abs=1e-9)
    assert sum(why(h).z_score for h in answer.hits) == pytest.approx(0.0, abs=1e-9)


def test_x7_none_one_and_equal_candidates_are_defined(client: Client) -> None:
    """X7, better: 0 candidates: nothing known; 1, and all equal: z 0 and score one half."""
    assert ask(client, "alpha").candidates == 0
    client.store("alpha", vector=axis(0), model_id=HASHING)
    answer = ask(client, "alpha")
    assert [(why(h).z_score, h.score) for h in answer.hits] == [(0.0, 0.5)]
    client.store("alpha", vector=axis(0), model_id=HASHING, allow_duplicate=True)
    answer = ask(client, "alpha", ranking=rank(dedup="off", recency=0))
    assert [(why(h).z_score, h.score) for h in answer.hits] == [(0.0, 0.5)] * 2


def test_x7_a_candidate_without_a_vector_ranks_and_is_finite(client: Client) -> None:
    """X7: what was not compared by meaning (NaN inside) is ranked by its words, with finite numbers."""
    client.store("alpha <private>secret words</private> beta")
    client.store("<private>nothing</private> alpha gamma")
    for hit in ask(client, "alpha").hits:
        e = why(hit)
        assert all(v == v for v in (e.raw_score, e.z_score, hit.score, hit.relevance))


def test_x7_relevance_is_comparable_between_questions(client: Client) -> None:
    """X7, better: the same evidence gives the same relevance, whatever else is among the candidates."""
    lone, crowded = fresh_scope(client), fresh_scope(client)
    for scope in (lone, crowded):
        scope.store("the answer", vector=axis(0, (1, 0.8)), model_id=HASHING)
    for n in range(30):
        crowded.store(f"noise {n}", vector=axis(0, (n + 2, 3.0)), model_id=HASHING)
    options = {"mode": "vector", "vector": axis(0), "model_id": HASHING}
    one, other = ask(lone, "x", **options).hits[0], ask(crowded, "x", **options).hits[0]
    assert one.memory.content == other.memory.content == "the answer"
    assert one.relevance == other.relevance == pytest.approx(relevance((why(one).cosine or 0) / 0.6))
    assert one.score != other.score


def test_x7_relevance_is_monotone_in_cosine_and_words(client: Client) -> None:
    """SEMANTICS Relevance: 0..1, growing with the cosine and with the share of the question's words."""
    for n in range(6):
        client.store(f"note {n}", vector=axis(0, (n + 1, 0.4 * n)), model_id=HASHING)
    hits = ask(client, "x", mode="vector", vector=axis(0), model_id=HASHING, ranking=rank(reject=False)).hits
    by_cosine = sorted(hits, key=lambda h: why(h).cosine or 0)
    assert [h.relevance for h in by_cosine] == sorted(h.relevance for h in hits)
    assert all(0.0 <= h.relevance <= 1.0 for h in hits)
    words = fresh_scope(client)
    for text in ("red", "red green", "red green blue"):
        words.store(text)
    hits = ask(words, "red green blue", mode="keyword", ranking=rank(dedup="off")).hits
    assert {h.memory.content: h.relevance for h in hits}["red green blue"] == max(h.relevance for h in hits)
    assert len({h.relevance for h in hits}) == 3
