"""Storing, reading, changing and erasing single memories."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memxd.errors import DuplicateMemoryError, MemoryNotFoundError
from memxd.model import DAY, MemoryType, Scope, State
from memxd.text import content_hash, fold_hash

OTHER = Scope("somebody", "else")
VECTOR = b"\x01\x02" * 4


def test_a_stored_memory_reads_back_equal(bench: Any) -> None:
    row = bench.put(
        "café 🦊",
        tags=("b", "a", "b"),
        metadata={"n": 1.5, "deep": {"list": [1, None, True, "x"]}},
        importance=1 / 3,
        event_at=-5,
        valid_until=bench.clock.now + DAY,
        private=True,
        source="notes.md",
    )
    assert row.memory.tags == ("a", "b")
    assert bench.get(row) == row
    with bench.store.read() as txn:
        assert txn.fetch(Scope(), [row.rid]) == [row]
        assert txn.get_many(Scope(), [row.memory.id, "no such id"]) == {row.memory.id: row}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    importance=st.floats(0, 1) | st.sampled_from([0.0, -0.0, 1.0, 5e-324, math.nextafter(1, 0)]),
    content=st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    number=st.floats(allow_nan=False, allow_infinity=False),
)
def test_numbers_and_text_keep_their_exact_value(bench: Any, importance: float, content: str, number: float) -> None:
    row = bench.put(content, importance=importance, metadata={"n": number, content: "k"})
    read = bench.again(row).memory
    assert read.importance == importance
    assert math.copysign(1, read.importance) == 1
    assert read.content == content
    assert read.metadata == {"n": number, content: "k"}


def test_fetch_keeps_the_order_asked_and_drops_what_is_gone_or_of_another_scope(bench: Any) -> None:
    first, second, third = (bench.put(f"text {n}") for n in range(3))
    foreign = bench.put("text", scope=OTHER)
    bench.store.write(lambda txn: txn.delete([second.rid]))
    with bench.store.read() as txn:
        rids = [third.rid, foreign.rid, second.rid, first.rid, 999]
        assert [row.rid for row in txn.fetch(Scope(), rids)] == [third.rid, first.rid]
        assert txn.fetch(Scope("never", "seen"), rids) == []


def test_a_memory_of_another_scope_does_not_exist(bench: Any) -> None:
    row = bench.put("mine")
    bench.put("theirs", scope=OTHER)
    with bench.store.read() as txn:
        assert txn.get(OTHER, row.memory.id) is None
        assert txn.get(Scope("nobody"), row.memory.id) is None
        assert txn.get_many(OTHER, [row.memory.id]) == {}


def test_ids_are_unique_within_a_scope_only(bench: Any) -> None:
    row = bench.put("one", id="11111111-1111-4111-8111-111111111111", created_at=5)
    assert row.memory.created_at == row.memory.updated_at == 5
    bench.put("two", scope=OTHER, id=row.memory.id)
    with pytest.raises(DuplicateMemoryError) as refused:
        bench.put("three", id=row.memory.id)
    assert refused.value.metadata["id"] == row.memory.id


def test_an_insert_is_told_to_the_indexes_whole(bench: Any) -> None:
    row = bench.put("Hello, World", chunks=((0, 5, VECTOR), (3, 12, VECTOR)), tags=("t",))
    [change] = bench.changes
    assert (change.revision, change.rid, change.text) == (1, row.rid, "Hello, World")
    assert [(c.number, c.start, c.end, c.vector) for c in change.chunks] == [(0, 0, 5, VECTOR), (1, 3, 12, VECTOR)]
    assert change.features.content_hash == content_hash("Hello, World")
    assert change.features.fold_hash == fold_hash("hello world")
    assert change.features.tags == ("t",)
    assert change.dead_vids == ()


def test_a_duplicate_is_an_equal_active_unexpired_memory(bench: Any) -> None:
    def found(**changed: Any) -> Any:
        values = {"type": MemoryType.SEMANTIC, "event_at": None, "source": "", "content": "tea"} | changed
        extra = {key: values.pop(key) for key in ("exclude_rid",) if key in values}
        with bench.store.read() as txn:
            return txn.find_duplicate(row.scope_no, *values.values(), **extra)

    row = bench.put("tea", valid_until=bench.clock.now + 100)
    assert found() == row.memory
    assert found(type=MemoryType.EPISODIC) is None
    assert found(event_at=0) is None
    assert found(source="x") is None
    assert found(content="Tea") is None
    assert found(exclude_rid=row.rid) is None
    bench.clock.tick(200)
    assert found() is None
    bench.store.write(lambda txn: txn.update(row.rid, {"valid_until": None}))
    assert found() is not None
    bench.store.write(lambda txn: txn.update(row.rid, {"state": State.ARCHIVED}))
    assert found() is None


def test_a_change_of_content_replaces_vectors_and_keeps_the_old_version(bench: Any) -> None:
    row = bench.put("age 41", chunks=((0, 6, VECTOR), (0, 6, VECTOR)), tags=("x",), importance=0.25)
    old_vids = tuple(chunk.vid for chunk in bench.changes[-1].chunks)
    bench.clock.tick(10)
    changed = bench.store.write(lambda txn: txn.update(row.rid, {"content": "age 43"}, chunks=((0, 6, VECTOR),)))
    assert (changed.memory.content, changed.memory.revision) == ("age 43", 2)
    assert changed.memory.updated_at == bench.clock.now
    change = bench.changes[-1]
    assert change.text == "age 43"
    assert len(change.chunks) == 1
    assert change.dead_vids == old_vids
    assert change.chunks[0].vid not in old_vids
    with bench.store.read() as txn:
        [version] = txn.history(row.rid)
    assert (version.content, version.revision, version.tags, version.importance) == ("age 41", 1, ("x",), 0.25)
    assert version.replaced_at == bench.clock.now


def test_other_changes_leave_text_and_vectors_alone(bench: Any) -> None:
    row = bench.put("tea", tags=("old",), metadata={"k": 1})
    fields = {
        "content": "tea",
        "type": MemoryType.EPISODIC,
        "tags": ("new", "more"),
        "metadata": {"k": 2},
        "importance": 1.0,
        "event_at": 7,
        "valid_until": bench.clock.now + DAY,
        "private": True,
        "source": "s",
        "state": State.ARCHIVED,
    }
    changed = bench.store.write(lambda txn: txn.update(row.rid, fields)).memory
    assert {name: getattr(changed, name) for name in fields} == fields | {"tags": ("more", "new")}
    change = bench.changes[-1]
    assert (change.text, change.chunks, change.dead_vids) == (None, None, ())
    assert bench.again(row).memory == changed
    with bench.store.read() as txn:
        assert txn.history(row.rid) == []


def test_changing_a_missing_memory_is_refused(bench: Any) -> None:
    with pytest.raises(MemoryNotFoundError):
        bench.store.write(lambda txn: txn.update(4711, {"source": "x"}))


def test_pending_vectors_are_listed_and_given_later(bench: Any) -> None:
    done = bench.put("done")
    nothing = bench.put("nothing to embed", chunks=())
    waiting = bench.put("waiting", chunks=None)
    secret = bench.put("secret", chunks=None, private=True, scope=OTHER)
    assert [r.memory.vector_pending for r in (done, nothing, waiting, secret)] == [False, False, True, True]
    with bench.store.read() as txn:
        assert [r.rid for r in txn.pending_vectors(10)] == [waiting.rid, secret.rid]
        assert txn.pending_vectors(10)[1].memory.scope == OTHER
        assert [r.rid for r in txn.pending_vectors(10, private=False)] == [waiting.rid]
        assert [r.rid for r in txn.pending_vectors(10, after_rid=waiting.rid)] == [secret.rid]
        assert [r.rid for r in txn.pending_vectors(1)] == [waiting.rid]
        assert txn.totals().vectors_pending == 2
    given = ((0, 7, VECTOR),)
    assert not bench.store.write(lambda txn: txn.set_vectors(waiting.rid, given, content_hash=content_hash("changed")))
    assert bench.store.write(lambda txn: txn.set_vectors(waiting.rid, given, content_hash=content_hash("waiting")))
    assert not bench.store.write(lambda txn: txn.set_vectors(4711, given))
    after = bench.again(waiting).memory
    assert not after.vector_pending
    assert (after.revision, after.updated_at) == (waiting.memory.revision, waiting.memory.updated_at)
    assert bench.changes[-1].text is None
    assert len(bench.changes[-1].chunks) == 1


def test_a_change_of_content_without_vectors_waits_for_them(bench: Any) -> None:
    row = bench.put("old")
    assert bench.store.write(lambda txn: txn.update(row.rid, {"content": "new"})).memory.vector_pending
    assert bench.changes[-1].chunks == ()
    assert len(bench.changes[-1].dead_vids) == 1


def test_erasing_leaves_no_trace_in_the_files(bench: Any) -> None:
    marker, older = "zanzibar-marker", "yucatan-older"
    kept = bench.put("something that stays")
    row = bench.put(older, source="wellington-source", metadata={"k": "xylophone-value"}, chunks=((0, 3, b"vvvvvvvv"),))
    bench.store.write(lambda txn: txn.update(row.rid, {"content": marker}, chunks=((0, 3, b"wwwwwwww"),)))
    bench.store.write(
        lambda txn: txn.remember(row.scope_no, "Store", "r1", b"h", f'{{"content":"{marker}"}}', [row.rid])
    )
    assert bench.store.write(lambda txn: txn.delete([row.rid, 999])) == 1
    assert bench.get(row) is None
    bench.store.close()
    written = b"".join(path.read_bytes() for path in sorted(bench.directory.iterdir()))
    assert kept.memory.content.encode() in written
    for trace in (marker, older, "wellington-source", "xylophone-value", "vvvvvvvv", "wwwwwwww", row.memory.id):
        assert trace.encode() not in written


def test_the_log_is_emptied_soon_after_an_erasure(bench: Any) -> None:
    import time

    row = bench.put("zanzibar-marker")
    bench.store.write(lambda txn: txn.delete([row.rid]))
    until = time.monotonic() + 10
    while any(b"zanzibar-marker" in path.read_bytes() for path in bench.directory.iterdir()):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_deleting_tells_the_indexes_which_vectors_died(bench: Any) -> None:
    rows = [bench.put(f"text {n}", chunks=((0, 1, VECTOR),) * n) for n in range(3)]
    vids = [tuple(chunk.vid for chunk in change.chunks) for change in bench.changes]
    bench.changes.clear()
    assert bench.store.write(lambda txn: txn.delete([row.rid for row in rows])) == 3
    assert [(c.revision, c.rid, c.features, c.dead_vids) for c in bench.changes] == [
        (4 + n, rows[n].rid, None, vids[n]) for n in range(3)
    ]


def test_row_and_vector_ids_are_never_used_again(bench: Any) -> None:
    row = bench.put("last")
    [chunk] = bench.changes[-1].chunks
    bench.store.write(lambda txn: txn.delete([row.rid]))
    bench.reopened()
    assert bench.put("next").rid > row.rid
    assert bench.changes[-1].chunks[0].vid > chunk.vid


def test_thousands_are_erased_in_one_transaction(bench: Any) -> None:
    def fill(txn: Any) -> list[int]:
        return [
            txn.insert(
                Scope(),
                content=f"text {n}",
                type=MemoryType.SEMANTIC,
                tags=("t",),
                metadata={"n": n},
                chunks=((0, 1, VECTOR),),
            ).rid
            for n in range(5_000)
        ]

    rids = bench.store.write(fill)
    keep = bench.put("stays")
    assert bench.store.write(lambda txn: txn.delete([*rids, *rids[:10], keep.rid + 1])) == 5_000
    with bench.store.read() as txn:
        assert txn.totals() == (1, 0, 0, 1)
