"""FEATURES E1 and SEMANTICS "Scope": a scope is a wall, in results, errors and counts."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

import casekit
from featurekit import NOBODY, World, ask, fresh_scope
from memxd.client import Client, Item, Question, where
from memxd.errors import InvalidArgumentError, LinkNotFoundError, MemoryNotFoundError, MemxdError
from memxd.model import Scope
from memxd.v1 import memory_pb2
from memxd.v1 import memory_service_pb2 as pb

CALLS: dict[str, Callable[[Client, str, str], Any]] = {
    "Get": lambda c, id, other: c.get(id),
    "Update": lambda c, id, other: c.update(id, importance=0.9),
    "Delete": lambda c, id, other: c.delete(id),
    "CreateLink source": lambda c, id, other: c.create_link(id, other, "related"),
    "CreateLink target": lambda c, id, other: c.create_link(other, id, "related"),
    "ListLinks": lambda c, id, other: c.list_links(id),
    "Traverse": lambda c, id, other: c.traverse(id),
    "Store supersedes": lambda c, id, other: c.store("new", supersedes=[id]),
}


@pytest.mark.parametrize("call", CALLS)
def test_e1_another_scopes_id_is_as_if_it_never_was(client: Client, call: str) -> None:
    """E1, better: every id-based call checks both parts; the words are the same as for an id that never was."""
    id = client.store("secret of ada").memory.id
    strangers = [fresh_scope(client), client.scope(user_id="bob"), client.scope(agent_id="eve")]
    for stranger in strangers:
        mine = stranger.store("own").memory.id
        errors: list[MemxdError] = []
        for foreign in (id, NOBODY):
            with pytest.raises(MemoryNotFoundError) as caught:
                CALLS[call](stranger, foreign, mine)
            errors.append(caught.value)
        said = [str(e).replace(id, "ID").replace(NOBODY, "ID") for e in errors]
        assert said[0] == said[1]
        assert "ada" not in said[0]
        stranger.delete_many()
    memory = client.get(id, record_access=False)
    assert (memory.content, memory.importance, memory.access_count) == ("secret of ada", 0.5, 0)


def test_e1_results_and_counts_do_not_cross(client: Client) -> None:
    """E1: Search, SearchMany, List, Count, DeleteMany and filters by id see one scope."""
    other = fresh_scope(client)
    id = client.store("the falcon lands at dawn", tags=["t"], metadata={"k": 1}).memory.id
    other.store("an owl")
    conditions = [None, where(ids=[id]), where(tags_any=["t"]), where(metadata={"k": 1})]
    for condition in conditions:
        assert id not in [h.memory.id for h in ask(other, "falcon dawn", filter=condition).hits]
        assert id not in [m.id for m in other.list(filter=condition).memories]
        assert other.count(condition) == (1 if condition is None else 0)
        assert other.delete_many(condition, dry_run=True) == (1 if condition is None else 0)
    [answer] = other.search_many([Question("falcon dawn", filter=where(ids=[id]))])
    assert not isinstance(answer, MemxdError)
    assert answer.rejected
    assert other.delete_many() == 1
    assert client.count() == 1


def test_e1_scores_tell_nothing_of_another_scope(client: Client) -> None:
    """E1: word statistics are counted within the scope: the same memories score the same, whoever else is there."""
    one, crowd, two = fresh_scope(client), fresh_scope(client), fresh_scope(client)

    def scores(scope: Client) -> list[tuple[float, float]]:
        for text in ("the falcon lands", "an owl sleeps", "the owl wakes"):
            scope.store(text)
        hits = ask(scope, "the falcon", mode="keyword", asked_at=0).hits
        return [(h.score, h.relevance) for h in hits]

    before = scores(one)
    for n in range(200):
        crowd.store(f"the falcon number {n}")
    assert scores(two) == before


def test_e1_a_bad_link_id_of_another_scope(client: Client) -> None:
    """E1: link ids are walled as well."""
    a, b = client.store("a").memory.id, client.store("b").memory.id
    link = client.create_link(a, b, "related")
    with pytest.raises(LinkNotFoundError):
        fresh_scope(client).delete_link(link.id)


def test_semantics_absent_means_default(world: World) -> None:
    """SEMANTICS Scope: absent scope, and an absent part, mean "default"."""
    case = world.start()
    stub = case.memory
    stored = [
        stub.Store(pb.StoreRequest(memory=pb.NewMemory(content="one"))).memory.scope,
        stub.Store(pb.StoreRequest(scope=memory_pb2.Scope(), memory=pb.NewMemory(content="two"))).memory.scope,
        stub.Store(
            pb.StoreRequest(scope=memory_pb2.Scope(user_id="default"), memory=pb.NewMemory(content="three"))
        ).memory.scope,
    ]
    assert all((s.agent_id, s.user_id) == ("default", "default") for s in stored)
    assert stub.Count(pb.CountRequest()).count == 3
    status = case.client().status().engine
    assert status.scopes == ((Scope(), 3, 3),)
    assert status.scope_count == 1


@pytest.mark.parametrize(
    ("part", "refused"),
    [
        ("", True), ("   ", True), ("\u200b", True), ("x" * 129, True), ("a\x00b", True), ("a\nb", True),
        ("x" * 128, False), ("Zoë Müller", False), ("用户", False), ("a/b:c@d", False),
    ],
)  # fmt: skip
def test_semantics_scope_parts(client: Client, part: str, refused: bool) -> None:
    """SEMANTICS Scope: set but blank, over 128 characters, or with control characters = INVALID_ARGUMENT, each part."""
    for name in ("agent_id", "user_id"):
        view = client.scope(**{name: part})
        if not refused:
            assert view.count() == 0
            continue
        with pytest.raises(InvalidArgumentError) as caught:
            view.count()
        assert caught.value.violations[0].field == f"scope.{name}"


def test_semantics_scope_parts_are_nfc_case_sensitive_and_trimmed(client: Client) -> None:
    """SEMANTICS Scope: NFC, without outer spaces, case-sensitive."""
    name = "Zoë-" + fresh_scope(client).store("x").memory.scope.agent_id
    id = client.scope(agent_id=name).store("here").memory.id
    assert client.scope(agent_id=f"  {unicodedata.normalize('NFD', name)} ").get(id).scope.agent_id == name
    assert client.scope(agent_id=name.lower()).count() == 0


def test_semantics_delete_many_needs_the_scope_spelled_out(hashing_world: World, client: Client) -> None:
    """SEMANTICS Scope: DeleteMany without a scope, or with half of one, is refused; nothing is gone."""
    stub = hashing_world.started[0].memory
    client.scope(agent_id="default", user_id="default").store("still here")
    for scope, field in (
        (None, "scope"),
        (memory_pb2.Scope(), "scope.agent_id"),
        (memory_pb2.Scope(agent_id="default"), "scope.user_id"),
        (memory_pb2.Scope(user_id="default"), "scope.agent_id"),
    ):
        refusal = casekit.refused(lambda scope=scope: stub.DeleteMany(pb.DeleteManyRequest(scope=scope)))
        assert (refusal.reason, refusal.field) == ("INVALID_ARGUMENT", field)
    assert client.scope(agent_id="default", user_id="default").count() >= 1


def test_e1_store_many_items_name_their_own_scope(client: Client) -> None:
    """E1: a stream may hold items of several scopes; each lands where it says."""
    other = fresh_scope(client)
    name = other.store("seed").memory.scope
    answers = list(client.store_many([Item("mine"), Item("theirs", agent_id=name.agent_id, user_id=name.user_id)]))
    assert [isinstance(a, MemxdError) for a in answers] == [False, False]
    assert (client.count(), other.count()) == (1, 2)
