"""A lock file that belongs to one process, names it, and goes with it.

Owns flock on a file that is never deleted (deleting it would let two processes hold "the" lock), and the pid written
into it for messages. The kernel releases the lock when the process ends, however it ends. Called for the socket, for
the data directory and by the background start. Imports only the standard library and ``memxd.errors``.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from pathlib import Path
from types import TracebackType

from memxd.errors import AlreadyRunningError, StartupError


class FileLock:
    """An exclusive lock on ``path``; a context manager. ``what`` is named in the refusal."""

    def __init__(self, path: Path, what: str) -> None:
        self.path = path
        self._what = what
        self._fd = -1

    def acquire(self, timeout: float = 0.0) -> FileLock:
        """Take the lock, waiting at most ``timeout`` seconds; write our pid into it.

        Raises AlreadyRunningError naming the holder's pid, StartupError when the file cannot be ours.
        """
        fd = self._open()
        end = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    pid = _holder(fd)
                    os.close(fd)
                    raise self._held(pid) from None
                time.sleep(0.02)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        self._fd = fd
        return self

    def release(self) -> None:
        """Give the lock back; harmless when it is not held."""
        if self._fd >= 0:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> FileLock:
        return self if self._fd >= 0 else self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _open(self) -> int:
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StartupError(f"cannot open the lock file {self.path}: {error.strerror}") from error
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.getuid():
            os.close(fd)
            raise StartupError(f"the lock file {self.path} is not a file of this user; remove it")
        return fd

    def _held(self, pid: str) -> AlreadyRunningError:
        return AlreadyRunningError(
            f"another memxd (pid {pid or 'unknown'}) holds {self._what}; stop it, or give this one a socket and a "
            "data directory of its own",
            metadata={"pid": pid},
        )


def _holder(fd: int) -> str:
    """The pid in the file. The holder writes it just after it got the lock, so look twice."""
    for pause in (0.0, 0.1):
        time.sleep(pause)
        text = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
        if text.isdecimal():
            return text
    return ""
