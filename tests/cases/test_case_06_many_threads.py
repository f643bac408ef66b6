"""Case 6: sixty-four callers at once, also right after a restart: no error, no crash, nothing lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from casekit import MODES, Case, World, at_once, fresh_scope, rebuild, word
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb

THREADS = 64


def storm(case: Case, scope: mem.Scope, round_: int) -> None:
    """Half the threads store, half search; each has a client (and so a connection) of its own."""

    def store(n: int) -> list[str]:
        with case.client(scope) as client:
            return [client.store(f"round {round_} thread {word(n)} fact {word(i)}").memory.id for i in range(3)]

    def search(n: int) -> list[str]:
        with case.client(scope) as client:
            for mode in MODES:
                assert not client.search(f"thread {word(n)} fact", mode=mode).degraded
        return []

    jobs: list[Callable[[], list[str]]] = [
        (lambda n=n: store(n) if n % 2 else search(n))
        for n in range(THREADS)  # type: ignore[misc]
    ]
    ids = [id for some in at_once(jobs) for id in some]
    assert len(set(ids)) == THREADS // 2 * 3


def check_all_found(case: Case, scope: mem.Scope, rounds: int) -> None:
    assert case.count(scope) == rounds * THREADS // 2 * 3
    for n in range(1, THREADS, 7):
        n |= 1
        for mode in MODES:
            wanted = f"round {rounds - 1} thread {word(n)} fact {word(1)}"
            assert wanted in case.found(scope, wanted, k=5, mode=MODES[mode]), (mode, wanted)


@pytest.mark.parametrize("workers", ["1", "8", "64"])
def test_sixty_four_callers_and_again_right_after_a_restart(world: World, workers: str) -> None:
    scope = fresh_scope()
    case = world.start("--workers", workers)
    storm(case, scope, 0)
    check_all_found(case, scope, 1)
    assert case.daemon.stop() == 0
    case = world.start("--workers", workers)
    storm(case, scope, 1)
    check_all_found(case, scope, 2)
    assert case.daemon.stop() == 0
    assert not [line for line in case.daemon.log_lines if line["level"] in ("error", "critical")]


def test_callers_waiting_before_the_start_are_served_at_once(world: World) -> None:
    """The first calls come while the daemon opens its store."""
    scope = fresh_scope()
    case = world.start()
    storm(case, scope, 0)
    case.daemon.stop()
    case = world.start(wait=False)

    def call(n: int) -> Any:
        with case.client(scope) as client:
            client.wait_ready(30)
            return client.search(f"thread {word(n)} fact", mode="vector").hits

    assert all(at_once([lambda n=n: call(n) for n in range(THREADS)]))  # type: ignore[misc]


def test_searches_stores_and_deletes_during_rebuilds(world: World) -> None:
    case, scope = world.start(), fresh_scope()
    case.store_all(scope, [pb.NewMemory(content=f"old fact {n}") for n in range(500)])
    done = threading.Event()

    def rebuilding() -> None:
        while not done.is_set():
            rebuild(case)

    def churn(n: int) -> None:
        with case.client(scope) as client:
            for i in range(6):
                id = client.store(f"churn thread {n} fact {i}").memory.id
                assert client.search(f"churn thread {n} fact {i}", k=200).hits
                if i % 2:
                    client.delete(id)

    keeper = threading.Thread(target=rebuilding)
    keeper.start()
    try:
        at_once([lambda n=n: churn(n) for n in range(24)])  # type: ignore[misc]
    finally:
        done.set()
        keeper.join()
    assert case.count(scope) == 500 + 24 * 3
    assert case.daemon.process.poll() is None


def test_more_callers_than_may_wait_are_told_to_come_back(world: World) -> None:
    """Beyond max_pending a call is refused with OVERLOADED and a time to wait; the client's retries then succeed."""
    case = world.start("--workers", "1", "--max-pending", "4")
    scope = fresh_scope()

    def store(n: int) -> str:
        with case.client(scope, timeout=60.0) as client:
            return client.store(f"patient fact {n}").memory.id

    ids = at_once([lambda n=n: store(n) for n in range(32)])  # type: ignore[misc]
    assert len(set(ids)) == 32
    assert case.count(scope) == 32


@pytest.mark.model
def test_with_the_real_model(real: Case) -> None:
    scope = fresh_scope()

    def both(n: int) -> None:
        with real.client(scope) as client:
            client.store(f"Person number {n} lives in house {n}")
            assert client.search(f"where does person number {n} live").hits

    at_once([lambda n=n: both(n) for n in range(THREADS)])  # type: ignore[misc]
    assert real.count(scope) == THREADS
