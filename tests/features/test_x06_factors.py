"""FEATURES X6 and SEMANTICS "Ranking profiles": the four factors and the exact formulas of memx and balanced."""

from __future__ import annotations

import math
import time

import pytest

from featurekit import (
    HASHING,
    World,
    ask,
    axis,
    frequency,
    ids,
    raw_score,
    recency,
    relevance,
    rrf,
    sigmoid,
    until,
    why,
    z_scores,
)
from memxd.client import Client, rank
from memxd.model import DAY, SearchAnswer

NOW = round(time.time() * 1e6)


@pytest.fixture
def used(client: Client) -> Client:
    """Five memories of different age, use and importance that share words with the question."""
    for n in range(5):
        event = NOW - n * 11 * DAY if n != 2 else None
        memory = client.store(f"alpha beta number {n}" + " alpha" * n, importance=n / 4, event_at=event).memory
        for _ in range(n):
            client.get(memory.id)
    client.search("alpha number 3", k=1)
    client.search("alpha number 3", k=2)
    client.flush()  # counters reach the ranking with the next flush, within a second
    return client


def check_common(answer: SearchAnswer, weights: tuple[float, float, float, float]) -> None:
    """What holds in every profile that normalises: sums, z-score, sigmoid, order."""
    raws = [raw_score(why(h)) for h in answer.hits]
    assert answer.candidates == len(answer.hits)
    for hit, raw, z in zip(answer.hits, raws, z_scores(raws), strict=True):
        e = why(hit)
        factors = (e.semantic, e.recency, e.frequency, e.importance)
        assert tuple(f.weight for f in factors) == weights
        assert all(0.0 <= f.value <= 1.0 for f in factors)
        assert e.raw_score == pytest.approx(raw, rel=1e-12)
        assert e.z_score == pytest.approx(z, abs=1e-9)
        assert hit.score == pytest.approx(sigmoid(e.z_score), rel=1e-12)
    assert raws == sorted(raws, reverse=True)
    assert [h.rank for h in answer.hits] == list(range(1, len(answer.hits) + 1))


def test_x6_memx_restates_the_paper_exactly(used: Client) -> None:
    """X6, SEMANTICS memx: .45/.25/.05/.10, RRF over 2/(k+1), 30 d from last_retrieved_at else created_at."""
    asked_at = NOW + 40 * DAY
    answer = ask(used, "alpha beta", ranking=rank("memx", dedup="off"), asked_at=asked_at)
    assert len(answer.hits) == 5
    check_common(answer, (0.45, 0.25, 0.05, 0.10))
    for hit in answer.hits:
        e, m = why(hit), hit.memory
        assert e.semantic.value == pytest.approx(rrf(e) / (2 / 61), rel=1e-12)
        since = m.created_at if m.last_retrieved_at is None else m.last_retrieved_at
        assert e.recency.value == pytest.approx(recency(since, asked_at), rel=1e-9)
        assert e.frequency.value == pytest.approx(frequency(m.retrieval_count or m.access_count), rel=1e-12)
        assert e.importance.value == pytest.approx(m.importance, rel=1e-6)
    assert {h.memory.retrieval_count for h in answer.hits} > {0}


def test_x6_balanced_is_what_the_documentation_says(used: Client) -> None:
    """SEMANTICS balanced: .6 place in the band + .4 words; .84/.05/.01/.10; age from retrieved, event, created."""
    asked_at = NOW + 40 * DAY
    answer = ask(used, "alpha beta", asked_at=asked_at, ranking=rank(dedup="off"))
    check_common(answer, (0.84, 0.05, 0.01, 0.10))
    best = max(why(h).keyword_score or 0.0 for h in answer.hits)
    for hit in answer.hits:
        e, m = why(hit), hit.memory
        since = m.last_retrieved_at or m.event_at or m.created_at
        assert e.recency.value == pytest.approx(recency(since, asked_at), rel=1e-9)
        assert e.cosine is not None
        x = min(2.0, max(-1.0, e.cosine / 0.6))
        place = min(1.0, max(0.0, x / 2 + 0.25))
        words = 1.0  # every memory holds both words of the question
        density = (e.keyword_score or 0.0) / best
        assert e.semantic.value == pytest.approx(0.6 * place + 0.4 * (0.75 * words + 0.25 * density), abs=1e-6)
        assert hit.relevance == pytest.approx(relevance(x, words), abs=1e-6)


