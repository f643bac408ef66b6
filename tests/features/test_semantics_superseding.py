"""SEMANTICS "Superseding" and "Time": what replaced what, what held when, and from which moment a question is asked."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from featurekit import NOBODY, ask, ids, why
from memxd.client import Client, as_datetime, rank, where
from memxd.errors import InvalidArgumentError, LinkCycleError, MemoryNotFoundError
from memxd.model import SECOND, State

DAY = 86_400 * SECOND
T0 = 20_000 * DAY  # in 2024


def test_superseding_sets_state_end_and_successor(client: Client) -> None:
    """SEMANTICS Superseding: valid_until = the new one's event_at, else created_at."""
    first = client.store("Bo lives in Oslo", event_at=T0).memory.id
    second = client.store("Bo lives in Porto", event_at=T0 + 5 * DAY, supersedes=[first]).memory
    old = client.get(first)
    assert (old.state, old.superseded_by, old.valid_until) == (State.SUPERSEDED, second.id, T0 + 5 * DAY)
    assert second.state is State.ACTIVE
    plain = client.store("Bo has a cat").memory.id
    newer = client.store("Bo has two cats", supersedes=[plain]).memory
    assert client.get(plain).valid_until == newer.created_at
    assert {x.type.name for x in client.list_links(newer.id).links} == {"SUPERSEDES"}


def test_superseding_by_link_is_the_same(client: Client) -> None:
    """SEMANTICS Superseding: a supersedes link does what Store.supersedes does; several old ones at once."""
    olds = [client.store(f"draft {n}").memory.id for n in range(3)]
    new = client.store("final", supersedes=olds[:2]).memory.id
    client.create_link(new, olds[2], "supersedes")
    assert [client.get(i).superseded_by for i in olds] == [new] * 3
    assert [m.id for m in client.list().memories] == [new]


@pytest.mark.parametrize("way", ["link", "row", "many"])
def test_superseding_is_undone_with_the_link_or_the_newer_row(client: Client, way: str) -> None:
    """SEMANTICS Superseding: removing the link or the newer row restores the old one, its own valid_until included."""
    end = round(time.time() * 1e6) + 300 * DAY
    old = client.store("old", valid_until=end).memory
    new = client.store("new", supersedes=[old.id]).memory
    if way == "link":
        client.delete_link(client.list_links(new.id).links[0].id)
    elif way == "row":
        client.delete(new.id)
    else:
        client.delete_many(where(ids=[new.id]))
    back = client.get(old.id)
    assert (back.state, back.superseded_by, back.valid_until) == (State.ACTIVE, "", end)
    assert old.id in ids(ask(client, "old"))


def test_superseding_in_circles_or_of_nothing_is_refused(client: Client) -> None:
    """SEMANTICS Superseding: cycles are refused; so is a missing id; nothing is stored then."""
    a = client.store("a").memory.id
    b = client.store("b", supersedes=[a]).memory.id
    with pytest.raises(LinkCycleError):
        client.create_link(a, b, "supersedes")
    for unknown in (NOBODY, client.scope(user_id="bob").store("theirs").memory.id):
        with pytest.raises(MemoryNotFoundError):
            client.store("c", supersedes=[unknown])
    with pytest.raises(InvalidArgumentError):
        client.store("c", supersedes=["x"])
    assert client.count() == 1
    client.scope(user_id="bob").delete_many()


def test_as_of_shows_what_was_valid_then(client: Client) -> None:
    """SEMANTICS Superseding: as_of=t: [event_at else created_at, valid_until), in Search, List and Count."""
    oslo = client.store("Bo lives in Oslo", event_at=T0).memory.id
    porto = client.store("Bo lives in Porto", event_at=T0 + 10 * DAY, supersedes=[oslo]).memory.id
    spell = client.store("Bo lives in a tent", event_at=T0 + 3 * DAY, valid_until=T0 + 4 * DAY).memory.id
    gone = client.store("Bo lives in a book", event_at=T0).memory.id
    client.update(gone, state="archived")
    now = client.store("Bo lives on a boat, too").memory
    for at, expected in (
        (T0 - 1, set()),
        (T0, {oslo}),
        (T0 + 3 * DAY, {oslo, spell}),
        (T0 + 4 * DAY - 1, {oslo, spell}),
        (T0 + 4 * DAY, {oslo}),
        (T0 + 10 * DAY - 1, {oslo}),
        (T0 + 10 * DAY, {porto}),
        (now.created_at, {porto, now.id}),
    ):
        options: dict[str, Any] = {"as_of": as_datetime(at)}
        assert {m.id for m in client.list(**options).memories} == expected
        assert client.count(**options) == len(expected)
        assert set(ids(ask(client, "where lives Bo", **options))) == expected
    for call in (client.list, client.count, lambda **o: client.search("x", **o)):
        with pytest.raises(InvalidArgumentError) as caught:
            call(as_of=T0, filter=where(states=["active"]))  # type: ignore[operator]
        assert caught.value.violations[0].field == "as_of"


