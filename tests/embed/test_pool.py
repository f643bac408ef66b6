"""The worker pool: questions first, owned threads, clear ends."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from memxd.embed.pool import WorkerPool, wait_for
from memxd.errors import DeadlineExceededError, EmbedderUnavailableError
from memxd.model import NO_DEADLINE, Deadline


def _blocked(pool: WorkerPool) -> threading.Event:
    """Occupies the pool's one thread until the event is set."""
    go, started = threading.Event(), threading.Event()

    def hold() -> None:
        started.set()
        go.wait(10)

    pool.submit(hold, urgent=False)
    assert started.wait(10)
    return go


def test_urgent_jobs_overtake_and_others_keep_their_order() -> None:
    pool = WorkerPool(1, "test-order")
    go, order = _blocked(pool), list[str]()
    names = [("b1", False), ("b2", False), ("u1", True), ("u2", True)]
    futures = [pool.submit(lambda name=name: order.append(name), urgent=urgent) for name, urgent in names]
    go.set()
    for future in futures:
        wait_for(future, NO_DEADLINE)
    pool.close()
    assert order == ["u1", "u2", "b1", "b2"]


def test_threads_are_named_and_joined() -> None:
    pool = WorkerPool(2, "test-named")
    assert {"test-named-0", "test-named-1"} <= {t.name for t in threading.enumerate()}
    pool.close()
    pool.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("test-named")]
    with pytest.raises(EmbedderUnavailableError):
        pool.submit(lambda: None, urgent=True)


def test_closing_drops_what_is_queued() -> None:
    pool = WorkerPool(1, "test-drop")
    go = _blocked(pool)
    ran: list[int] = []
    queued = pool.submit(lambda: ran.append(1), urgent=False)
    closer = threading.Thread(target=pool.close)
    closer.start()
    while not pool._closed:
        pass
    go.set()
    closer.join(10)
    with pytest.raises(EmbedderUnavailableError, match="closed"):
        wait_for(queued, NO_DEADLINE)
    assert ran == []


def test_a_caller_whose_deadline_passes_leaves_and_its_job_never_runs() -> None:
    pool = WorkerPool(1, "test-late")
    go = _blocked(pool)
    ran: list[int] = []
    late = pool.submit(lambda: ran.append(1), urgent=True)
    ticks = iter([0.0, 9.0, 9.0, 9.0])
    with pytest.raises(DeadlineExceededError):
        wait_for(late, Deadline(at=0.01, monotonic=lambda: next(ticks)))
    go.set()
    pool.close()
    assert ran == []


def test_a_jobs_own_error_reaches_its_caller_even_a_timeout() -> None:
    pool = WorkerPool(1, "test-error")

    def fail() -> None:
        raise TimeoutError("of the job itself")

    with pytest.raises(TimeoutError, match="of the job itself"):
        wait_for(pool.submit(fail, urgent=True), NO_DEADLINE)
    pool.close()


def test_a_pool_needs_a_thread() -> None:
    with pytest.raises(ValueError, match="at least one"):
        WorkerPool(0, "test-none")


def test_an_urgent_job_runs_on_its_callers_thread_when_there_is_room() -> None:
    pool = WorkerPool(1, "test-inline")
    assert pool.run(threading.get_ident, NO_DEADLINE) == threading.get_ident()
    with pytest.raises(KeyError):
        pool.run(lambda: {}["lost"], NO_DEADLINE)
    assert pool.run(threading.get_ident, NO_DEADLINE) == threading.get_ident()
    pool.close()
    with pytest.raises(EmbedderUnavailableError):
        pool.run(threading.get_ident, NO_DEADLINE)


def test_an_urgent_job_does_not_wait_for_what_an_import_runs() -> None:
    pool = WorkerPool(1, "test-beside")
    go, order = _blocked(pool), list[str]()
    bulk = pool.submit(lambda: order.append("bulk"), urgent=False)
    pool.run(lambda: order.append("urgent"), NO_DEADLINE)
    go.set()
    wait_for(bulk, NO_DEADLINE)
    pool.close()
    assert order == ["urgent", "bulk"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
def test_the_pools_threads_stand_behind_their_callers() -> None:
    pool = WorkerPool(1, "test-nice")
    mine = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    theirs = pool.submit(lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id()), urgent=False)
    assert wait_for(theirs, NO_DEADLINE) > mine or mine == 19
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == mine
    pool.close()


def test_no_more_run_at_once_than_threads_and_as_many_callers() -> None:
    pool = WorkerPool(2, "test-most")
    lock, running, most = threading.Lock(), 0, 0

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.002)
        with lock:
            running -= 1

    callers = [threading.Thread(target=lambda: [pool.run(work, NO_DEADLINE) for _ in range(5)]) for _ in range(6)]
    futures = [pool.submit(work, urgent=False) for _ in range(10)]
    for caller in callers:
        caller.start()
    for thread in callers:
        thread.join()
    for future in futures:
        wait_for(future, NO_DEADLINE)
    pool.close()
    assert 1 <= most <= 4


def test_threads_work_on_where_they_may_not_step_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError("Operation not permitted")

    monkeypatch.setattr(os, "setpriority", refuse)
    pool = WorkerPool(1, "test-sandbox")
    try:
        assert pool.submit(lambda: 7, urgent=False).result(10) == 7
    finally:
        pool.close()


@pytest.mark.skipif(sys.platform != "linux", reason="counts what Linux tells of a thread")
def test_a_job_on_its_callers_thread_wakes_nobody_up() -> None:
    pool = WorkerPool(2, "test-pool")

    def woken() -> int:
        told = (Path(f"/proc/self/task/{thread.native_id}/status").read_text().splitlines() for thread in pool._threads)
        return sum(int(line.split()[1]) for lines in told for line in lines if line.startswith("voluntary_ctxt"))

    try:
        assert [wait_for(pool.submit(lambda: 1, urgent=True), NO_DEADLINE) for _ in range(4)] == [1] * 4
        time.sleep(0.2)  # both wait again
        before = woken()
        for _ in range(100):
            pool.run(lambda: time.sleep(0.001), NO_DEADLINE)
        time.sleep(0.2)
        assert woken() - before < 20  # each of them once a run, were they told
    finally:
        pool.close()