def test_x6_weights_and_half_life_are_the_callers_to_choose(used: Client) -> None:
    """X6: weights and half-life per request, the others stay the profile's."""
    from datetime import timedelta

    asked_at = NOW + 3 * DAY
    wish = rank(recency=0.5, importance=0.0, half_life=timedelta(hours=12), dedup="off")
    answer = ask(used, "alpha beta", ranking=wish, asked_at=asked_at)
    check_common(answer, (0.84, 0.5, 0.01, 0.0))
    for hit in answer.hits:
        since = hit.memory.last_retrieved_at or hit.memory.event_at or hit.memory.created_at
        assert why(hit).recency.value == pytest.approx(recency(since, asked_at, DAY // 2), rel=1e-9)


def test_semantics_recency_is_never_above_one(client: Client) -> None:
    """SEMANTICS Time: an age is never negative: what lies ahead of asked_at counts as now."""
    client.store("alpha tomorrow", event_at=NOW + 100 * DAY)
    for profile in ("balanced", "memx", "memex"):
        hit = ask(client, "alpha tomorrow", profile=profile, asked_at=NOW - 100 * DAY).hits[0]
        assert why(hit).recency.value == 1.0


def test_x6_default_weights_sum_to_one(client: Client) -> None:
    """X6, better: the paper's sum to .85; the default profile's to 1."""
    ranking = client.status().engine.ranking
    assert math.isclose(sum(ranking[f"weight.{n}"] for n in ("semantic", "recency", "frequency", "importance")), 1.0)


def test_x6_an_old_exact_answer_is_not_buried(client: Client) -> None:
    """X6, better: twenty years do not put the exact answer below fresh chatter."""
    old = client.store("The wifi password is heliotrope.", event_at=NOW - 20 * 365 * DAY).memory.id
    for n in range(20):
        client.store(f"Somebody asked about wifi again today, time {n}.", importance=0.5)
    assert ids(ask(client, "what is the wifi password"))[0] == old


def test_x6_being_read_changes_a_rank_by_little_and_within_bounds(client: Client) -> None:
    """X6, better: no rich-get-richer: a hundred reads add at most the weights of recency and frequency."""
    read = client.store("alpha beta one", event_at=NOW - 300 * DAY).memory.id
    client.store("alpha beta two", event_at=NOW - 300 * DAY)

    def raw() -> float:
        answer = ask(client, "alpha beta", ranking=rank(dedup="off"))
        return why(next(h for h in answer.hits if h.memory.id == read)).raw_score

    before = raw()
    for _ in range(100):
        client.search("alpha beta one", k=1)
        client.get(read)
    client.flush()
    after = raw()
    assert 0.0 < after - before <= 0.05 + 0.01
    better = client.store("alpha beta gamma delta").memory.id
    assert ids(ask(client, "alpha beta gamma delta"))[0] == better


def test_x6_counters_reach_the_ranking_within_a_second(client: Client) -> None:
    """X6: frequency uses the retrieval count, the access count while that is 0."""
    id = client.store("alpha").memory.id
    for _ in range(9):
        client.get(id)
    until(lambda: why(ask(client, "alpha").hits[0]).frequency.value == pytest.approx(frequency(9)))
    client.search("alpha")
    until(lambda: why(ask(client, "alpha").hits[0]).frequency.value == pytest.approx(frequency(1)))


def test_semantics_memx_candidates_are_3k_with_cosine_above_the_floor(client: Client) -> None:
    """SEMANTICS memx: 3k per leg, cosine > .3; both foldings; tau .50, all told by the plan."""
    for n in range(20):
        client.store(f"text {n}", vector=axis(0, (n + 1, 0.3 + n / 100)), model_id=HASHING)
    client.store("text far", vector=axis(0, (99, 3.5)), model_id=HASHING)  # cosine .27
    answer = ask(client, "unknownword", k=2, profile="memx", vector=axis(0), model_id=HASHING)
    assert answer.candidates == 6
    for part in ("candidates=6/leg", "dedup=tags", "tau=0.5", "rrf_k 60", "half_life=30d since used-or-created"):
        assert part in answer.plan
    answer = ask(client, "unknownword", k=20, profile="memx", vector=axis(0), model_id=HASHING)
    assert answer.candidates == 20
    assert all((why(h).cosine or 0) > 0.3 for h in answer.hits)


def test_semantics_a_ranking_without_relevance_ranks_the_whole_scope(client: Client) -> None:
    """SEMANTICS Ranking: weight of relevance 0: every filtered memory is ranked by the other factors, none refused."""
    made = [client.store(f"matter {n}", importance=n / 10).memory.id for n in range(10)]
    answer = ask(client, "no word in common", ranking=rank(semantic=0, recency=0, frequency=0), k=4)
    assert ids(answer) == made[:-5:-1]
    assert answer.candidates == 10
    assert not answer.rejected
    assert "whole-scope" in answer.plan
    assert why(answer.hits[0]).importance.value == pytest.approx(0.9)
    assert "without relevance" in why(answer.hits[0]).notes[0]
    recent = ask(client, "no word in common", ranking=rank("memex", alpha=0.0), k=4)
    assert ids(recent) == made[:-5:-1]


def test_semantics_profile_of_another_half_life_setting(world: World) -> None:
    """SEMANTICS memx: the paper's half-life stays 30 d whatever the daemon's setting for balanced is."""
    world.serve("--half-life-days", "1")
    with world.client() as client:
        client.store("alpha")
        assert "half_life=30d" in ask(client, "alpha", profile="memx").plan
        assert "half_life=1d" in ask(client, "alpha").plan
