"""Looking through the whole database for what should never be.

Owns SQLite's own checks in full, the references between tables, and whether what is derived from the links is what they
say. Mends nothing. Part of a read transaction; called by the engine's verify.
"""

from __future__ import annotations

from memxd.model import Change, LinkType
from memxd.store.base import CHUNKS, TEXT, ReadBase
from memxd.store.changes import ChangeReads, Touched
from memxd.store.types import Row

_MOST = 20
_UNDERIVED = f"""SELECT m.id FROM memories AS m WHERE m.state <> CASE WHEN m.own_state = 1 AND EXISTS(
 SELECT 1 FROM links AS l WHERE l.target_rid = m.rid AND l.type = {int(LinkType.SUPERSEDES)}) THEN 2 ELSE m.own_state
 END LIMIT {_MOST}"""


class VerifyReads(ChangeReads, ReadBase):
    """Looking without changing."""

    def problems(self) -> list[str]:
        """What is wrong with the database itself, for people; at most some of each kind. Raises sqlite3.Error where it
        cannot even be read."""
        execute = self._connection.execute
        found = [str(row[0]) for row in execute(f"PRAGMA integrity_check({_MOST})").fetchall() if row[0] != "ok"]
        dangling = execute("PRAGMA foreign_key_check").fetchmany(_MOST)
        found += [f"a row of {table} refers to a row of {parent} that is not there" for table, _, parent, _ in dangling]
        found += [f"the state of memory {id} is not what its links say" for (id,) in execute(_UNDERIVED).fetchall()]
        return found

    def count_chunks(self) -> int:
        """How many vectors there are."""
        [found] = self._connection.execute("SELECT count(*) FROM chunks").fetchone()
        return int(found)

    def row(self, rid: int) -> Row | None:
        """The row of this number, of whatever scope; None when it is gone."""
        return next(iter(self._rows("WHERE m.rid = ?", (rid,))), None)

    def whole_row(self, rid: int) -> Change:
        """One row as ``all_rows`` gives it; ``features`` None when it is gone."""
        [change] = self._changes([Touched(self.revision(), rid, TEXT | CHUNKS, None)])
        return change
