"""SEMANTICS "Degraded", FEATURES X15 and X3: an embedder that is down, a broken index, and both; never in silence."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from featurekit import Service, World, ask, causes, fresh_scope, ids, until, why, world
from memxd.client import NO_RETRY, Client, Item
from memxd.errors import EmbedderUnavailableError, IndexUnavailableError
from memxd.model import IndexKind, IndexState, StoreAnswer


@pytest.fixture(scope="module")
def remote() -> Iterator[tuple[World, Service]]:
    """A daemon that embeds through a service which the tests switch off and on."""
    service = Service(64)
    with world() as place:
        place.serve(*service.flags(), embedder="openai")
        yield place, service
        service.off()


@pytest.fixture
def service(remote: tuple[World, Service]) -> Iterator[Service]:
    yield remote[1]
    if not remote[1].is_on:
        remote[1].on()


@pytest.fixture
def client(remote: tuple[World, Service]) -> Client:
    return fresh_scope(remote[0].client(retry=NO_RETRY))


def states(client: Client) -> dict[IndexKind, IndexState]:
    return {i.kind: i.state for i in client.status().engine.indexes}


@pytest.mark.slow
def test_embedder_down_and_up_again(client: Client, service: Service) -> None:
    """SEMANTICS Degraded: Store commits and says vector_pending, words find it at once, Search says degraded, and a
    backfill completes it when the service is back."""
    before = client.store("Ada drinks tea.").memory
    assert not before.vector_pending
    assert causes(ask(client, "what does Ada drink")) == []

    service.off()
    stored = client.store("Bo keeps bees in Porto.").memory
    assert stored.vector_pending
    changed = client.update(before.id, content="Ada drinks coffee.").memory
    assert changed.vector_pending
    many = list(client.store_many([Item(f"number {n} of a stream") for n in range(3)]))
    assert [a.memory.vector_pending for a in many if isinstance(a, StoreAnswer)] == [True] * 3

    answer = ask(client, "who keeps bees in Porto")
    assert ids(answer)[0] == stored.id
    assert set(causes(answer)) == {"EMBEDDER_UNAVAILABLE", "VECTORS_PENDING"}
    assert all(d.message for d in answer.degraded)
    assert why(answer.hits[0]).cosine is None
    assert why(answer.hits[0]).vector_rank is None
    assert any("vector" in note for note in why(answer.hits[0]).notes)
    assert ids(ask(client, "coffee")) == [before.id]
    client.store("The quince grows behind the barn.", private=True)
    assert "remote" not in str(why(ask(client, "quince").hits[0]).notes)  # this service is on this machine
    assert ask(client, "tea").rejected
    assert causes(ask(client, "bees", mode="keyword")) == []
    with pytest.raises(EmbedderUnavailableError):
        client.search("some question never asked before", mode="vector")
    with pytest.raises(EmbedderUnavailableError):
        client.search("some question never asked before", profile="memex")
    status = client.status().engine
    assert (status.model.available, status.vectors_pending) == (False, 6)
    assert "embedding service" in status.model.message

    service.on()
    until(lambda: client.status().engine.vectors_pending == 0, 60)
    assert not client.get(stored.id).vector_pending
    answer = ask(client, "who keeps bees in Porto", mode="vector")
    assert ids(answer)[0] == stored.id
    assert causes(answer) == []
    assert ids(ask(client, "coffee", mode="vector"))[0] == before.id
    assert client.status().engine.model.available


@pytest.mark.slow
def test_pending_vectors_are_completed_after_a_restart(world: World) -> None:
    """SEMANTICS Degraded: what is pending when the daemon stops is completed by the next one."""
    service = Service(64)
    service.off()
    daemon = world.serve(*service.flags(), embedder="openai")
    with world.client() as client:
        id = client.store("Bo keeps bees in Porto.").memory.id
        assert client.get(id).vector_pending
    assert daemon.stop() == 0
    service.on()
    world.serve(*service.flags(), embedder="openai")
    with world.client() as client:
        until(lambda: not client.get(id).vector_pending, 60)
        assert ids(ask(client, "bees in Porto", mode="vector")) == [id]
    service.off()


#: Starts a program with a limit on the size of files: too little for the vectors' file, enough for the database.
SMALL_FILES = (
    sys.executable, "-c",
    "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (700_000,) * 2); "
    "os.execvp(sys.argv[1], sys.argv[1:])",
)  # fmt: skip


def broken(world: World, *names: str) -> dict[str, Any]:
    """Take indexes away and keep them from coming back; the options to start a daemon with.

    The change log is cut, as it is after a week, so that they must be rebuilt and cannot be replayed.
    """
    with contextlib.closing(sqlite3.connect(world.data_dir / "memxd.db")) as database:
        database.execute("DELETE FROM changes WHERE revision < (SELECT max(revision) FROM changes)")
        database.commit()
    for name in names:
        shutil.rmtree(world.data_dir / "index" / name)
    if "keyword" in names:
        in_the_way(world).parent.mkdir()
        in_the_way(world).write_text("the new index would be built here")
    return {"prefix": SMALL_FILES} if "vector" in names else {}


def in_the_way(world: World) -> Path:
    return world.data_dir / "index" / "keyword" / "new"


CASES: dict[str, Any] = {
    "vector": (IndexKind.VECTOR, "VECTOR_INDEX_UNAVAILABLE", "vector"),
    "keyword": (IndexKind.KEYWORD, "KEYWORD_INDEX_UNAVAILABLE", "keyword"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_one_index_broken_the_other_answers(world: World, name: str) -> None:
    """SEMANTICS Degraded: one index out of order: the other answers and says so; mended, nothing is missing."""
    kind, cause, mode = CASES[name]
    daemon = world.serve()
    with world.client() as client:
        id = client.store("Bo keeps bees in Porto.").memory.id
        client.store("something else")
    assert daemon.stop() == 0
    daemon = world.serve(**broken(world, name))
    with world.client(retry=NO_RETRY) as client:
        later = client.store("Ada keeps owls in Porto.").memory.id
        answer = ask(client, "who keeps bees in Porto")
        assert ids(answer)[0] == id
        assert cause in causes(answer)
        assert states(client)[kind] is IndexState.FAILED
        with pytest.raises(IndexUnavailableError):
            client.search("bees", mode=mode)
    assert daemon.stop() == 0
    in_the_way(world).unlink(missing_ok=True)
    world.serve()
    with world.client() as client:
        assert states(client)[kind] is IndexState.READY
        for query, expected in (("who keeps bees in Porto", id), ("who keeps owls in Porto", later)):
            answer = ask(client, query, mode=mode)
            assert ids(answer)[0] == expected
            assert causes(answer) == []


@pytest.mark.slow
def test_both_indexes_broken_is_unavailable(world: World) -> None:
    """SEMANTICS Degraded: both down: UNAVAILABLE, retryable; Store, Get and List go on."""
    daemon = world.serve()
    with world.client() as client:
        id = client.store("Bo keeps bees in Porto.").memory.id
        client.store("something else")
    assert daemon.stop() == 0
    world.serve(**broken(world, "vector", "keyword"))
    with world.client(retry=NO_RETRY) as client:
        with pytest.raises(IndexUnavailableError) as caught:
            client.search("who keeps bees")
        assert caught.value.retryable
        assert client.get(id).content == "Bo keeps bees in Porto."
        other = client.store("Ada keeps owls.").memory.id
        assert {id, other} < {m.id for m in client.list().memories}
        in_the_way(world).unlink()
        for _ in client.rebuild("keyword"):
            pass
        assert states(client)[IndexKind.KEYWORD] is IndexState.READY
        answer = ask(client, "who keeps owls")
        assert (ids(answer)[0], causes(answer)) == (other, ["VECTOR_INDEX_UNAVAILABLE"])


@pytest.mark.parametrize("damage", ["missing", "garbage", "no folders"])
def test_damaged_index_files_come_back_by_themselves(world: World, damage: str) -> None:
    """SEMANTICS Degraded: indexes are disposable: lost or overwritten files are rebuilt before the daemon serves."""
    daemon = world.serve()
    with world.client() as client:
        made = [client.store(f"fact number {n} about bees").memory.id for n in range(5)]
        client.flush()
    assert daemon.stop() == 0
    for path in sorted((world.data_dir / "index").rglob("*")):
        if path.is_file() and damage == "garbage":
            path.write_bytes(b"\xff" * max(16, path.stat().st_size))
    if damage == "no folders":
        for name in ("columns", "vector", "keyword"):
            shutil.rmtree(world.data_dir / "index" / name)
            (world.data_dir / "index" / name).write_text("no folder")
    if damage == "missing":
        shutil.rmtree(world.data_dir / "index")
    world.serve()
    with world.client() as client:
        assert set(states(client).values()) == {IndexState.READY}
        for mode in ("keyword", "vector"):
            answer = ask(client, "fact about bees", mode=mode)
            assert set(ids(answer)) == set(made)
            assert causes(answer) == []
