"""Fixtures of the command line's tests: a scripted daemon and ``memx`` as a process, piped or on a terminal."""

from __future__ import annotations

import importlib.util
import io
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import memxd
from memxd.cli.app import run_memx

ROOT = Path(memxd.__file__).parents[1]


def _scripted() -> ModuleType:
    """The scripted server of the client's tests; shared by path, since test folders are no packages."""
    if "scripted" not in sys.modules:
        path = Path(__file__).parents[1] / "client" / "scripted.py"
        spec = importlib.util.spec_from_file_location("scripted", path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules["scripted"] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules["scripted"]


_scripted()


@dataclass
class Done:
    """What a process left behind."""

    code: int
    out: str
    err: str = ""


@pytest.fixture
def home() -> Iterator[Path]:
    """A home of its own, short enough for a socket path."""
    with tempfile.TemporaryDirectory(prefix="memx-") as folder:
        yield Path(folder)


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MEMX", "XDG_", "NO_COLOR", "COLUMNS"))}
    return {
        **kept,
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "PYTHONPATH": str(ROOT),
        "TZ": "UTC",
        "TERM": "xterm-256color",
        "LC_ALL": "C.UTF-8",
    }


@pytest.fixture
def server(home: Path) -> Iterator[Any]:
    """A scripted daemon on the default socket of ``home``, ready by its health check."""
    from grpc_health.v1 import health_pb2

    (home / "memxd").mkdir(mode=0o700)
    running = _scripted().Scripted(home / "memxd" / "memxd.sock")
    running.on("Check", lambda r, c: health_pb2.HealthCheckResponse(status=1))
    running.start()
    yield running
    running.stop()


@pytest.fixture
def memx(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Done]]:
    """Runs ``memx`` piped, never starting a daemon; ``stdin`` bytes, ``env`` additions.

    In this process, which saves a start for each call; ``memx_tty`` and the tests of signals and pipes use real ones.
    """

    def run(*words: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> Done:
        with monkeypatch.context() as patch:
            patch.setattr(os, "environ", {**environment, **(env or {})})
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            code = run_memx(["--no-start", *words])
            out.flush()
            err.flush()
            return Done(code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode())  # type: ignore[attr-defined]

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield run
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def memx_tty(environment: dict[str, str]) -> Callable[..., Done]:
    """Runs ``memx`` on a terminal of ``width`` columns; ``keys`` are typed, once ``key_after`` can be read when given.
    Output holds both streams."""

    def run(
        *words: str, width: int = 100, keys: bytes = b"", key_after: str = "", env: dict[str, str] | None = None
    ) -> Done:
        leader, follower = pty.openpty()
        ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
        process = subprocess.Popen(
            [sys.executable, "-m", "memxd.cli", "--no-start", *words],
            stdin=follower, stdout=follower, stderr=follower, env={**environment, **(env or {})}, close_fds=True,
            preexec_fn=_own_terminal,
        )  # fmt: skip
        os.close(follower)
        before = b""
        while key_after.encode() not in before:
            before += os.read(leader, 65536)
        if keys:
            os.write(leader, keys)
        output = before + _read_all(leader, process)
        os.close(leader)
        return Done(process.wait(10), output.decode().replace("\r\n", "\n"))

    return run


def _own_terminal() -> None:
    """Make standard input the process's own terminal, so that Ctrl-C reaches it."""
    os.setsid()
    ioctl(0, termios.TIOCSCTTY, 0)


def _read_all(leader: int, process: subprocess.Popen[bytes]) -> bytes:
    chunks, end = [], time.monotonic() + 60
    while time.monotonic() < end:
        ready, _, _ = select.select([leader], [], [], 0.1)
        if ready:
            try:
                chunk = os.read(leader, 65536)
            except OSError:  # Linux: the other side has closed
                break
            if not chunk:
                break
            chunks.append(chunk)
        elif process.poll() is not None:
            break
    return b"".join(chunks)
