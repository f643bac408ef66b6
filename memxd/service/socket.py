"""The socket on disk: its folder, its lock, what may lie at its path, its mode, its removal.

Owns the safety that a Unix socket needs and gRPC does not give: a second gRPC server silently takes over a path and
unlinks it when it stops, and file permissions are the only access control, since Python sees no peer's user. Does not
choose the path (``memxd/socket_path.py``) and does not serve. Called by ``daemon.py`` in this order: ``claim`` (folder,
lock, leftovers), ``bind`` around the server's own bind, ``release``.
"""

from __future__ import annotations

import logging
import os
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from memxd.errors import SocketPathError
from memxd.locks import FileLock
from memxd.socket_path import check_private_folder, is_default_folder
from memxd.trust import unsafe_way

log = logging.getLogger("memxd.socket")

#: How long a live server may take to accept, in seconds, when we look whether a socket file is stale.
_PROBE_SECONDS = 1.0


class SocketClaim:
    """The right to serve at one path. A context manager: leaving it removes our socket and gives the lock back."""

    def __init__(self, path: Path, environ: Mapping[str, str]) -> None:
        self.path = path
        self._environ = environ
        self._lock = FileLock(lock_path(path), f"the socket {path}")
        self._ours: tuple[int, int] | None = None

    def __enter__(self) -> SocketClaim:
        prepare_folder(self.path.parent, self._environ)
        self._lock.acquire()  # before anything at the path is looked at or touched
        try:
            remove_stale(self.path)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.unlink()
        finally:
            self._lock.release()

    @contextmanager
    def binding(self) -> Iterator[None]:
        """Around the server's bind: the socket is born with mode 0600, and remembered as ours."""
        before = os.umask(0o177)
        try:
            yield
        finally:
            os.umask(before)
        info = os.lstat(self.path)
        if not stat.S_ISSOCK(info.st_mode) or stat.S_IMODE(info.st_mode) & 0o077:
            raise SocketPathError(f"{self.path} is not a socket of mode 0600 after binding; give another --socket")
        self._ours = (info.st_dev, info.st_ino)

    def unlink(self) -> None:
        """Remove the socket if it is still the one we bound: gRPC may have removed it, another may have replaced it."""
        try:
            info = os.lstat(self.path)
        except FileNotFoundError:
            return
        if self._ours == (info.st_dev, info.st_ino):
            os.unlink(self.path)


def lock_path(path: Path) -> Path:
    """``memxd.lock`` beside ``memxd.sock``; sockets of other names in the same folder have locks of their own."""
    return path.with_name((path.name.removesuffix(".sock") or path.name) + ".lock")


def prepare_folder(folder: Path, environ: Mapping[str, str]) -> None:
    """Make the folder with mode 0700, or refuse an existing one that others could tamper with.

    A folder that is memxd's by the default rules must be exactly 0700 and ours. One that the caller chose must belong
    to us or root and must not be writable by others, unless it is sticky (like /tmp: others cannot replace our files).
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass  # somebody was first; it is checked like any other
    except OSError as error:
        raise SocketPathError(f"cannot make the folder {folder} for the socket: {error.strerror}") from error
    way = unsafe_way(folder)
    if way:
        raise SocketPathError(
            f"{way}, so that they could put another folder in the place of {folder}; take that permission away, or "
            "give another --socket"
        )
    if is_default_folder(folder, environ):
        check_private_folder(folder)
        return
    info = os.stat(folder)
    if not stat.S_ISDIR(info.st_mode):
        raise SocketPathError(f"{folder} is not a directory; give another --socket")
    if info.st_uid not in (os.getuid(), 0):
        raise SocketPathError(
            f"{folder} belongs to user {info.st_uid}, who could replace the socket; give another --socket"
        )
    if info.st_mode & 0o022 and not info.st_mode & stat.S_ISVTX:
        raise SocketPathError(
            f"others can write to {folder} (mode {stat.S_IMODE(info.st_mode):04o}) and could replace the socket; "
            f"run: chmod go-w {folder} (or give another --socket)"
        )


def remove_stale(path: Path) -> None:
    """Remove a socket that nobody serves any more. Anything else at the path is refused, never removed."""
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(info.st_mode):
        raise SocketPathError(f"{path} exists and is not a socket; remove it, or give another --socket")
    if somebody_answers(path):
        raise SocketPathError(f"another program serves {path}; stop it, or give another --socket")
    log.info("removed a stale socket", extra={"fields": {"socket": str(path)}})
    os.unlink(path)


def somebody_answers(path: Path) -> bool:
    """Whether a process accepts connections there (one that is too busy to accept counts)."""
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    probe.settimeout(_PROBE_SECONDS)
    with probe:
        try:
            probe.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except (TimeoutError, BlockingIOError):
            return True
        except OSError as error:
            raise SocketPathError(f"cannot tell who serves {path}: {error.strerror}; give another --socket") from error
    return True
