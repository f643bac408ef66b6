"""Views: every filter against a plain Python model, orders, pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memxd.model import Filter, Memory, MemoryType, Order, Scope, State, TimeRange, View
from memxd.store import Cursor, listing

TAGS = ("a", "b", "c")
NOW = 100
TIMES = st.integers(90, 110)
MAYBE_TIMES = st.none() | TIMES
SCALARS: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, 0, 1, 1.0, -0.0, 1.5, "1", "true", "", 1e300, 2**53]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("kl"), inner, max_size=2),
    max_leaves=3,
)
METADATA = st.dictionaries(st.sampled_from(["k", "l", "k.l", 'q"\\', "", "$.k"]), VALUES, max_size=2)


def json_equal(left: Any, right: Any) -> bool:
    """Equality of JSON values by the contract: numbers by value, booleans no numbers, structure by structure."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(json_equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(json_equal(a, b) for a, b in zip(left, right, strict=True))
    return (type(left) is type(right) and left == right) or (
        isinstance(left, int | float) and isinstance(right, int | float) and left == right
    )


def within(time: int | None, span: TimeRange | None) -> bool:
    if span is None:
        return True
    if time is None:
        return False
    return (span.start is None or span.start <= time) and (span.end is None or time < span.end)


def visible(memory: Memory, view: View) -> bool:
    def valid_at(time: int) -> bool:
        return memory.valid_until is None or time < memory.valid_until

    if view.as_of is not None:
        began = memory.created_at if memory.event_at is None else memory.event_at
        return began <= view.as_of and valid_at(view.as_of) and memory.state != State.ARCHIVED
    if view.filter.states:
        return memory.state in view.filter.states
    if view.every_state:
        return True
    if memory.state == State.SUPERSEDED:
        return view.include_superseded
    return memory.state == State.ACTIVE and valid_at(view.now)


def matches(memory: Memory, view: View) -> bool:
    wanted = view.filter
    tags = set(memory.tags)
    return all(
        (
            visible(memory, view),
            not wanted.types or memory.type in wanted.types,
            not wanted.tags_any or bool(tags & wanted.tags_any),
            tags >= wanted.tags_all,
            not tags & wanted.tags_none,
            within(memory.created_at, wanted.created),
            within(memory.event_at, wanted.event),
            wanted.importance_min is None or memory.importance >= wanted.importance_min,
            all(k in memory.metadata and json_equal(memory.metadata[k], v) for k, v in wanted.metadata.items()),
            not wanted.ids or memory.id in wanted.ids,
            wanted.importance_below is None or memory.importance < wanted.importance_below,
            within(memory.valid_until, wanted.valid_until),
            wanted.unused_since is None or last_use(memory) < wanted.unused_since,
        )
    )


def last_use(memory: Memory) -> int:
    uses = (memory.created_at, memory.last_accessed_at, memory.last_retrieved_at)
    return max(use for use in uses if use is not None)


SORT: dict[Order, tuple[Callable[[Memory], Any], bool]] = {
    Order.CREATED_AT_DESC: (lambda m: (m.created_at, m.id), True),
    Order.CREATED_AT_ASC: (lambda m: (m.created_at, m.id), False),
    Order.EVENT_AT_DESC: (lambda m: (m.created_at if m.event_at is None else m.event_at, m.id), True),
    Order.EVENT_AT_ASC: (lambda m: (m.created_at if m.event_at is None else m.event_at, m.id), False),
    Order.IMPORTANCE_DESC: (lambda m: (m.importance, m.id), True),
    Order.IMPORTANCE_ASC: (lambda m: (m.importance, m.id), False),
}

ROWS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(MemoryType),
        "tags": st.sets(st.sampled_from(TAGS)),
        "metadata": METADATA,
        "importance": st.sampled_from([0.0, 0.25, 1 / 3, 1.0]),
        "created_at": TIMES,
        "event_at": MAYBE_TIMES,
        "valid_until": MAYBE_TIMES,
    }
)
RANGES = st.none() | st.builds(TimeRange, MAYBE_TIMES, MAYBE_TIMES)
TAG_SETS = st.frozensets(st.sampled_from(TAGS), max_size=2)


@st.composite
def views(draw: st.DrawFn, ids: list[str], metadatas: list[Any]) -> View:
    known = [{key: value} for one in metadatas for key, value in one.items()]
    wanted = Filter(
        types=draw(st.frozensets(st.sampled_from(MemoryType), max_size=3)),
        tags_any=draw(TAG_SETS),
        tags_all=draw(TAG_SETS),
        tags_none=draw(TAG_SETS),
        created=draw(RANGES),
        event=draw(RANGES),
        importance_min=draw(st.none() | st.sampled_from([0.0, 0.25, 1 / 3, 0.5])),
        metadata=draw(st.just({}) | METADATA | (st.sampled_from(known) if known else st.just({}))),
        states=draw(st.frozensets(st.sampled_from(State), max_size=2)),
        ids=draw(st.frozensets(st.sampled_from([*ids, "no such id"]), max_size=3)),
        importance_below=draw(st.none() | st.sampled_from([0.25, 1 / 3, 0.5, 1.0])),
        unused_since=draw(st.none() | TIMES),
        valid_until=draw(RANGES),
    )
    return View(wanted, NOW, draw(st.none() | TIMES), draw(st.booleans()), draw(st.booleans()))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), rows=st.lists(ROWS, max_size=8))
