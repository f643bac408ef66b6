"""Access and retrieval counts."""

from __future__ import annotations

import sqlite3
import threading
import time
from typing import Any

import pytest

from memxd.errors import StorageFailedError
from memxd.store.counters import Counters


def counts(bench: Any, row: Any) -> tuple[Any, ...]:
    memory = bench.again(row).memory
    return memory.access_count, memory.last_accessed_at, memory.retrieval_count, memory.last_retrieved_at


def test_counts_show_at_once_and_survive_a_restart(bench: Any) -> None:
    row, other = bench.put("x"), bench.put("y")
    bench.store.count_access(row.rid)
    at = bench.clock.tick()
    bench.store.count_access(row.rid)
    bench.store.count_retrievals([row.rid, other.rid])
    assert counts(bench, row) == (2, at, 1, at)
    assert counts(bench, other) == (0, None, 1, at)
    bench.reopened()
    assert counts(bench, row) == (2, at, 1, at)


def test_a_flush_tells_totals_and_takes_no_revision(bench: Any) -> None:
    row = bench.put("x")
    for _ in range(2):
        at = bench.clock.tick()
        bench.store.count_access(row.rid)
        bench.store.count_retrievals([row.rid])
        bench.store.flush_counters()
    assert bench.counters == [(row.rid, 1, 1, at - 1), (row.rid, 2, 2, at)]
    after = bench.again(row).memory
    assert (after.revision, after.updated_at) == (row.memory.revision, row.memory.updated_at)
    assert [change.revision for change in bench.changes] == [1]
    with bench.store.read() as txn:
        assert txn.revision() == 1


def test_counts_are_flushed_by_themselves_within_seconds(bench: Any) -> None:
    row = bench.put("x")
    bench.store.count_access(row.rid)
    until = time.monotonic() + 10
    while not bench.counters:
        assert time.monotonic() < until
        time.sleep(0.02)
    assert counts(bench, row)[0] == 1


def test_counts_of_erased_memories_vanish(bench: Any) -> None:
    row = bench.put("x")
    bench.store.count_access(row.rid)
    bench.store.write(lambda txn: txn.delete([row.rid]))
    bench.store.flush_counters()
    assert bench.counters == []


def test_an_old_snapshot_never_shows_fewer_counts(bench: Any) -> None:
    row = bench.put("x")
    bench.store.count_access(row.rid)
    with bench.store.read() as txn:
        assert txn.get(row.memory.scope, row.memory.id).memory.access_count == 1
        bench.store.flush_counters()
        assert txn.get(row.memory.scope, row.memory.id).memory.access_count == 1
        bench.store.count_access(row.rid)
        assert txn.get(row.memory.scope, row.memory.id).memory.access_count == 2


def test_counts_never_go_back_while_flushes_go_on(bench: Any) -> None:
    row = bench.put("x")
    stop = threading.Event()

    def flush() -> None:
        while not stop.is_set():
            bench.store.flush_counters()

    thread = threading.Thread(target=flush)
    thread.start()
    try:
        for expected in range(1, 300):
            bench.store.count_access(row.rid)
            assert counts(bench, row)[0] == expected
    finally:
        stop.set()
        thread.join()


def test_a_flush_that_fails_keeps_the_counts(bench: Any) -> None:
    row = bench.put("x")
    bench.store.count_access(row.rid)

    def flush_without_commit(txn: Any) -> None:
        bench.store._context.counters.flush(txn._connection)
        txn._connection.execute("PRAGMA defer_foreign_keys = ON")
        txn._connection.execute("INSERT INTO memory_tags(scope_no, tag, rid) VALUES (1, 't', 4711)")

    with pytest.raises(StorageFailedError):
        bench.store.write(flush_without_commit)
    assert counts(bench, row)[0] == 1
    bench.store.flush_counters()
    bench.reopened()
    assert counts(bench, row)[0] == 1


def test_an_aborted_transaction_makes_counts_pending_again() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute(
        "CREATE TABLE memories(rid INTEGER PRIMARY KEY, access_count, last_accessed_at, retrieval_count, "
        "last_retrieved_at)"
    )
    connection.execute("INSERT INTO memories VALUES (1, 4, NULL, 0, NULL)")
    counters = Counters()
    counters.count_access(1, 10)
    counters.flush(connection)
    assert counters.present(1, 4, None, 0, None).accesses == 5
    assert not counters.waiting
    counters.count_access(1, 11)
    assert counters.present(1, 4, None, 0, None).accesses == 6
    counters.aborted()
    assert counters.waiting
    assert counters.present(1, 4, None, 0, None) == (6, 11, 0, None)
    assert counters.committed() == {}
