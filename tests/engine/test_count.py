"""Counts come from the columns, and equal what SQLite counts and what a list hands out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from memxd.engine import Engine
from memxd.model import (
    DAY,
    Filter,
    IndexKind,
    MemoryType,
    NewMemory,
    Patch,
    Ranking,
    Scope,
    SearchQuery,
    State,
    TimeRange,
)

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
    engine.get(SCOPE, answers[2].memory.id)
    filters = [
        Filter(),
        Filter(types=frozenset({MemoryType(2)})),
        Filter(tags_any=frozenset({"even", "t1"}), tags_none=frozenset({"t3"})),
        Filter(created=TimeRange(begin + 3 * DAY, begin + 15 * DAY), importance_min=0.25),
        Filter(event=TimeRange(None, begin)),
        Filter(metadata={"n": 2}),
        Filter(ids=frozenset({answers[0].memory.id, answers[1].memory.id})),
        Filter(importance_below=0.5),
        Filter(unused_since=begin + 9 * DAY),
        Filter(valid_until=TimeRange(begin, begin + 20 * DAY), importance_below=1.0, metadata={"n": 2}),
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


def test_what_was_read_or_found_is_not_unused_from_that_moment_on(engine: Engine, clock: Any) -> None:
    ids = [engine.store(SCOPE, NewMemory(text)).memory.id for text in ("a red apple", "a green pear", "a blue plum")]
    clock.forward(100 * DAY)
    unused = Filter(unused_since=clock.now - 90 * DAY)
    assert engine.count(SCOPE, unused)[0] == 3
    engine.get(SCOPE, ids[0])
    found = engine.search(SearchQuery(SCOPE, "green pear", k=1, filter=unused))
    assert [hit.memory.id for hit in found.hits] == [ids[1]]
    assert [m.id for m in engine.list(SCOPE, unused).memories] == [ids[2]]
    assert engine.delete_many(SCOPE, unused)[0] == 1
    assert engine.count(SCOPE, Filter())[0] == 2


def test_a_search_looks_only_at_what_a_filter_for_cleaning_up_lets_through(engine: Engine, clock: Any) -> None:
    for n in range(10):
        ends = clock.now + n * DAY + 1 if n % 2 else None
        engine.store(SCOPE, NewMemory(f"jotting {n}", importance=n / 10, valid_until=ends))
    wanted = Filter(importance_below=0.6, valid_until=TimeRange(clock.now, clock.now + 9 * DAY))
    answer = engine.search(SearchQuery(SCOPE, "jotting", k=20, filter=wanted, ranking=Ranking(reject=False)))
    assert {hit.memory.content for hit in answer.hits} == {"jotting 1", "jotting 3", "jotting 5"}


def test_counts_are_right_while_the_columns_cannot_answer(open_engine: Callable[[], Engine]) -> None:
    engine = open_engine()
    for n in range(3):
        engine.store(SCOPE, NewMemory(f"memory number {n}"))
    engine._indexes._rebuilding.mark_failed(IndexKind.COLUMNS)
    engine.store(SCOPE, NewMemory("told to no columns"))
    total, revision = engine.count(SCOPE, Filter())
    assert (total, revision) == (4, engine.list(SCOPE, Filter()).revision)
