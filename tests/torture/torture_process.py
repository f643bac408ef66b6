"""The daemon under torture: the real one, started by the entry script that can kill it at a failpoint.

Owns the folder of a run (socket, data, log, backups), starting and waiting, and the stubs. Knows no records. Used by
the rounds of kills and by the tests of broken-off work.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from memxd.autostart import target
from memxd.v1 import admin_service_pb2_grpc, memory_service_pb2_grpc

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENTRY = HERE / "torture_armed.py"
START_SECONDS = 120.0
_OURS = ("MEMXD_", "MEMX_", "XDG_", "NOTIFY_", "GRPC_", "LD_PRELOAD")


@dataclass(frozen=True)
class Kill:
    """Where a process is to die: the ``hit``-th time at ``point`` ("" = nowhere), ``delay`` seconds later."""

    point: str = ""
    hit: int = 1
    delay: float = 0.0


class Process:
    """One folder, and the daemon that is started in it again and again."""

    def __init__(self, folder: Path, embedder: str = "hashing", prefix: Sequence[str] = ()) -> None:
        """``prefix``: a command that runs another one, put before the daemon's."""
        self._prefix = prefix
        self.folder, self.embedder = folder, embedder
        self.socket, self.data_dir = folder / "run" / "m.sock", folder / "data"
        self.trigger, self.reached_file = folder / "trigger", folder / "reached"
        self.log_file = folder / "daemon.log"
        self.steps = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._channel: grpc.Channel | None = None
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
        path = os.pathsep.join(p for p in [str(ROOT), *sys.path] if p)
        self.environ = kept | {
            "PYTHONPATH": path,
            "HOME": str(folder),
            "GRPC_VERBOSITY": "NONE",
            "MEMXD_DATA_DIR": str(self.data_dir),
        }

    def _command(self, kill: Kill, *words: str) -> list[str]:
        wanted = {"point": kill.point, "hit": kill.hit, "delay": kill.delay, "steps": self.steps}
        wanted |= {"trigger": str(self.trigger), "reached": str(self.reached_file)}
        return [*self._prefix, sys.executable, str(ENTRY), json.dumps(wanted), *words]

    def begin(self, kill: Kill = Kill(), *flags: str) -> None:
        """Start the daemon and return at once."""
        self.forget_channel()
        words = ["memxd", "serve", "--socket", str(self.socket), "--embedder", self.embedder, "--workers", "4", *flags]
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                self._command(kill, *words), cwd=ROOT, env=self.environ, stderr=log, stdin=subprocess.DEVNULL
            )

    def start(self, kill: Kill = Kill(), *flags: str) -> float:
        """Start the daemon; the seconds until it served."""
        began = time.monotonic()
        self.begin(kill, *flags)
        while not self.serving():
            assert self.running, f"the daemon ended by itself with {self.process.returncode}:\n{self.log[-3_000:]}"
            assert time.monotonic() - began < START_SECONDS, f"it does not serve:\n{self.log[-3_000:]}"
            time.sleep(0.02)
        return time.monotonic() - began

    def memx(self, kill: Kill, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a memx command to its end, which may be a kill."""
        command = self._command(kill, "memx", *words)
        return subprocess.run(command, cwd=ROOT, env=self.environ, capture_output=True, text=True, timeout=120)

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return self.process is not None and self.process.poll() is None

    @property
    def log(self) -> str:
        """What it wrote on standard error so far."""
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def reached(self) -> set[str]:
        """The points that any process of this folder has come by."""
        return set(self.reached_file.read_text().split()) if self.reached_file.exists() else set()

    @property
    def channel(self) -> grpc.Channel:
        """A connection to the daemon that runs now."""
        if self._channel is None:
            options = [("grpc.use_local_subchannel_pool", 1)]
            self._channel = grpc.insecure_channel(target(self.socket), options=options)
        return self._channel

    def forget_channel(self) -> None:
        """Close the connection; the next one is to the next daemon."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    @property
    def memory(self) -> Any:
        """The stub of MemoryService."""
        return memory_service_pb2_grpc.MemoryServiceStub(self.channel)

    @property
    def admin(self) -> Any:
        """The stub of AdminService."""
        return admin_service_pb2_grpc.AdminServiceStub(self.channel)

    def serving(self) -> bool:
        """Whether health says SERVING."""
        if not self.socket.exists():
            return False
        with grpc.insecure_channel(target(self.socket), options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            try:
                answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=5)
            except grpc.RpcError:
                return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    def wait(self, seconds: float) -> int | None:
        """Its exit code, or None when it still runs after so long."""
        assert self.process is not None
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """kill -9, if it still runs; returns when it is gone."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait(20)
        self.forget_channel()

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.forget_channel()
        return code
