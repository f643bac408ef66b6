"""The log of changes: what an index replays to catch up, or is rebuilt from.

Owns the changes table, one row per revision: which row, what was touched, which vectors died. The content itself is
read from the row as it is now, so a log of any length never holds an old text. Part of every transaction; called by
the engine when it opens, replays and rebuilds indexes, and when it prunes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from memxd.model import Change, Chunk, Micros
from memxd.store import codec
from memxd.store.base import CHUNKS, TEXT, ReadBase, WriteBase

#: Rows that are read at once; few, because while their JSON is parsed no other thread runs.
_BATCH = 100
_TOUCHED = f"""SELECT max(revision) AS newest, rid, max(parts & {TEXT}) | max(parts & {CHUNKS}),
 '[' || group_concat(dead_vids) || ']' FROM changes WHERE revision > ? GROUP BY rid ORDER BY newest"""
_CHUNKS = "SELECT rid, vid, number, start, stop, vector FROM chunks WHERE rid IN (SELECT value FROM json_each(?))"


class Touched(NamedTuple):
    """One row of the log, summed up."""

    revision: int
    rid: int
    parts: int
    dead_vids: str | None


class ChangeReads(ReadBase):
    """Reading the log."""

    def changes_since(self, revision: int) -> Iterator[Change]:
        """What an index at ``revision`` has missed: each touched rid once, in its newest state, ascending revision.

        ``text`` and ``chunks`` are given when any of the missed changes touched them. Valid only when
        ``can_replay(revision)``.
        """
        self.write_late()
        touched = self._connection.execute(_TOUCHED, (revision,))
        while batch := [Touched(*values) for values in touched.fetchmany(_BATCH)]:
            yield from self._changes(batch)

    def can_replay(self, revision: int) -> bool:
        """Whether the log still reaches back to just behind ``revision``; if not, an index must be rebuilt.

        False as well for a revision of the future (an index of another or a restored database).
        """
        newest = self.revision()
        if revision >= newest:
            return revision == newest
        oldest = self.oldest_change()
        return oldest is not None and oldest <= revision + 1

    def touched_since(self, revision: int, limit: int) -> list[int] | None:
        """The rids of all changes after ``revision``; None when they are more than ``limit`` or no longer all known."""
        if not self.can_replay(revision):
            return None
        self.write_late()
        found = self._connection.execute(
            "SELECT rid FROM changes WHERE revision > ? LIMIT ?", (revision, limit + 1)
        ).fetchall()
        return [rid for (rid,) in found] if len(found) <= limit else None

    def oldest_change(self) -> int | None:
        """The oldest revision still in the log; None = the log is empty."""
        self.write_late()
        [oldest] = self._connection.execute("SELECT min(revision) FROM changes").fetchone()
        return None if oldest is None else int(oldest)

    def all_rows(self, *, chunks: bool = True) -> Iterator[Change]:
        """Every row, by rid ascending, at this snapshot's ``revision()``, whole (vectors only with ``chunks``): what
        an index is rebuilt from.

        An empty store yields nothing: tell the index the revision besides. Holds the snapshot: for a look that takes
        long, ``rows_after`` in snapshots of their own.
        """
        revision = self.revision()
        last = 0
        while page := self.rows_after(last, revision, chunks=chunks):
            yield from page
            last = page[-1].rid

    def rows_after(self, rid: int, revision: int, *, chunks: bool = True) -> list[Change]:
        """The next few rows behind ``rid``, as ``all_rows`` gives them; ``revision`` is the one that they are said to
        have. Empty at the end."""
        found = self._connection.execute(
            "SELECT rid FROM memories WHERE rid > ? ORDER BY rid LIMIT ?", (rid, _BATCH)
        ).fetchall()
        parts = TEXT | CHUNKS if chunks else TEXT
        return list(self._changes([Touched(revision, found_rid, parts, None) for (found_rid,) in found]))

    def _changes(self, batch: list[Touched]) -> Iterator[Change]:
        rids = json.dumps([touched.rid for touched in batch])
        found = self._values("WHERE m.rid IN (SELECT value FROM json_each(?))", (rids,))
        rows = {values[0]: values for values in found}
        chunks: dict[int, list[Chunk]] = {}
        with_chunks = json.dumps([touched.rid for touched in batch if touched.parts & CHUNKS])
        for rid, *values in self._connection.execute(_CHUNKS, (with_chunks,)).fetchall():
            chunks.setdefault(rid, []).append(Chunk(*values))
        for touched in batch:
            yield self._change(touched, rows.get(touched.rid), chunks.get(touched.rid, []))

    def _change(self, touched: Touched, values: list[Any] | None, chunks: list[Chunk]) -> Change:
        dead = tuple(sorted(vid for vids in json.loads(touched.dead_vids or "[]") for vid in vids))
        if values is None:
            return Change(touched.revision, touched.rid, None, dead_vids=dead)
        row = self._decode(values)
        return Change(
            touched.revision,
            touched.rid,
            codec.features(row, codec.unsigned(values[22]), codec.unsigned(values[23])),
            text=row.memory.content if touched.parts & TEXT else None,
            chunks=tuple(sorted(chunks, key=lambda chunk: chunk.number)) if touched.parts & CHUNKS else None,
            dead_vids=dead,
        )


class ChangeWrites(ChangeReads, WriteBase):
    """Pruning the log."""

    def prune_changes(self, before_revision: int, before_time: Micros) -> int:
        """Forget changes older than both, and return how many. The caller passes the lowest durable watermark + 1 of
        all indexes and a time at least 7 days ago."""
        self.write_late()
        return self._connection.execute(
            # Revisions and times grow together but for a clock set back: only an unbroken beginning may go.
            "DELETE FROM changes WHERE revision < "
            "min(?1, coalesce((SELECT min(revision) FROM changes WHERE at >= ?2), ?1))",
            (before_revision, before_time),
        ).rowcount
