"""FEATURES X15, better: another embedding model is noticed; two vector spaces never meet; going back heals."""

from __future__ import annotations

import pytest

from featurekit import HASHING, Service, World, ask, axis, causes, ids, until, why
from memxd.client import NO_RETRY
from memxd.errors import MemxdError, ModelMismatchError
from memxd.model import IndexKind, IndexState


def vector_state(client: object) -> IndexState:
    return next(i.state for i in client.status().engine.indexes if i.kind is IndexKind.VECTOR)  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [64, 384])
def test_another_model_is_noticed_and_the_former_one_answers_until_it_has_all(world: World, dimension: int) -> None:
    """SEMANTICS Degraded, X15: another model (also of the same dimension) is noticed; while it cannot embed, the
    former one goes on; then every memory is embedded again."""
    daemon = world.serve()
    with world.client() as client:
        old = client.store("Bo keeps bees in Porto.").memory.id
        assert client.status().engine.model.id == HASHING
    assert daemon.stop() == 0

    service = Service(dimension)
    service.off()
    world.serve(*service.flags("other", dimension), embedder="openai")
    with world.client(retry=NO_RETRY) as client:
        status = client.status().engine
        change = status.model_change
        assert change is not None
        assert (change.from_id, change.to_id, change.former_serves) == (HASHING, f"other@{dimension}", True)
        assert status.model.id == HASHING
        assert vector_state(client) is IndexState.READY
        new = client.store("Ada keeps owls in Porto.").memory
        assert not new.vector_pending
        assert ids(ask(client, "who keeps owls", mode="vector"))[0] == new.id
        with pytest.raises(ModelMismatchError):
            client.search("x", vector=axis(0, dimension=dimension), model_id=f"other@{dimension}")
        service.on()
        until(lambda: client.status().engine.model_change is None)
        assert client.status().engine.model.id == f"other@{dimension}"
        assert sorted(set(service.texts)) == ["Ada keeps owls in Porto.", "Bo keeps bees in Porto."]
        for query, expected in (("who keeps owls", new.id), ("keeps bees", old)):
            answer = ask(client, query, mode="vector")
            assert (ids(answer)[0], causes(answer)) == (expected, [])
        with pytest.raises(ModelMismatchError):
            client.search("x", vector=axis(0), model_id=HASHING)
    service.off()


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [64, 384])
def test_without_the_former_model_words_answer_and_going_back_heals(world: World, dimension: int) -> None:
    """SEMANTICS Degraded, X15: MODEL_MISMATCH, words answer, nothing is mixed: no vector is made for them, compared or
    accepted; with the old model back, what was stored meanwhile is completed."""
    first = Service(384)
    daemon = world.serve(*first.flags("first", 384), embedder="openai")
    with world.client() as client:
        old = client.store("Bo keeps bees in Porto.").memory.id
    assert daemon.stop() == 0

    service = Service(dimension)
    service.off()
    daemon = world.serve(*service.flags("other", dimension), embedder="openai")
    with world.client(retry=NO_RETRY) as client:
        status = client.status().engine
        assert status.model.id == f"other@{dimension}"
        assert status.model_change is not None
        assert not status.model_change.former_serves
        assert vector_state(client) is IndexState.MISMATCHED
        new = client.store("Ada keeps owls in Porto.").memory
        assert new.vector_pending
        changed = client.update(old, content="Bo keeps wild bees in Porto.").memory
        assert changed.vector_pending
        answer = ask(client, "who keeps owls in Porto")
        assert ids(answer)[0] == new.id
        assert "MODEL_MISMATCH" in causes(answer)
        message = next(d.message for d in answer.degraded if d.cause.name == "MODEL_MISMATCH")
        assert "first@384" in message
        assert f"other@{dimension}" in message
        assert all(why(h).cosine is None and why(h).vector_rank is None for h in answer.hits)
        for options in ({"mode": "vector"}, {"profile": "memex"}):
            with pytest.raises(MemxdError) as refused:
                client.search("who keeps owls", **options)
            assert refused.value.reason in ("INDEX_UNAVAILABLE", "MODEL_MISMATCH")
            assert "first@384" in refused.value.message
        for model in ("first@384", f"other@{dimension}"):
            with pytest.raises(ModelMismatchError):
                client.store("x", vector=axis(0, dimension=dimension), model_id=model)
            with pytest.raises(ModelMismatchError):
                client.search("x", vector=axis(0, dimension=dimension), model_id=model)
    assert service.texts == []
    assert daemon.stop() == 0

    world.serve(*first.flags("first", 384), embedder="openai")
    with world.client() as client:
        assert vector_state(client) is IndexState.READY
        until(lambda: client.status().engine.vectors_pending == 0)
        for query, expected in (("who keeps owls", new.id), ("wild bees", old)):
            answer = ask(client, query, mode="vector")
            assert ids(answer)[0] == expected
            assert causes(answer) == []
    first.off()


def test_an_empty_store_takes_the_new_model(world: World) -> None:
    """X15: with nothing stored there is nothing to mix: the new model is simply used."""
    world.serve().stop()
    service = Service(64)
    world.serve(*service.flags(), embedder="openai")
    with world.client() as client:
        id = client.store("Bo keeps bees in Porto.").memory.id
        answer = ask(client, "bees in Porto", mode="vector")
        assert (ids(answer), causes(answer)) == ([id], [])
        assert vector_state(client) is IndexState.READY
    service.off()
