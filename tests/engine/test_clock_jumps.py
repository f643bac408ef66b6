"""The machine's clock is set back, forward, and an hour twice a year: ages, order, expiry and retries stay right."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from memxd.engine import Engine
from memxd.model import DAY, SECOND, Filter, NewMemory, Order, Patch, Profile, Ranking, Scope, SearchQuery

A = Scope("a", "u")
HOUR = 3_600 * SECOND
PLAIN = Ranking(reject=False)
JUMPS = [-10 * 365 * DAY, -HOUR, HOUR, 400 * DAY]


def names(engine: Engine, order: Order = Order.CREATED_AT_ASC) -> list[str]:
    """A list's contents, read two at a time."""
    found: list[str] = []
    token = ""
    while True:
        page = engine.list(A, Filter(), order, 2, token)
        found += [memory.content for memory in page.memories]
        token = page.next_page_token
        if not token:
            return found


@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("profile", ["balanced", "memx", "memex"])
def test_no_age_is_negative_and_no_recency_above_one(engine: Engine, clock: Any, jump: int, profile: str) -> None:
    stored = engine.store(A, NewMemory("The ferry leaves at nine")).memory
    engine.search(SearchQuery(A, "ferry at nine", ranking=PLAIN))  # it was retrieved in what is then the future
    clock.forward(jump)
    later = engine.store(A, NewMemory("The ferry comes back at noon")).memory
    wish = Ranking(reject=False, profile=Profile[profile.upper()])
    answer = engine.search(SearchQuery(A, "ferry", ranking=wish, explain=True))
    assert {hit.memory.id for hit in answer.hits} == {stored.id, later.id}
    for hit in answer.hits:
        assert hit.explanation is not None
        assert 0.0 <= hit.explanation.recency.value <= 1.0
    changed = engine.update(A, stored.id, Patch(frozenset({"importance"}), importance=0.9)).memory
    assert changed.updated_at >= changed.created_at


def test_ids_ascend_whatever_the_clock_does(engine: Engine, clock: Any) -> None:
    ids = []
    for jump in (0, -HOUR, 5, -DAY, DAY, -365 * DAY, 0):
        clock.forward(jump)
        ids += [engine.store(A, NewMemory(f"note {len(ids)} {n} of {jump}")).memory.id for n in range(3)]
    assert ids == sorted(set(ids))


@pytest.mark.parametrize("jump", JUMPS)
def test_a_list_that_is_being_paged_loses_and_repeats_nothing(engine: Engine, clock: Any, jump: int) -> None:
    before = [f"before {n}" for n in range(4)]
    for content in before:
        engine.store(A, NewMemory(content))
    first = engine.list(A, Filter(), Order.CREATED_AT_ASC, 2)
    clock.forward(jump)
    engine.store(A, NewMemory("stored after the jump"))
    rest = engine.list(A, Filter(), Order.CREATED_AT_ASC, 50, first.next_page_token)
    seen = [memory.content for memory in (*first.memories, *rest.memories)]
    assert [content for content in seen if content in before] == before
    assert names(engine) == names(engine)
    assert sorted(names(engine)) == sorted([*before, "stored after the jump"])
    assert names(engine, Order.CREATED_AT_DESC) == names(engine)[::-1]


def test_what_ends_at_a_time_ends_by_the_wall_clock(engine: Engine, clock: Any) -> None:
    """Derived from the clock at each question, so that a clock that was wrong for a while loses nothing."""
    engine.store(A, NewMemory("The code of the door is 77", valid_until=clock.now + HOUR))

    def seen() -> tuple[int, int]:
        answer = engine.search(SearchQuery(A, "code of the door", ranking=PLAIN))
        return len(answer.hits), engine.count(A, Filter())[0]

    assert seen() == (1, 1)
    clock.forward(HOUR)
    assert seen() == (0, 0)
    clock.forward(-1)
    assert seen() == (1, 1)
    clock.forward(30 * DAY)
    assert seen() == (0, 0)


@pytest.mark.parametrize(
    ("jump", "known"), [(-10 * 365 * DAY, True), (-HOUR, True), (23 * HOUR, True), (25 * HOUR, False)]
)
def test_a_retry_is_answered_for_a_day_of_the_wall_clock(
    open_engine: Callable[[], Engine], clock: Any, jump: int, known: bool
) -> None:
    """It outlives restarts, so the wall clock counts; set back, it holds longer and never shorter."""
    engine = open_engine()
    item = NewMemory("Stored once", allow_duplicate=True)
    first = engine.store(A, item, request_id="again").memory
    clock.forward(jump)
    assert (engine.store(A, item, request_id="again").memory.id == first.id) is known
    engine.close()
    second = open_engine()
    assert second.count(A, Filter())[0] == (1 if known else 2)


def test_the_hour_that_comes_twice_keeps_its_order(engine: Engine, clock: Any) -> None:
    """Europe, 25 October 2026: 02:30 summer time, then 02:30 again. Times are instants; no zone is in the way."""
    zone = ZoneInfo("Europe/Berlin")
    first, second = (datetime(2026, 10, 25, 2, 30, tzinfo=zone, fold=fold) for fold in (0, 1))
    clock.now = int(first.timestamp()) * SECOND
    engine.store(A, NewMemory("in the first half past two", valid_until=clock.now + HOUR))
    clock.forward(30 * 60 * SECOND)
    engine.store(A, NewMemory("between"))
    clock.now = int(second.timestamp()) * SECOND
    engine.store(A, NewMemory("in the second half past two"))
    assert names(engine) == ["between", "in the second half past two"]  # an hour has passed
