"""The daemon under fire: a process on a socket and data directory of its own, and what the kernel says of it.

Owns starting, stopping and killing it, and reading its threads, open files, memory and log. Knows no RPC. Used by the
fuzz session and by the model test.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from memxd.autostart import target

ROOT = Path(__file__).parents[2]
START_SECONDS = 60.0


@dataclass(frozen=True)
class Vitals:
    """What a process holds."""

    threads: int
    files: int
    rss_mib: float
    peak_mib: float


class Daemon:
    """One daemon; ``start`` again after it has ended opens the same data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "run" / "memxd.sock"
        self.data_dir = folder / "data"
        self.log_file = folder / "daemon.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *flags: str) -> None:
        """Start it and return when it serves."""
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith(("MEMXD_", "MEMX_", "XDG_", "NOTIFY_", "GRPC_"))
        }
        path = os.pathsep.join(p for p in [str(ROOT), *sys.path] if p)
        environ = kept | {"PYTHONPATH": path, "HOME": str(self.folder)}
        command = [sys.executable, "-m", "memxd", "serve", "--socket", str(self.socket)]
        command += ["--data-dir", str(self.data_dir), "--embedder", "hashing", *flags]
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, stderr=log, stdin=subprocess.DEVNULL, env=environ)
        end = time.monotonic() + START_SECONDS
        while not self.serving():
            assert self.running, f"exit code {self.process.returncode}:\n{self.log[-4_000:]}"
            assert time.monotonic() < end, f"not serving after {START_SECONDS} s:\n{self.log[-4_000:]}"
            time.sleep(0.05)

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self.process is not None
        return self.process.pid

    @property
    def running(self) -> bool:
        """Whether the process that was started still runs."""
        return self.process is not None and self.process.poll() is None

    @property
    def log(self) -> str:
        """Everything it wrote on standard error."""
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def channel(self) -> grpc.Channel:
        """A connection of one's own."""
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", 64 * 1024 * 1024)]
        return grpc.insecure_channel(target(self.socket), options=options)

    def serving(self) -> bool:
        """Whether health says SERVING."""
        with self.channel() as channel:
            try:
                answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=5)
            except grpc.RpcError:
                return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    def vitals(self) -> Vitals:
        """Threads, open files and memory now."""
        proc = Path(f"/proc/{self.pid}")
        status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines() if ":" in line)
        kib = {name: int(status[name].split()[0]) for name in ("Threads", "VmRSS", "VmHWM")}
        return Vitals(kib["Threads"], len(list((proc / "fd").iterdir())), kib["VmRSS"] / 1024, kib["VmHWM"] / 1024)

    def end(self, number: int = signal.SIGTERM, seconds: float = 40.0) -> int:
        """Send a signal and return the exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(seconds)

    def close(self) -> None:
        """Kill it if it still runs."""
        if self.running:
            self.end(signal.SIGKILL)
