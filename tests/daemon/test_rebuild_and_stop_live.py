"""memx rebuild while the daemon serves, and a stop that a second signal hurries."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Iterator
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


@pytest.fixture
def silent_endpoint() -> Iterator[str]:
    """An endpoint for embeddings that takes connections and never answers: who asks it waits."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"


def remote(endpoint: str, drain: float) -> tuple[str, ...]:
    """Flags of a daemon that embeds by that endpoint, and waits for it for longer than any stop may take."""
    words = ("--embedder", "openai", "--openai-base-url", endpoint, "--openai-model", "m", "--openai-dimension", "8")
    return (*words, "--openai-timeout", "100", "--drain-seconds", str(drain))


@pytest.mark.parametrize(("signals", "drain", "least", "most"), [(1, 3.0, 2.5, 25.0), (2, 60.0, 0.0, 15.0)])
def test_a_stop_says_not_serving_and_waits_for_a_call_unless_hurried(
    start_daemon: Any, silent_endpoint: str, signals: int, drain: float, least: float, most: float
) -> None:
    daemon = start_daemon(*remote(silent_endpoint, drain))
    search = daemon.memory.Search.future(pb.SearchRequest(query="who answers"), timeout=100)
    store = daemon.memory.Store.future(pb.StoreRequest(memory=pb.NewMemory(content="who embeds")), timeout=100)
    watcher = daemon.health.Watch(health_pb2.HealthCheckRequest(), timeout=100)
    assert next(watcher).status == health_pb2.HealthCheckResponse.SERVING
    time.sleep(0.5)  # both are at the endpoint by then
    began = time.monotonic()
    daemon.signal()
    assert next(watcher).status == health_pb2.HealthCheckResponse.NOT_SERVING
    assert not search.done()
    assert not store.done()
    for _ in range(signals - 1):
        daemon.signal(signal.SIGINT)
    assert daemon.wait(90) == 0
    assert least < time.monotonic() - began < most
    # Cancelled, or answered without the endpoint: then marked, and what was acknowledged is there.
    assert search.exception() is not None or search.result().degraded
    log = daemon.data_dir / "memxd.db-wal"
    assert not log.exists() or log.stat().st_size == 0
    again = start_daemon()
    if store.exception() is None:
        kept = again.memory.Get(pb.GetRequest(id=store.result().memory.id))
        assert kept.memory.content == "who embeds"


def test_a_stop_does_not_wait_for_an_endpoint_that_is_asked_in_the_background(
    start_daemon: Any, silent_endpoint: str
) -> None:
    daemon = start_daemon()
    kept = daemon.memory.Store(pb.StoreRequest(memory=pb.NewMemory(content="acknowledged"))).memory.id
    assert daemon.stop() == 0
    changing = start_daemon(*remote(silent_endpoint, 60.0))  # embeds every memory again, or would
    time.sleep(0.5)
    began = time.monotonic()
    assert changing.stop() == 0
    assert time.monotonic() - began < 15
    again = start_daemon()
    assert again.memory.Get(pb.GetRequest(id=kept)).memory.content == "acknowledged"


@pytest.mark.parametrize("signals", [1, 2])
def test_a_stop_ends_a_stream_that_brings_nothing(start_daemon: Any, signals: int) -> None:
    daemon = start_daemon("--drain-seconds", "4" if signals == 1 else "60")
    kept = daemon.memory.Store(pb.StoreRequest(memory=pb.NewMemory(content="acknowledged"))).memory.id
    held = threading.Event()

    def slowly() -> Any:
        yield pb.StoreManyRequest(memory=pb.NewMemory(content="of many"))
        held.wait(60)

    stream = daemon.memory.StoreMany(slowly())
    next(stream)
    began = time.monotonic()
    for number in (signal.SIGTERM, signal.SIGINT)[:signals]:
        daemon.signal(number)
        time.sleep(0.2)
    assert daemon.wait(60) == 0
    assert time.monotonic() - began < 20
    held.set()
    again = start_daemon()
    assert again.memory.Get(pb.GetRequest(id=kept)).memory.content == "acknowledged"
    assert (again.data_dir / "memxd.db-wal").stat().st_size == 0
