"""Many rows of one table in few statements.

Owns the splitting: a statement of its own for each row would cost more than the row, and SQLite works without the
interpreter's lock for as long as one statement takes. Numbers of rows are powers of two, so that a few texts of
statements do for all and stay prepared. Knows no table. Called by the modules of the store that insert.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

#: Rows of one statement at most; other threads of the process run meanwhile, other writers do not.
_MOST = 64


def insert_rows(connection: sqlite3.Connection, head: str, rows: Sequence[Sequence[Any]]) -> None:
    """``INSERT INTO t(c, ...) VALUES`` (``head``) with these rows, all of the same width. Raises sqlite3.Error."""
    at, left = 0, len(rows)
    while left:
        size = min(_MOST, 1 << (left.bit_length() - 1))
        part: Iterable[Any] = chain.from_iterable(rows[at : at + size])
        connection.execute(_statement(head, size, len(rows[at])), tuple(part))
        at, left = at + size, left - size


@lru_cache(maxsize=128)
def _statement(head: str, size: int, width: int) -> str:
    row = f"({', '.join('?' * width)})"
    return f"{head} VALUES {', '.join([row] * size)}"
