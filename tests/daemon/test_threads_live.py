"""Status tells of every thread, queue and call; a thread that dies is told, and the daemon does not limp on."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import grpc
import pytest
from commandkit import memx
from grpc_health.v1 import health_pb2

from memxd.v1 import admin_service_pb2 as admin
from memxd.v1 import memory_service_pb2 as pb

#: Raises SystemError within the thread that the file names, as soon as the file is there; nothing else is changed.
SABOTAGE = """
import ctypes, pathlib, sys, threading, time
from memxd.__main__ import main

def wait():
    order = pathlib.Path(sys.argv.pop())
    while True:
        time.sleep(0.02)
        if order.exists() and (name := order.read_text()):
            order.unlink()
            for thread in threading.enumerate():
                if thread.name == name:
                    raised = ctypes.pythonapi.PyThreadState_SetAsyncExc
                    raised(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemError))

sys.argv.append(sys.argv.pop(1))
threading.Thread(target=wait, name="sabotage", daemon=True).start()
time.sleep(0.1)
sys.exit(main())
"""


def test_status_tells_of_every_thread_queue_and_call(daemon: Any, environ: dict[str, str]) -> None:
    daemon.memory.Store(pb.StoreRequest(memory=pb.NewMemory(content="a fact")))
    daemon.memory.Search(pb.SearchRequest(query="a fact"))
    with pytest.raises(grpc.RpcError):
        daemon.memory.Get(pb.GetRequest(id="nonsense"))
    status = daemon.admin.Status(admin.StatusRequest())
    threads = {thread.name: thread for thread in status.threads}
    for name in ("memxd-writer", "memxd-backfill", "memxd-index-flush", "memxd-vector", "memxd-lexical"):
        assert threads[name].alive, name
        assert threads[name].role, name
        assert threads[name].HasField("since"), name
    assert all(thread.role for name, thread in threads.items() if name.startswith(("memxd", "Main"))), threads
    if sys.platform == "linux":
        running = len(os.listdir(f"/proc/{daemon.pid}/task"))
        assert abs(sum(thread.count for thread in status.threads) - running) <= 3
        assert threads["MainThread"].cpu_seconds > 0
    queues = {queue.name: queue for queue in status.queues}
    assert {"writer", "call", "stream", "upkeep", "questions that imports step aside for"} <= set(queues)
    assert (queues["writer"].limit, queues["call"].limit, queues["call"].depth) == (1024, 256, 1)
    calls = {(call.method, call.code): call.count for call in status.calls}
    assert calls == {("Store", "OK"): 1, ("Search", "OK"): 1, ("Get", "INVALID_ARGUMENT"): 1}
    assert not status.HasField("last_error")
    shown = memx(daemon, environ, "status", "--threads")
    assert "last error\tnone" in shown.stdout
    assert "memxd-writer\twaits\t" in shown.stdout
    assert "Store\tOK\t1\t" in shown.stdout
    told = json.loads(memx(daemon, environ, "status", "--json").stdout)["process"]
    assert {"threads", "queues", "last_error", "calls"} == set(told)


def saboteur(start_daemon: Any, folder: Path) -> tuple[Any, Path]:
    script, order = folder / "sabotage.py", folder / "order"
    script.write_text(SABOTAGE)
    return start_daemon(runner=(str(script), str(order))), order


def test_a_daemon_whose_writer_died_stops_to_be_started_anew(start_daemon: Any, tmp_path: Path) -> None:
    daemon, order = saboteur(start_daemon, tmp_path)
    kept = daemon.memory.Store(pb.StoreRequest(memory=pb.NewMemory(content="acknowledged"))).memory.id
    watcher = daemon.health.Watch(health_pb2.HealthCheckRequest(), timeout=30)
    assert next(watcher).status == health_pb2.HealthCheckResponse.SERVING
    order.write_text("memxd-writer")
    assert next(watcher).status == health_pb2.HealthCheckResponse.NOT_SERVING
    assert daemon.wait() == 70
    [line] = [line for line in daemon.log_lines if line["message"] == "a thread died"]
    assert (line["level"], line["thread"], line["type"]) == ("critical", "memxd-writer", "SystemError")
    again = start_daemon()
    assert again.memory.Get(pb.GetRequest(id=kept)).memory.content == "acknowledged"


def test_another_thread_that_died_is_told_and_the_daemon_serves_on(
    start_daemon: Any, environ: dict[str, str], tmp_path: Path
) -> None:
    daemon, order = saboteur(start_daemon, tmp_path)
    order.write_text("memxd-lexical")
    end = time.monotonic() + 30
    while True:  # it dies when it next has something to do
        daemon.memory.Store(pb.StoreRequest(memory=pb.NewMemory(content=f"fact at {time.monotonic()}")))
        status = daemon.admin.Status(admin.StatusRequest())
        if any(not thread.alive for thread in status.threads):
            break
        assert time.monotonic() < end
        time.sleep(0.05)
    [dead] = [thread for thread in status.threads if not thread.alive]
    assert (dead.name, dead.message.split(" at ")[0]) == ("memxd-lexical", "SystemError")
    assert status.last_error.message == "a thread died (SystemError)"
    assert daemon.health.Check(health_pb2.HealthCheckRequest()).status == health_pb2.HealthCheckResponse.SERVING
    assert daemon.memory.Search(pb.SearchRequest(query="fact")).hits
    assert "DEAD: memxd-lexical (SystemError at " in memx(daemon, environ, "status").stdout
    found = memx(None, environ | {"MEMXD_SOCKET": str(daemon.socket)}, "doctor", "--json")
    assert "memxd-lexical" in found.stdout
