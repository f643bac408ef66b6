"""Case 9: several writers at once; a lock goes with its process."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from casekit import Case, World, at_once, fresh_scope
from memxd.v1 import memory_service_pb2 as pb


def test_eight_writers_over_single_calls(hashing: Case) -> None:
    scope = fresh_scope()

    def write(n: int) -> None:
        with hashing.client(scope) as client:
            for i in range(25):
                client.store(f"writer {n} line {i}")

    at_once([lambda n=n: write(n) for n in range(8)])  # type: ignore[misc]
    assert hashing.count(scope) == 200


def test_eight_writers_over_streams(hashing: Case) -> None:
    """As many streams at once as there are agents on a desk; none is refused."""
    scope = fresh_scope()

    def write(n: int) -> int:
        with hashing.client(scope) as client:
            return sum(hasattr(a, "memory") for a in client.store_many(f"writer {n} line {i}" for i in range(100)))

    assert at_once([lambda n=n: write(n) for n in range(8)]) == [100] * 8  # type: ignore[misc]
    assert hashing.count(scope) == 800


def test_writers_of_every_verb_on_the_same_rows(hashing: Case) -> None:
    scope = fresh_scope()
    ids = [hashing.store(scope, f"row {n}").id for n in range(6)]

    def write(n: int) -> None:
        with hashing.client(scope) as client:
            for i in range(10):
                client.update(ids[i % 6], metadata={"writer": n, "round": i})
                client.store(f"writer {n} line {i}")
                link = client.create_link(ids[n % 6], client.store(f"end {n} {i}").memory.id, "related")
                client.delete_link(link.id)

    at_once([lambda n=n: write(n) for n in range(8)])  # type: ignore[misc]
    assert hashing.count(scope) == 6 + 160


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "writing"])
def test_the_lock_goes_with_the_process_that_held_it(world: World, busy: bool) -> None:
    case, scope = world.start(), fresh_scope()
    stored = [case.store(scope, f"kept {n}").id for n in range(5)]
    if busy:
        items = (pb.StoreManyRequest(scope=scope, memory=pb.NewMemory(content=f"stream {n}")) for n in range(100_000))
        answers = case.memory.StoreMany(items, timeout=60)
        stored += [next(answers).stored.memory.id for _ in range(70)]
    case.daemon.signal(signal.SIGKILL)
    case.daemon.wait()
    again = world.start()
    for id in stored:
        assert again.memory.Get(pb.GetRequest(scope=scope, id=id), timeout=20).memory.id == id
    again.store(scope, "and it writes again")
    assert again.daemon.stop() == 0


def test_a_stopped_holder_keeps_its_lock_and_is_named(world: World) -> None:
    case = world.start()
    case.daemon.signal(signal.SIGSTOP)
    try:
        second = world.start(wait=False)
        assert second.daemon.wait() == 75
        assert f"pid {case.daemon.pid}" in second.daemon.log
    finally:
        case.daemon.signal(signal.SIGCONT)
    case.store(fresh_scope(), "still serving")


_WRITER = """
import sys
from memxd.client import Client
client = Client(sys.argv[1], agent_id=sys.argv[2], user_id="someone")
for answer in client.store_many(f"line {n}" for n in range(10**9)):
    print(answer.memory.id, flush=True)
"""


def test_a_killed_client_holds_nothing(world: World) -> None:
    """Eight clients die within their streams; what they were told is stored, and others write on."""
    case, scope = world.start(), fresh_scope()
    command = [sys.executable, "-c", _WRITER, str(case.daemon.socket), scope.agent_id]
    acknowledged: list[str] = []
    for _ in range(2):
        writers: list[Any] = [
            subprocess.Popen(command, env=world.environ, stdout=subprocess.PIPE, text=True) for _ in range(4)
        ]
        for writer in writers:
            acknowledged += [writer.stdout.readline().strip() for _ in range(5)]
        for writer in writers:
            writer.kill()
            writer.wait()
            writer.stdout.close()
    with case.client(scope) as client:
        assert {client.get(id).id for id in acknowledged} == set(acknowledged)
        # Every stream slot is free again.
        end = time.monotonic() + 20
        for n in range(8):
            assert len(list(client.store_many([f"afterwards {n}"]))) == 1
        assert time.monotonic() < end
