"""Failed calls arrive as the class of their reason, with fields and facts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest
from scripted import refuse

from memxd import errors
from memxd.client import Client
from memxd.v1 import memory_pb2, memory_service_pb2

REMOTE = sorted(
    reason
    for reason, cls in errors.BY_REASON.items()
    if not issubclass(cls, errors.StartupError | errors.DaemonUnreachableError)
)


@pytest.mark.parametrize("reason", REMOTE)
def test_every_reason_becomes_its_class(server: Any, socket: Path, reason: str) -> None:
    server.on("Get", lambda _, c: refuse(c, grpc.StatusCode.INTERNAL, reason, "so it is", metadata={"log_id": "7"}))
    with Client(socket, timeout=2) as client, pytest.raises(errors.BY_REASON[reason]) as caught:
        client.get("x", timeout=0.2)
    assert type(caught.value) is errors.BY_REASON[reason]
    assert caught.value.message == "so it is"
    assert caught.value.metadata["log_id"] == "7"


def test_violations_name_their_fields(server: Any, client: Any) -> None:
    server.on(
        "Store",
        lambda _, c: refuse(
            c,
            grpc.StatusCode.INVALID_ARGUMENT,
            "INVALID_ARGUMENT",
            violations=[("memory.content", "is blank"), ("a", "b")],
        ),
    )
    with pytest.raises(errors.InvalidArgumentError) as caught:
        client.store("x")
    assert caught.value.violations == (
        errors.FieldViolation("memory.content", "is blank"),
        errors.FieldViolation("a", "b"),
    )


def test_a_reason_of_a_newer_daemon_is_kept_on_the_error(server: Any, client: Any) -> None:
    server.on("Get", lambda _, c: refuse(c, grpc.StatusCode.FAILED_PRECONDITION, "BRAND_NEW", "well"))
    with pytest.raises(errors.MemxdError) as caught:
        client.get("x")
    assert type(caught.value) is errors.MemxdError
    assert caught.value.reason == "BRAND_NEW"
    assert errors.MemxdError.reason == "INTERNAL"
    assert len(server.requests("Get")) == 1


def test_another_domains_details_are_not_taken_for_ours(server: Any, client: Any) -> None:
    server.on("Get", lambda _, c: refuse(c, grpc.StatusCode.ABORTED, "MEMORY_NOT_FOUND", domain="elsewhere"))
    with pytest.raises(errors.MemxdError) as caught:
        client.get("x")
    assert caught.value.reason == "ABORTED"


def test_garbage_in_the_details_is_no_crash(server: Any, client: Any) -> None:
    def script(_: Any, context: grpc.ServicerContext) -> None:
        context.set_trailing_metadata((("grpc-status-details-bin", b"\xff\xff\xff"),))
        context.abort(grpc.StatusCode.UNKNOWN, "boom")

    server.on("Get", script)
    with pytest.raises(errors.MemxdError) as caught:
        client.get("x")
    assert caught.value.reason == "UNKNOWN"
    assert "boom" not in str(caught.value)


def test_nobody_listening_says_what_to_do(client: Any, socket: Path) -> None:
    with pytest.raises(errors.DaemonUnreachableError, match="memxd serve") as caught:
        client.get("x")
    assert str(socket) in str(caught.value)


def test_a_passed_deadline_is_its_own_class(server: Any, client: Any) -> None:
    def script(_: Any, context: grpc.ServicerContext) -> memory_service_pb2.GetResponse:
        while context.is_active():
            pass
        return memory_service_pb2.GetResponse()

    server.on("Get", script)
    with pytest.raises(errors.DeadlineExceededError):
        client.get("x", timeout=0.1)


def test_an_oversized_request_is_the_callers_mistake(server: Any, client: Any) -> None:
    server.on("Store", lambda r, c: memory_service_pb2.StoreResponse())
    with pytest.raises(errors.InvalidArgumentError, match="limit of 4,194,304"):
        client.store("x" * 5_000_000)


def test_an_oversized_answer_says_to_ask_for_less(server: Any, client: Any) -> None:
    big = memory_service_pb2.GetResponse(memory=memory_pb2.Memory(content="x" * 5_000_000))
    server.on("Get", lambda r, c: big)
    with pytest.raises(errors.MemxdError, match="smaller page") as caught:
        client.get("x")
    assert caught.value.reason == "MESSAGE_TOO_LARGE"


def test_an_unknown_method_says_that_the_daemon_is_older(server: Any, client: Any) -> None:
    with pytest.raises(errors.MemxdError, match="older") as caught:
        client.count()
    assert caught.value.reason == "UNIMPLEMENTED"


def test_grpcs_own_admission_limit_is_overload(server: Any, client: Any) -> None:
    server.on("Get", lambda _, c: c.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "Concurrent RPC limit exceeded!"))
    with pytest.raises(errors.OverloadedError):
        client.get("x")
