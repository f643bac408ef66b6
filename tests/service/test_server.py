"""Health and reflection, as any gRPC tool asks them."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

NAMES = ["", "memxd.v1.MemoryService", "memxd.v1.AdminService"]


@pytest.mark.parametrize("name", NAMES)
def test_health_follows_readiness_for_every_name(starting: Any, name: str) -> None:
    health = health_pb2_grpc.HealthStub(starting.channel)
    request = health_pb2.HealthCheckRequest(service=name)
    assert health.Check(request).status == health_pb2.HealthCheckResponse.NOT_SERVING
    starting.server.set_serving(True)
    assert health.Check(request).status == health_pb2.HealthCheckResponse.SERVING


def test_health_of_an_unknown_service_is_not_found(running: Any) -> None:
    health = health_pb2_grpc.HealthStub(running.channel)
    with pytest.raises(grpc.RpcError) as caught:
        health.Check(health_pb2.HealthCheckRequest(service="elsewhere.v1.Service"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_watchers_are_told_and_hold_no_worker(running: Any) -> None:
    health = health_pb2_grpc.HealthStub(running.channel)
    watches = [health.Watch(health_pb2.HealthCheckRequest(), timeout=20) for _ in range(20)]
    assert {next(watch).status for watch in watches} == {health_pb2.HealthCheckResponse.SERVING}
    assert running.gate.calls.held == 0
    running.server.set_serving(False)
    assert {next(watch).status for watch in watches} == {health_pb2.HealthCheckResponse.NOT_SERVING}
    for watch in watches:
        watch.cancel()


def test_watchers_beyond_the_bound_are_refused_and_places_come_back(running: Any) -> None:
    health = health_pb2_grpc.HealthStub(running.channel)
    running.gate.watches.limit = 2
    watches = [health.Watch(health_pb2.HealthCheckRequest(), timeout=20) for _ in range(2)]
    assert {next(watch).status for watch in watches} == {health_pb2.HealthCheckResponse.SERVING}
    with pytest.raises(grpc.RpcError) as caught:
        next(health.Watch(health_pb2.HealthCheckRequest(), timeout=20))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert health.Check(health_pb2.HealthCheckRequest(), timeout=20).status == health_pb2.HealthCheckResponse.SERVING
    for watch in watches:
        watch.cancel()
    assert running.gate.watches.wait_idle(10, lambda: False), "a watcher that hung up holds its thread"
    assert next(health.Watch(health_pb2.HealthCheckRequest(), timeout=20)).status


def test_reflection_lists_the_services(running: Any) -> None:
    stub = reflection_pb2_grpc.ServerReflectionStub(running.channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    answers = list(stub.ServerReflectionInfo(iter([request])))
    names = {service.name for service in answers[0].list_services_response.service}
    assert names == {
        "memxd.v1.MemoryService",
        "memxd.v1.AdminService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    }


def test_an_unknown_method_is_unimplemented(running: Any) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        running.channel.unary_unary("/memxd.v1.MemoryService/Forget")(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
