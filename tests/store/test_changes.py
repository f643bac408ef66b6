"""The log of changes: what an index replays equals what it would have been told."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memxd.errors import MemxdError
from memxd.model import Change, Chunk, Scope, State
from memxd.store import Store

VECTOR = b"\x01\x02" * 4


class Mirror:
    """The simplest index: everything by rid, kept up by changes alone."""

    def __init__(self) -> None:
        self.features: dict[int, Any] = {}
        self.texts: dict[int, str] = {}
        self.chunks: dict[int, tuple[Chunk, ...]] = {}
        self.alive: set[int] = set()
        self.watermark = 0

    def apply(self, change: Change) -> None:
        self.watermark = change.revision
        self.alive -= set(change.dead_vids)
        if change.features is None:
            for kept in (self.features, self.texts, self.chunks):
                kept.pop(change.rid, None)
            return
        self.features[change.rid] = change.features
        if change.text is not None:
            self.texts[change.rid] = change.text
        if change.chunks is not None:
            self.chunks[change.rid] = change.chunks
            self.alive |= {chunk.vid for chunk in change.chunks}

    def state(self) -> tuple[Any, ...]:
        return self.features, self.texts, self.chunks, self.alive, self.watermark

    def copy(self) -> Mirror:
        twin = Mirror()
        twin.features, twin.texts = dict(self.features), dict(self.texts)
        twin.chunks, twin.alive, twin.watermark = dict(self.chunks), set(self.alive), self.watermark
        return twin


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "content", "tags", "vectors", "delete", "supersede", "link", "archive"]),
        st.integers(0, 5),
        st.integers(0, 5),
    ),
    max_size=25,
)


def operate(bench: Any, rows: list[Any], operation: str, first: int, second: int) -> None:
    if operation == "insert" or not rows:
        rows.append(bench.put(f"text {first}", chunks=((0, 1, VECTOR),) * second or None))
        return
    row, other = rows[first % len(rows)], rows[second % len(rows)]

    def run(txn: Any) -> None:
        if operation == "content":
            txn.update(row.rid, {"content": f"changed {second}"}, chunks=((0, 1, VECTOR),) * first)
        elif operation == "tags":
            txn.update(row.rid, {"tags": [str(second)]})
        elif operation == "vectors":
            txn.set_vectors(row.rid, ((0, 1, VECTOR),) * first)
        elif operation == "delete":
            txn.delete([row.rid])
        elif operation == "supersede":
            txn.supersede([row.rid], other.rid)
        elif operation == "link":
            txn.insert_link(row.rid, other.rid, 2)
        else:
            txn.update(row.rid, {"state": State.ARCHIVED})

    with contextlib.suppress(MemxdError):  # which operations are refused is not the point here
        bench.store.write(run)
    if operation == "delete":
        rows.remove(row)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operations=OPERATIONS, left=st.integers(0, 25))
def test_replaying_or_rebuilding_gives_what_listening_gave(bench: Any, operations: list[Any], left: int) -> None:
    live, stale = Mirror(), Mirror()
    with bench.store.read() as txn:
        live.watermark = txn.revision()
        for change in txn.all_rows():
            live.apply(change)
    stale = live.copy()
    rows: list[Any] = []
    for number, operation in enumerate(operations):
        bench.changes.clear()
        operate(bench, rows, *operation)
        revisions = [change.revision for change in bench.changes]
        assert revisions == list(range(live.watermark + 1, live.watermark + 1 + len(revisions)))
        for change in bench.changes:
            live.apply(change)
        if number == left:
            stale = live.copy()
    rebuilt = Mirror()
    rebuilt.watermark = live.watermark
    with bench.store.read() as txn:
        assert txn.can_replay(stale.watermark)
        replayed = list(txn.changes_since(stale.watermark))
        for change in replayed:
            stale.apply(change)
        for change in txn.all_rows():
            rebuilt.apply(change)
        assert live.watermark == txn.revision()
    assert len({change.rid for change in replayed}) == len(replayed)
    assert [change.revision for change in replayed] == sorted(change.revision for change in replayed)
    assert stale.state() == live.state()
    assert rebuilt.state() == live.state()


def test_the_log_remembers_which_vectors_died_with_a_memory(bench: Any) -> None:
    row = bench.put("one", chunks=((0, 1, VECTOR), (1, 2, VECTOR)))
    bench.store.write(lambda txn: txn.update(row.rid, {"content": "two"}, chunks=((0, 1, VECTOR),)))
    vids = tuple(chunk.vid for change in bench.changes for chunk in change.chunks)
    bench.store.write(lambda txn: txn.delete([row.rid]))
    with bench.store.read() as txn:
        assert list(txn.changes_since(1)) == [Change(3, row.rid, None, dead_vids=vids)]
        assert list(txn.changes_since(3)) == []


def test_pruning_keeps_what_is_young_or_not_yet_everywhere(bench: Any) -> None:
    times = [bench.put(f"text {n}").memory.created_at for n in range(6)]

    def prune(before_revision: int, before_time: int) -> int:
        return int(bench.store.write(lambda txn: txn.prune_changes(before_revision, before_time)))

    assert prune(4, times[1]) == 1
    assert prune(3, times[5]) == 1
    with bench.store.read() as txn:
        assert txn.oldest_change() == 3
        assert not txn.can_replay(1)
        assert txn.can_replay(2)
        assert txn.can_replay(6)
        assert not txn.can_replay(7)
    assert prune(100, times[5] + 1) == 4
    with bench.store.read() as txn:
        assert txn.oldest_change() is None
        assert txn.revision() == 6
        assert txn.can_replay(6)
        assert not txn.can_replay(5)
    assert bench.put("next").memory.revision == 7


def test_an_empty_store_has_a_revision_but_no_rows(bench: Any) -> None:
    with bench.store.read() as txn:
        assert txn.can_replay(0)
    row = bench.put("one")
    bench.store.write(lambda txn: txn.delete([row.rid]))
    with bench.store.read() as txn:
        assert list(txn.all_rows()) == []
        assert txn.revision() == 2


def test_more_rows_than_a_batch_are_streamed_in_order(bench: Any) -> None:
    def fill(txn: Any) -> None:
        for n in range(1_203):
            txn.insert(Scope(), content=f"text {n}", type=2, chunks=((0, 1, VECTOR),))

    bench.store.write(fill)
    with bench.store.read() as txn:
        rebuilt = list(txn.all_rows())
        replayed = list(txn.changes_since(0))
    assert [change.rid for change in rebuilt] == list(range(1, 1_204))
    assert all(change.revision == 1_203 and len(change.chunks or ()) == 1 for change in rebuilt)
    assert [change.revision for change in replayed] == list(range(1, 1_204))


def test_facts_about_the_database_are_kept(bench: Any) -> None:
    store: Store = bench.store
    store.write(lambda txn: txn.meta_set("model_id", "m-1"))
    store.write(lambda txn: txn.meta_set("model_id", "m-2"))
    with bench.reopened().read() as txn:
        assert txn.meta_get("model_id") == "m-2"
        assert txn.meta_get("other") is None