def test_time_ranges_are_half_open(client: Client) -> None:
    """SEMANTICS Time: start <= t < end, to the microsecond; an end not behind its start is refused."""
    id = client.store("alpha", event_at=T0).memory.id
    for span, found in (((T0, T0 + 1), True), ((T0 - 1, T0), False), ((T0 + 1, None), False), ((None, T0 + 1), True)):
        assert ([m.id for m in client.list(filter=where(event=span)).memories] == [id]) is found
    created = client.get(id).created_at
    assert client.count(where(created=(created, created + 1))) == 1
    assert client.count(where(created=(None, created))) == 0
    for span in ((T0, T0), (T0 + 1, T0)):
        with pytest.raises(InvalidArgumentError) as caught:
            client.count(where(event=span))
        assert caught.value.violations[0].field == "filter.event.end"


def test_time_events_are_instants_whatever_zone_they_were_given_in(client: Client) -> None:
    """SEMANTICS Time: timestamps are instants; the same instant in two zones is the same event."""
    from datetime import timedelta, timezone

    here = datetime(2026, 3, 29, 3, 30, tzinfo=timezone(timedelta(hours=2)))
    first = client.store("alpha", event_at=here)
    again = client.store("alpha", event_at=here.astimezone(UTC))
    assert again.deduplicated
    assert again.memory.event_at == first.memory.event_at


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Shanghai", "UTC", "America/Argentina/Buenos_Aires", ""])
def test_time_zone_takes_iana_names(client: Client, zone: str) -> None:
    """SEMANTICS Time: the request's IANA time_zone; empty = the daemon's, which Status tells."""
    id = client.store("alpha").memory.id
    assert ids(ask(client, "alpha", time_zone=zone)) == [id]
    assert client.status().time_zone


@pytest.mark.parametrize("zone", ["Berlin", "Europe", "CEST+2", "../../etc/passwd", "/etc/localtime", " ", "x" * 5_000])
def test_time_zone_refuses_everything_else(client: Client, zone: str) -> None:
    """SEMANTICS Time: anything that is no IANA name is refused by name."""
    with pytest.raises(InvalidArgumentError) as caught:
        client.search("alpha", time_zone=zone)
    assert caught.value.violations[0].field == "time_zone"


def test_asked_at_is_the_moment_ages_count_to(client: Client) -> None:
    """SEMANTICS Time: asked_at moves ages only; what is visible is decided by now, or by as_of."""
    id = client.store("alpha", event_at=T0).memory.id
    for days in (0, 30, 60, 365):
        hit = ask(client, "alpha", asked_at=T0 + days * DAY).hits[0]
        assert hit.memory.id == id
        assert why(hit).recency.value == pytest.approx(2.0 ** (-days / 30), rel=1e-9)
    assert why(ask(client, "alpha", asked_at=T0 - 50 * DAY).hits[0]).recency.value == 1.0
    early = ask(client, "alpha", asked_at=T0).hits[0]
    late = ask(client, "alpha", asked_at=T0 + 365 * DAY).hits[0]
    assert early.relevance == late.relevance
    assert why(early).raw_score - why(late).raw_score == pytest.approx(0.05 * (1 - 2.0 ** (-365 / 30)), rel=1e-6)


def test_recency_prefers_the_newer_of_equal_answers(client: Client) -> None:
    """SEMANTICS Time: with equal words the younger event comes first; importance can outweigh it."""
    old = client.store("alpha meeting", event_at=T0).memory.id
    new = client.store("alpha meeting", event_at=T0 + 40 * DAY).memory.id
    wish = rank(dedup="off")
    assert ids(ask(client, "alpha meeting", asked_at=T0 + 41 * DAY, ranking=wish)) == [new, old]
    client.update(old, importance=1.0)
    assert ids(ask(client, "alpha meeting", asked_at=T0 + 41 * DAY, ranking=wish)) == [old, new]
