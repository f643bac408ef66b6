"""What a search can be told and tells: own vectors, exact, explanations, timings, plan. SEMANTICS "Names reserved"."""

from __future__ import annotations

import math
from typing import Any

import pytest

from featurekit import HASHING, ask, axis, ids, why
from memxd.client import Client, Item, Question, rank
from memxd.embed.hashing import HashingEmbedder
from memxd.errors import InvalidArgumentError, ModelMismatchError
from memxd.model import SearchAnswer

TEXT = "Ada keeps her passport in the blue drawer."


def test_a_callers_own_vector_counts_as_the_models(client: Client) -> None:
    """SEMANTICS vector + model_id: the same vector gives the same answer, whoever made it; any length but 0."""
    embedder = HashingEmbedder(384)
    passage = embedder.embed_passages([TEXT])[0]
    client.store(TEXT, vector=(passage * 7.5).tolist(), model_id=HASHING)
    client.store("The garden needs water.")
    query = "where is the passport"
    usual = ask(client, query, asked_at=0)
    own = ask(client, query, asked_at=0, vector=(embedder.embed_query(query) * 0.01).tolist(), model_id=HASHING)
    assert [(h.memory.id, round(h.score, 6)) for h in own.hits] == [
        (h.memory.id, round(h.score, 6)) for h in usual.hits
    ]
    assert why(own.hits[0]).cosine == pytest.approx(why(usual.hits[0]).cosine, abs=1e-3)
    [many] = client.search_many([Question(query, vector=axis(0), model_id=HASHING, ranking=rank(reject=False))])
    assert isinstance(many, SearchAnswer)
    [item] = client.store_many([Item("with a vector", vector=axis(3), model_id=HASHING)])
    assert ids(ask(client, "x", mode="vector", vector=axis(3), model_id=HASHING))[0] == item.memory.id  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("given", "error", "field"),
    [
        ({"vector": axis(0), "model_id": "other-model"}, ModelMismatchError, ""),
        ({"vector": axis(0), "model_id": ""}, ModelMismatchError, ""),
        ({"vector": axis(0)[:383], "model_id": HASHING}, InvalidArgumentError, "vector"),
        ({"vector": [*axis(0), 0.0], "model_id": HASHING}, InvalidArgumentError, "vector"),
        ({"vector": [0.0] * 384, "model_id": HASHING}, InvalidArgumentError, "vector"),
        ({"vector": [math.nan] * 384, "model_id": HASHING}, InvalidArgumentError, "vector[0]"),
        ({"vector": [*axis(0)[:383], math.inf], "model_id": HASHING}, InvalidArgumentError, "vector[383]"),
        ({"vector": [], "model_id": HASHING}, InvalidArgumentError, "model_id"),
    ],
)
def test_a_vector_that_cannot_be_compared_is_refused(
    client: Client, given: dict[str, Any], error: type[Exception], field: str
) -> None:
    """SEMANTICS vector + model_id: refused when the model differs; wrong length, zero and non-finite by name; in Store
    and in Search, in every mode."""
    client.store("alpha")
    for call, prefix in ((lambda: client.store("beta", **given), "memory."), (lambda: client.search("x", **given), "")):
        with pytest.raises(error) as caught:
            call()
        if field:
            assert caught.value.violations[0].field == prefix + field  # type: ignore[attr-defined]
        else:
            assert caught.value.metadata["model_id"] == HASHING  # type: ignore[attr-defined]
    with pytest.raises(error):
        client.search("x", mode="keyword", **given)
    assert client.count() == 1


def test_explanations_are_complete(client: Client) -> None:
    """X2..X9: cosine, BM25, both ranks, RRF, every factor with weight and contribution, sums, terms, chunk."""
    for n in range(5):
        client.store(f"{TEXT} {n}" if n else TEXT, importance=n / 5)
    answer = ask(client, "where is Ada's passport")
    for hit in answer.hits:
        e = why(hit)
        assert e.cosine is not None
        assert -1.0 <= e.cosine <= 1.0
        assert e.vector_rank in range(1, 6)
        assert e.keyword_rank in range(1, 6)
        assert e.keyword_score is not None
        assert e.keyword_score == pytest.approx(sum(t.score for t in e.terms), rel=1e-6)
        assert {t.term for t in e.terms} >= {"passport"}
        assert all(t.idf > 0 and t.frequency >= 1 and t.score > 0 for t in e.terms)
        assert e.rrf > 0
        assert e.chunk == 0
        assert e.notes == ()
        assert e.raw_score == pytest.approx(
            sum(f.contribution for f in (e.semantic, e.recency, e.frequency, e.importance)), rel=1e-12
        )
        for factor in (e.semantic, e.recency, e.frequency, e.importance):
            assert factor.contribution == pytest.approx(factor.value * factor.weight)


