"""The real daemon as a process of its own, on a socket and a data directory of its own.

``daemon`` is one for the test that asks; ``start_daemon`` starts any number with any flags. Each serves before the test
sees it, and is killed afterwards however the test ends.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from memxd.autostart import target
from memxd.v1 import admin_service_pb2_grpc, memory_service_pb2_grpc

ROOT = Path(__file__).parents[2]
START_SECONDS = 30.0


class Daemon:
    """One process: where it serves, its stubs, and how to stop it."""

    def __init__(self, command: list[str], socket: Path, data_dir: Path, environ: Mapping[str, str], log: Path) -> None:
        self.socket, self.data_dir, self._log = socket, data_dir, log
        with log.open("ab") as stderr:
            self.process = subprocess.Popen(
                command, env=dict(environ), cwd=ROOT, stderr=stderr, stdin=subprocess.DEVNULL
            )
        self.channel = grpc.insecure_channel(target(socket), options=[("grpc.use_local_subchannel_pool", 1)])
        self.memory = memory_service_pb2_grpc.MemoryServiceStub(self.channel)
        self.admin = admin_service_pb2_grpc.AdminServiceStub(self.channel)
        self.health: Any = health_pb2_grpc.HealthStub(self.channel)

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid

    @property
    def log(self) -> str:
        """Everything it wrote on standard error."""
        return self._log.read_text(encoding="utf-8")

    @property
    def log_lines(self) -> list[dict[str, Any]]:
        """The log as objects (the format is JSON, because nobody's terminal is there)."""
        return [json.loads(line) for line in self.log.splitlines() if line.startswith("{")]

    def wait_serving(self) -> None:
        """Return when health says SERVING; fail with the log when the process ends instead."""
        end = time.monotonic() + START_SECONDS
        while True:
            assert self.process.poll() is None, f"exit code {self.process.returncode}:\n{self.log}"
            try:
                answer = self.health.Check(health_pb2.HealthCheckRequest(), timeout=1, wait_for_ready=True)
            except grpc.RpcError:
                answer = None
            if answer is not None and answer.status == health_pb2.HealthCheckResponse.SERVING:
                return
            assert time.monotonic() < end, f"not serving after {START_SECONDS} s:\n{self.log}"
            time.sleep(0.02)

    def signal(self, number: int = signal.SIGTERM) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def suspend(self) -> None:
        """SIGSTOP; returns once every thread of it stands still: on a busy machine some go on for a moment."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def wait(self, seconds: float = 20.0) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait(seconds)

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        self.signal()
        return self.wait()

    def close(self) -> None:
        """Kill it if it still runs."""
        self.channel.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(20)


Start = Callable[..., Daemon]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment without a user's own settings, home and sockets."""
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("MEMXD_", "MEMX_", "XDG_")) and k != "NOTIFY_SOCKET"
    }
    home = tmp_path / "home"
    home.mkdir()
    return kept | {"HOME": str(home), "PYTHONPATH": os.pathsep.join(p for p in [str(ROOT), *sys.path] if p)}


@pytest.fixture
def start_daemon(tmp_path: Path, environ: dict[str, str]) -> Iterator[Start]:
    """Start one: ``start_daemon("--workers", "2", socket=..., data_dir=..., environ={...}, wait=True)``."""
    started: list[Daemon] = []

    def start(
        *flags: str,
        socket: Path | None = None,
        data_dir: Path | None = None,
        extra: Mapping[str, str] | None = None,
        wait: bool = True,
        runner: Sequence[str] = ("-m", "memxd"),
    ) -> Daemon:
        socket = socket or tmp_path / "run" / "memxd.sock"
        data_dir = data_dir or tmp_path / "data"
        command = [sys.executable, *runner, "serve", "--socket", str(socket), "--data-dir", str(data_dir)]
        command += ["--embedder", "hashing", *flags]
        log = tmp_path / f"daemon-{len(started)}.log"
        daemon = Daemon(command, socket, data_dir, environ | dict(extra or {}), log)
        started.append(daemon)
        if wait:
            daemon.wait_serving()
        return daemon

    yield start
    for daemon in started:
        daemon.close()


@pytest.fixture
def daemon(start_daemon: Start) -> Daemon:
    """A daemon that serves."""
    return start_daemon()
