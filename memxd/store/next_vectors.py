"""The vectors of the model that is to come, beside those of the present one, and the exchange of the two.

Owns the tables ``next_chunks`` (as ``chunks``), ``next_rows`` (which memories have theirs) and ``old_chunks`` (what is
left of the former model's, until it is wiped piece by piece). They exist only while a change of model is under way, so
no other version of memxd needs to know of them. A memory whose content changes loses its next vectors by a trigger.
Part of every transaction; called by the engine's reembedding.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from memxd.model import Change, Chunk
from memxd.store import codec
from memxd.store.base import ReadBase, WriteBase
from memxd.store.changes import ChangeReads, Touched
from memxd.store.types import NewChunk, Row

_CREATE = (
    """CREATE TABLE next_chunks(
  vid    INTEGER PRIMARY KEY AUTOINCREMENT,
  rid    INTEGER NOT NULL REFERENCES memories(rid) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  start  INTEGER NOT NULL,
  stop   INTEGER NOT NULL,
  vector BLOB    NOT NULL,
  UNIQUE(rid, number)
) STRICT""",
    "CREATE TABLE next_rows(rid INTEGER PRIMARY KEY REFERENCES memories(rid) ON DELETE CASCADE) STRICT",
    """CREATE TRIGGER next_stale AFTER UPDATE OF content_hash ON memories
WHEN new.content_hash IS NOT old.content_hash BEGIN
  DELETE FROM next_chunks WHERE rid = new.rid;
  DELETE FROM next_rows WHERE rid = new.rid;
