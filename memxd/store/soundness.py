"""Whether the database is sound, as far as a start may take the time to tell.

Owns the look at start (the schema and the beginning and end of each table; then SQLite's own check of structure, cut
off after a moment: small databases are read whole) and the words for the operator. Mends nothing. Called by
``store.py``, and by the doctor while no daemon runs.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from memxd.errors import DatabaseDamagedError
from memxd.store.connection import connect, storage_error

_SECONDS = 0.15
_STEPS = 10_000
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def glance(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.Error when the schema or an end of a table cannot be read."""
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    for (table,) in tables:
        for order in ("ASC", "DESC"):
            connection.execute(f'SELECT * FROM "{table}" ORDER BY 1 {order} LIMIT 1').fetchone()


def check(connection: sqlite3.Connection) -> str:
    """What is wrong with the database, "" for nothing. Raises sqlite3.Error where it cannot even be read."""
    until = time.monotonic() + _SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    try:
        [found] = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            return ""  # a large one: what was seen of it is sound
        raise
    finally:
        connection.set_progress_handler(None, 0)
    return "" if found == "ok" else str(found).replace("\n", " ")


def look_at(path: Path) -> int:
    """The schema version of a database that no daemon holds, after the same look as at start.

    Changes nothing in it. Raises DatabaseDamagedError when it is damaged, another MemxdError when it cannot be read.
    """
    try:
        connection = connect(path, writer=False)
        try:
            glance(connection)
            found = check(connection)
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise (damaged(path, error) if is_damage(error) else storage_error(error, reading=True)) from error
    if found:
        raise damaged(path, found)
    return version


def is_damage(error: BaseException) -> bool:
    """Whether an error of SQLite means a damaged file."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def damaged(path: Path, what: object) -> DatabaseDamagedError:
    """The refusal to start on a damaged database."""
    return DatabaseDamagedError(
        f"the database {path} is damaged ({what}) and is left as it is: put a backup in its place, which keeps it "
        "beside (memx restore FOLDER --move-aside), or save what can be read: "
        f'sqlite3 "{path}" .recover | sqlite3 recovered.db '
        "(the sqlite3 program of some distributions has no .recover; that of sqlite.org has)"
    )
