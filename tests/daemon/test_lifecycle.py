"""Starting, refusing to start, and stopping, as an operator or a service manager sees it."""

from __future__ import annotations

import os
import signal
import stat
import threading
import time
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2

from memxd.autostart import is_serving
from memxd.socket_path import client_socket
from memxd.v1 import admin_service_pb2
from memxd.v1 import memory_service_pb2 as pb


def test_it_serves_privately_and_stops_cleanly(daemon: Any) -> None:
    assert stat.S_IMODE(daemon.socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(daemon.socket.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(daemon.data_dir.stat().st_mode) == 0o700
    readable = [p for p in daemon.data_dir.rglob("*") if p.lstat().st_mode & 0o077]
    assert not readable, "others can read the data"
    assert daemon.stop() == 0
    assert not daemon.socket.exists()
    assert daemon.log_lines[-1]["message"] == "stopped"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_both_signals_stop_it(daemon: Any, number: int) -> None:
    daemon.signal(number)
    assert daemon.wait() == 0


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_signal_around_a_suspension_stops_it_as_well(daemon: Any, order: str) -> None:
    # After a suspension the kernel may hand the signal to a thread that is not the main one.
    daemon.suspend()
    if order == "before":
        daemon.signal(signal.SIGTERM)
    daemon.signal(signal.SIGCONT)
    if order == "after":
        daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0


def test_what_was_stored_is_there_after_a_restart(start_daemon: Any) -> None:
    first = start_daemon()
    stored = first.memory.Store(pb.StoreRequest(memory=pb.NewMemory(content="likes tea")), timeout=10)
    assert first.stop() == 0
    second = start_daemon()
    found = second.memory.Get(pb.GetRequest(id=stored.memory.id), timeout=10)
    assert found.memory.content == "likes tea"


def test_an_open_stream_does_not_delay_the_stop(daemon: Any) -> None:
    go_on = threading.Event()

    def items() -> Any:
        yield pb.StoreManyRequest(memory=pb.NewMemory(content="one"))
        go_on.wait(30)

    answers = daemon.memory.StoreMany(items(), timeout=30)
    assert next(answers).WhichOneof("result") == "stored"
    daemon.signal()
    with pytest.raises(grpc.RpcError) as caught:
        next(answers)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert daemon.wait(8) == 0
    go_on.set()


def test_an_idle_stream_gives_its_place_to_others(start_daemon: Any) -> None:
    daemon = start_daemon("--max-streams", "1", "--stream-idle-seconds", "1.5")
    go_on = threading.Event()

    def items() -> Any:
        for number in range(3):
            yield pb.StoreManyRequest(memory=pb.NewMemory(content=f"item {number}"))
            time.sleep(0.7)  # slow is not idle
        go_on.wait(30)

    answers = daemon.memory.StoreMany(items(), timeout=30)
    assert [next(answers).WhichOneof("result") for _ in range(3)] == ["stored"] * 3
    with pytest.raises(grpc.RpcError) as caught:
        next(answers)
    assert caught.value.code() is grpc.StatusCode.ABORTED
    assert "no item came" in caught.value.details()
    other = daemon.memory.StoreMany(iter([pb.StoreManyRequest(memory=pb.NewMemory(content="another"))]), timeout=10)
    assert len(list(other)) == 1
    go_on.set()


def test_a_second_daemon_on_the_same_socket_names_the_first(daemon: Any, start_daemon: Any, tmp_path: Path) -> None:
    second = start_daemon(data_dir=tmp_path / "other", wait=False)
    assert second.wait() == 75
    assert f"pid {daemon.pid}" in second.log
    assert daemon.memory.Count(pb.CountRequest(), timeout=10).count == 0, "the first one is not disturbed"
    assert daemon.socket.exists()


def test_a_second_daemon_on_the_same_data_names_the_first(daemon: Any, start_daemon: Any, tmp_path: Path) -> None:
    second = start_daemon(socket=tmp_path / "other" / "memxd.sock", wait=False)
    assert second.wait() == 72
    assert f"pid {daemon.pid}" in second.log
    assert "data directory" in second.log
    assert not (tmp_path / "other" / "memxd.sock").exists()


def test_after_kill_9_the_next_one_starts(daemon: Any, start_daemon: Any) -> None:
    stored = daemon.memory.Store(pb.StoreRequest(memory=pb.NewMemory(content="survives")), timeout=10)
    daemon.signal(signal.SIGKILL)
    daemon.wait()
    assert daemon.socket.exists(), "a stale socket is left behind"
    second = start_daemon()
    assert second.memory.Get(pb.GetRequest(id=stored.memory.id), timeout=10).memory.content == "survives"


def test_a_file_at_the_path_is_refused_and_kept(start_daemon: Any, tmp_path: Path) -> None:
    path = tmp_path / "run" / "memxd.sock"
    path.parent.mkdir(mode=0o700)
    path.write_text("precious")
    refused = start_daemon(wait=False)
    assert refused.wait() == 73
    assert "not a socket" in refused.log
    assert path.read_text() == "precious"


def test_a_folder_open_to_others_is_refused(start_daemon: Any, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    folder.chmod(0o777)
    refused = start_daemon(wait=False)
    assert refused.wait() == 73
    assert f"chmod go-w {folder}" in refused.log


def test_a_path_that_is_too_long_is_served_under_a_short_name(start_daemon: Any, tmp_path: Path) -> None:
    long = tmp_path / ("d" * 100) / "memxd.sock"
    temporary = Path(f"/tmp/mxd-{os.getpid()}")
    temporary.mkdir(mode=0o700)
    try:
        daemon = start_daemon(socket=long, extra={"TMPDIR": str(temporary)}, wait=False)
        short = client_socket(long, {"TMPDIR": str(temporary)})
        assert short.parent.parent == temporary
        end = time.monotonic() + 30
        while not is_serving(short):
            assert daemon.process.poll() is None, daemon.log
            assert time.monotonic() < end, daemon.log
            time.sleep(0.02)
        assert daemon.stop() == 0
        assert not short.exists()
    finally:
        for path in sorted(temporary.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        temporary.rmdir()


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (("--workers", "0"), 78, "workers"),
        (("--time-zone", "Mars/Olympus"), 78, "time_zone"),
        (("--config", "/nonexistent/memxd.toml"), 78, "/nonexistent/memxd.toml"),
        (("--model", "/nonexistent/model", "--embedder", "onnx"), 69, "/nonexistent/model"),
        (("--unknown-flag",), 64, "--unknown-flag"),
    ],
)
def test_a_wrong_setting_ends_the_start_with_its_code_and_one_line(
    start_daemon: Any, flags: tuple[str, ...], code: int, words: str
) -> None:
    refused = start_daemon(*flags, wait=False)
    assert refused.wait() == code, refused.log
    said = [line for line in refused.log.splitlines() if line.startswith("memxd")]
    assert len(said) == 1
    assert words in said[0]
    assert "Traceback" not in refused.log


def test_a_data_directory_others_can_write_is_refused(start_daemon: Any, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o777)
    refused = start_daemon(wait=False)
    assert refused.wait() == 78
    assert f"chmod 700 {folder}" in refused.log


def test_status_tells_the_process_facts(daemon: Any) -> None:
    status = daemon.admin.Status(admin_service_pb2.StatusRequest(), timeout=10)
    assert status.pid == daemon.pid
    assert status.socket_path == str(daemon.socket)
    assert status.data_dir == str(daemon.data_dir)
    assert status.kernels in ("c", "py")
    assert status.model.backend == "hashing"
    assert status.libraries["grpcio"]
    assert status.uptime.ToMicroseconds() > 0
    assert status.time_zone


def test_health_says_not_serving_while_it_drains(start_daemon: Any) -> None:
    daemon = start_daemon()
    watch = daemon.health.Watch(health_pb2.HealthCheckRequest(), timeout=20)
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
    daemon.signal()
    assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING
    assert daemon.wait() == 0


def test_nothing_of_what_is_stored_or_asked_is_in_the_log(start_daemon: Any) -> None:
    daemon = start_daemon("--log-level", "debug")
    daemon.memory.Store(pb.StoreRequest(memory=pb.NewMemory(content="the zebra code", tags=["zebra"])), timeout=10)
    daemon.memory.Search(pb.SearchRequest(query="which zebra"), timeout=10)
    with pytest.raises(grpc.RpcError):
        daemon.memory.Search(pb.SearchRequest(query="zebra", k=-1), timeout=10)
    assert daemon.stop() == 0
    assert '"rpc": "Search"' in daemon.log
    assert "zebra" not in daemon.log
