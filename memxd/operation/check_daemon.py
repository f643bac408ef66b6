"""The doctor's look at what runs: the socket, the daemon behind it, its indexes, the service.

Owns those checks. Starts nothing and stops nothing; a stale socket may be removed, a failed index built anew and an
outdated unit written anew as ``mend``. Called by ``doctor.py``.
"""

from __future__ import annotations

import shlex
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from memxd import __version__
from memxd.errors import (
    DaemonUnreachableError,
    MemxdError,
    PermissionDeniedError,
    ServiceManagerError,
    SocketPathError,
    UnauthenticatedError,
)
from memxd.model import IndexState
from memxd.operation.findings import Finding, note, ok, problem

if TYPE_CHECKING:
    from memxd.client import Client, DaemonStatus
    from memxd.operation.service import ServiceManager, ServiceState

_SECONDS = 5.0


def ask_daemon(socket: Path) -> DaemonStatus | MemxdError | None:
    """What the daemon says of itself; None when nobody serves, the error when whoever does has no answer."""
    if not socket.exists():
        return None
    try:
        with _client(socket) as client:
            return client.status(max_scopes=0)
    except DaemonUnreachableError as error:
        from memxd.service.socket import somebody_answers

        try:
            return error if somebody_answers(socket) else None
        except SocketPathError as refused:
            return refused
    except MemxdError as error:
        return error


def _client(socket: Path, seconds: float = _SECONDS) -> Client:
    from memxd.client import NO_RETRY, Client

    return Client(socket, timeout=seconds, retry=NO_RETRY)


def check_socket(socket: Path, environ: Mapping[str, str], daemon: DaemonStatus | MemxdError | None) -> list[Finding]:
    """The socket's folder, what lies at its path, and who answers there."""
    from memxd.service.socket import prepare_folder

    try:
        if socket.parent.exists():
            prepare_folder(socket.parent, environ)
    except SocketPathError as error:
        folder = shlex.quote(str(socket.parent))
        reason = "others could reach or replace the socket; the daemon does not start (exit code 73)"
        return [problem("socket", error.message, reason, "make the folder yours alone", f"chmod 700 {folder}")]
    if isinstance(daemon, UnauthenticatedError | PermissionDeniedError):
        reason = "it asks for a token, so the doctor cannot look at its indexes"
        return [note("socket", f"{socket} is served", reason, "set MEMX_TOKEN to an admin token", "memx token list")]
    if isinstance(daemon, MemxdError):
        reason = "it is suspended, hangs, is starting or stopping, or the machine is very busy"
        return [problem("socket", daemon.message, reason, "wait; else restart it", "memx service restart")]
    if daemon is not None:
        return _check_mode(socket)
    if not socket.exists() and not socket.is_symlink():
        return [ok("socket", f"nobody serves {socket}; the first memx command starts a daemon")]
    if not stat.S_ISSOCK(socket.lstat().st_mode):
        reason = "the daemon never removes what is not its own, and does not start (exit code 73)"
        text, command = f"{socket} is not a socket", f"mv {shlex.quote(str(socket))} {shlex.quote(f'{socket}.old')}"
        return [problem("socket", text, reason, "move it away, or set MEMXD_SOCKET", command)]
    text, reason = f"{socket} is left from a daemon that was killed", "harmless: the next start removes it"
    command = f"rm {shlex.quote(str(socket))}"
    return [problem("socket", text, reason, "remove it", command, lambda: _remove_stale(socket))]


def _check_mode(socket: Path) -> list[Finding]:
    mode = stat.S_IMODE(socket.stat().st_mode)
    if mode & 0o077:
        text, reason = f"{socket} has mode {mode:04o}", "other users may be able to read every memory"
        command = f"chmod 600 {shlex.quote(str(socket))}"
        return [problem("socket", text, reason, "take their permission away", command, lambda: socket.chmod(0o600))]
    return [ok("socket", f"{socket} is served, and is this user's alone")]


