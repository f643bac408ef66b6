"""SEMANTICS "Ids", "States", "Duplicates" and "Update"."""

from __future__ import annotations

import time
import unicodedata
import uuid
from typing import Any

import pytest

from featurekit import NOBODY, ask, ids, until
from memxd.client import Client, Item, where
from memxd.errors import (
    DuplicateMemoryError,
    InvalidArgumentError,
    MemoryNotFoundError,
    RevisionMismatchError,
    StateConflictError,
)
from memxd.model import State, StoreAnswer

DAY = 86_400_000_000


def now() -> int:
    return round(time.time() * 1e6)


# -- ids -----------------------------------------------------------------------------------------------------------


def test_ids_are_read_in_either_case_and_answered_in_lower(client: Client) -> None:
    """SEMANTICS Ids: UUIDv7 lower case; a caller's upper case means the same."""
    id = client.store("alpha").memory.id
    assert client.get(id.upper()).id == id == str(uuid.UUID(id))


@pytest.mark.parametrize("bad", ["", "nonsense", "0198c5f2-7c1e-7b3a-9d7e", "../../etc/passwd", "{" + NOBODY + "}"])
def test_ids_that_are_none_are_refused(client: Client, bad: str) -> None:
    """SEMANTICS Ids: not a UUID = INVALID_ARGUMENT; an unknown one = NOT_FOUND, for Delete as well."""
    for call in (client.get, client.delete):
        with pytest.raises(InvalidArgumentError) as caught:
            call(bad)
        assert caught.value.violations[0].field == "id"
        with pytest.raises(MemoryNotFoundError):
            call(NOBODY)


# -- states --------------------------------------------------------------------------------------------------------


@pytest.fixture
def states(client: Client) -> dict[str, str]:
    """One memory in each state, all about alpha."""
    made = {name: client.store(f"alpha {name}").memory.id for name in ("active", "superseded", "archived")}
    client.create_link(made["active"], made["superseded"], "supersedes")
    client.update(made["archived"], state="archived")
    made["expired"] = client.store("alpha expired", valid_until=now() - DAY).memory.id
    return made


def seen(client: Client, **options: Any) -> list[set[str]]:
    """What List, Count (as a number of ids) and Search see under the same conditions."""
    listed = {m.id for m in client.list(**options).memories}
    assert client.count(**options) == len(listed)
    return [listed, set(ids(ask(client, "alpha", **options)))]


def test_states_that_searches_and_lists_see(client: Client, states: dict[str, str]) -> None:
    """SEMANTICS States: active and unexpired by default; Filter.states and include_superseded override."""
    for condition, names in (
        ({}, ["active"]),
        ({"include_superseded": True}, ["active", "superseded"]),
        ({"filter": where(states=["active"])}, ["active", "expired"]),
        ({"filter": where(states=["superseded"])}, ["superseded"]),
        ({"filter": where(states=["archived"])}, ["archived"]),
        ({"filter": where(states=["archived", "superseded", "active"])}, list(states)),
    ):
        wanted = {states[n] for n in names}
        assert seen(client, **condition) == [wanted, wanted], condition  # type: ignore[arg-type]


def test_states_get_sees_every_one(client: Client, states: dict[str, str]) -> None:
    """SEMANTICS States: Get sees every state; expired is derived, the stored state stays active."""
    found = {name: client.get(id).state for name, id in states.items()}
    assert found == {
        "active": State.ACTIVE, "superseded": State.SUPERSEDED, "archived": State.ARCHIVED, "expired": State.ACTIVE,
    }  # fmt: skip


def test_states_expiry_comes_by_itself(client: Client) -> None:
    """SEMANTICS States: valid_until <= now hides a memory without anybody writing."""
    client.store("alpha soon gone", valid_until=now() + 700_000)
    assert client.count() == 1
    until(lambda: client.count() == 0, 10)
    assert ask(client, "alpha").rejected


