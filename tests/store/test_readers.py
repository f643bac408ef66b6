"""Snapshots and deadlines of reads."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from typing import Any

import pytest

from memxd.errors import CancelledError, DeadlineExceededError, StorageReadOnlyError
from memxd.model import Deadline

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
