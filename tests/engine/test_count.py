"""Counts come from the columns, and equal what SQLite counts and what a list hands out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from memxd.engine import Engine
from memxd.model import DAY, Filter, IndexKind, MemoryType, NewMemory, Patch, Scope, State, TimeRange

SCOPE = Scope("counted", "u")


def test_counts_equal_lists_for_every_kind_of_filter(open_engine: Callable[[], Engine], clock: Any) -> None:
    engine = open_engine()
    begin = clock.now
    answers = []
    for n in range(24):
        clock.forward(DAY)
        new = NewMemory(
            f"memory number {n}",
            type=MemoryType(1 + n % 3),
            tags=("even",) if n % 2 == 0 else ("odd", f"t{n % 4}"),
            importance=n % 5 / 4,
            event_at=begin - n * DAY if n % 3 == 0 else None,
            valid_until=clock.now + 3 * DAY if n % 6 == 0 else None,
            metadata={"n": n % 4},
        )
        answers.append(engine.store(SCOPE, new))
    engine.update(SCOPE, answers[3].memory.id, Patch(frozenset({"state"}), state=State.ARCHIVED))
    engine.store(SCOPE, NewMemory("another one", supersedes=(answers[5].memory.id,)))
    engine.delete(SCOPE, answers[7].memory.id)
    filters = [
        Filter(),
        Filter(types=frozenset({MemoryType(2)})),
        Filter(tags_any=frozenset({"even", "t1"}), tags_none=frozenset({"t3"})),
        Filter(created=TimeRange(begin + 3 * DAY, begin + 15 * DAY), importance_min=0.25),
        Filter(event=TimeRange(None, begin)),
        Filter(metadata={"n": 2}),
        Filter(ids=frozenset({answers[0].memory.id, answers[1].memory.id})),
    ]
    for wanted, as_of, superseded in product(filters, (None, begin + 9 * DAY), (False, True)):
        total, revision = engine.count(SCOPE, wanted, as_of, superseded)
        listed = engine.list(SCOPE, wanted, None, 100, as_of=as_of, include_superseded=superseded)
        assert total == len(listed.memories)
        assert revision == listed.revision
    for wanted in filters:
        total, revision = engine.delete_many(SCOPE, wanted, dry_run=True)
        states = Filter(**{n: getattr(wanted, n) for n in wanted.__dataclass_fields__} | {"states": frozenset(State)})
        assert total == len(engine.list(SCOPE, states, None, 100).memories)
    assert engine.count(Scope("nobody", "u"), Filter()) == (0, revision)


def test_counts_are_right_while_the_columns_cannot_answer(open_engine: Callable[[], Engine]) -> None:
    engine = open_engine()
    for n in range(3):
        engine.store(SCOPE, NewMemory(f"memory number {n}"))
    engine._indexes._rebuilding.mark_failed(IndexKind.COLUMNS)
    engine.store(SCOPE, NewMemory("told to no columns"))
    total, revision = engine.count(SCOPE, Filter())
    assert (total, revision) == (4, engine.list(SCOPE, Filter()).revision)
