"""Starts the daemon in the background when nobody serves the socket; one only, however many ask at once.

Owns the race (a lock beside the socket), the detached process (a session of its own, its log in
``<data_dir>/log/memxd.log``) and the wait until it serves. Knows no verb of the API: it asks gRPC's standard health
service with plain bytes. The command line calls it; nothing of the daemon is imported.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from memxd.config import Config, process_environ
from memxd.errors import AlreadyRunningError, DaemonUnreachableError
from memxd.health import is_serving
from memxd.locks import FileLock
from memxd.socket_path import client_socket

#: Size in bytes at which the log is put aside (one old file is kept) when a daemon starts.
LOG_BYTES = 5 * 1024 * 1024
#: How much of the log's end a failure quotes.
_TAIL_BYTES = 4_096


def ensure_daemon(
    socket: str | os.PathLike[str] | None = None,
    *,
    config_file: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    timeout: float = 60.0,
) -> Path:
    """Return the socket of a daemon that serves; start one when there is none. Safe to call from many processes.

    ``socket`` and ``config_file`` as ``--socket`` and ``--config``; ``timeout`` in seconds for everything together.
    Raises ConfigError, SocketPathError, or DaemonUnreachableError that says why it did not start and where the log is.
    """
    environ = process_environ() if environ is None else environ
    path = client_socket(socket, environ)
    if is_serving(path):
        return path
    config = Config.load({"socket": path}, environ, config_file)
    _make_folder(path.parent)
    end = time.monotonic() + timeout
    lock = FileLock(path.with_name(f"{path.name}.start.lock"), f"the start of {path}")
    try:
        lock.acquire(timeout)
    except AlreadyRunningError as error:
        raise DaemonUnreachableError(
            f"another process has been starting the daemon for {timeout:g} s; see {log_file(config.data_dir)}"
        ) from error
    with lock:
        if not is_serving(path):  # whoever held the lock before us may have started it
            pid = _spawn(config, config_file, environ)
            _wait(path, pid, end, log_file(config.data_dir))
    return path


def log_file(data_dir: Path) -> Path:
    """Where a daemon that was started in the background writes its log."""
    return data_dir / "log" / "memxd.log"


def _spawn(config: Config, config_file: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> int:
    """Start ``memxd serve`` in a session of its own, its output in the log; the pid."""
    log = log_file(config.data_dir)
    _make_folder(log.parent)
    if log.exists() and log.stat().st_size > LOG_BYTES:
        os.replace(log, log.with_suffix(".log.1"))
    command = [sys.executable, "-m", "memxd", "serve", "--socket", str(config.socket)]
    if config_file is not None:
        command += ["--config", os.path.abspath(config_file)]
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawn(
        sys.executable,
        command,
        environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), append, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE),
    )


def _wait(path: Path, pid: int, end: float, log: Path) -> None:
    pause = 0.01
    while not is_serving(path):
        ended, code = os.waitpid(pid, os.WNOHANG)
        if ended:
            raise DaemonUnreachableError(
                f"the daemon did not start (exit code {os.waitstatus_to_exitcode(code)}): {_last_line(log)}; log: {log}"
            )
        if time.monotonic() >= end:
            raise DaemonUnreachableError(f"the daemon (pid {pid}) does not serve yet; see {log}, then try again")
        time.sleep(pause)
        pause = min(0.2, pause * 1.5)


def _make_folder(folder: Path) -> None:
    """With mode 0700; the daemon checks an existing one."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _last_line(log: Path) -> str:
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        lines = stream.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1].removeprefix("memxd: ") if lines else "it wrote nothing"
