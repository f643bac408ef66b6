"""The Python client against the real daemon: every verb, both kinds of client, a restart in between."""

from __future__ import annotations

import asyncio
import signal
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from memxd.client import NO_RETRY, AsyncClient, Client, Item, Question, Retry, as_datetime, where
from memxd.errors import (
    DuplicateLinkError,
    InvalidArgumentError,
    MemoryNotFoundError,
    RequestIdReusedError,
    RevisionMismatchError,
)
from memxd.model import LinkType, MemoryType, SearchAnswer, State, StoreAnswer


def test_a_first_call_waits_for_a_daemon_that_is_slow_to_take_the_connection(daemon: Any) -> None:
    daemon.signal(signal.SIGSTOP)  # as a busy machine would, for longer than the first pause between two attempts
    going_on = threading.Timer(0.3, daemon.signal, (signal.SIGCONT,))
    going_on.start()
    try:
        with Client(daemon.socket, retry=NO_RETRY) as client:
            assert client.count() == 0
    finally:
        going_on.join()


def test_a_memorys_whole_life(daemon: Any) -> None:
    with Client(daemon.socket, agent_id="planner", user_id="ada") as client:
        client.wait_ready(10)
        at = datetime(2026, 5, 1, 10, tzinfo=UTC)
        stored = client.store(
            "Ada drinks her coffee black.", type="episodic", tags=["coffee"], metadata={"year": 2026, "x": [None, 1.5]},
            importance=0.9, event_at=at, source="chat",
        )  # fmt: skip
        memory = stored.memory
        assert (memory.type, memory.tags, memory.metadata) == (
            MemoryType.EPISODIC, ("coffee",), {"year": 2026, "x": [None, 1.5]},
        )  # fmt: skip
        assert memory.event_at is not None
        assert as_datetime(memory.event_at) == at
        assert client.store("Ada drinks her coffee black.", type="episodic", event_at=at, source="chat").deduplicated

        answer = client.search("how does Ada drink coffee?", explain=True)
        assert [hit.memory.id for hit in answer.hits] == [memory.id]
        explanation = answer.hits[0].explanation
        assert explanation is not None
        assert 0 <= explanation.semantic.value <= 1
        assert client.search("coffee", filter=where(types=["semantic"])).rejected

        changed = client.update(memory.id, content="Ada drinks tea.", tags=None, expected_revision=memory.revision)
        assert (changed.memory.content, changed.memory.tags) == ("Ada drinks tea.", ())
        with pytest.raises(RevisionMismatchError):
            client.update(memory.id, importance=0.1, expected_revision=memory.revision)
        assert client.update(memory.id, state="archived").memory.state is State.ARCHIVED

        with pytest.raises(MemoryNotFoundError):
            client.scope(user_id="bob").get(memory.id)
        assert client.get(memory.id).id == memory.id
        assert client.get(memory.id, record_access=False).access_count == 1
        assert client.count() == 0
        assert client.count(where(states=["archived"])) == 1
        assert client.delete(memory.id) > 0
        with pytest.raises(MemoryNotFoundError):
            client.get(memory.id)


def test_refusals_name_the_field(daemon: Any) -> None:
    with Client(daemon.socket) as client:
        with pytest.raises(InvalidArgumentError) as caught:
            client.store("   ")
        assert caught.value.violations[0].field == "memory.content"
        with pytest.raises(InvalidArgumentError) as caught:
            client.delete_many()
        assert caught.value.violations[0].field.startswith("scope")
        client.store("one", request_id="same")
        with pytest.raises(RequestIdReusedError):
            client.store("two", request_id="same")


def test_many_at_once(daemon: Any) -> None:
    with Client(daemon.socket, agent_id="a", user_id="u") as client:
        items = [Item(f"fact number {i}", tags=["n"]) for i in range(300)]
        items[7] = Item("")
        outcomes = list(client.store_many(items, window=32))
        assert [i for i, o in enumerate(outcomes) if not isinstance(o, StoreAnswer)] == [7]
        again = list(client.store_many(items))
        assert [o.memory.id for o in again if isinstance(o, StoreAnswer)] == [
            o.memory.id for o in outcomes if isinstance(o, StoreAnswer)
        ]
        assert client.count() == 299
        page = client.list(page_size=50, order="created_at_asc")
        assert [len(page.memories), page.memories[0].content] == [50, "fact number 0"]
        assert page.next_page_token
        assert len({m.id for m in client.iter_list(page_size=50)}) == 299
        good, bad = client.search_many([Question("fact number 5", k=3), "  "])
        assert isinstance(good, SearchAnswer)
        assert len(good.hits) == 3
        assert isinstance(bad, InvalidArgumentError)
        assert client.delete_many(where(tags_any=["n"]), dry_run=True) == 299
        assert client.delete_many(where(tags_any=["n"])) == 299
        assert client.count() == 0


def test_links_and_superseding(daemon: Any) -> None:
    with Client(daemon.socket) as client:
        old = client.store("Bo lives in Oslo").memory
        new = client.store("Bo lives in Porto", supersedes=[old.id]).memory
        other = client.store("Porto is by the sea").memory
        assert client.get(old.id).superseded_by == new.id
        link = client.create_link(new.id, other.id, "related", strength=0.5, metadata={"why": "place"})
        assert (link.type, link.strength, link.metadata) == (LinkType.RELATED, 0.5, {"why": "place"})
        with pytest.raises(DuplicateLinkError) as caught:
            client.create_link(new.id, other.id, "related")
        assert caught.value.metadata["id"] == link.id
        assert {x.type for x in client.list_links(new.id).links} == {LinkType.RELATED, LinkType.SUPERSEDES}
        walk = client.traverse(new.id, max_depth=1, types=["related"], direction="outgoing")
        assert [m.memory.id for m in walk.memories] == [other.id]
        client.delete_link(link.id)
        assert client.list_links(other.id).total == 0


def test_administration(daemon: Any) -> None:
    with Client(daemon.socket) as client:
        client.store("something")
        revision = client.flush()
        status = client.status()
        assert status.pid == daemon.pid
        assert status.engine.revision == revision
        assert status.engine.memories == 1
        assert {step.kind.name for step in client.rebuild() if step.finished} == {"VECTOR", "KEYWORD", "COLUMNS"}


def test_a_restart_is_bridged(daemon: Any, start_daemon: Any) -> None:
    with Client(daemon.socket, retry=Retry(attempts=30, first_pause=0.05)) as client:
        kept = client.store("survives").memory
        daemon.stop()
        start_daemon(wait=False)
        assert client.get(kept.id, timeout=30).content == "survives"
        assert not client.store("again", timeout=30).deduplicated


def test_the_asyncio_client_does_the_same(daemon: Any) -> None:
    async def main() -> None:
        async with AsyncClient(daemon.socket, agent_id="a") as client:
            await client.wait_ready(10)
            answers = await asyncio.gather(*(client.store(f"memory {i}") for i in range(20)))
            assert len({a.memory.id for a in answers}) == 20
            assert len((await client.search("memory 3")).hits) == 10
            assert [o async for o in client.store_many(["", "x"])][1].memory.content == "x"
            assert await client.scope(user_id="else").count() == 0
            with pytest.raises(MemoryNotFoundError):
                await client.get("01890000-0000-7000-8000-000000000000")
            assert len([m async for m in client.iter_list(page_size=5)]) == 21
            assert [s.kind.name async for s in client.rebuild("keyword")][-1] == "KEYWORD"

    asyncio.run(main())