@pytest.mark.parametrize("mode", ["vector", "keyword"])
def test_explanations_of_one_leg_leave_the_other_out(client: Client, mode: str) -> None:
    """X3, X4: in mode vector no words are counted, in mode keyword nothing is compared by meaning."""
    client.store(TEXT)
    e = why(ask(client, "passport drawer Ada", mode=mode).hits[0])
    vector, keyword = (e.cosine, e.vector_rank, e.chunk), (e.keyword_score, e.keyword_rank)
    present, absent = (vector, keyword) if mode == "vector" else (keyword, vector)
    assert all(v is not None for v in present)
    assert all(v is None for v in absent)
    assert (e.terms == ()) is (mode == "vector")


def test_explanations_and_plan_come_on_request_only(client: Client) -> None:
    """SEMANTICS Answers: explain=false answers neither; explain=true names the plan in one line, also when rejected."""
    client.store(TEXT)
    quiet = client.search("passport", record_retrieval=False)
    assert (quiet.hits[0].explanation, quiet.plan, quiet.timings) == (None, "", ())
    for query in ("passport", "zyzzyva xylophone"):
        plan = ask(client, query, k=7).plan
        assert "\n" not in plan
        for part in ("profile=balanced", "mode=hybrid", "k=7", "semantic 0.84", "recency 0.05", "candidates=50/leg"):
            assert part in plan


@pytest.mark.parametrize(
    ("options", "stages"),
    [
        ({}, ["embed", "filter", "vector", "keyword", "rank", "fetch", "total"]),
        ({"mode": "keyword"}, ["embed", "filter", "vector", "keyword", "rank", "fetch", "total"]),
        ({"ranking": rank(semantic=0.0)}, ["embed", "filter", "rank", "fetch", "total"]),
    ],
)
def test_timings_tell_every_stage(client: Client, options: dict[str, Any], stages: list[str]) -> None:
    """SEMANTICS Answers: each stage once, in order, whole microseconds that add up to no more than the total."""
    client.store(TEXT)
    timings = ask(client, "passport drawer", timings=True, **options).timings
    assert [stage for stage, _ in timings] == stages
    spent = dict(timings)
    assert all(micros >= 0 for micros in spent.values())
    assert sum(spent.values()) - spent["total"] <= spent["total"] + len(stages)
    rejected = ask(client, "zyzzyva xylophone quark", timings=True, mode="hybrid").timings
    assert rejected[-1][0] == "total"


@pytest.mark.parametrize(
    ("ranking", "field"),
    [
        (rank(semantic=-1.0), "ranking.weights.semantic"), (rank(recency=1_001.0), "ranking.weights.recency"),
        (rank(frequency=math.nan), "ranking.weights.frequency"),
        (rank(semantic=0, recency=0, frequency=0, importance=0), "ranking.weights"),
        (rank(rrf_k=0), "ranking.rrf_k"), (rank(rrf_k=10_001), "ranking.rrf_k"),
        (rank(vector_weight=0, keyword_weight=0), "ranking.vector_weight"), (rank(tau=1.5), "ranking.tau"),
        (rank(vector_weight=-0.5), "ranking.vector_weight"),
    ],
)  # fmt: skip
def test_rankings_that_make_no_sense_are_refused_by_name(client: Client, ranking: Any, field: str) -> None:
    """X5, X6: weights 0..1,000 and not all 0, k 1..10,000, tau -1..1."""
    client.store("alpha")
    with pytest.raises(InvalidArgumentError) as caught:
        client.search("alpha", ranking=ranking)
    assert caught.value.violations[0].field == field


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_min_relevance_is_0_to_1(client: Client, value: float) -> None:
    """SEMANTICS min_relevance: anything else is refused."""
    with pytest.raises(InvalidArgumentError) as caught:
        client.search("alpha", min_relevance=value)
    assert caught.value.violations[0].field == "min_relevance"


def test_every_answer_names_its_revision(client: Client) -> None:
    """SEMANTICS Answers: what one call has acknowledged, the next one's revision covers."""
    stored = client.store("alpha")
    assert client.search("alpha").revision >= stored.revision
    assert client.list().revision >= stored.revision
    assert client.delete(stored.memory.id) > stored.revision
    assert client.search("alpha").revision > stored.revision