def _remove_stale(socket: Path) -> None:
    """Under the lock of the socket, so that a daemon that starts just now keeps its own."""
    from memxd.locks import FileLock
    from memxd.service.socket import lock_path, remove_stale

    with FileLock(lock_path(socket), f"the socket {socket}"):
        remove_stale(socket)


def check_daemon(daemon: DaemonStatus, data_dir: Path) -> list[Finding]:
    """Whether the running daemon is of this version and works on the data that the settings name."""
    found = []
    if daemon.version != __version__:
        text = f"the daemon is version {daemon.version}, this program {__version__}"
        reason = "it was started before the update"
        found.append(problem("daemon", text, reason, "restart it", "memx service restart"))
    if Path(daemon.data_dir) != data_dir:
        text = f"the daemon works on {daemon.data_dir}, the settings say {data_dir}"
        reason = "it was started with other settings"
        found.append(problem("daemon", text, reason, "restart it", "memx service restart"))
    for thread in daemon.process.threads:
        if not thread.alive:
            text = f"the thread {thread.name} ({thread.role}) has died: {thread.message}"
            reason = "what it did is not done any more; the log has the place"
            found.append(problem("daemon", text, reason, "restart it", "memx service restart"))
    if daemon.engine.vectors_pending:
        text = f"{daemon.engine.vectors_pending:,} memories wait for a vector"
        found.append(note("daemon", text, "they are found by words; the rest follows by itself"))
    return found or [ok("daemon", f"version {daemon.version}, pid {daemon.pid}, {daemon.engine.memories:,} memories")]


def check_indexes(daemon: DaemonStatus | None, socket: Path) -> list[Finding]:
    """Every index of a running daemon. Without one there is nothing to mend: a start builds what is not sound."""
    if daemon is None:
        return [ok("indexes", "no daemon runs; the next start checks them, and builds anew what is not sound")]
    found = []
    for index in daemon.engine.indexes:
        name = index.kind.name.lower()
        if index.state is IndexState.REBUILDING:
            found.append(note("indexes", f"{name} is being built", "searches are answered meanwhile"))
        elif index.state is not IndexState.READY:
            text = f"{name} is {index.state.name.lower()}: {index.message or 'no reason given'}"
            reason = "answers lack this leg and are marked degraded; no memory is lost"
            command = f"memx rebuild {name}"
            found.append(
                problem("indexes", text, reason, "build it anew from the database", command, _rebuild(socket, name))
            )
    names = ", ".join(f"{i.kind.name.lower()} ({i.entries:,})" for i in daemon.engine.indexes)
    return found or [ok("indexes", f"ready: {names}")]


def _rebuild(socket: Path, name: str) -> Callable[[], None]:
    """How to build this index anew."""

    def mend() -> None:
        with _client(socket) as client:
            for _ in client.rebuild(name):
                pass

    return mend


def check_service(manager: ServiceManager) -> list[Finding]:
    """Installed, up to date, started at login, running."""
    try:
        state = manager.state()
    except ServiceManagerError as error:
        reason = "the service cannot be asked"
        return [note("service", error.message, reason, "log in properly rather than by su")]
    if not state.installed:
        reason = "the daemon runs when a memx command starts it, and ends at the latest with the machine"
        return [note("service", "not installed", reason, "install it if it is to run always", "memx service install")]
    return _check_state(manager, state)


def _check_state(manager: ServiceManager, state: ServiceState) -> list[Finding]:
    if not state.current:
        text, reason = f"{state.file} was written for other settings", "the service may not see what you have set"
        fix, command = "write it anew", "memx service install"
        return [problem("service", text, reason, fix, command, manager.install)]
    if not state.enabled:
        text, reason = "not started at login", "somebody has disabled it"
        return [note("service", text, reason, "enable it", "memx service install")]
    if not state.active:
        reason = "it was stopped, or ended with an error"
        return [problem("service", state.text, reason, "start it; it tells why not", "memx service start")]
    return [ok("service", state.text)]
