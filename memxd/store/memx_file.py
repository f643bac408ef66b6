"""Reading a MemX database: SQLite with the tables memories and memory_links.

Owns the SQL and nothing of what becomes of the rows. Opens the file read only and writes nothing. Called by ``memx
import --from memx``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memxd.errors import InvalidArgumentError

_TABLES = (("memories", "created_at, id"), ("memory_links", "id"))


def rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every row as its table's name and its columns by name, vectors left out; memories first.

    Raises InvalidArgumentError when the file is no such database.
    """
    try:
        # One thread after another goes on with the rows.
        target = f"file:{quote(str(path.absolute()))}?mode=ro"
        with closing(sqlite3.connect(target, uri=True, check_same_thread=False)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF").close()
            for table, order in _TABLES:
                columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] != "embedding"]
                if not columns and table == "memories":
                    raise InvalidArgumentError.field("file", "is no database of MemX: it has no table memories")
                if columns:
                    named = ", ".join('"' + column.replace('"', '""') + '"' for column in columns)
                    for values in connection.execute(f"SELECT {named} FROM {table} ORDER BY {order}"):
                        yield table, dict(zip(columns, values, strict=True))
    except sqlite3.Error as error:
        raise InvalidArgumentError.field("file", "cannot be read as a database of MemX") from error