def test_states_archiving_is_reversible(client: Client) -> None:
    """SEMANTICS States: archived is the way out that can be undone."""
    id = client.store("alpha").memory.id
    client.update(id, state="archived")
    assert ask(client, "alpha").rejected
    assert client.update(id, state="active").memory.state is State.ACTIVE
    assert ids(ask(client, "alpha")) == [id]


# -- duplicates ----------------------------------------------------------------------------------------------------


def test_duplicates_answer_the_existing_row_and_merge(client: Client) -> None:
    """SEMANTICS Duplicates: same type, event_at, source and NFC-trimmed content: tags and metadata keys are merged."""
    first = client.store("Café at 9", tags=["a"], metadata={"k": 1, "both": "old"}, importance=0.9).memory
    text = "  " + unicodedata.normalize("NFD", "Café at 9") + "\n"
    again = client.store(text, tags=["b"], metadata={"n": 2, "both": "new"}, importance=0.1)
    assert (again.deduplicated, again.memory.id) == (True, first.id)
    assert again.memory.tags == ("a", "b")
    assert again.memory.metadata == {"k": 1, "n": 2, "both": "old"}
    assert (again.memory.importance, again.memory.content) == (0.9, "Café at 9")
    assert again.memory.revision > first.revision
    same = client.store("Café at 9", tags=["a"])
    assert same.memory.revision == again.memory.revision
    assert client.count() == 1


@pytest.mark.parametrize(
    "other", [{"type": "episodic"}, {"event_at": 1}, {"source": "s"}, {"allow_duplicate": True}, {"content": "ALPHA"}]
)
def test_duplicates_need_all_of_it_equal(client: Client, other: dict[str, Any]) -> None:
    """SEMANTICS Duplicates: another type, event, source or spelling is another memory; allow_duplicate turns it off."""
    client.store("alpha")
    answer = client.store(**({"content": "alpha"} | other))
    assert not answer.deduplicated
    assert client.count() == 2


def test_duplicates_only_among_active_rows(client: Client) -> None:
    """SEMANTICS Duplicates: an archived or superseded equal one is no duplicate."""
    old = client.store("alpha").memory.id
    client.update(old, state="archived")
    new = client.store("alpha")
    assert not new.deduplicated
    client.store("beta", supersedes=[new.memory.id])
    assert not client.store("alpha").deduplicated


def test_duplicates_within_one_stream(client: Client) -> None:
    """SEMANTICS Duplicates: items of one StoreMany see each other."""
    answers = list(client.store_many([Item("alpha", tags=[str(n)]) for n in range(5)]))
    assert [a.deduplicated for a in answers if isinstance(a, StoreAnswer)] == [False, True, True, True, True]
    assert client.list().memories[0].tags == ("0", "1", "2", "3", "4")


# -- update --------------------------------------------------------------------------------------------------------


def test_update_changes_only_what_the_mask_names(client: Client) -> None:
    """SEMANTICS Update: each mutable field alone; created_at stays, updated_at and revision grow."""
    event = now() - DAY
    memory = client.store("alpha", tags=["t"], metadata={"k": 1}, importance=0.3, source="s").memory
    changes: dict[str, Any] = {
        "content": "beta", "type": "reflective", "tags": ["u", "v"], "metadata": {"x": None}, "importance": 0.8,
        "event_at": event, "valid_until": now() + DAY, "private": True, "source": "elsewhere",
    }  # fmt: skip
    before = memory
    for field, value in changes.items():
        after = client.update(memory.id, **{field: value}).memory
        differing = {name for name in before.__slots__ if getattr(before, name) != getattr(after, name)}
        assert differing <= {field, "updated_at", "revision"}
        assert field in differing
        assert after.revision > before.revision
        before = after
    assert client.get(memory.id, record_access=False) == before
    assert before.created_at == memory.created_at < before.updated_at


def test_update_clears_what_may_be_empty(client: Client) -> None:
    """SEMANTICS Update: a masked field that is absent is cleared, or set to its default."""
    memory = client.store(
        "alpha", type="episodic", tags=["t"], metadata={"k": 1}, importance=0.9, event_at=1, source="s", private=True
    ).memory
    after = client.update(
        memory.id, type=None, tags=None, metadata=None, importance=None, event_at=None, source=None, private=None
    ).memory
    assert (after.type.name, after.tags, after.metadata, after.importance) == ("SEMANTIC", (), {}, 0.5)
    assert (after.event_at, after.source, after.private) == (None, "", False)


