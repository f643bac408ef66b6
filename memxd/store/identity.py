"""Which database this is: a random id that index files are stamped with.

Owns the id's making and its renewal. A database keeps its id for life, also as a copy; it gets another one when index
files are found that reflect more than it holds: then it is an older copy put back, and what was derived from its lost
future must never be taken for its own. Called by ``store.py``.
"""

from __future__ import annotations

import secrets
import sqlite3

_KEY = "database_id"


def database_id(connection: sqlite3.Connection) -> str:
    """The id, made when there is none. Outside of a transaction."""
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (_KEY,)).fetchone()
    return str(found[0]) if found else renew(connection)


def renew(connection: sqlite3.Connection) -> str:
    """Give the database another id and return it."""
    fresh = secrets.token_hex(16)
    connection.execute("INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)", (_KEY, fresh))
    return fresh
