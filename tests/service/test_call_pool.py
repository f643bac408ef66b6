"""The pool that runs gRPC's calls: order, counting, which thread runs, and its end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from memxd.service.pool import CROWD, AtOnce, Pool


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool(2, 3, "test-call")
    yield made
    made.shutdown()


def idle(pool: Pool) -> None:
    assert pool.wait_idle(5, lambda: False)


def test_one_caller_is_always_served_by_the_same_thread(pool: Pool) -> None:
    gate, seen = threading.Barrier(3), list[str]()
    for _ in range(2):
        pool.submit(gate.wait)
    gate.wait(5)
    idle(pool)
    for _ in range(20):
        pool.submit(lambda: seen.append(threading.current_thread().name))
        idle(pool)
    assert len(seen) == 20
    assert len(set(seen)) == 1


def test_tasks_beyond_the_threads_wait_and_run_in_order(pool: Pool) -> None:
    go, ran = threading.Event(), list[int]()
    for _ in range(2):
        pool.submit(go.wait, 5)
    pool.submit(ran.append, 1)
    pool.submit(ran.append, 2)
    assert (pool.held, pool.full, ran) == (4, True, [])
    go.set()
    idle(pool)
    assert ran == [1, 2]
    assert not pool.full


def test_a_crowd_is_told_when_it_gathers_and_when_it_is_gone() -> None:
    told, go = list[bool](), threading.Event()
    pool = Pool(2, 64, "test-crowd", told.append)
    try:
        for _ in range(CROWD - 1):
            pool.submit(go.wait, 5)
        assert told == []
        for _ in range(3):
            pool.submit(go.wait, 5)
        assert told == [True]
        go.set()
        idle(pool)
        assert told == [True, False]
    finally:
        pool.shutdown()


def test_a_task_that_fails_costs_no_thread(pool: Pool, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(4):
        pool.submit(int, "no number")
    ran = threading.Event()
    pool.submit(ran.set)
    assert ran.wait(5)
    idle(pool)
    assert [record.message for record in caplog.records] == ["a task failed"] * 4


def test_waiting_for_idle_gives_up_in_time_and_in_a_hurry(pool: Pool) -> None:
    go = threading.Event()
    pool.submit(go.wait, 5)
    assert not pool.wait_idle(0.01, lambda: False)
    assert not pool.wait_idle(60, lambda: True)
    go.set()
    idle(pool)


def test_shutdown_drops_what_waits_and_joins_what_runs() -> None:
    pool, go, ran = Pool(1, 8, "test-end"), threading.Event(), list[int]()
    pool.submit(go.wait, 5)
    pool.submit(ran.append, 1)
    ending = threading.Thread(target=pool.shutdown, kwargs={"cancel_futures": True})
    ending.start()
    go.set()
    ending.join(5)
    assert not ending.is_alive()
    assert not any(thread.name.startswith("test-end") for thread in threading.enumerate())
    with pytest.raises(RuntimeError, match="shut down"):
        pool.submit(ran.append, 2)
    pool.shutdown()


def test_at_once_runs_on_the_thread_that_submits() -> None:
    seen = list[threading.Thread]()
    at_once = AtOnce()
    assert isinstance(at_once, ThreadPoolExecutor), "gRPC takes no other"
    assert at_once.submit(lambda: seen.append(threading.current_thread())).done()
    assert seen == [threading.current_thread()]
