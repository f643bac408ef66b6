"""SIGHUP in a running daemon, and what a service manager hears over a real datagram socket."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memxd.v1 import memory_service_pb2 as pb


class Manager:
    """The other end of NOTIFY_SOCKET."""

    def __init__(self, name: str) -> None:
        self.address = f"@memxd-test-{name}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + self.address[1:])
        self._socket.settimeout(30)

    def hears(self, key: str) -> dict[str, str]:
        """The next message with this key."""
        while True:
            message = dict(line.split("=", 1) for line in self._socket.recv(2_000).decode().split("\n"))
            if key in message:
                return message

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    found = Manager(tmp_path.name)
    yield found
    found.close()


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)


def test_a_service_manager_hears_of_start_reload_and_stop(start_daemon: Any, manager: Manager, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    write(file, 'log_level = "info"\nworkers = 3\n')
    daemon = start_daemon("--config", str(file), extra={"NOTIFY_SOCKET": manager.address})
    assert manager.hears("READY") == {"READY": "1", "STATUS": "serving"}
    write(file, 'log_level = "debug"\nworkers = 5\n')
    daemon.signal(signal.SIGHUP)
    assert int(manager.hears("RELOADING")["MONOTONIC_USEC"]) > 0
    assert manager.hears("READY")["STATUS"] == "serving; a restart is needed for: workers"
    assert daemon.memory.Count(pb.CountRequest(), timeout=10).count == 0
    assert daemon.stop() == 0
    assert float(manager.hears("STOPPING")["EXTEND_TIMEOUT_USEC"]) >= 10e6
    assert any(line["level"] == "debug" for line in daemon.log_lines)
    told = next(line for line in daemon.log_lines if line["message"] == "settings reloaded")
    assert (told["changed"], told["need_restart"]) == (["log_level"], ["workers"])


def test_a_file_that_became_wrong_changes_nothing_and_is_told(start_daemon: Any, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    write(file, "workers = 3\n")
    daemon = start_daemon("--config", str(file))
    write(file, "workres = 4\n")
    daemon.signal(signal.SIGHUP)
    end = time.monotonic() + 20
    while "did you mean workers" not in daemon.log:
        assert time.monotonic() < end, daemon.log
        time.sleep(0.02)
    assert daemon.memory.Count(pb.CountRequest(), timeout=10).count == 0
    assert daemon.stop() == 0


def test_the_watchdog_is_fed_while_it_serves(start_daemon: Any, manager: Manager) -> None:
    daemon = start_daemon(extra={"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "600000"})
    for _ in range(3):
        assert manager.hears("WATCHDOG")["WATCHDOG"] == "1"
    assert daemon.stop() == 0


def test_a_watchdog_of_another_process_is_not_fed(start_daemon: Any, manager: Manager) -> None:
    extra = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "300000", "WATCHDOG_PID": "1"}
    daemon = start_daemon(extra=extra)
    time.sleep(0.5)
    assert daemon.stop() == 0
    assert "WATCHDOG" not in manager.hears("STOPPING")
