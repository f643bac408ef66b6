"""The writer thread: groups, savepoints, deadlines, listeners, the end."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from memxd.errors import (
    CancelledError,
    DeadlineExceededError,
    MemoryNotFoundError,
    MemxdError,
    ShuttingDownError,
    StorageFailedError,
    StorageFullError,
)
from memxd.model import Deadline, Scope
from memxd.store import Store

FIELDS: dict[str, Any] = {"type": 2, "chunks": ()}


class Gate:
    """Holds the writer thread inside a function until it is let go."""

    def __init__(self, store: Store) -> None:
        self.entered, self.release = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=lambda: store.write(self._hold))
        self.thread.start()
        assert self.entered.wait(10)

    def _hold(self, txn: Any) -> None:
        self.entered.set()
        assert self.release.wait(10)

    def open(self) -> None:
        self.release.set()
        self.thread.join(10)


def commits(bench: Any) -> list[str]:
    """Records COMMITs of the writer from now on."""
    seen: list[str] = []
    bench.store.write(lambda txn: txn._connection.set_trace_callback(lambda text: seen.append(text)))
    seen.clear()
    return seen


def test_a_function_that_raises_undoes_only_what_it_did(bench: Any) -> None:
    def fail(txn: Any) -> None:
        txn.insert(Scope("new scope"), content="lost", **FIELDS)
        raise KeyError("no")

    gate = Gate(bench.store)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(bench.put, "first")
        time.sleep(0.05)
        second = pool.submit(bench.store.write, fail)
        time.sleep(0.05)
        third = pool.submit(bench.put, "third")
        time.sleep(0.05)
        gate.open()
        assert isinstance(second.exception(), KeyError)
        assert [first.result().memory.revision, third.result().memory.revision] == [1, 2]
    assert [change.text for change in bench.changes] == ["first", "third"]
    with bench.store.read() as txn:
        assert txn.totals().memories == 2
        assert txn.scope_no(Scope("new scope")) is None
    assert bench.put("a", Scope("another")).scope_no == 2


def test_even_an_interrupt_raised_by_a_function_stops_nothing_else(bench: Any) -> None:
    def interrupt(txn: Any) -> None:
        txn.insert(Scope(), content="lost", **FIELDS)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.store.write(interrupt)
    bench.put("kept")
    with bench.store.read() as txn:
        assert txn.totals().memories == 1


def test_what_is_queued_commits_together(bench: Any) -> None:
    statements = commits(bench)
    gate = Gate(bench.store)
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(bench.put, f"text {n}") for n in range(8)]
        while bench.store._writer._inbox._queue.qsize() < 8:
            time.sleep(0.001)
        gate.open()
        revisions = sorted(one.result().memory.revision for one in waiting)
    assert revisions == list(range(1, 9))
    assert statements.count("COMMIT") <= 2


def test_several_functions_at_once_answer_each_on_its_own(bench: Any) -> None:
    statements = commits(bench)
    answers = bench.store.write_all(
        [
            lambda txn: txn.insert(Scope(), content="one", **FIELDS).memory.content,
            lambda txn: txn.update(99, {"source": "x"}),
            lambda txn: txn.insert(Scope(), content="two", **FIELDS).memory.content,
        ]
    )
    assert [answers[0], answers[2]] == ["one", "two"]
    assert isinstance(answers[1], MemoryNotFoundError)
    assert statements.count("COMMIT") <= 3
    late = Deadline(at=time.monotonic() - 1)
    answers = bench.store.write_all([lambda txn: 1, lambda txn: 2], late)
    assert all(isinstance(answer, DeadlineExceededError) for answer in answers)
    with pytest.raises(ZeroDivisionError):
        bench.store.write_all([lambda txn: 1 // 0])
    assert bench.store.write_all([]) == []


def test_functions_that_come_together_commit_together(bench: Any) -> None:
    statements = commits(bench)
    told: list[int] = []
    bench.store.on_commit = lambda changes: told.append(len(changes))
    answers = bench.store.write_all(
        [lambda txn, n=n: txn.insert(Scope(), content=f"{n}", **FIELDS).memory.content for n in range(64)]
    )
    assert answers == [f"{n}" for n in range(64)]
    assert statements.count("COMMIT") == 1
    assert told == [64]


def test_those_behind_a_lost_transaction_are_carried_out_in_the_next(bench: Any) -> None:
    def lose(txn: Any) -> None:
        txn._connection.execute("ROLLBACK")
        raise MemoryNotFoundError("and all is gone")

    answers = bench.store.write_all(
        [
            lambda txn: txn.insert(Scope("lost"), content="before", **FIELDS).memory.content,
            lose,
            lambda txn: txn.insert(Scope("kept"), content="behind", **FIELDS).memory.content,
        ]
    )
    assert isinstance(answers[0], StorageFailedError)
    assert isinstance(answers[1], MemoryNotFoundError)
    assert answers[2] == "behind"
    with bench.store.read() as read:
        assert read.totals().memories == 1
        assert read.scope_no(Scope("lost")) is None


def test_the_listener_is_told_before_the_caller_and_in_order(bench: Any) -> None:
    told: list[int] = []

    def listen(changes: list[Any]) -> None:
        assert threading.current_thread().name == "memxd-writer"
        told.extend(change.revision for change in changes)

    bench.store.on_commit = listen

    def put(n: int) -> None:
        revision = bench.put(f"text {n}").memory.revision
        assert revision in told

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, range(200)))
    assert told == list(range(1, 201))


def test_a_listener_that_fails_does_not_unmake_what_is_stored(bench: Any, caplog: pytest.LogCaptureFixture) -> None:
    bench.store.on_commit = lambda changes: 1 / 0
    row = bench.put("kept")
    assert bench.again(row) == row
    assert "ZeroDivisionError" in caplog.text


def test_a_function_that_only_reads_tells_nobody(bench: Any) -> None:
    bench.store.on_commit = lambda changes: pytest.fail("nothing changed")
    assert bench.store.write(lambda txn: txn.revision()) == 0


def test_a_deadline_that_passes_in_the_queue_means_not_executed(bench: Any) -> None:
    gate = Gate(bench.store)
    started = time.monotonic()
    with pytest.raises(DeadlineExceededError):
        bench.store.write(lambda txn: txn.insert(Scope(), content="late", **FIELDS), Deadline(at=started + 0.1))
    assert time.monotonic() - started < 5
    gate.open()
    with bench.store.read() as txn:
        assert txn.totals().memories == 0


def test_a_caller_that_went_away_means_not_executed(bench: Any) -> None:
    gone = threading.Event()
    gate = Gate(bench.store)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(bench.store.write, lambda txn: txn.meta_set("k", "v"), Deadline(is_cancelled=gone.is_set))
        time.sleep(0.1)
        gone.set()
        assert isinstance(waiting.exception(10), CancelledError)
    gate.open()
    with bench.store.read() as txn:
        assert txn.meta_get("k") is None


def test_a_deadline_that_passes_when_its_turn_comes_leaves_the_rest_of_the_group_alone(bench: Any) -> None:
    """The caller has not noticed yet, the writer does, between two members of one transaction."""

    def late() -> bool:
        return threading.current_thread().name == "memxd-writer"

    gate = Gate(bench.store)
    with ThreadPoolExecutor(3) as pool:
        before = pool.submit(bench.store.write, lambda txn: txn.meta_set("before", "v"))
        time.sleep(0.1)
        passed = pool.submit(bench.store.write, lambda txn: txn.meta_set("late", "v"), Deadline(is_cancelled=late))
        time.sleep(0.1)
        behind = pool.submit(bench.store.write, lambda txn: txn.meta_set("behind", "v"))
        time.sleep(0.1)
        gate.open()
        assert isinstance(passed.exception(10), CancelledError)
        assert before.exception(10) is None
        assert behind.exception(10) is None
    with bench.store.read() as txn:
        assert [txn.meta_get(key) for key in ("before", "late", "behind")] == ["v", None, "v"]


def test_work_that_has_begun_is_answered_truthfully_after_the_deadline(bench: Any) -> None:
    def slow(txn: Any) -> str:
        time.sleep(0.3)
        txn.meta_set("k", "v")
        return "done"

    assert bench.store.write(slow, Deadline(at=time.monotonic() + 0.1)) == "done"
    with bench.store.read() as txn:
        assert txn.meta_get("k") == "v"


def test_closing_finishes_what_is_queued_and_refuses_the_rest(bench: Any) -> None:
    gate = Gate(bench.store)
    with ThreadPoolExecutor(9) as pool:
        queued = [pool.submit(bench.put, f"text {n}") for n in range(8)]
        while bench.store._writer._inbox._queue.qsize() < 8:
            time.sleep(0.001)
        closing = pool.submit(bench.store.close)
        time.sleep(0.05)
        gate.open()
        closing.result(10)
        assert sorted(one.result(10).memory.revision for one in queued) == list(range(1, 9))
    for refused in (lambda: bench.put("late"), lambda: bench.store.read().__enter__()):
        with pytest.raises(ShuttingDownError):
            refused()
    bench.store.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "memxd-writer"]
    with bench.opened().read() as txn:
        assert txn.totals().memories == 8


def test_a_function_cannot_wait_for_its_own_thread(bench: Any) -> None:
    with pytest.raises(RuntimeError, match="cannot wait"):
        bench.store.write(lambda txn: bench.put("inside"))


def test_readers_and_writers_work_at_once(bench: Any) -> None:
    scopes = [Scope(f"agent {n}") for n in range(4)]
    stop = time.monotonic() + 1.5
    errors: list[BaseException] = []

    def write(scope: Scope) -> int:
        count = 0
        while time.monotonic() < stop:
            row = bench.put(f"text {count}", scope)
            count += 1
            assert bench.again(row).memory.content == row.memory.content
            if count % 5 == 0:
                bench.store.write(lambda txn, row=row: txn.delete([row.rid]))
                count -= 1
        return count

    def read(scope: Scope) -> None:
        from memxd.model import Filter, View

        while time.monotonic() < stop:
            with bench.store.read() as txn:
                view = View(Filter(), bench.clock.now)
                listed = txn.list_rows(scope, view, limit=500)
                if not listed.more:
                    assert txn.count(scope, view) == len(listed.rows) == len(txn.select_rids(scope, view))
                assert all(row.memory.scope == scope for row in listed.rows)

    with ThreadPoolExecutor(8) as pool:
        readers = [pool.submit(read, scope) for scope in scopes]
        counts = list(pool.map(write, scopes))
        errors = [error for error in (one.exception() for one in readers) if error]
    assert errors == []
    with bench.store.read() as txn:
        assert sorted(total.total for total in txn.scopes(10)) == sorted(counts)


def test_a_full_disk_loses_nothing_and_mends_itself(bench: Any) -> None:
    kept = bench.put("kept")

    def limit(pages: int) -> None:
        bench.store.write(lambda txn: txn._connection.execute(f"PRAGMA max_page_count = {pages}").fetchone())

    def fill() -> None:
        for n in range(100):
            bench.put("x" * 5_000 + str(n))

    [pages] = bench.store.write(lambda txn: txn._connection.execute("PRAGMA page_count").fetchone())
    limit(pages + 3)
    with pytest.raises(StorageFullError):
        fill()
    stored = len(bench.changes)
    with pytest.raises(StorageFullError):
        bench.put("y" * 50_000)
    assert len(bench.changes) == stored
    limit(1 << 30)
    assert bench.again(kept) == kept
    assert bench.put("again").memory.revision == stored + 1
    with bench.store.read() as txn:
        assert txn.totals().memories == stored + 1
        assert txn._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_group_that_cannot_commit_fails_as_a_whole(bench: Any) -> None:
    bench.put("kept")
    bench.changes.clear()

    def break_foreign_keys(txn: Any) -> None:
        txn._connection.execute("PRAGMA defer_foreign_keys = ON")
        txn._connection.execute("INSERT INTO memory_tags(scope_no, tag, rid) VALUES (1, 't', 4711)")

    gate = Gate(bench.store)
    with ThreadPoolExecutor(2) as pool:
        innocent = pool.submit(bench.put, "innocent")
        time.sleep(0.05)
        broken = pool.submit(bench.store.write, break_foreign_keys)
        time.sleep(0.05)
        gate.open()
        failures = [innocent.exception(10), broken.exception(10)]
    assert all(isinstance(failure, StorageFailedError) for failure in failures)
    assert bench.changes == []
    assert bench.put("next").memory.revision == 2


def test_errors_of_sqlite_reach_the_caller_as_refusals(bench: Any) -> None:
    with pytest.raises(MemxdError) as refused:
        bench.store.write(lambda txn: txn._connection.execute("INSERT INTO nowhere VALUES (1)"))
    assert isinstance(refused.value, StorageFailedError)
    assert "nowhere" not in refused.value.message
