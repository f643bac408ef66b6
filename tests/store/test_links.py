"""Links, and what superseding does."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from memxd.errors import (
    DuplicateLinkError,
    InvalidArgumentError,
    LinkCycleError,
    LinkNotFoundError,
    MemoryNotFoundError,
    StateConflictError,
    StorageFailedError,
)
from memxd.model import Direction, LinkType, Scope, State
from memxd.store import Cursor


def link(bench: Any, source: Any, target: Any, type: LinkType = LinkType.RELATED, **fields: Any) -> Any:
    return bench.store.write(lambda txn: txn.insert_link(source.rid, target.rid, type, **fields))


def supersede(bench: Any, new: Any, *old: Any) -> Any:
    return bench.store.write(lambda txn: txn.supersede([row.rid for row in old], new.rid))


def test_a_link_reads_back_equal_within_its_scope(bench: Any) -> None:
    a, b = bench.put("a"), bench.put("b")
    made = link(bench, a, b, LinkType.EXTENDS, strength=1 / 3, bidirectional=True, metadata={"why": [1, 2.5]})
    assert (made.source_id, made.target_id, made.strength) == (a.memory.id, b.memory.id, 1 / 3)
    with bench.store.read() as txn:
        assert txn.get_link(Scope(), made.id) == made
        assert txn.get_link(Scope("other"), made.id) is None
        assert txn.list_links(a.rid) == [made]
        assert txn.totals().links == 1


@pytest.mark.parametrize(
    ("first", "second", "reverse", "same"),
    [
        (False, False, False, True),
        (False, False, True, False),
        (True, False, True, True),
        (False, True, True, True),
        (True, True, True, True),
        (True, False, False, True),
    ],
)
def test_the_same_link_again_is_refused_with_its_id(
    bench: Any, first: bool, second: bool, reverse: bool, same: bool
) -> None:
    a, b = bench.put("a"), bench.put("b")
    made = link(bench, a, b, bidirectional=first)
    again = (b, a) if reverse else (a, b)
    if same:
        with pytest.raises(DuplicateLinkError) as refused:
            link(bench, *again, bidirectional=second)
        assert refused.value.metadata["id"] == made.id
    else:
        link(bench, *again, bidirectional=second)
    link(bench, *again, LinkType.SIMILAR, bidirectional=second)


def test_links_join_two_memories_of_one_scope(bench: Any) -> None:
    a, stranger = bench.put("a"), bench.put("b", Scope("other"))
    with pytest.raises(InvalidArgumentError):
        link(bench, a, a)
    for other in (stranger, stranger._replace(rid=999)):
        with pytest.raises(MemoryNotFoundError):
            link(bench, a, other)
        with pytest.raises(MemoryNotFoundError):
            link(bench, other, a)
        with pytest.raises(MemoryNotFoundError):
            supersede(bench, a, other)


def test_the_database_itself_refuses_links_across_scopes(bench: Any) -> None:
    a, stranger = bench.put("a"), bench.put("b", Scope("other"))
    with pytest.raises(StorageFailedError) as refused:
        bench.store.write(
            lambda txn: txn._connection.execute(
                "INSERT INTO links(scope_no, id, source_rid, target_rid, type, strength, bidirectional, created_at, "
                "metadata) VALUES (1, 'x', ?, ?, 1, 1, 0, 0, '{}')",
                (a.rid, stranger.rid),
            )
        )
    assert isinstance(refused.value.__cause__, sqlite3.IntegrityError)


def test_links_are_listed_strongest_first_page_by_page(bench: Any) -> None:
    centre = bench.put("centre")
    made = [link(bench, centre, bench.put(f"leaf {n}"), strength=n % 3 / 2) for n in range(7)]
    expected = sorted(made, key=lambda one: (-one.strength, one.id))
    listed: list[Any] = []
    with bench.store.read() as txn:
        while page := txn.list_links(centre.rid, after=Cursor.of_link(listed[-1]) if listed else None, limit=2):
            listed += page
        assert listed == expected
        assert txn.count_links(centre.rid) == 7
        assert txn.count_links(centre.rid, strength_min=0.5) == 4
        assert txn.list_links(centre.rid, strength_min=1.0) == [one for one in expected if one.strength == 1]


def test_direction_and_type_choose_links(bench: Any) -> None:
    a, b, c, d = (bench.put(name) for name in "abcd")
    out = link(bench, a, b, LinkType.CAUSED_BY)
    back = link(bench, c, a, LinkType.SIMILAR)
    both = link(bench, d, a, LinkType.RELATED, bidirectional=True)
    with bench.store.read() as txn:
        for direction, expected in (
            (Direction.OUTGOING, {out.id, both.id}),
            (Direction.INCOMING, {back.id, both.id}),
            (Direction.BOTH, {out.id, back.id, both.id}),
        ):
            assert {one.id for one in txn.list_links(a.rid, direction)} == expected
            assert {edge.link.id for edge in txn.neighbours([a.rid], direction=direction)} == expected
            assert txn.count_links(a.rid, direction) == len(expected)
        assert [one.id for one in txn.list_links(a.rid, types=[LinkType.SIMILAR])] == [back.id]
        [edge] = txn.neighbours([a.rid, b.rid], [LinkType.CAUSED_BY], Direction.BOTH)
        assert (edge.source_rid, edge.target_rid) == (a.rid, b.rid)
        assert len(txn.neighbours([a.rid, b.rid, c.rid, d.rid])) == 3
        assert len(txn.neighbours([a.rid], limit=2)) == 2
        assert txn.neighbours([]) == []


def test_links_go_with_either_end_or_by_their_id(bench: Any) -> None:
    a, b, c = (bench.put(name) for name in "abc")
    first, second = link(bench, a, b), link(bench, c, a)
    assert bench.store.write(lambda txn: txn.delete_link(Scope(), first.id)) == first
    for scope, identity in ((Scope(), first.id), (Scope("other"), second.id)):
        with pytest.raises(LinkNotFoundError):
            bench.store.write(lambda txn, s=scope, i=identity: txn.delete_link(s, i))
    bench.store.write(lambda txn: txn.delete([a.rid]))
    with bench.store.read() as txn:
        assert txn.get_link(Scope(), second.id) is None
        assert txn.totals().links == 0


def test_every_change_of_a_link_takes_one_revision_and_touches_no_memory(bench: Any) -> None:
    a, b = bench.put("a"), bench.put("b")
    made = link(bench, a, b)
    bench.store.write(lambda txn: txn.delete_link(Scope(), made.id))
    assert [change.revision for change in bench.changes] == [1, 2, 3, 4]
    assert bench.get(a) == a


def test_a_superseded_memory_ends_when_the_newer_one_began(bench: Any) -> None:
    old, dated, undated = bench.put("old", valid_until=5), bench.put("dated", event_at=77), bench.put("undated")
    [made] = supersede(bench, undated, old)
    assert (made.type, made.strength, made.source_id) == (LinkType.SUPERSEDES, 1.0, undated.memory.id)
    now = bench.again(old).memory
    assert (now.state, now.valid_until, now.superseded_by) == (
        State.SUPERSEDED,
        undated.memory.created_at,
        undated.memory.id,
    )
    assert bench.changes[-1].features.state == State.SUPERSEDED
    supersede(bench, dated, old)
    now = bench.again(old).memory
    assert (now.valid_until, now.superseded_by) == (77, dated.memory.id)
    with bench.store.read() as txn:
        assert [row.rid for row in txn.superseders(old.rid)] == [dated.rid, undated.rid]
        assert txn.superseders(dated.rid) == []


def test_it_is_restored_when_the_last_newer_one_goes(bench: Any) -> None:
    old, one, two = bench.put("old", valid_until=5), bench.put("one", event_at=50), bench.put("two", event_at=60)
    supersede(bench, one, old)
    [second] = supersede(bench, two, old)
    bench.store.write(lambda txn: txn.delete([one.rid]))
    now = bench.again(old).memory
    assert (now.state, now.valid_until, now.superseded_by) == (State.SUPERSEDED, 60, two.memory.id)
    bench.store.write(lambda txn: txn.delete_link(Scope(), second.id))
    now = bench.again(old).memory
    assert (now.state, now.valid_until, now.superseded_by) == (State.ACTIVE, 5, "")
    assert bench.changes[-1].features.valid_until == 5
    assert now.revision == bench.changes[-1].revision


def test_a_supersedes_link_made_by_hand_supersedes(bench: Any) -> None:
    old, new = bench.put("old"), bench.put("new")
    link(bench, new, old, LinkType.SUPERSEDES)
    assert bench.again(old).memory.state == State.SUPERSEDED
    with pytest.raises(DuplicateLinkError):
        supersede(bench, new, old)
    with pytest.raises(InvalidArgumentError):
        link(bench, bench.put("other"), old, LinkType.SUPERSEDES, bidirectional=True)


def test_circles_are_refused_and_leave_nothing_behind(bench: Any) -> None:
    a, b, c = (bench.put(name) for name in "abc")
    supersede(bench, b, a)
    supersede(bench, c, b)
    revision = bench.changes[-1].revision
    with pytest.raises(LinkCycleError):
        supersede(bench, a, c)
    with pytest.raises(LinkCycleError):
        link(bench, a, b, LinkType.SUPERSEDES)
    assert bench.again(c).memory.state == State.ACTIVE
    with bench.store.read() as txn:
        assert txn.revision() == revision
        assert txn.totals().links == 2


def test_an_archived_memory_stays_archived_until_it_is_taken_back(bench: Any) -> None:
    old, new = bench.put("old", valid_until=5), bench.put("new", event_at=50)
    bench.store.write(lambda txn: txn.update(old.rid, {"state": State.ARCHIVED}))
    supersede(bench, new, old)
    now = bench.again(old).memory
    assert (now.state, now.valid_until, now.superseded_by) == (State.ARCHIVED, 5, "")
    now = bench.store.write(lambda txn: txn.update(old.rid, {"state": State.ACTIVE})).memory
    assert (now.state, now.valid_until, now.superseded_by) == (State.SUPERSEDED, 50, new.memory.id)
    with pytest.raises(StateConflictError):
        bench.store.write(lambda txn: txn.update(old.rid, {"state": State.ARCHIVED}))


def test_updates_of_either_side_keep_the_end_true(bench: Any) -> None:
    old, new = bench.put("old", valid_until=5), bench.put("new", event_at=50)
    supersede(bench, new, old)
    bench.store.write(lambda txn: txn.update(new.rid, {"event_at": 60}))
    assert bench.again(old).memory.valid_until == 60
    assert bench.store.write(lambda txn: txn.update(old.rid, {"valid_until": 7})).memory.valid_until == 60
    bench.store.write(lambda txn: txn.update(new.rid, {"event_at": None}))
    assert bench.again(old).memory.valid_until == new.memory.created_at
    bench.store.write(lambda txn: txn.delete([new.rid]))
    assert bench.again(old).memory.valid_until == 7


def test_deleting_old_and_new_together_restores_nothing(bench: Any) -> None:
    old, new, older = bench.put("old"), bench.put("new"), bench.put("older")
    supersede(bench, new, old)
    supersede(bench, old, older)
    bench.changes.clear()
    assert bench.store.write(lambda txn: txn.delete([old.rid, new.rid])) == 2
    assert [(change.rid, change.features is None) for change in bench.changes] == [
        (old.rid, True),
        (new.rid, True),
        (older.rid, False),
    ]
    assert bench.again(older).memory.state == State.ACTIVE
