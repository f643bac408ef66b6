"""FEATURES E4 and SEMANTICS "Ranking profiles": the parent service's formula, exactly."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from featurekit import HASHING, ask, axis, ids, recency, why
from memxd.client import Client, Item, rank
from memxd.errors import InvalidArgumentError
from memxd.model import DAY, StoreAnswer


@pytest.mark.parametrize("alpha", [None, 0.7, 0.0, 0.25, 1.0])
def test_e4_alpha_cosine_plus_recency_from_created_at(client: Client, alpha: float | None) -> None:
    """E4: alpha x cosine + (1 - alpha) x 2^(-age/30 d), age from created_at, raw as the score."""
    for n in range(4):
        memory = client.store(f"note {n}", vector=axis(0, (n + 1, 0.5 * n)), model_id=HASHING, event_at=n * DAY).memory
        client.get(memory.id)
    client.search("x", mode="vector", vector=axis(0), model_id=HASHING, ranking=rank(reject=False))
    client.flush()
    asked_at = round(time.time() * 1e6) + 17 * DAY
    wish = rank("memex", alpha=alpha)
    answer = ask(client, "x", vector=axis(0), model_id=HASHING, ranking=wish, asked_at=asked_at)
    a = 0.7 if alpha is None else alpha
    assert len(answer.hits) == 4
    for hit in answer.hits:
        e = why(hit)
        fresh = recency(hit.memory.created_at, asked_at)
        assert e.recency.value == pytest.approx(fresh, rel=1e-9)
        cosine = e.semantic.value if a == 0.0 else e.cosine  # without relevance nothing is compared
        assert cosine is not None
        assert hit.score == pytest.approx(a * cosine + (1 - a) * fresh, rel=1e-9)
        assert e.raw_score == hit.score
    scores = [h.score for h in answer.hits]
    assert scores == sorted(scores, reverse=True)


def test_e4_negative_cosines_count_as_they_are(client: Client) -> None:
    """E4: no floor and no rejection: what points away scores below zero times alpha."""
    client.store("opposite", vector=[-1.0] + [0.0] * 383, model_id=HASHING)
    answer = ask(client, "x", vector=axis(0), model_id=HASHING, profile="memex", asked_at=0)
    assert not answer.rejected
    assert answer.hits[0].score == pytest.approx(0.7 * -1.0 + 0.3, abs=1e-3)


@pytest.mark.parametrize(("k", "candidates"), [(1, 3), (10, 30), (50, 150), (60, 150)])
def test_e4_candidates_are_3k_and_at_most_150(client: Client, k: int, candidates: int) -> None:
    """E4, SEMANTICS memex: min(3k, 150) by cosine, nothing folded, nothing refused."""
    items = [Item("same text", allow_duplicate=True) for _ in range(170)]
    assert all(isinstance(a, StoreAnswer) for a in client.store_many(items))
    answer = ask(client, "other", k=k, profile="memex", explain=False)
    assert (answer.candidates, len(answer.hits), answer.folded) == (candidates, k, 0)


def test_e4_only_by_meaning(client: Client) -> None:
    """E4: the profile has no keyword leg: mode vector or nothing; other weights and half-life are the caller's."""
    id = client.store("alpha", vector=axis(0), model_id=HASHING).memory.id
    client.store("zyzzyva", vector=axis(1), model_id=HASHING)
    answer = ask(client, "zyzzyva", profile="memex", vector=axis(0), model_id=HASHING)
    assert ids(answer)[0] == id
    assert all(why(h).keyword_score is None for h in answer.hits)
    for mode in ("hybrid", "keyword"):
        with pytest.raises(InvalidArgumentError) as caught:
            client.search("x", profile="memex", mode=mode)
        assert caught.value.violations[0].field == "mode"
    now = round(time.time() * 1e6)
    wish = rank("memex", half_life=timedelta(days=1))
    hit = ask(client, "x", vector=axis(0), model_id=HASHING, ranking=wish, asked_at=now + 2 * DAY).hits[0]
    assert why(hit).recency.value == pytest.approx(recency(hit.memory.created_at, now + 2 * DAY, DAY), rel=1e-9)


def test_e4_importance_can_be_used(client: Client) -> None:
    """E4, better: importance was never used; a weight turns it on here too."""
    low = client.store("alpha", vector=axis(0), model_id=HASHING, importance=0.1).memory.id
    high = client.store("alpha two", vector=axis(0), model_id=HASHING, importance=0.9).memory.id
    options = {"vector": axis(0), "model_id": HASHING, "asked_at": 0}
    assert ids(ask(client, "x", profile="memex", **options)) == [low, high]
    assert ids(ask(client, "x", ranking=rank("memex", importance=0.5), **options)) == [high, low]
