"""Answers kept for retries."""

from __future__ import annotations

import contextlib
from typing import Any

from memxd.model import DAY
from memxd.store import Remembered


def recall(bench: Any, rpc: str = "Store", request_id: str = "r1", scope_no: int = 1) -> Any:
    with bench.store.read() as txn:
        return txn.recall(scope_no, rpc, request_id)


def remember(bench: Any, rids: Any = (), answer: str = '{"a":1}', rpc: str = "Store") -> None:
    bench.store.write(lambda txn: txn.remember(1, rpc, "r1", b"hash", answer, rids))


def test_an_answer_is_kept_per_scope_and_rpc_and_survives_a_restart(bench: Any) -> None:
    bench.put("x")
    remember(bench)
    bench.reopened()
    assert recall(bench) == Remembered(b"hash", '{"a":1}')
    assert recall(bench, rpc="Update") is None
    assert recall(bench, request_id="r2") is None
    assert recall(bench, scope_no=2) is None


def test_an_answer_is_forgotten_after_24_hours(bench: Any) -> None:
    bench.put("x")
    remember(bench)
    bench.clock.tick(DAY - 1)
    assert recall(bench) is not None
    bench.clock.tick(1)
    assert recall(bench) is None
    remember(bench, answer="new")
    assert recall(bench).answer == "new"
    bench.clock.tick(DAY)
    assert bench.store.write(lambda txn: txn.forget_requests()) == 1
    assert bench.store.write(lambda txn: txn.forget_requests()) == 0


def test_closing_clears_expired_answers_away(bench: Any) -> None:
    row = bench.put("x")
    remember(bench, [row.rid])
    bench.clock.tick(DAY)
    with bench.reopened().read() as txn:
        for table in ("requests", "request_rids"):
            assert txn._connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_an_answer_about_an_erased_memory_is_erased_but_its_id_stays(bench: Any) -> None:
    row, other = bench.put("x"), bench.put("y")
    remember(bench, [row.rid, other.rid])
    remember(bench, [other.rid], rpc="Update")
    bench.store.write(lambda txn: txn.delete([row.rid]))
    assert recall(bench) == Remembered(b"hash", None)
    assert recall(bench, rpc="Update") == Remembered(b"hash", '{"a":1}')


def test_a_refused_function_leaves_no_answer(bench: Any) -> None:
    bench.put("x")

    def fail(txn: Any) -> None:
        txn.remember(1, "Store", "r1", b"hash", "{}", [1])
        raise KeyError

    with contextlib.suppress(KeyError):
        bench.store.write(fail)
    assert recall(bench) is None
