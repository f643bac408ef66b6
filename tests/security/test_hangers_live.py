"""Callers who keep a daemon waiting: calls without a request, streams without items, answers that nobody reads,
connections without a word, by the thousand. Whoever behaves is answered meanwhile.
"""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

import casekit
from memxd.autostart import target
from memxd.client import NO_RETRY, Client, Item
from memxd.errors import MemxdError, OverloadedError

MEMORY = "/memxd.v1.MemoryService/"
#: How long whoever behaves may have to wait, in seconds, on a busy machine.
SOON = 5.0


@pytest.fixture
def place() -> Iterator[casekit.World]:
    with casekit.world() as made:
        yield made


@pytest.fixture
def daemon(place: casekit.World) -> Any:
    return place.start().daemon


class Crowd:
    """Calls on a connection of their own that send nothing, or ``first`` alone, until the test is over."""

    def __init__(self, path: Any) -> None:
        self._over = threading.Event()
        self._calls: list[Any] = []
        self._channel = grpc.insecure_channel(target(path), options=[("grpc.use_local_subchannel_pool", 1)])

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._channel.close()

    def open(self, method: str, count: int, first: bytes | None = None) -> list[Any]:
        send = self._channel.stream_stream(method, request_serializer=None, response_deserializer=None)
        calls = [send(self._silence(first)) for _ in range(count)]
        self._calls += calls  # who lets go of one cancels it
        # Behind them on the same connection: once it is answered, they have come.
        behind = self._channel.unary_unary("/nobody/Knows", request_serializer=None, response_deserializer=None)
        with pytest.raises(grpc.RpcError, match="UNIMPLEMENTED"):
            behind(b"", timeout=20)
        return calls

    def _silence(self, first: bytes | None) -> Iterator[bytes]:
        if first is not None:
            yield first
        self._over.wait()


@contextmanager
def crowd(path: Any) -> Iterator[Crowd]:
    with Crowd(path) as made:
        yield made


def soon(call: Callable[[], Any]) -> float:
    """Call it; how long it took."""
    began = time.monotonic()
    call()
    took = time.monotonic() - began
    assert took < SOON, f"{took:.1f} s"
    return took


def until_taken(call: Callable[[], Any], seconds: float) -> None:
    """Call it until it is not refused for want of a place."""
    end = time.monotonic() + seconds
    while True:
        try:
            call()
            return
        except OverloadedError:
            assert time.monotonic() < end, "no place was made"
            time.sleep(0.1)


def test_calls_without_a_request_hold_up_nobody(daemon: Any) -> None:
    """Each of them used to hold one of the eight threads that answer."""
    with crowd(daemon.socket) as hangers, Client(daemon.socket, retry=NO_RETRY) as client:
        hangers.open(MEMORY + "Count", 100)
        for _ in range(20):
            soon(client.count)
        soon(lambda: client.store("Ada likes tea."))
        hangers.open(MEMORY + "Search", 100)
        soon(lambda: client.search("tea"))


def test_more_of_them_than_there_is_room_for_give_way(daemon: Any) -> None:
    with crowd(daemon.socket) as hangers, Client(daemon.socket, retry=NO_RETRY) as client:
        for _ in range(3):
            hangers.open(MEMORY + "Count", 400)
            time.sleep(1.1)
            until_taken(client.count, SOON)


def test_health_and_status_answer_beside_them(daemon: Any) -> None:
    with crowd(daemon.socket) as hangers, Client(daemon.socket, retry=NO_RETRY) as client:
        hangers.open("/grpc.health.v1.Health/Check", 50)
        hangers.open("/memxd.v1.AdminService/Flush", 12)
        for _ in range(5):
            soon(lambda: daemon.health.Check(health_pb2.HealthCheckRequest(), timeout=SOON))
        soon(client.status)
        soon(client.flush)


def test_idle_reflection_streams_do_not_block_reflection(daemon: Any) -> None:
    """Four of them used to."""
    with crowd(daemon.socket) as hangers:
        hangers.open("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", 8)
        time.sleep(1.2)
        for _ in range(3):
            soon(lambda: ProtoReflectionDescriptorDatabase(daemon.channel).get_services())


def test_watchers_hold_up_no_check(daemon: Any) -> None:
    request = health_pb2.HealthCheckRequest().SerializeToString()
    with crowd(daemon.socket) as hangers, Client(daemon.socket, retry=NO_RETRY) as client:
        watching = hangers.open("/grpc.health.v1.Health/Watch", 400, request)
        next(watching[0])
        soon(lambda: daemon.health.Check(health_pb2.HealthCheckRequest(), timeout=SOON))
        soon(client.count)


@pytest.mark.slow
def test_streams_that_bring_nothing_give_way_to_one_that_does(daemon: Any) -> None:
    with crowd(daemon.socket) as hangers, Client(daemon.socket, retry=NO_RETRY) as client:
        idle = hangers.open(MEMORY + "StoreMany", 16)
        time.sleep(0.5)
        soon(client.count)
        until_taken(lambda: list(client.store_many([Item("Ada likes tea.")])), 30)
        with pytest.raises(grpc.RpcError) as told:
            next(idle[0])
        assert told.value.code() is grpc.StatusCode.ABORTED  # STREAM_IDLE, with its reason


