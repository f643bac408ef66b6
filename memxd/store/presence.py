"""Whether the database's files are still where they were opened, and what ails the disk when SQLite only says "error".

Owns that look, which a deleted or exchanged data directory fails: SQLite goes on writing into files that have no name
any more, and all that it acknowledged would be gone with the process. Two ``stat`` calls; no descriptor, because to
close one would drop SQLite's own locks. Owns a probe, too: SQLite tells a full disk, and calls everything else (a used
up quota, a file system that became read-only) an input/output error. Called by ``writer.py``.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from memxd.errors import MemxdError, StorageFailedError
from memxd.store.connection import storage_error

_PROBE = "memxd.probe"
_PROBED = 16 * 1024


class Presence:
    """The database at ``path`` and its write-ahead log, as they are now. Raises OSError when it is missing."""

    def __init__(self, path: Path) -> None:
        self._log = path.with_name(path.name + "-wal")
        self._path = path
        self._file = _identity(path)
        self._log_file: tuple[int, int] | None = None

    def refusal(self) -> MemxdError | None:
        """What to answer instead of an acknowledgement; None = all is well."""
        try:
            log = _identity(self._log)
            same = _identity(self._path) == self._file and self._log_file in (None, log)
        except PermissionError as error:
            return storage_error(error)
        except OSError:
            same = False
        else:
            self._log_file = self._log_file or log  # SQLite makes it with the first transaction and keeps it
        if same:
            return None
        return StorageFailedError(
            "the database file was removed or replaced while the daemon runs; nothing was stored: put the data "
            "directory back and restart the daemon"
        )

    def log_bytes(self) -> int:
        """Size of the write-ahead log's file; 0 when it is not there."""
        try:
            return os.stat(self._log).st_size
        except FileNotFoundError:
            return 0

    def meaning(self, error: sqlite3.Error) -> MemxdError:
        """The refusal that an error of SQLite means; of an input/output error, what writing a small file tells."""
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR:
            try:
                self._probe()
            except OSError as cause:
                return storage_error(cause)
        return storage_error(error)

    def _probe(self) -> None:
        """Write what a commit writes, a page or two, beside the database; nothing stays."""
        path = self._path.with_name(_PROBE)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, bytes(_PROBED))
            os.fsync(handle)
        finally:
            os.close(handle)
            os.unlink(path)


def _identity(path: Path) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino
