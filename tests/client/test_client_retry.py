"""Calls are sent again only where that is safe, and within the caller's time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from scripted import Scripted, refuse

from memxd.client import NO_RETRY, Client, Retry
from memxd.client.retry import Attempts
from memxd.errors import (
    DaemonUnreachableError,
    DeadlineExceededError,
    MemoryNotFoundError,
    OverloadedError,
    StorageFullError,
)
from memxd.v1 import memory_pb2, memory_service_pb2

STORED = memory_service_pb2.StoreResponse(memory=memory_pb2.Memory(id="a", type=1, state=1), revision=9)
FOUND = memory_service_pb2.GetResponse(memory=memory_pb2.Memory(id="a", type=1, state=1))


def failing(times: int, answer: Any, reason: str = "OVERLOADED", **options: Any) -> Callable[..., Any]:
    """A script that refuses the first calls."""
    left = [times]

    def script(_: Any, context: grpc.ServicerContext) -> Any:
        if left[0]:
            left[0] -= 1
            refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, reason, **options)
        return answer

    return script


def test_a_read_is_sent_again_after_overload(server: Any, client: Any) -> None:
    server.on("Get", failing(2, FOUND))
    assert client.get("a").id == "a"
    assert len(server.requests("Get")) == 3


def test_a_write_is_sent_again_under_the_same_request_id(server: Any, client: Any) -> None:
    server.on("Store", failing(2, STORED))
    assert client.store("x").revision == 9
    ids = {request.request_id for request in server.requests("Store")}
    assert len(server.requests("Store")) == 3
    assert len(ids) == 1
    assert ids != {""}


def test_two_writes_have_two_request_ids(server: Any, client: Any) -> None:
    server.on("Store", lambda r, c: STORED)
    client.store("x")
    client.store("x")
    first, second = server.requests("Store")
    assert first.request_id != second.request_id


def test_a_write_without_request_id_is_never_sent_again(server: Any, client: Any) -> None:
    server.on("Store", failing(1, STORED))
    with pytest.raises(OverloadedError):
        client.store("x", request_id="")
    assert len(server.requests("Store")) == 1


def test_a_refusal_that_will_not_pass_is_not_repeated(server: Any, client: Any) -> None:
    server.on("Get", failing(1, FOUND, reason="MEMORY_NOT_FOUND"))
    with pytest.raises(MemoryNotFoundError):
        client.get("a")
    assert len(server.requests("Get")) == 1


def test_attempts_are_bounded(server: Any, client: Any) -> None:
    server.on("Get", failing(100, FOUND))
    with pytest.raises(OverloadedError):
        client.get("a")
    assert len(server.requests("Get")) == 4


def test_the_daemons_wish_when_to_come_back_is_kept(server: Any, client: Any) -> None:
    server.on("Get", failing(1, FOUND, retry_ms=150))
    start = time.monotonic()
    client.get("a")
    assert time.monotonic() - start >= 0.15


def test_a_pause_longer_than_the_deadline_is_not_begun(server: Any, client: Any) -> None:
    server.on("Get", failing(1, FOUND, retry_ms=60_000))
    start = time.monotonic()
    with pytest.raises(OverloadedError):
        client.get("a", timeout=1)
    assert time.monotonic() - start < 1


def test_a_client_comes_back_after_a_restart_of_the_daemon(server: Scripted, make_client: Callable[..., Any]) -> None:
    client = make_client(retry=Retry(attempts=8, first_pause=0.05))
    server.on("Get", lambda r, c: FOUND)
    client.get("a")
    server.stop()
    with pytest.raises(DaemonUnreachableError):
        client.get("a", timeout=0.05)
    server.start()
    assert client.get("a").id == "a"


def test_no_retry_shows_the_first_failure(server: Any, make_client: Callable[..., Any]) -> None:
    server.on("Get", failing(1, FOUND))
    with pytest.raises(OverloadedError):
        make_client(retry=NO_RETRY).get("a")


def test_pauses_grow_and_stay_below_the_longest() -> None:
    retry = Retry(attempts=9, first_pause=0.1, longest_pause=1.0, jitter=lambda: 0.0)
    pauses = [retry.pause(OverloadedError("x"), attempt, None) for attempt in range(1, 9)]
    assert pauses == pytest.approx([0.1, 0.3, 0.9, 1, 1, 1, 1, 1])
    assert retry.pause(OverloadedError("x"), 9, None) is None


def test_jitter_takes_up_to_half() -> None:
    retry = Retry(first_pause=0.1, jitter=lambda: 1.0)
    assert retry.pause(OverloadedError("x"), 1, None) == pytest.approx(0.05)


@pytest.mark.parametrize("error", [StorageFullError("x"), DeadlineExceededError("x")])
def test_what_waiting_does_not_mend_is_told_at_once(error: Any) -> None:
    assert error.retryable
    assert Retry().pause(error, 1, None) is None


@pytest.mark.parametrize("asked", ["", "soon", "-5", "²"])
def test_a_senseless_wish_is_ignored(asked: str) -> None:
    error = OverloadedError("x", metadata={"retry_after_ms": asked})
    assert Retry(first_pause=0.1, jitter=lambda: 0.0).pause(error, 1, None) == pytest.approx(0.1)


def test_all_attempts_share_one_deadline() -> None:
    now = [100.0]
    attempts = Attempts(Retry(), 3.0, repeatable=True, monotonic=lambda: now[0])
    assert attempts.remaining() == 3.0
    now[0] = 102.5
    assert attempts.remaining() == 0.5
    now[0] = 200.0
    assert attempts.remaining() == 0.0
    assert Attempts(Retry(), float("inf"), repeatable=True).remaining() is None


def test_wait_ready_returns_once_the_daemon_serves(server: Any, socket: Any) -> None:
    from grpc_health.v1 import health_pb2

    answers = iter([2, 2, 1])
    server.on("Check", lambda r, c: health_pb2.HealthCheckResponse(status=next(answers)))
    with Client(socket) as client:
        client.wait_ready(5, poll=0.01)
        assert len(server.requests("Check")) == 3
        server.on("Check", lambda r, c: health_pb2.HealthCheckResponse(status=2))
        with pytest.raises(DaemonUnreachableError, match="not ready"):
            client.wait_ready(0.1, poll=0.01)


def test_wait_ready_gives_up_when_nobody_comes(client: Any) -> None:
    with pytest.raises(DaemonUnreachableError):
        client.wait_ready(0.2)