END""",
)
_DROP = ("DROP TRIGGER IF EXISTS next_stale", "DROP TABLE IF EXISTS next_rows", "DROP TABLE IF EXISTS next_chunks")
_KEYS = ("model_id", "model_dimension", "model_passage_prefix")
_LACKS = "NOT EXISTS(SELECT 1 FROM next_rows AS n WHERE n.rid = m.rid)"
#: Rows that are wiped or read in one step.
_STEP = 1_000
_BATCH = 200


class NextModel(NamedTuple):
    """What the next vectors are of."""

    id: str
    dimension: int
    passage_prefix: str


class NextReads(ChangeReads, ReadBase):
    """Looking at the next vectors."""

    def next_model(self) -> str | None:
        """The id of the model that the next vectors are of; None when there are none under way."""
        return self.meta_get("next_model_id")

    def count_next(self) -> int:
        """How many memories have their next vectors."""
        [found] = self._connection.execute("SELECT count(*) FROM next_rows").fetchone()
        return int(found)

    def count_lacking_next(self, limit: int, *, private: bool) -> int:
        """How many memories still lack theirs, counted up to ``limit``. ``private`` False: without private ones."""
        [found] = self._connection.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM memories AS m WHERE m.private <= ? AND {_LACKS} LIMIT ?)",
            (int(private), limit),
        ).fetchone()
        return int(found)

    def lacking_next(self, limit: int, *, after_rid: int = 0, private: bool = True) -> list[Row]:
        """Memories of all scopes without next vectors, by rid ascending above ``after_rid``."""
        rows = self._rows(
            f"WHERE m.rid > ? AND m.private <= ? AND {_LACKS} ORDER BY m.rid LIMIT ?",
            (after_rid, int(private), limit),
        )
        return sorted(rows, key=lambda row: row.rid)

    def count_public(self) -> int:
        """How many memories are not private."""
        [found] = self._connection.execute("SELECT count(*) FROM memories WHERE private = 0").fetchone()
        return int(found)

    def rids_since(self, revision: int) -> list[int]:
        """The rids that the log of changes names after ``revision``, each once."""
        self.write_late()
        found = self._connection.execute("SELECT DISTINCT rid FROM changes WHERE revision > ?", (revision,))
        return [rid for (rid,) in found.fetchall()]

    def next_changes(self, rids: Sequence[int] | None = None) -> Generator[Change, None, None]:
        """Memories with their next vectors, as an index of them takes them over; those of ``rids`` also when they have
        none or are gone. None = all that have some, by rid."""
        if rids is not None:
            for at in range(0, len(rids), _BATCH):
                yield from self._with_next(rids[at : at + _BATCH])
            return
        last = 0
        while found := self._connection.execute(
            "SELECT rid FROM next_rows WHERE rid > ? ORDER BY rid LIMIT ?", (last, _BATCH)
        ).fetchall():
            last = found[-1][0]
            yield from self._with_next([rid for (rid,) in found])

    def _with_next(self, rids: Sequence[int]) -> Iterator[Change]:
        revision = self.revision()
        chunks: dict[int, list[Chunk]] = {}
        found = self._connection.execute(
            "SELECT rid, vid, number, start, stop, vector FROM next_chunks "
            "WHERE rid IN (SELECT value FROM json_each(?)) ORDER BY rid, number",
            (json.dumps(list(rids)),),
        )
        for rid, *values in found.fetchall():
            chunks.setdefault(rid, []).append(Chunk(*values))
        for change in self._changes([Touched(revision, rid, 0, None) for rid in rids]):
            yield change if change.features is None else replace(change, chunks=tuple(chunks.get(change.rid, ())))

    def has_table(self, name: str) -> bool:
        """Whether there is a table of this name."""
        found = self._connection.execute(
            "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (name,)
        ).fetchone()
        return found is not None


class NextWrites(NextReads, WriteBase):
    """Making them, and exchanging the two."""

    def begin_next(self, model: NextModel) -> None:
        """Note the next model and make room for its vectors; those it has already stay. Wipe another's before."""
        if not self.has_table("next_rows"):
            for statement in _CREATE:
                self._connection.execute(statement)
        for key, value in zip(_KEYS, (model.id, str(model.dimension), model.passage_prefix), strict=True):
            self.meta_set(f"next_{key}", value)

    def put_next(self, made: Sequence[tuple[int, int, Sequence[NewChunk]]]) -> int:
        """Keep next vectors of (rid, content hash, chunks); those of a memory that is gone or has another content are
        dropped. Returns how many were kept."""
        kept = 0
        for rid, digest, chunks in made:
            found = self._connection.execute("SELECT content_hash FROM memories WHERE rid = ?", (rid,)).fetchone()
            if found is None or codec.unsigned(found[0]) != digest:
                continue
            self._connection.execute("DELETE FROM next_chunks WHERE rid = ?", (rid,))
            self._connection.executemany(
                "INSERT INTO next_chunks(rid, number, start, stop, vector) VALUES (?, ?, ?, ?, ?)",
                [(rid, number, *chunk) for number, chunk in enumerate(chunks)],
            )
            self._connection.execute("INSERT OR REPLACE INTO next_rows(rid) VALUES (?)", (rid,))
            kept += 1
        return kept

    def adopt_next(self) -> None:
        """The next vectors become the present ones, all at once; a memory that lacks them waits for its vector.

        The last thing in its transaction: what the same commit brought of the former model does not reach an index.
        """
        self.changes[:] = [replace(change, chunks=None, dead_vids=()) for change in self.changes]
        execute = self._connection.execute
        lacks = execute(f"SELECT m.rid FROM memories AS m WHERE m.vector_pending = 0 AND {_LACKS}").fetchall()
        has = execute(
            f"SELECT m.rid FROM memories AS m INDEXED BY memories_pending WHERE m.vector_pending = 1 AND NOT ({_LACKS})"
        ).fetchall()
        for pending, found in ((1, lacks), (0, has)):
            for (rid,) in found:
                execute("UPDATE memories SET vector_pending = ? WHERE rid = ?", (pending, rid))
                self._log_row(self._next_revision(), rid)
        for statement in _DROP[:2]:
            execute(statement)
        execute("ALTER TABLE chunks RENAME TO old_chunks")
        execute("ALTER TABLE next_chunks RENAME TO chunks")
        for key in _KEYS:
            self.meta_set(key, self.meta_get(f"next_{key}") or "")
            execute("DELETE FROM meta WHERE key = ?", (f"next_{key}",))
        self.sealed = True

    def wipe_old(self) -> bool:
        """Erase some of the former model's vectors; False when none are left."""
        if not self.has_table("old_chunks"):
            return False
        if not self._wipe("old_chunks", "vid"):
            self._connection.execute("DROP TABLE old_chunks")
        return True

    def wipe_next(self) -> bool:
        """Erase some of the next vectors, which are of no use any more; False when none are left."""
        if not self.has_table("next_rows"):
            return False
        if not self._wipe("next_chunks", "vid") and not self._wipe("next_rows", "rid"):
            for statement in _DROP:
                self._connection.execute(statement)
            for key in _KEYS:
                self._connection.execute("DELETE FROM meta WHERE key = ?", (f"next_{key}",))
        return True

    def _wipe(self, table: str, key: str) -> bool:
        step = f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} ORDER BY {key} LIMIT {_STEP})"
        return self._connection.execute(step).rowcount > 0
