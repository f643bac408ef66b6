"""The service as people handle it: install, start, stop, status, remove, whatever manager the machine has.

Owns what both managers share: the description of a state, the running of their tools, the writing of their files, and
the taking over from a daemon that a ``memx`` command started in the background (it holds the socket that the service
wants). ``systemctl.py`` and ``launchctl.py`` are the two managers. Called by ``cli/service.py`` and by the doctor.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from memxd.errors import AlreadyRunningError, ServiceManagerError
from memxd.locks import FileLock

#: Seconds a manager's tool may take for anything but starting and stopping.
TOOL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ServiceState:
    """How the service is. ``current``: its file is what an installation would write now. ``pid`` 0 = does not run."""

    manager: str
    file: Path
    installed: bool
    current: bool
    enabled: bool
    active: bool
    pid: int
    text: str


class ServiceManager(Protocol):
    """What a manager can do. Everything raises ServiceManagerError when its tool refuses."""

    @property
    def name(self) -> str:
        """For people."""

    @property
    def file(self) -> Path:
        """Where its file is, or would be."""

    def install(self) -> Path:
        """Write the file and have it started at login; the file. Nothing is started yet."""

    def unit(self) -> str:
        """The file's text as an installation would write it now."""

    def start(self) -> None:
        """Start it; returns when it serves."""

    def stop(self) -> None:
        """Stop it; returns when it has ended."""

    def restart(self) -> None:
        """Stop and start."""

    def remove(self) -> bool:
        """Stop it and delete its file; False when there was none."""

    def state(self) -> ServiceState:
        """How it is."""

    def log_command(self, lines: int, *, follow: bool) -> list[str]:
        """The command that shows its log."""


def find_manager(environ: Mapping[str, str]) -> ServiceManager:
    """The manager of this machine; ServiceManagerError when it has none that we know."""
    if sys.platform == "darwin":
        from memxd.operation.launchctl import Launchd

        return Launchd(environ)
    from memxd.operation.systemctl import SystemdUser

    return SystemdUser(environ)


def start_installed(environ: Mapping[str, str]) -> bool:
    """Start the service if one is installed for just these settings; False when not, or when it does not start.

    For a command that finds no daemon: it starts one of its own then, which tells the same reason if there is one.
    """
    manager = find_manager(environ)
    if not manager.file.exists():
        return False
    try:
        if not manager.state().current:
            return False
        manager.start()
    except ServiceManagerError:
        return False  # no manager in this session (su, cron), or the daemon's own reason, told by the next attempt
    return True


def home_folder(environ: Mapping[str, str]) -> Path:
    """The user's home."""
    home = environ.get("HOME", "")
    return Path(home) if home.startswith("/") else Path.home()


def run_tool(command: Sequence[str], environ: Mapping[str, str], *, seconds: float = TOOL_SECONDS) -> tuple[int, str]:
    """Exit code and output (standard error when there is no other) of a manager's tool.

    Raises ServiceManagerError when there is no such tool or it takes longer than ``seconds``.
    """
    try:
        done = subprocess.run(
            command, env={**environ, "LC_ALL": "C.UTF-8", "SYSTEMD_COLORS": "0"}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=seconds, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise ServiceManagerError(f"this machine has no {command[0]}; run the daemon with: memxd serve") from None
    except subprocess.TimeoutExpired:
        raise ServiceManagerError(f"{' '.join(command)} has not answered for {seconds:g} s") from None
    return done.returncode, (done.stdout.strip() or done.stderr.strip())


def write_file(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Replace a file in one step; its folder is made. Raises ServiceManagerError when the disk refuses."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, fresh = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                os.fchmod(stream.fileno(), mode)
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(fresh, path)
        except OSError:
            Path(fresh).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ServiceManagerError(f"cannot write {path}: {error.strerror}") from error


def socket_holder(socket: Path) -> int | None:
    """The pid of the daemon that holds this socket; None when nobody does, 0 when it does not say."""
    from memxd.service.socket import lock_path

    lock = lock_path(socket)
    if not lock.exists():
        return None
    try:
        with FileLock(lock, f"the socket {socket}"):
            return None
    except AlreadyRunningError as error:
        pid = error.metadata["pid"]
        return int(pid) if pid.isdecimal() else 0


def end_daemon(socket: Path, seconds: float, *, but: int = 0) -> int:
    """Ask the daemon that holds the socket to stop and wait until it has; its pid, 0 when there was none.

    ``but``: a pid to leave alone, the service's own. Raises ServiceManagerError when it is still there after
    ``seconds``, or cannot be signalled.
    """
    pid = socket_holder(socket)
    if not pid or pid == but:
        return 0
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return 0
    except PermissionError:
        raise ServiceManagerError(f"the daemon on {socket} (pid {pid}) is not yours to stop") from None
    end = time.monotonic() + seconds
    while socket_holder(socket) == pid:
        if time.monotonic() >= end:
            raise ServiceManagerError(f"the daemon on {socket} (pid {pid}) still runs after {seconds:g} s: kill {pid}")
        time.sleep(0.05)
    return pid
