"""FEATURES X3: recall by meaning; exact for small scopes and narrow filters, nothing starves, nothing falls back
silently."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from featurekit import HASHING, World, ask, axis, causes, contents, ids, until, why
from memxd.client import Client, Item, rank, where
from memxd.model import IndexKind, StoreAnswer


def vectors_of(client: Client, vectors: dict[str, list[float]], **fields: object) -> dict[str, str]:
    """Store texts with vectors of our own; ids by text."""
    items = [Item(text, vector=v, model_id=HASHING, **fields) for text, v in vectors.items()]  # type: ignore[arg-type]
    answers = list(client.store_many(items))
    assert all(isinstance(a, StoreAnswer) for a in answers)
    return {a.memory.content: a.memory.id for a in answers if isinstance(a, StoreAnswer)}


def test_x3_nearest_first_with_the_true_cosine(client: Client) -> None:
    """X3: hits come by cosine to the question's vector, and the explanation's cosine is the real one."""
    vectors_of(client, {"at 0.0": axis(1), "at 0.8": axis(0, (1, 0.75)), "at 1.0": axis(0)})
    answer = ask(client, "anything", mode="vector", vector=axis(0), model_id=HASHING)
    assert contents(answer)[:2] == ["at 1.0", "at 0.8"]
    assert why(answer.hits[0]).cosine == pytest.approx(1.0, abs=1e-3)
    assert why(answer.hits[1]).cosine == pytest.approx(0.8, abs=1e-3)
    assert [why(h).vector_rank for h in answer.hits] == [1, 2, 3][: len(answer.hits)]


def test_x3_a_narrow_filter_does_not_starve(client: Client) -> None:
    """X3, better: 400 nearer memories do not keep the three that pass the filter from being found."""
    near = {f"near {n}": axis(0, (n % 300 + 1, 0.01)) for n in range(400)}
    vectors_of(client, near)
    rare = vectors_of(client, {f"rare {n}": axis(0, (9, 5.0 + n)) for n in range(3)}, tags=["rare"])
    ranking = {
        "mode": "vector",
        "vector": axis(0),
        "model_id": HASHING,
        "filter": where(tags_any=["rare"]),
        "ranking": rank(reject=False),
    }
    assert set(ids(ask(client, "anything", k=3, **ranking))) == set(rare.values())
    answer = ask(client, "anything", k=3, **ranking | {"ranking": rank("memex")})
    assert set(ids(answer)) == set(rare.values())
    assert answer.degraded == ()


def test_x3_the_best_chunk_counts(client: Client) -> None:
    """X3: a long text is found by its best chunk, and the explanation tells which."""
    filler = " ".join(f"Sentence number {n} speaks of nothing in particular." for n in range(400))
    id = client.store(filler + " The safe code is heliotrope.").memory.id
    answer = ask(client, "safe code heliotrope", mode="vector", ranking=rank(reject=False))
    assert ids(answer) == [id]
    chunk = why(answer.hits[0]).chunk
    assert chunk is not None
    assert chunk > 0


def test_x3_exact_and_usual_answers_agree_in_a_small_scope(client: Client) -> None:
    """X3: small scopes are scanned exactly; exact=true changes nothing there but the plan's word."""
    rng = random.Random(3)
    vectors_of(client, {f"text {n}": [rng.gauss(0, 1) for _ in range(384)] for n in range(60)})
    vector = [rng.gauss(0, 1) for _ in range(384)]
    wanted = {"mode": "vector", "vector": vector, "model_id": HASHING, "k": 20, "profile": "memex", "asked_at": 0}
    usual, exact = ask(client, "x", **wanted), ask(client, "x", exact=True, **wanted)
    assert [(h.memory.id, h.score) for h in usual.hits] == [(h.memory.id, h.score) for h in exact.hits]
    assert exact.plan.endswith("exact")
    assert causes(usual) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_x3_the_graph_of_a_large_scope_finds_what_the_exact_scan_finds(world: World) -> None:
    """X3: above 25,000 vectors the graph answers with recall >= .99, under a filter too; exact=true is the truth."""
    rng = np.random.default_rng(5)
    topics = rng.normal(size=(40, 384))

    def near(topic: int) -> list[float]:
        vector: list[float] = (topics[topic % 40] + 0.7 * rng.normal(size=384)).tolist()
        return vector

    def items() -> Iterator[Item]:
        for n in range(26_000):
            yield Item(f"record {n}", vector=near(n), model_id=HASHING, tags=["third"] if n % 3 == 0 else [])

    world.serve()
    client = world.client()
    assert all(isinstance(a, StoreAnswer) for a in client.store_many(items(), window=256))
    vectors = IndexKind.VECTOR
    until(lambda: next(i for i in client.status().engine.indexes if i.kind is vectors).tail_entries < 2_000, 300)
    found = wanted = 0
    for number, conditions in enumerate([None, where(tags_any=["third"])] * 10):
        options = {"vector": near(number), "model_id": HASHING, "k": 30, "filter": conditions}
        plan = {"profile": "memex", "explain": False, "asked_at": 0}
        truth = set(ids(ask(client, "x", exact=True, **options, **plan)))
        found += len(truth & set(ids(ask(client, "x", **options, **plan))))
        wanted += len(truth)
    assert wanted == 600
    assert found / wanted >= 0.99
