"""A data directory that is taken away from a running store."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from memxd.errors import StorageFailedError


@pytest.mark.parametrize("what", ["", "memxd.db", "memxd.db-wal"], ids=["directory", "database", "log"])
def test_nothing_is_acknowledged_once_the_files_are_gone(bench: Any, what: str) -> None:
    bench.put("before")
    told = len(bench.changes)
    gone = bench.directory / what
    if what:
        gone.unlink()
    else:
        shutil.rmtree(gone)
    for _ in range(2):
        with pytest.raises(StorageFailedError, match="removed or replaced"):
            bench.put("after")
    assert len(bench.changes) == told


def test_nothing_is_acknowledged_into_a_database_that_was_exchanged(bench: Any) -> None:
    bench.put("before")
    path = bench.directory / "memxd.db"
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)
    with pytest.raises(StorageFailedError, match="removed or replaced"):
        bench.put("after")


def test_files_that_go_while_a_transaction_runs_are_noticed_before_its_answer(bench: Any) -> None:
    bench.put("before")
    with pytest.raises(StorageFailedError, match="removed or replaced"):
        bench.store.write(lambda _: shutil.rmtree(bench.directory))


def test_an_emptied_log_is_no_reason_to_refuse(bench: Any) -> None:
    row = bench.put("before")
    bench.store.write(lambda txn: txn.delete([row.rid]))
    bench.store.flush_counters()
    bench.put("after")
    bench.reopened()
    bench.put("after all")
    with bench.store.read() as read:
        assert read.totals().memories == 2
