"""Whether the database's files are still where they were opened.

Owns that look, which a deleted or exchanged data directory fails: SQLite goes on writing into files that have no name
any more, and all that it acknowledged would be gone with the process. Two ``stat`` calls; no descriptor, because to
close one would drop SQLite's own locks. Called by ``writer.py`` around every commit.
"""

from __future__ import annotations

import os
from pathlib import Path

from memxd.errors import StorageFailedError


class Presence:
    """The database at ``path`` and its write-ahead log, as they are now. Raises OSError when it is missing."""

    def __init__(self, path: Path) -> None:
        self._log = path.with_name(path.name + "-wal")
        self._path = path
        self._file = _identity(path)
        self._log_file: tuple[int, int] | None = None

    def refusal(self) -> StorageFailedError | None:
        """What to answer instead of an acknowledgement; None = all is well."""
        try:
            log = _identity(self._log)
            same = _identity(self._path) == self._file and self._log_file in (None, log)
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


def _identity(path: Path) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino
