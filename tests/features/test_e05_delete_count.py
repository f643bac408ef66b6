"""FEATURES E5: erasing one and many, and counting truly."""

from __future__ import annotations

import pytest

from featurekit import NOBODY, World, ask, fresh_scope
from memxd.client import Client, where
from memxd.errors import InvalidArgumentError, MemoryNotFoundError


def test_e5_delete_is_gone_everywhere(client: Client) -> None:
    """E5: after Delete nothing finds it, by id, words, meaning, list or count; a second time is NOT_FOUND."""
    id = client.store("the heliotrope falcon").memory.id
    kept = client.store("the marmalade owl").memory.id
    revision = client.delete(id)
    assert revision > 0
    for call in (lambda: client.get(id), lambda: client.delete(id), lambda: client.update(id, importance=1.0)):
        with pytest.raises(MemoryNotFoundError):
            call()
    for mode in ("hybrid", "vector", "keyword"):
        assert id not in [h.memory.id for h in ask(client, "heliotrope falcon", mode=mode).hits]
    assert [m.id for m in client.list().memories] == [kept]
    assert client.count() == 1
    with pytest.raises(MemoryNotFoundError):
        client.delete(NOBODY)


def test_e5_delete_many_counts_truly(client: Client) -> None:
    """E5, better: by filter, dry_run tells without erasing, the true count comes back, the rest stays."""
    for n in range(30):
        client.store(f"note {n}", tags=["odd"] if n % 2 else ["even"])
    odd = where(tags_any=["odd"])
    assert client.delete_many(odd, dry_run=True) == 15
    assert client.count() == 30
    assert client.delete_many(odd) == 15
    assert client.delete_many(odd) == 0
    assert (client.count(), client.count(odd)) == (15, 0)


def test_e5_an_empty_filter_erases_the_whole_scope_and_only_that(client: Client) -> None:
    """E5, SEMANTICS States: every state goes: active, archived, superseded, expired; other scopes stay."""
    other = fresh_scope(client)
    other.store("mine")
    old = client.store("old").memory.id
    client.store("new", supersedes=[old])
    client.update(client.store("filed").memory.id, state="archived")
    client.store("stale", valid_until=1)
    assert client.count() == 1
    assert client.delete_many(dry_run=True) == 4
    assert client.delete_many() == 4
    assert client.count(where(states=["active", "superseded", "archived"])) == 0
    assert other.count() == 1


def test_e5_never_with_a_bad_scope_or_filter(client: Client) -> None:
    """E5, better: never with an empty scope; a filter that is refused erases nothing."""
    client.store("still here")
    with pytest.raises(InvalidArgumentError):
        client.scope(user_id=" ").delete_many()
    for condition in (where(tags_any=["t" * 65]), where(ids=["no-id"]), where(importance_min=2.0)):
        with pytest.raises(InvalidArgumentError):
            client.delete_many(condition)
    assert client.count() == 1


def test_e5_count_by_filter_and_state(client: Client) -> None:
    """E5: Count sees what List sees: active and unexpired, unless told otherwise."""
    client.store("one", type="episodic", valid_until=1)
    client.store("two", type="episodic")
    client.store("three")
    assert client.count() == 2
    assert client.count(where(types=["episodic"])) == 1
    assert client.count(where(types=["episodic"], states=["active"])) == 2
    assert len(client.list().memories) == 2


def test_e5_erased_text_leaves_the_database_files(world: World) -> None:
    """SEMANTICS States: Delete erases: the text is in no file of the data directory after the daemon has stopped."""
    daemon = world.serve()
    with world.client() as client:
        secret = client.store("heliotropemarmalade is the codeword", request_id="r1").memory.id
        client.update(secret, content="heliotropemarmalade was the codeword")
        client.store("something else")
        client.flush()
        client.delete(secret)
        for _ in client.rebuild():
            pass
        client.flush()
    assert daemon.stop() == 0
    holding = [p.name for p in world.data_dir.rglob("*") if p.is_file() and b"heliotropemarmalade" in p.read_bytes()]
    assert holding == []
