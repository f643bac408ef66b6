"""Case 1: deleting all of one user's memories must never touch anybody else's."""

from __future__ import annotations

from typing import Any

import pytest

from casekit import NOBODY, Case, Refusal, assert_refused, fresh_scope
from memxd.errors import InvalidArgumentError
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb


def delete(case: Case, scope: mem.Scope | None, **fields: Any) -> Any:
    return case.call("DeleteMany", pb.DeleteManyRequest(scope=scope, **fields))


def neighbours(scope: mem.Scope) -> list[mem.Scope]:
    """Scopes that look like this one."""
    agent, user = scope.agent_id, scope.user_id
    return [
        mem.Scope(agent_id=agent, user_id="other"),
        mem.Scope(agent_id="other-" + agent, user_id=user),
        mem.Scope(agent_id=user, user_id=agent),
        mem.Scope(agent_id=agent.upper(), user_id=user),
        mem.Scope(agent_id=agent, user_id=user + "2"),
        mem.Scope(agent_id=agent + user, user_id="x"),
        mem.Scope(agent_id=agent),
        mem.Scope(agent_id="%", user_id=agent),
        mem.Scope(agent_id=agent + "\u0301", user_id=user),
    ]


def test_a_whole_scope_goes_and_every_neighbour_stays(hashing: Case, scope: mem.Scope) -> None:
    others = neighbours(scope)
    for each in (scope, *others):
        hashing.store(each, "likes tea")
        hashing.store(each, "likes coffee")
    assert delete(hashing, scope).deleted_count == 2
    assert hashing.count(scope) == 0
    assert hashing.found(scope, "tea") == []
    for other in others:
        assert hashing.count(other) == 2, other
        assert "likes tea" in hashing.found(other, "tea"), other


def test_a_filter_goes_no_further_than_its_scope(hashing: Case, scope: mem.Scope) -> None:
    other = fresh_scope("other")
    mine = [hashing.store(scope, f"note {n}", tags=["old"], importance=0.1) for n in range(3)]
    theirs = [hashing.store(other, f"note {n}", tags=["old"], importance=0.1) for n in range(3)]
    for filter in (
        mem.Filter(tags_any=["old"], ids=[m.id for m in theirs]),
        mem.Filter(ids=[m.id for m in theirs]),
        mem.Filter(tags_all=["absent"]),
        mem.Filter(importance_min=0.9),
        mem.Filter(ids=[NOBODY]),
    ):
        assert delete(hashing, scope, filter=filter).deleted_count == 0
    assert delete(hashing, scope, filter=mem.Filter(tags_any=["old"], ids=[mine[0].id])).deleted_count == 1
    assert (hashing.count(scope), hashing.count(other)) == (2, 3)
    assert delete(hashing, scope, filter=mem.Filter(tags_any=["old"])).deleted_count == 2
    assert (hashing.count(scope), hashing.count(other)) == (0, 3)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (None, "scope"),
        (mem.Scope(), "scope.agent_id"),
        (mem.Scope(agent_id="a"), "scope.user_id"),
        (mem.Scope(user_id="u"), "scope.agent_id"),
        (mem.Scope(agent_id="", user_id="u"), "scope.agent_id"),
        (mem.Scope(agent_id="a", user_id="  "), "scope.user_id"),
        (mem.Scope(agent_id="\u200b", user_id="u"), "scope.agent_id"),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_scope_that_is_not_spelled_out_is_refused(
    hashing: Case, wrong: mem.Scope | None, field: str, dry_run: bool
) -> None:
    hashing.store(mem.Scope(), "of the default scope")
    before = hashing.count(mem.Scope())
    assert_refused(delete(hashing, wrong, dry_run=dry_run), field)
    assert hashing.count(mem.Scope()) == before


def test_the_client_refuses_an_unnamed_scope_as_well(hashing: Case) -> None:
    with hashing.client() as unnamed, pytest.raises(InvalidArgumentError) as caught:
        unnamed.delete_many()
    assert caught.value.violations[0].field == "scope"


def test_a_dry_run_counts_and_erases_nothing(hashing: Case, scope: mem.Scope) -> None:
    for n in range(4):
        hashing.store(scope, f"note {n}", tags=["even"] if n % 2 == 0 else [])
    assert delete(hashing, scope, dry_run=True).deleted_count == 4
    assert delete(hashing, scope, dry_run=True, filter=mem.Filter(tags_none=["even"])).deleted_count == 2
    assert hashing.count(scope) == 4


def test_every_state_goes_with_the_scope(hashing: Case, scope: mem.Scope) -> None:
    old = hashing.store(scope, "lives in Rome")
    hashing.store(scope, "lives in Oslo", supersedes=[old.id])
    expired = hashing.store(scope, "ticket is valid")
    archived = hashing.store(scope, "set aside")
    with hashing.client(scope) as client:
        client.update(archived.id, state="archived")
        client.update(expired.id, valid_until=1)
    assert hashing.count(scope) == 1
    assert delete(hashing, scope).deleted_count == 4
    assert hashing.count(scope, filter=mem.Filter(states=[1, 2, 3])) == 0


def test_what_is_gone_is_gone_for_every_call(hashing: Case, scope: mem.Scope) -> None:
    one, two = hashing.store(scope, "first of two"), hashing.store(scope, "second of two")
    link = hashing.memory.CreateLink(
        pb.CreateLinkRequest(scope=scope, source_id=one.id, target_id=two.id, type=mem.LINK_TYPE_SIMILAR), timeout=20
    )
    delete(hashing, scope, filter=mem.Filter(ids=[one.id]))
    assert_refused(hashing.call("Get", pb.GetRequest(scope=scope, id=one.id)), "", "MEMORY_NOT_FOUND")
    answer = hashing.call("DeleteLink", pb.DeleteLinkRequest(scope=scope, id=link.link.id))
    assert_refused(answer, "", "LINK_NOT_FOUND")
    assert not hashing.call("ListLinks", pb.ListLinksRequest(scope=scope, memory_id=two.id)).links
    assert hashing.found(scope, "first of two", ranking={"reject": False}) == ["second of two"]


def test_a_retried_delete_of_everything_does_not_erase_what_came_since(hashing: Case, scope: mem.Scope) -> None:
    hashing.store(scope, "before")
    assert delete(hashing, scope, request_id="once").deleted_count == 1
    hashing.store(scope, "after")
    assert delete(hashing, scope, request_id="once").deleted_count == 1, "the answer given before"
    assert hashing.count(scope) == 1
    answer = delete(hashing, scope, request_id="once", filter=mem.Filter(tags_any=["x"]))
    assert isinstance(answer, Refusal)
    assert answer.reason == "REQUEST_ID_REUSED"
