"""How SQLite is opened, and what its errors mean.

Owns connection settings (WAL, durable commits, erased content overwritten, limits), the making of a new database file
that no one else may read, and the mapping of sqlite3 errors to memxd's. Called by the store's writer and readers.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

from memxd.errors import MemxdError, StorageFailedError, StorageFullError, StorageReadOnlyError
from memxd.store.schema import sync_file

#: Name of the database within the data directory.
DATABASE = "memxd.db"
#: How long a statement waits for another process that holds the database (somebody's sqlite3 shell).
BUSY_MILLISECONDS = 5_000
_MEBIBYTE = 1 << 20
#: Bytes that the write-ahead log's file keeps once it is folded; more is what a long reader held up.
LOG_BYTES = 16 * _MEBIBYTE
_COMMON = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA temp_store = MEMORY",
)
_WRITER = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = ON",
    "PRAGMA wal_autocheckpoint = 3000",  # pages, below the log's size limit; those changed often are copied less often
    f"PRAGMA journal_size_limit = {LOG_BYTES}",
    "PRAGMA cache_size = -32768",
)
#: Eight readers or more: what they read again is mostly upper pages of trees, and the system caches the rest.
_READER = ("PRAGMA query_only = ON", "PRAGMA cache_size = -4096")
_DISK_ADVICE = "look into the system's log and check the disk; what was acknowledged stays, and memxd goes on trying"
_LIMITS = (
    (sqlite3.SQLITE_LIMIT_LENGTH, 512 * _MEBIBYTE),
    (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 100_000),
    (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
    (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 8),
    (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100),
)


def create_files(directory: Path) -> Path:
    """Make the directory (0700) and an empty database file (0600) where they lack; return the file's path.

    SQLite gives its log and shared-memory files the database's mode. Raises OSError.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = directory / DATABASE
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return path
    sync_file(path)
    sync_file(directory)
    return path


def connect(path: Path, *, writer: bool) -> sqlite3.Connection:
    """Open the database; transactions are begun and ended by hand. The caller serialises the use of a connection."""
    connection = sqlite3.connect(
        path, timeout=BUSY_MILLISECONDS / 1_000, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    try:
        for pragma in (*_COMMON, *(_WRITER if writer else _READER)):
            connection.execute(pragma).close()
        for limit, value in _LIMITS:
            connection.setlimit(limit, value)
    except BaseException:
        connection.close()
        raise
    return connection


def storage_error(error: sqlite3.Error | OSError, *, reading: bool = False) -> MemxdError:
    """The refusal that an error of SQLite or the file system means; raise it ``from`` the error."""
    if isinstance(error, OSError):
        return _file_error(error)
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    if code == sqlite3.SQLITE_FULL:
        return StorageFullError("the disk is full: free some space and try again; nothing was stored")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH):
        return StorageReadOnlyError("the data directory cannot be written: check its owner, mode and mount")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        outcome = "its file is damaged: restore a copy, or save what can be read by sqlite3's .recover"
    elif code == sqlite3.SQLITE_IOERR:
        outcome = f"{'' if reading else 'nothing was stored; '}{_DISK_ADVICE}"
    else:
        outcome = "try again" if reading else "nothing was stored"
    return StorageFailedError(f"the database reported an error ({name}); {outcome}", metadata={"sqlite_error": name})


def _file_error(error: OSError) -> MemxdError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFullError("the disk is full: free some space and try again; nothing was stored")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StorageReadOnlyError("the data directory cannot be written: check its owner, mode and mount")
    return StorageFailedError(f"the data directory cannot be used ({os.strerror(error.errno or 0)}): {_DISK_ADVICE}")