def test_lists_counts_and_selections_equal_a_plain_model(bench: Any, data: st.DataObject, rows: list[Any]) -> None:
    scope = Scope("model", str(bench.clock.tick()))
    stored = [bench.put("text", scope, **row) for row in rows]
    bench.put("a stranger", Scope("model", "stranger"), created_at=NOW)
    for row in stored:
        fate = data.draw(st.sampled_from(["none", "archive", "supersede"]))
        if fate == "archive":
            bench.store.write(lambda txn, row=row: txn.update(row.rid, {"state": State.ARCHIVED}))
        elif fate == "supersede" and row is not stored[0]:
            bench.store.write(lambda txn, row=row: txn.supersede([row.rid], stored[0].rid))
    with bench.store.read() as txn:
        memories = [row.memory for row in txn.fetch(scope, [row.rid for row in stored])]
        rids = {row.memory.id: row.rid for row in stored}
        for _ in range(6):
            view = data.draw(views([m.id for m in memories], [m.metadata for m in memories]))
            expected = [m for m in memories if matches(m, view)]
            assert txn.count(scope, view) == len(expected)
            assert txn.select_rids(scope, view) == sorted(rids[m.id] for m in expected)
            order = data.draw(st.sampled_from(Order))
            key, reverse = SORT[order]
            expected.sort(key=key, reverse=reverse)
            # Below which number of rows a condition leads, and not the order, must not show.
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(listing, "_FEW", data.draw(st.sampled_from([-1, 1, 4_000])))
                assert paged(txn, scope, view, order, data.draw(st.integers(1, 4))) == expected


def paged(txn: Any, scope: Scope, view: View, order: Order, size: int) -> list[Memory]:
    listed: list[Memory] = []
    after = None
    while True:
        page = txn.list_rows(scope, view, order, after, size)
        assert len(page.rows) <= size
        listed += [row.memory for row in page.rows]
        if not page.more:
            return listed
        after = Cursor.of(listed[-1], order)


def seen(bench: Any, view: View) -> list[str]:
    with bench.store.read() as txn:
        return sorted(row.memory.content for row in txn.list_rows(Scope(), view).rows)


def test_states_decide_what_is_visible(bench: Any) -> None:
    now = bench.clock.now + 1_000
    bench.put("active")
    bench.put("expired", valid_until=now)
    old, new = bench.put("old"), bench.put("new")
    bench.store.write(lambda txn: txn.supersede([old.rid], new.rid))
    away = bench.put("away")
    bench.store.write(lambda txn: txn.update(away.rid, {"state": State.ARCHIVED}))
    assert seen(bench, View(Filter(), now)) == ["active", "new"]
    assert seen(bench, View(Filter(), now - 1)) == ["active", "expired", "new"]
    assert seen(bench, View(Filter(), now, include_superseded=True)) == ["active", "new", "old"]
    assert seen(bench, View(Filter(), now, every_state=True)) == ["active", "away", "expired", "new", "old"]
    assert seen(bench, View(Filter(states=frozenset({State.ACTIVE})), now)) == ["active", "expired", "new"]
    assert seen(bench, View(Filter(states=frozenset({State.ARCHIVED})), now, every_state=True)) == ["away"]


def test_as_of_shows_what_was_valid_then(bench: Any) -> None:
    old = bench.put("lives in Rome", event_at=10)
    new = bench.put("lives in Oslo", event_at=20)
    bench.store.write(lambda txn: txn.supersede([old.rid], new.rid))
    far = bench.clock.now + 10
    assert seen(bench, View(Filter(), far, as_of=9)) == []
    assert seen(bench, View(Filter(), far, as_of=10)) == ["lives in Rome"]
    assert seen(bench, View(Filter(), far, as_of=19)) == ["lives in Rome"]
    assert seen(bench, View(Filter(), far, as_of=20)) == ["lives in Oslo"]


def test_a_page_stops_before_it_grows_too_large(bench: Any) -> None:
    for n in range(5):
        bench.put(f"{n}" * 1_000)
    view = View(Filter(), bench.clock.now)
    with bench.store.read() as txn:
        page = txn.list_rows(Scope(), view, limit=5, max_bytes=3_500)
        assert (len(page.rows), page.more) == (2, True)
        page = txn.list_rows(Scope(), view, limit=5, max_bytes=1)
        assert (len(page.rows), page.more) == (1, True)
        page = txn.list_rows(Scope(), view, limit=5, max_bytes=1_000_000)
        assert (len(page.rows), page.more) == (5, False)


