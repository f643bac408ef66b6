"""Case 2: nothing of one scope is visible or reachable from another: not by search, by id, by error or by score."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from casekit import MODES, NOBODY, Case, Refusal, fresh_scope
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb
from requestkit import Seed, update

ID = "ID"
#: Requests by another's id: name -> (rpc, request of (own seed, an id)).
BY_ID: dict[str, tuple[str, Callable[[Seed, str], Any]]] = {
    "get": ("Get", lambda s, i: pb.GetRequest(scope=s.scope, id=i)),
    "delete": ("Delete", lambda s, i: pb.DeleteRequest(scope=s.scope, id=i)),
    "update": (
        "Update",
        lambda s, i: pb.UpdateRequest(
            scope=s.scope, id=i, update_mask=FieldMask(paths=["content"]), memory=pb.MemoryPatch(content="taken over")
        ),
    ),
    "update at a revision": (
        "Update",
        lambda s, i: pb.UpdateRequest(
            scope=s.scope, id=i, update_mask=FieldMask(paths=["tags"]), expected_revision=1, memory=pb.MemoryPatch()
        ),
    ),
    "link from": (
        "CreateLink",
        lambda s, i: pb.CreateLinkRequest(scope=s.scope, source_id=i, target_id=s.first, type=mem.LINK_TYPE_SIMILAR),
    ),
    "link to": (
        "CreateLink",
        lambda s, i: pb.CreateLinkRequest(scope=s.scope, source_id=s.first, target_id=i, type=mem.LINK_TYPE_SUPERSEDES),
    ),
    "links of": ("ListLinks", lambda s, i: pb.ListLinksRequest(scope=s.scope, memory_id=i)),
    "walk from": ("Traverse", lambda s, i: pb.TraverseRequest(scope=s.scope, start_id=i)),
    "supersede": (
        "Store",
        lambda s, i: pb.StoreRequest(scope=s.scope, memory=pb.NewMemory(content="newer", supersedes=[s.first, i])),
    ),
    "supersede in a stream": (
        "StoreMany",
        lambda s, i: pb.StoreManyRequest(scope=s.scope, memory=pb.NewMemory(content="newer", supersedes=[i])),
    ),
}


def shown(answer: Any, id: str) -> str:
    assert isinstance(answer, Refusal), answer
    return repr(answer).replace(id, ID)


@pytest.fixture
def mine(hashing: Case) -> Seed:
    return Seed.into(hashing, fresh_scope("mine"))


@pytest.fixture
def theirs(hashing: Case) -> Seed:
    return Seed.into(hashing, fresh_scope("theirs"))


@pytest.mark.parametrize("name", BY_ID)
def test_anothers_id_answers_like_one_that_never_was(hashing: Case, mine: Seed, theirs: Seed, name: str) -> None:
    rpc, make = BY_ID[name]
    before = hashing.memory.List(pb.ListRequest(scope=theirs.scope), timeout=20).memories
    of_nobody = hashing.call(rpc, make(mine, NOBODY))
    assert of_nobody.code.name == "NOT_FOUND"
    for id in (theirs.first, theirs.second):
        assert shown(hashing.call(rpc, make(mine, id)), id) == shown(of_nobody, NOBODY)
    assert hashing.memory.List(pb.ListRequest(scope=theirs.scope), timeout=20).memories == before
    assert hashing.count(mine.scope) == 2, "nothing half done"


def test_anothers_link_answers_like_one_that_never_was(hashing: Case, mine: Seed, theirs: Seed) -> None:
    answers = [hashing.call("DeleteLink", pb.DeleteLinkRequest(scope=mine.scope, id=i)) for i in (theirs.link, NOBODY)]
    assert shown(answers[0], theirs.link) == shown(answers[1], NOBODY)
    assert answers[0].reason == "LINK_NOT_FOUND"
    assert hashing.call("ListLinks", pb.ListLinksRequest(scope=theirs.scope, memory_id=theirs.first)).total_count == 1


@pytest.mark.parametrize("mode", MODES)
def test_equal_texts_of_two_users_are_two_memories(hashing: Case, mine: Seed, theirs: Seed, mode: str) -> None:
    for seed in (mine, theirs):
        hits = hashing.search(seed.scope, "green tea", mode=MODES[mode], explain=True).hits
        assert hits[0].memory.id == seed.first
        assert {h.memory.scope.agent_id for h in hits} == {seed.scope.agent_id}


def test_filters_by_anothers_ids_match_nothing(hashing: Case, mine: Seed, theirs: Seed) -> None:
    filter = mem.Filter(ids=[theirs.first, theirs.second], states=[1, 2, 3])
    assert hashing.count(mine.scope, filter=filter) == 0
    assert not hashing.call("List", pb.ListRequest(scope=mine.scope, filter=filter)).memories
    assert hashing.found(mine.scope, "tea", filter=filter, ranking={"reject": False}) == []
    search = pb.SearchRequest(scope=mine.scope, query="tea", filter=filter)
    answer = hashing.call("SearchMany", pb.SearchManyRequest(searches=[search]))
    assert not answer.hits


def test_anothers_page_token_opens_nothing(hashing: Case, mine: Seed, theirs: Seed) -> None:
    token = hashing.call("List", pb.ListRequest(scope=theirs.scope, page_size=1)).next_page_token
    assert token
    answer = hashing.call("List", pb.ListRequest(scope=mine.scope, page_size=1, page_token=token))
    assert (answer.reason, answer.field) == ("INVALID_ARGUMENT", "page_token")
    assert theirs.second not in repr(answer)


def test_the_same_request_id_in_two_scopes_is_two_requests(hashing: Case, mine: Seed, theirs: Seed) -> None:
    ids = set()
    for seed in (mine, theirs):
        request = pb.StoreRequest(scope=seed.scope, memory=pb.NewMemory(content="retried"), request_id="one")
        ids.add(hashing.call("Store", request).memory.id)
        assert hashing.call("Store", request).memory.id in ids
    assert len(ids) == 2


@pytest.mark.parametrize("mode", MODES)
def test_scores_do_not_tell_of_another_scope(hashing: Case, mode: str) -> None:
    scope, other = fresh_scope("mine"), fresh_scope("other")
    for n in range(20):
        hashing.store(scope, f"zebra crossing number {n}" if n < 3 else f"street number {n}")

    def ask() -> list[tuple[Any, ...]]:
        answer = hashing.search(
            scope, "zebra crossing", mode=MODES[mode], explain=True, record_retrieval=False, asked_at={"seconds": 2**31}
        )
        return [
            (h.memory.id, h.score, h.relevance, h.explanation.SerializeToString(deterministic=True))
            for h in answer.hits
        ]

    before = ask()
    assert before
    hashing.store_all(other, [pb.NewMemory(content=f"zebra crossing of others {n}") for n in range(200)])
    assert ask() == before


def test_links_and_walks_and_expansion_stay_inside(hashing: Case, mine: Seed, theirs: Seed) -> None:
    walked = hashing.call("Traverse", pb.TraverseRequest(scope=mine.scope, start_id=mine.first, max_depth=6))
    assert {t.memory.id for t in walked.memories} == {mine.second}
    answer = hashing.search(mine.scope, "tea", expand_links=3, ranking={"reject": False})
    assert {h.memory.id for h in answer.hits} <= {mine.first, mine.second}


def test_an_update_cannot_move_a_memory_and_a_client_view_stays_bound(hashing: Case, mine: Seed, theirs: Seed) -> None:
    request = update(mine, "scope", content="x")
    assert hashing.call("Update", request).reason == "INVALID_ARGUMENT"
    with hashing.client(mine.scope) as client:
        other = client.scope(agent_id=theirs.scope.agent_id, user_id=theirs.scope.user_id)
        assert {m.id for m in other.iter_list()} == {theirs.first, theirs.second}
        assert {m.id for m in client.iter_list()} == {mine.first, mine.second}


@pytest.mark.model
def test_anothers_id_costs_no_more_time_than_one_that_never_was(real: Case) -> None:
    """An embedding of the new text would take seconds, and tell that the id exists."""
    mine, theirs = Seed.into(real, fresh_scope("mine")), Seed.into(real, fresh_scope("theirs"))
    text = "A long tale of many words that must not be embedded. " * 1_000
    for id in (theirs.first, NOBODY):
        request = pb.UpdateRequest(
            scope=mine.scope, id=id, update_mask=FieldMask(paths=["content"]), memory=pb.MemoryPatch(content=text)
        )
        began = time.perf_counter()
        assert real.call("Update", request).reason == "MEMORY_NOT_FOUND"
        assert time.perf_counter() - began < 0.5
