"""memx rebuild while the daemon serves, and a stop that a second signal hurries."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import pytest
from commandkit import memx
from grpc_health.v1 import health_pb2

from memxd.client import Client
from memxd.errors import MemxdError
from memxd.v1 import memory_service_pb2 as pb


def test_rebuild_builds_every_index_while_searches_are_answered(daemon: Any, environ: dict[str, str]) -> None:
    with Client(daemon.socket) as client:
        for number in range(50):
            client.store(f"fact number {number}")
        done, wrong = threading.Event(), []

        def search() -> None:
            with Client(daemon.socket) as other:
                while not done.is_set():
                    try:
                        found = other.search("fact number 7", mode="hybrid")
                    except MemxdError as error:
                        wrong.append(error)
                        return
                    if not found.hits:
                        wrong.append(found)

        beside = threading.Thread(target=search)
        beside.start()
        built = memx(daemon, environ, "rebuild")
        one = memx(daemon, environ, "rebuild", "keyword", "--json")
        done.set()
        beside.join()
    assert wrong == []
    assert built.returncode == 0, built.stderr
    assert sorted(line.split(":")[0] for line in built.stdout.splitlines()) == ["columns", "keyword", "vector"]
    assert all(": 50 entries, revision 50" in line for line in built.stdout.splitlines())
    assert '"done": 50' in one.stdout


@pytest.mark.parametrize("signals", [1, 2])
def test_a_stop_says_not_serving_and_waits_for_a_call_unless_hurried(start_daemon: Any, signals: int) -> None:
    daemon = start_daemon("--drain-seconds", "4")
    kept = daemon.memory.Store(pb.StoreRequest(memory=pb.NewMemory(content="acknowledged"))).memory.id
    held = threading.Event()

    def slowly() -> Any:
        yield pb.StoreManyRequest(memory=pb.NewMemory(content="of many"))
        held.wait(20)

    stream = daemon.memory.StoreMany(slowly())
    next(stream)
    watcher = daemon.health.Watch(health_pb2.HealthCheckRequest(), timeout=30)
    assert next(watcher).status == health_pb2.HealthCheckResponse.SERVING
    began = time.monotonic()
    daemon.signal()
    assert next(watcher).status == health_pb2.HealthCheckResponse.NOT_SERVING
    for _ in range(signals - 1):
        daemon.signal(signal.SIGINT)
    assert daemon.wait() == 0
    if signals > 1:
        assert time.monotonic() - began < 20
    held.set()
    again = start_daemon()
    assert again.memory.Get(pb.GetRequest(id=kept)).memory.content == "acknowledged"
    assert (again.data_dir / "memxd.db-wal").stat().st_size == 0