@pytest.mark.slow
def test_answers_that_nobody_reads_give_way(daemon: Any) -> None:
    with Client(daemon.socket, retry=NO_RETRY) as client:
        for n in range(150):
            client.store(f"note {n} " + "x" * 60_000)
        request = b""
        with crowd(daemon.socket) as hangers:
            unread = hangers.open(MEMORY + "Export", 16, request)
            for call in unread:
                next(call)  # and no more
            time.sleep(0.5)
            soon(client.count)
            until_taken(lambda: list(client.export()), 40)


def test_a_stop_does_not_wait_for_requests_that_never_come(daemon: Any) -> None:
    with crowd(daemon.socket) as hangers:
        hangers.open(MEMORY + "Count", 20)
        began = time.monotonic()
        assert daemon.stop() == 0
        assert time.monotonic() - began < 8  # drain_seconds alone is 10


def test_threads_that_stood_in_for_others_are_given_back(daemon: Any) -> None:
    with Client(daemon.socket, retry=NO_RETRY) as client:
        with ThreadPoolExecutor(16) as many:  # so that the eight threads that answer are there
            list(many.map(lambda _: client.count(), range(200)))
        before = threads_of(daemon.pid)
        for _ in range(3):
            with crowd(daemon.socket) as hangers:
                hangers.open(MEMORY + "Count", 40)
                soon(client.count)
                assert threads_of(daemon.pid) > before
        end = time.monotonic() + 10
        while threads_of(daemon.pid) > before + 2 and time.monotonic() < end:
            soon(client.count)
        assert threads_of(daemon.pid) <= before + 2


def threads_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


# -- connections ------------------------------------------------------------------------------------------------------


@contextmanager
def connections(path: Any, count: int, say: bytes = b"") -> Iterator[list[socket.socket]]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count + 200:
        pytest.skip(f"only {hard} open files are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count + 200), hard))
    with ExitStack() as stack:
        made = []
        for _ in range(count):
            one = stack.enter_context(socket.socket(socket.AF_UNIX))
            one.settimeout(10)
            one.connect(str(path))
            if say:
                one.send(say)
            made.append(one)
        yield made
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\0\0\0\4\0\0\0\0\0"


@pytest.mark.slow
@pytest.mark.parametrize("say", [b"", PREFACE[:5], PREFACE + SETTINGS], ids=["silent", "half", "idle"])
def test_thousands_of_connections_hold_up_nobody(daemon: Any, say: bytes) -> None:
    with connections(daemon.socket, 3_000, say):
        for _ in range(3):
            with Client(daemon.socket, retry=NO_RETRY) as client:
                soon(client.count)
                soon(lambda: client.store("Ada likes tea."))


@pytest.mark.slow
def test_a_byte_now_and_then_does_not_keep_a_connection(daemon: Any) -> None:
    """The first bytes must come within ten seconds, however many come."""
    with connections(daemon.socket, 50) as made, Client(daemon.socket, retry=NO_RETRY) as client:
        end = time.monotonic() + 25
        at = 0
        open_ = list(made)
        while open_ and time.monotonic() < end:
            for one in list(open_):
                try:
                    one.send(PREFACE[at : at + 1])
                except OSError:
                    open_.remove(one)
            at = min(at + 1, 20)
            soon(client.count)
            time.sleep(1.0)
        assert not open_, f"{len(open_)} connections are still open"


@pytest.mark.slow
def test_connections_beyond_the_limit_are_closed_and_the_others_stay(place: casekit.World) -> None:
    daemon = place.start(prefix=("/bin/sh", "-c", 'ulimit -n 900; exec "$@"', "sh")).daemon
    with Client(daemon.socket, retry=NO_RETRY) as client:
        client.count()
        with connections(daemon.socket, 1_500, PREFACE + SETTINGS):
            soon(client.count)
            soon(lambda: client.store("Ada likes tea."))
            soon(client.flush)  # it can still open files of its own
        with Client(daemon.socket) as later:
            soon(later.count)
    assert "Too many open files" not in daemon.log


# -- sizes ------------------------------------------------------------------------------------------------------------


def test_huge_messages_and_batches_are_refused_and_leave_it_as_it_was(daemon: Any) -> None:
    from memxd.v1 import memory_service_pb2 as pb

    with Client(daemon.socket, retry=NO_RETRY) as client:
        raw = daemon.channel.stream_stream(MEMORY + "StoreMany", request_serializer=None, response_deserializer=None)
        item = pb.StoreManyRequest(memory={"content": "x"}).SerializeToString()
        many = pb.StoreManyRequest()
        many.MergeFromString(item)
        many.more.extend(pb.StoreManyRequest(memory={"content": f"n{n}"}) for n in range(30_000))
        answers = list(raw(iter([many.SerializeToString()]), timeout=60))
        first = pb.StoreManyResponse.FromString(answers[0])
        assert first.error.reason == "INVALID_ARGUMENT"
        with pytest.raises(grpc.RpcError) as caught:
            list(raw(iter([b"\x12" + b"\xff" * (5 << 20)]), timeout=60))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        with pytest.raises(MemxdError):
            client.search_many(["x" * 2_000] * 2_000)
        deep = b"\x22" + b"\x7f" * 100_000
        refused = [pb.StoreManyResponse.FromString(each) for each in raw(iter([deep] * 3), timeout=60)]
        assert [each.error.reason for each in refused] == ["INVALID_ARGUMENT"] * 3
        assert client.count() == 0
