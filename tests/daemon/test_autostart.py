"""The background start: one daemon however many ask at once, and words that help when it fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memxd.autostart import LOG_BYTES, ensure_daemon, is_serving, log_file
from memxd.errors import ConfigError, DaemonUnreachableError
from memxd.locks import FileLock
from memxd.service.socket import lock_path

ASK = "import sys; from memxd.autostart import ensure_daemon; print(ensure_daemon(sys.argv[1], timeout=50))"


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A socket path; whoever serves there is stopped at the end."""
    socket = tmp_path / "run" / "memxd.sock"
    yield socket
    try:
        pid = int(lock_path(socket).read_text())
    except (FileNotFoundError, ValueError):
        return
    os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + 20
    while is_serving(socket) or lock_path(socket).read_text():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def hashing(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """An environment in which a daemon starts fast."""
    return environ | {"MEMXD_EMBEDDER": "hashing", "MEMXD_DATA_DIR": str(tmp_path / "data")}


def test_ten_at_once_start_one(path: Path, hashing: dict[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-c", ASK, str(path)]
    callers = [subprocess.Popen(command, env=hashing, stdout=subprocess.PIPE, text=True) for _ in range(10)]
    answers = [caller.communicate(timeout=55)[0].strip() for caller in callers]
    assert [caller.returncode for caller in callers] == [0] * 10
    assert answers == [str(path)] * 10
    assert is_serving(path)
    starts = log_file(tmp_path / "data").read_text().count('"message": "serving"')
    assert starts == 1


def test_a_running_daemon_is_left_alone(daemon: Any, environ: dict[str, str]) -> None:
    assert ensure_daemon(daemon.socket, environ=environ) == daemon.socket
    assert not log_file(daemon.data_dir).exists()


def test_it_lives_in_a_session_of_its_own(path: Path, hashing: dict[str, str]) -> None:
    ensure_daemon(path, environ=hashing)
    pid = int(lock_path(path).read_text())
    assert os.getsid(pid) == pid != os.getsid(0)


def test_a_daemon_that_cannot_start_says_why_and_where_the_log_is(tmp_path: Path, hashing: dict[str, str]) -> None:
    (tmp_path / "run").mkdir(mode=0o700)
    (tmp_path / "run" / "memxd.sock").write_text("in the way")
    with pytest.raises(DaemonUnreachableError, match=r"exit code 73.*not a socket") as caught:
        ensure_daemon(tmp_path / "run" / "memxd.sock", environ=hashing)
    assert str(log_file(tmp_path / "data")) in str(caught.value)


def test_a_data_directory_of_another_daemon_is_told_at_once(
    daemon: Any, hashing: dict[str, str], tmp_path: Path
) -> None:
    taken = hashing | {"MEMXD_DATA_DIR": str(daemon.data_dir)}
    began = time.monotonic()
    with pytest.raises(DaemonUnreachableError, match=rf"pid {daemon.pid}\) holds the data directory"):
        ensure_daemon(tmp_path / "elsewhere" / "memxd.sock", environ=taken, timeout=60)
    assert time.monotonic() - began < 30


def test_the_reason_is_the_new_daemons_own_line(tmp_path: Path, hashing: dict[str, str]) -> None:
    log = log_file(tmp_path / "data")
    log.parent.mkdir(mode=0o700, parents=True)
    (tmp_path / "data").chmod(0o700)
    log.write_text("memxd: a reason of long ago\n")
    with pytest.raises(DaemonUnreachableError, match=r"exit code 69.*no-such-model") as caught:
        ensure_daemon(
            tmp_path / "run" / "memxd.sock",
            environ=hashing | {"MEMXD_EMBEDDER": "onnx", "MEMXD_MODEL": "no-such-model"},
        )
    assert "long ago" not in str(caught.value)


def test_a_wrong_setting_is_named_before_anything_starts(tmp_path: Path, hashing: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="workers"):
        ensure_daemon(tmp_path / "run" / "memxd.sock", environ=hashing | {"MEMXD_WORKERS": "none"})
    assert not (tmp_path / "data").exists()


def test_a_start_that_hangs_elsewhere_is_reported(tmp_path: Path, hashing: dict[str, str]) -> None:
    path = tmp_path / "memxd.sock"
    with (
        FileLock(tmp_path / "memxd.sock.start.lock", "it"),
        pytest.raises(DaemonUnreachableError, match="another process has been starting"),
    ):
        ensure_daemon(path, environ=hashing, timeout=0.2)


def test_a_large_log_is_put_aside(path: Path, hashing: dict[str, str], tmp_path: Path) -> None:
    log = log_file(tmp_path / "data")
    log.parent.mkdir(mode=0o700, parents=True)
    (tmp_path / "data").chmod(0o700)
    log.write_bytes(b"x" * (LOG_BYTES + 1))
    ensure_daemon(path, environ=hashing)
    assert log.stat().st_size < LOG_BYTES
    assert (log.parent / "memxd.log.1").stat().st_size == LOG_BYTES + 1


def test_a_suspended_daemon_is_told_of_soon(daemon: Any, environ: dict[str, str]) -> None:
    daemon.suspend()
    began = time.monotonic()
    with pytest.raises(DaemonUnreachableError, match="has not answered"):
        ensure_daemon(daemon.socket, environ=environ)
    assert time.monotonic() - began < 20
    daemon.signal(signal.SIGCONT)
    assert ensure_daemon(daemon.socket, environ=environ) == daemon.socket
