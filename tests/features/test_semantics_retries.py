"""SEMANTICS "Retries": the same request id gives the same answer, for a day, across a restart, per scope and RPC."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from featurekit import World, fresh_scope
from memxd.client import Client, Item, where
from memxd.errors import InvalidArgumentError, MemoryNotFoundError, MemxdError, RequestIdReusedError
from memxd.model import StoreAnswer


def test_retries_give_the_same_answer_for_every_write(client: Client) -> None:
    """SEMANTICS Retries: Store, Update, CreateLink, DeleteLink, DeleteMany, Delete: twice is once."""
    first = client.store("alpha", tags=["t"], request_id="s1")
    assert client.store("alpha", tags=["t"], request_id="s1") == first
    other = client.store("beta", request_id="s2").memory
    id = first.memory.id

    changed = client.update(id, importance=0.9, request_id="u")
    assert client.update(id, importance=0.9, request_id="u") == changed
    assert client.get(id).revision == changed.memory.revision

    link = client.create_link(id, other.id, "related", request_id="l")
    assert client.create_link(id, other.id, "related", request_id="l") == link
    gone = client.delete_link(link.id, request_id="d")
    assert client.delete_link(link.id, request_id="d") == gone

    for n in range(3):
        client.store(f"bulk {n}", tags=["bulk"])
    bulk = where(tags_any=["bulk"])
    assert [client.delete_many(bulk, request_id="m") for _ in range(2)] == [3, 3]
    erased = client.delete(other.id, request_id="e")
    assert client.delete(other.id, request_id="e") == erased
    assert client.count() == 1


def test_retries_answer_as_it_was_answered(client: Client) -> None:
    """SEMANTICS Retries: the remembered answer is the old one, even when the memory has changed since."""
    first = client.store("alpha", request_id="s")
    client.update(first.memory.id, content="beta")
    assert client.store("alpha", request_id="s") == first
    assert client.count() == 1


def test_retries_with_another_body_are_refused(client: Client) -> None:
    """SEMANTICS Retries: same id with another body = INVALID_ARGUMENT; whatever differs, and for each RPC."""
    id = client.store("alpha", request_id="s").memory.id
    client.update(id, importance=0.9, request_id="u")
    bodies: list[Any] = [
        lambda: client.store("alpha!", request_id="s"),
        lambda: client.store("alpha", tags=["t"], request_id="s"),
        lambda: client.store("alpha", allow_duplicate=True, request_id="s"),
        lambda: client.update(id, importance=0.8, request_id="u"),
        lambda: client.update(id, importance=0.9, expected_revision=1, request_id="u"),
    ]
    for call in bodies:
        with pytest.raises(RequestIdReusedError) as caught:
            call()
        assert caught.value.violations[0].field == "request_id"
    assert client.count() == 1


def test_retries_count_per_scope_and_rpc(client: Client) -> None:
    """SEMANTICS Retries: unique per scope and RPC."""
    other = fresh_scope(client)
    id = client.store("alpha", request_id="same").memory.id
    assert other.store("another body", request_id="same").memory.id != id
    client.update(id, importance=0.9, request_id="same")
    client.delete(id, request_id="same")


def test_retries_of_stream_items(client: Client) -> None:
    """SEMANTICS Retries: per item in StoreMany."""
    items = [Item(f"note {n}", request_id=f"r{n}") for n in range(5)]
    first = list(client.store_many(items))
    again = list(client.store_many([*items[:4], Item("another", request_id="r4")]))
    assert again[:4] == first[:4]
    assert isinstance(again[4], RequestIdReusedError)
    assert all(isinstance(a, StoreAnswer) for a in first)
    assert client.count() == 5


def test_retries_at_the_same_moment_store_once(client: Client) -> None:
    """SEMANTICS Retries: eight at once with one id are one memory and one answer."""
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.store("alpha", allow_duplicate=True, request_id="race"), range(8)))
    assert len({a.memory.id for a in answers}) == 1
    assert client.count() == 1


def test_retries_after_deletion_do_not_bring_it_back(client: Client) -> None:
    """SEMANTICS Retries, States: Delete erases stored answers: the retry is told, and nothing returns."""
    id = client.store("alpha", request_id="s").memory.id
    client.delete(id)
    with pytest.raises(MemoryNotFoundError):
        client.store("alpha", request_id="s")
    assert client.count() == 0


def test_retries_a_refused_call_may_be_corrected(client: Client) -> None:
    """SEMANTICS Retries: only what was carried out is remembered."""
    with pytest.raises(MemxdError):
        client.store("", request_id="s")
    with pytest.raises(MemoryNotFoundError):
        client.store("alpha", supersedes=["0198c5f2-7c1e-7b3a-9d7e-2f1c3a4b5d6e"], request_id="s")
    assert client.store("alpha", request_id="s").memory.content == "alpha"


@pytest.mark.parametrize("bad", ["x" * 65, " ", "a\x00", "a\nb"])
def test_retries_ids_are_64_printable_characters(client: Client, bad: str) -> None:
    """SEMANTICS Retries: <= 64 characters."""
    with pytest.raises(InvalidArgumentError) as caught:
        client.store("alpha", request_id=bad)
    assert caught.value.violations[0].field == "request_id"
    assert client.store("alpha", request_id="ü" * 64)


def test_retries_survive_a_restart(world: World) -> None:
    """SEMANTICS Retries: kept on disk: the next daemon gives the same answers, also after a crash."""
    daemon = world.serve()
    with world.client() as client:
        first = client.store("alpha", request_id="s")
        changed = client.update(first.memory.id, tags=["t"], request_id="u")
        link_ends = [client.store(t, request_id=t).memory.id for t in ("one", "two")]
        link = client.create_link(*link_ends, "extends", metadata={"k": [1]}, request_id="l")
    daemon.process.kill()
    daemon.wait()
    world.serve()
    with world.client() as client:
        assert client.store("alpha", request_id="s") == first
        assert client.update(first.memory.id, tags=["t"], request_id="u") == changed
        assert client.create_link(*link_ends, "extends", metadata={"k": [1]}, request_id="l") == link
        with pytest.raises(RequestIdReusedError):
            client.store("beta", request_id="s")
        assert client.count() == 3