def test_update_needs_a_mask_of_mutable_fields(client: Client, hashing_world: Any) -> None:
    """SEMANTICS Update: the mask is required; what cannot change is refused by name."""
    from google.protobuf.field_mask_pb2 import FieldMask

    import casekit
    from memxd.v1 import memory_service_pb2 as pb

    memory = client.store("alpha").memory
    scope = {"agent_id": memory.scope.agent_id, "user_id": memory.scope.user_id}
    stub = hashing_world.started[0].memory
    for paths in ([], ["id"], ["created_at"], ["access_count"], ["scope"], ["contents"], ["*"]):
        request = pb.UpdateRequest(scope=scope, id=memory.id, update_mask=FieldMask(paths=paths))
        refusal = casekit.refused(lambda request=request: stub.Update(request))
        assert refusal.reason == "INVALID_ARGUMENT"
        assert refusal.field.startswith("update_mask")
    assert client.get(memory.id).revision == memory.revision


def test_update_content_takes_effect_at_once_in_both_legs(client: Client) -> None:
    """SEMANTICS Update: content change embeds anew: the new text is found, the old one is not."""
    id = client.store("the heliotrope falcon").memory.id
    client.update(id, content="the marmalade owl")
    for mode in ("keyword", "vector"):
        assert ids(ask(client, "marmalade owl", mode=mode)) == [id]
        assert ask(client, "heliotrope falcon", mode=mode, min_relevance=0.3).hits == ()


def test_update_with_a_stale_revision_is_aborted(client: Client) -> None:
    """SEMANTICS Update: expected_revision mismatch = ABORTED, the present one in the details; nothing changes."""
    memory = client.store("alpha").memory
    newer = client.update(memory.id, importance=0.9, expected_revision=memory.revision).memory
    with pytest.raises(RevisionMismatchError) as caught:
        client.update(memory.id, importance=0.1, expected_revision=memory.revision)
    assert caught.value.metadata["revision"] == str(newer.revision)
    assert client.get(memory.id).importance == pytest.approx(0.9)


def test_update_to_a_duplicate_names_the_other(client: Client) -> None:
    """SEMANTICS Update: becoming a duplicate = ALREADY_EXISTS with the id, through each identifying field."""
    first = client.store("alpha").memory.id
    second = client.store("beta").memory.id
    with pytest.raises(DuplicateMemoryError) as caught:
        client.update(second, content=" alpha ")
    assert caught.value.metadata["id"] == first
    third = client.store("alpha", type="episodic").memory.id
    with pytest.raises(DuplicateMemoryError):
        client.update(third, type="semantic")
    client.update(first, state="archived")
    client.update(third, type="semantic")
    with pytest.raises(DuplicateMemoryError):
        client.update(first, state="active")


def test_update_of_state_goes_between_active_and_archived(client: Client) -> None:
    """SEMANTICS Update: a superseded one's state does not change this way, and none becomes superseded by hand."""
    old = client.store("alpha").memory.id
    new = client.store("beta", supersedes=[old]).memory.id
    with pytest.raises(StateConflictError):
        client.update(old, state="archived")
    with pytest.raises(StateConflictError):
        client.update(old, state="active")
    with pytest.raises(InvalidArgumentError) as caught:
        client.update(new, state="superseded")
    assert caught.value.violations[0].field == "memory.state"


def test_update_keeps_valid_until_behind_event_at(client: Client) -> None:
    """SEMANTICS Update: the rule of Store holds for the record as it would stand."""
    id = client.store("alpha", event_at=10 * DAY).memory.id
    with pytest.raises(InvalidArgumentError) as caught:
        client.update(id, valid_until=10 * DAY)
    assert caught.value.violations[0].field == "memory.valid_until"
