"""Snapshots and deadlines of reads."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from typing import Any

import pytest

from memxd.errors import CancelledError, DeadlineExceededError, StorageReadOnlyError
from memxd.model import Deadline, Scope

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def test_a_snapshot_does_not_see_later_writes(bench: Any) -> None:
    bench.put("one")
    with bench.store.read() as txn:
        assert txn.revision() == 1
        bench.put("two")
        assert txn.revision() == 1
        assert txn.totals().memories == 1
    with bench.store.read() as txn:
        assert txn.totals().memories == 2


def test_a_long_read_is_interrupted_at_its_deadline(bench: Any) -> None:
    started = time.monotonic()
    with pytest.raises(DeadlineExceededError), bench.store.read(Deadline(at=started + 0.1)) as txn:
        txn._connection.execute(ENDLESS).fetchone()
    assert time.monotonic() - started < 5
    with bench.store.read() as txn:
        assert txn.revision() == 0


def test_a_long_read_ends_when_its_caller_goes_away(bench: Any) -> None:
    gone = threading.Event()
    timer = threading.Timer(0.1, gone.set)
    timer.start()
    with pytest.raises(CancelledError), bench.store.read(Deadline(is_cancelled=gone.is_set)) as txn:
        txn._connection.execute(ENDLESS).fetchone()
    timer.join()


def test_waiting_for_a_reader_ends_at_the_deadline(bench: Any) -> None:
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(bench.store.read())
        with pytest.raises(DeadlineExceededError):
            stack.enter_context(bench.store.read(Deadline(at=time.monotonic() + 0.1)))
    with bench.store.read() as txn:
        assert txn.revision() == 0


def test_a_reader_cannot_write(bench: Any) -> None:
    bench.put("kept")
    with pytest.raises(StorageReadOnlyError), bench.store.read() as txn:
        txn._connection.execute("DELETE FROM memories")


def test_an_error_within_the_block_gives_the_reader_back(bench: Any) -> None:
    for _ in range(10):
        with pytest.raises(KeyError), bench.store.read():
            raise KeyError
    with bench.store.read() as txn:
        assert txn.revision() == 0


def test_survivors_are_the_rows_of_one_scope_that_are_still_there(bench: Any) -> None:
    rows = [bench.put(f"text {n}", tags=("b", "a"), metadata={"n": n}) for n in range(3)]
    other = bench.put("another's", scope=Scope("other"))
    bench.store.write(lambda txn: txn.delete([rows[1].rid]))
    found, revision = bench.store.survivors(rows[0].scope_no, [r.rid for r in (*rows, other)] + [99])
    assert found == {row.rid: row for row in (rows[0], rows[2])}
    assert revision == bench.store.revision == 5
    assert bench.store.survivors(rows[0].scope_no, []) == ({}, 5)


def test_survivors_are_refused_when_nobody_waits_for_them(bench: Any) -> None:
    with pytest.raises(CancelledError):
        bench.store.survivors(1, [1], Deadline(is_cancelled=lambda: True))


def test_the_revision_in_memory_is_that_of_the_database(bench: Any) -> None:
    assert bench.store.revision == 0
    row = bench.put("one")
    with pytest.raises(ZeroDivisionError):
        bench.store.write(lambda txn: (txn.insert(Scope(), content="lost", type=row.memory.type), 1 // 0))
    assert bench.store.revision == 1
    bench.put("two")
    with bench.store.read() as txn:
        assert txn.revision() == bench.store.revision == 2
    assert bench.reopened().revision == 2


def test_the_number_of_a_scope_is_known_once_it_is_committed(bench: Any) -> None:
    assert bench.store.scope_no(Scope("lost")) is None
    row = bench.put("one")
    with pytest.raises(ZeroDivisionError):
        bench.store.write(lambda txn: (txn.insert(Scope("lost"), content="x", type=row.memory.type), 1 // 0))
    taken = bench.put("two", scope=Scope("found"))
    assert bench.store.scope_no(Scope("lost")) is None
    assert bench.store.scope_no(Scope("found")) == bench.store.scope_no(Scope("found")) == taken.scope_no


def test_a_waiting_reader_gets_what_another_gives_back(bench: Any) -> None:
    taken = ExitStack()
    for _ in range(4):
        taken.enter_context(bench.store.read())
    threading.Timer(0.05, taken.close).start()
    with bench.store.read(Deadline(at=time.monotonic() + 10)) as txn:
        assert txn.revision() == 0
