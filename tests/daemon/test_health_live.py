"""grpc.health.v1 of the real daemon under clients that watch, hang up, and watch again."""

from __future__ import annotations

import threading
import time
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from memxd.autostart import target
from memxd.v1 import admin_service_pb2
from memxd.v1 import memory_service_pb2 as pb

SERVING = health_pb2.HealthCheckResponse.SERVING
SERVICES = {"", "memxd.v1.MemoryService", "memxd.v1.AdminService"}


def _storm(daemon: Any, seed: int, rounds: int, failures: list[grpc.RpcError]) -> None:
    """Open and cancel watches on a channel of its own, at changing moments of their life."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(target(daemon.socket), options=options) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        for number in range(rounds):
            watches = [health.Watch(health_pb2.HealthCheckRequest(service=name), timeout=20) for name in ("", "x", "")]
            time.sleep((0, 0.001, 0.003, 0.01)[(number + seed) % 4])
            if number % 5 == 0:
                try:
                    assert next(watches[0]).status == SERVING
                except grpc.RpcError as error:
                    failures.append(error)
            for watch in watches:
                watch.cancel()


@pytest.mark.timeout(120)
def test_watchers_that_hang_up_do_not_freeze_the_daemon(daemon: Any) -> None:
    failures: list[grpc.RpcError] = []
    storms = [threading.Thread(target=_storm, args=(daemon, seed, 200, failures)) for seed in range(4)]
    for storm in storms:
        storm.start()
    for number in range(20):
        daemon.memory.Store(pb.StoreRequest(memory=pb.NewMemory(content=f"meanwhile {number}")), timeout=10)
        assert daemon.health.Check(health_pb2.HealthCheckRequest(), timeout=10).status == SERVING
        time.sleep(0.05)
    for storm in storms:
        storm.join()
    assert not failures
    assert daemon.admin.Status(admin_service_pb2.StatusRequest(), timeout=10).memories == 20
    assert daemon.stop() == 0


def test_an_idle_watcher_does_not_delay_the_stop(daemon: Any) -> None:
    watches = [daemon.health.Watch(health_pb2.HealthCheckRequest(), timeout=60) for _ in range(30)]
    assert {next(watch).status for watch in watches} == {SERVING}
    began = time.monotonic()
    assert daemon.stop() == 0
    assert time.monotonic() - began < 8


def test_list_names_every_service(daemon: Any) -> None:
    answer = daemon.health.List(health_pb2.HealthListRequest(), timeout=10)
    assert {name: each.status for name, each in answer.statuses.items()} == dict.fromkeys(SERVICES, SERVING)


def test_watching_an_unknown_service_says_so_and_stays_open(daemon: Any) -> None:
    watch = daemon.health.Watch(health_pb2.HealthCheckRequest(service="elsewhere.v1.Service"), timeout=1)
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    with pytest.raises(grpc.RpcError) as caught:
        next(watch)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
