"""A clock that is set back makes no memory end, or change, before it was made."""

from __future__ import annotations

from typing import Any

from memxd.model import State

DAY = 86_400_000_000


def test_times_of_a_memory_keep_their_order(bench: Any) -> None:
    old = bench.put("old")
    bench.clock.now -= DAY
    changed = bench.store.write(lambda txn: txn.update(old.rid, {"importance": 0.9}))
    assert changed.memory.updated_at >= changed.memory.created_at
    new = bench.put("new")
    bench.store.write(lambda txn: txn.supersede([old.rid], new.rid, at=bench.clock()))
    ended = bench.again(old).memory
    assert ended.state is State.SUPERSEDED
    assert ended.valid_until == ended.created_at
    assert ended.updated_at >= ended.created_at


def test_an_earlier_event_that_the_caller_names_still_ends_it_then(bench: Any) -> None:
    old = bench.put("old")
    event = bench.clock() - DAY
    new = bench.put("new", event_at=event)
    bench.store.write(lambda txn: txn.supersede([old.rid], new.rid, at=bench.clock()))
    assert bench.again(old).memory.valid_until == event
