"""What superseding does to a memory.

Owns the derived columns: ``state``, ``valid_until`` and ``superseded_by`` follow at any time from what callers set
(``own_state``, ``own_valid_until``) and from the SUPERSEDES links that point at the row, so that nothing needs to be
undone when such a link goes: the row is derived anew. The deciding superseder is the one that began earliest
("event_at, else created_at"; ties by the older link). An archived row stays as its caller left it, whatever points at
it, and becomes superseded when it is un-archived. Called by the writing half of records, links and erasing.
"""

from __future__ import annotations

from collections.abc import Iterable

from memxd.errors import LinkCycleError
from memxd.model import LinkType, State
from memxd.store.base import ReadBase, WriteBase
from memxd.store.types import Row

_SUPERSEDES = int(LinkType.SUPERSEDES)
_DECIDING = f"""SELECT n.id, n.event_at, n.created_at FROM links AS l JOIN memories AS n ON n.rid = l.source_rid
 WHERE l.target_rid = ? AND l.type = {_SUPERSEDES} ORDER BY n.began_at, l.lid LIMIT 1"""
_REACHES = f"""WITH RECURSIVE older(rid) AS (VALUES (?1) UNION
 SELECT l.target_rid FROM older JOIN links AS l ON l.source_rid = older.rid AND l.type = {_SUPERSEDES})
 SELECT 1 FROM older WHERE rid = ?2"""


class SupersessionReads(ReadBase):
    """Who supersedes whom."""

    def superseders(self, rid: int) -> list[Row]:
        """The memories that supersede ``rid``, the deciding one (earliest event_at, else created_at) first."""
        found = self._connection.execute(
            f"SELECT source_rid FROM links WHERE target_rid = ? AND type = {_SUPERSEDES} ORDER BY lid", (rid,)
        )
        order = {source: place for place, (source,) in enumerate(found.fetchall())}
        rows = self._rows(f"WHERE m.rid IN ({', '.join(map(str, order))})", ()) if order else []

        def began(row: Row) -> tuple[int, int]:
            memory = row.memory
            return (memory.created_at if memory.event_at is None else memory.event_at, order[row.rid])

        return sorted(rows, key=began)


class SupersessionWrites(WriteBase):
    """Keeping derived columns true."""

    def _derive(self, rid: int) -> bool:
        """Compute the derived columns of a row anew; tell whether they changed. Takes no revision."""
        created, own_state, own_end, *stored = self._connection.execute(
            "SELECT created_at, own_state, own_valid_until, state, valid_until, superseded_by FROM memories "
            "WHERE rid = ?",
            (rid,),
        ).fetchone()
        derived = [own_state, own_end, ""]
        if own_state == State.ACTIVE:
            deciding = self._connection.execute(_DECIDING, (rid,)).fetchone()
            if deciding is not None:
                newer, event, began = deciding
                end = max(began, created) if event is None else event  # a clock that went back ends nothing early
                derived = [int(State.SUPERSEDED), end, newer]
        if derived == stored:
            return False
        self._connection.execute(
            "UPDATE memories SET state = ?, valid_until = ?, superseded_by = ? WHERE rid = ?", (*derived, rid)
        )
        return True

    def _refresh(self, rids: Iterable[int]) -> None:
        """Derive rows anew after a link or a superseder changed; those that differ take a revision each."""
        for rid in rids:
            if self._derive(rid):
                self._touch(rid)

    def _superseded_by(self, rid: int) -> list[int]:
        """What ``rid`` supersedes, ascending."""
        found = self._connection.execute(
            f"SELECT target_rid FROM links WHERE source_rid = ? AND type = {_SUPERSEDES} ORDER BY target_rid", (rid,)
        )
        return [target for (target,) in found.fetchall()]

    def _refuse_circle(self, source_rid: int, target_rid: int) -> None:
        """Raise LinkCycleError when ``target_rid`` supersedes ``source_rid`` already, directly or through others."""
        if self._connection.execute(_REACHES, (target_rid, source_rid)).fetchone():
            raise LinkCycleError("the memory to be superseded supersedes this one, directly or through others")