def test_rids_match_by_id_and_metadata_within_the_scope(bench: Any) -> None:
    first = bench.put("one", metadata={"k": 1, "l": [1, {"m": 2}]})
    second = bench.put("two", metadata={"k": 1.0, "l": [1, {"m": 3}]})
    bench.put("three", Scope("other"), metadata={"k": 1})
    with bench.store.read() as txn:
        assert txn.rids_matching(Scope(), metadata={"k": 1}) == [first.rid, second.rid]
        assert txn.rids_matching(Scope(), metadata={"k": 1, "l": [1.0, {"m": 2.0}]}) == [first.rid]
        assert txn.rids_matching(Scope(), metadata={"k": True}) == []
        assert txn.rids_matching(Scope(), ids=[second.memory.id, "x"]) == [second.rid]
        assert txn.rids_matching(Scope(), ids=[first.memory.id], metadata={"l": [1, {"m": 3}]}) == []
        assert txn.rids_matching(Scope(), ids=[]) == []
        assert txn.rids_matching(Scope("nobody"), ids=["x"]) == []
        with pytest.raises(ValueError, match="needs ids or metadata"):
            txn.rids_matching(Scope())


def test_lists_walk_an_index_in_order_and_do_not_sort(bench: Any) -> None:
    bench.put("one", tags=("t",))
    plans: list[str] = []
    with bench.store.read() as txn:
        connection = txn._connection
        connection.set_trace_callback(plans.append)
        for order in Order:
            txn.list_rows(Scope(), View(Filter(types=frozenset({MemoryType.SEMANTIC})), 0), order, Cursor(0.5, "x"))
        connection.set_trace_callback(None)
        for statement in [text for text in plans if "ORDER BY" in text]:
            plan = " ".join(str(step) for step in connection.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall())
            assert "TEMP B-TREE" not in plan, plan
            assert "scope_no=? AND" in plan, plan


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (Filter(states=frozenset({State.ARCHIVED})), "memories_state"),
        (Filter(created=TimeRange(5, 9)), "memories_created"),
        (Filter(event=TimeRange(None, 9)), "memories_began"),
    ],
)
def test_few_rows_that_a_condition_selects_lead_the_list(bench: Any, wanted: Filter, index: str) -> None:
    bench.put("one", tags=("t",))
    statements: list[str] = []
    with bench.store.read() as txn:
        txn._connection.set_trace_callback(statements.append)
        txn.list_rows(Scope(), View(wanted, 0), Order.IMPORTANCE_DESC)
        txn._connection.set_trace_callback(None)
        [statement] = [text for text in statements if "ORDER BY" in text]
        plan = str(txn._connection.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall())
    assert index in plan
    assert "memories_importance" not in plan


def test_a_tag_that_many_rows_have_is_looked_up_row_by_row(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_FEW", 2)
    for n in range(5):
        bench.put(str(n), tags=("t",))
    statements: list[str] = []
    view = View(Filter(tags_any=frozenset({"t", "u"}), tags_none=frozenset({"v"})), 0)
    with bench.store.read() as txn:
        txn._connection.set_trace_callback(statements.append)
        assert len(txn.list_rows(Scope(), view, limit=3).rows) == 3
        txn._connection.set_trace_callback(None)
        [statement] = [text for text in statements if "ORDER BY" in text]
        plan = str(txn._connection.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall())
    assert "TEMP B-TREE" not in plan
    assert "CORRELATED" in plan


def test_the_default_count_reads_an_index_only(bench: Any) -> None:
    statements: list[str] = []
    bench.put("one")
    with bench.store.read() as txn:
        txn._connection.set_trace_callback(statements.append)
        txn.count(Scope(), View(Filter(), 0))
        txn._connection.set_trace_callback(None)
        plan = str(txn._connection.execute(f"EXPLAIN QUERY PLAN {statements[-1]}").fetchall())
    assert "COVERING INDEX memories_state" in plan


def test_scopes_are_counted_largest_first(bench: Any) -> None:
    for scope, amount in (("b", 2), ("a", 2), ("c", 3)):
        for n in range(amount):
            bench.put(f"text {n}", Scope(scope))
    away = bench.put("away", Scope("c"))
    bench.store.write(lambda txn: txn.update(away.rid, {"state": State.ARCHIVED}))
    gone = bench.put("gone", Scope("d"))
    bench.store.write(lambda txn: txn.delete([gone.rid]))
    with bench.store.read() as txn:
        assert txn.scopes(10) == [(Scope("c"), 4, 3), (Scope("a"), 2, 2), (Scope("b"), 2, 2)]
        assert len(txn.scopes(1)) == 1
        assert txn.totals() == (8, 0, 0, 3)
