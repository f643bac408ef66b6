"""Starts the daemon in the background when nobody serves the socket; one only, however many ask at once.

Owns the race (a lock beside the socket), the detached process (a session of its own, its log in
``<data_dir>/log/memxd.log``) and the wait until it serves. A service that was installed for the same settings is
started instead. Knows no verb of the API: it asks gRPC's standard health service with plain bytes. The command line
calls it; nothing of the daemon is imported.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import grpc

from memxd.config import Config, process_environ
from memxd.errors import AlreadyRunningError, DaemonUnreachableError
from memxd.locks import FileLock
from memxd.operation.service import start_installed
from memxd.socket_path import client_socket

#: Size in bytes at which the log is put aside (one old file is kept) when a daemon starts.
LOG_BYTES = 5 * 1024 * 1024
#: How much of the log's end a failure quotes.
_TAIL_BYTES = 4_096
#: gRPC's health service as bytes: the request is empty, the answer SERVING is field 1, varint 1.
_METHOD = "/grpc.health.v1.Health/Check"
_SERVING = b"\x08\x01"
#: How ``memxd serve`` begins the one line that says why it does not start.
_REFUSAL = "memxd: "
#: A starting or stopping daemon still holds its socket: look again after this many seconds.
_AGAIN_SECONDS = 0.2
#: How long a process that holds the socket may say nothing, in seconds.
_SILENT_SECONDS = 10.0


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
    if _serves(path):
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
        # The service, if one was installed for just these settings, else a process of our own.
        if config_file is None and path == client_socket(None, environ) and not _serves(path):
            start_installed(environ)
        while not _serves(path):  # whoever held the lock before us may have started it
            _start_and_wait(config, config_file, environ, end)
    return path


def target(path: str | os.PathLike[str]) -> str:
    """The gRPC address of a socket path; a percent sign would begin an escape there."""
    return "unix:" + os.fspath(path).replace("%", "%25")


def is_serving(path: str | os.PathLike[str], timeout: float = 2.0) -> bool:
    """Whether a daemon answers there and is ready. False when nobody answers or it is starting or stopping.

    ``timeout`` in seconds for connecting and asking together.
    """
    return _ask(path, timeout) == _SERVING


def _serves(path: Path) -> bool:
    """As ``is_serving``. Raises DaemonUnreachableError when whoever holds the socket says nothing at all for long: one
    that starts or stops does answer, and a new daemon could not take its place."""
    end = time.monotonic() + _SILENT_SECONDS
    while (answer := _ask(path)) is None:
        if time.monotonic() >= end:
            raise DaemonUnreachableError(
                f"a process holds {path} and has not answered for {_SILENT_SECONDS:g} s, so it is suspended, hangs or "
                "the machine is very busy; end it or let it go on, then try again",
                metadata={"socket": str(path)},
            )
    return answer == _SERVING


def _ask(path: str | os.PathLike[str], timeout: float = 2.0) -> bytes | None:
    """What health says; empty = nobody is there, None = somebody is, and does not answer in time."""
    if not os.path.exists(path):
        return b""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
    with grpc.insecure_channel(target(path), options=options) as channel:
        check = channel.unary_unary(_METHOD, request_serializer=bytes, response_deserializer=bytes)
        try:
            answer: bytes = check(b"", timeout=timeout)
        except grpc.RpcError as error:
            return None if cast(grpc.Call, error).code() is grpc.StatusCode.DEADLINE_EXCEEDED else b""
    return answer


def log_file(data_dir: Path) -> Path:
    """Where a daemon that was started in the background writes its log."""
    return data_dir / "log" / "memxd.log"


def _spawn(config: Config, config_file: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> int:
    """Start ``memxd serve`` in a session of its own, its output in the log; the pid."""
    log = log_file(config.data_dir)
    _make_folder(config.data_dir)  # first: the parents of a folder are made with whatever the umask leaves
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
        {name: value for name, value in environ.items() if name != "MEMX_TOKEN"},  # the caller's, not the daemon's
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), append, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE),
    )


def _start_and_wait(
    config: Config, config_file: str | os.PathLike[str] | None, environ: Mapping[str, str], end: float
) -> None:
    """Return when the new daemon serves, or when it found that another one holds the socket (then look again)."""
    log = log_file(config.data_dir)
    told = log.stat().st_size if log.exists() else 0
    pid = _spawn(config, config_file, environ)
    pause = 0.01
    while not _serves(config.socket):
        ended, status = os.waitpid(pid, os.WNOHANG)
        code = os.waitstatus_to_exitcode(status) if ended else 0
        if ended and code != AlreadyRunningError.exit_code:
            raise DaemonUnreachableError(
                f"the daemon did not start (exit code {code}): {_reason(log, told)}; log: {log}"
            )
        if time.monotonic() >= end:
            state = _reason(log, told) if ended else f"the daemon (pid {pid}) does not serve yet; try again"
            raise DaemonUnreachableError(f"{state}; log: {log}")
        if ended:
            time.sleep(_AGAIN_SECONDS)
            return
        time.sleep(pause)
        pause = min(0.2, pause * 1.5)


def _make_folder(folder: Path) -> None:
    """With mode 0700; the daemon checks an existing one."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _reason(log: Path, told: int) -> str:
    """Why the process that began writing after ``told`` bytes ended: its refusal, else the last line.

    Another daemon of the same data directory writes into the same log, so the last line alone may not be ours.
    """
    size = log.stat().st_size
    with log.open("rb") as stream:
        # A log put aside meanwhile begins anew.
        stream.seek(max(told if told <= size else 0, size - _TAIL_BYTES))
        lines = stream.read().decode("utf-8", "replace").strip().splitlines()
    refusals = [line.removeprefix(_REFUSAL) for line in lines if line.startswith(_REFUSAL)]
    return refusals[-1] if refusals else lines[-1] if lines else "it wrote nothing"
