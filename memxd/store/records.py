"""Memories: reading by id, changing, giving vectors.

Owns the memories table with its chunks, tags and facts, as far as one memory is concerned. How new ones come in is in
``inserting.py``, what superseding does to a row in ``supersession.py``, earlier contents in ``history.py``, erasing in
``erasing.py``. Part of every transaction; validation is done.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from memxd.errors import MemoryNotFoundError, StateConflictError
from memxd.model import Chunk, Json, Memory, MemoryType, Micros, Scope, State
from memxd.store import codec
from memxd.store.history import HistoryReads, HistoryWrites
from memxd.store.supersession import SupersessionWrites
from memxd.store.types import NewChunk, Row
from memxd.text import content_hash, fold_hash

_DUPLICATE = """WHERE m.scope_no = ? AND m.content_hash = ? AND m.content = ? AND +m.state = 1 AND m.type = ?
 AND m.event_at IS ? AND m.source = ? AND (m.valid_until IS NULL OR m.valid_until > ?) AND m.rid IS NOT ?
 ORDER BY m.rid LIMIT 1"""
#: Fields of an update that are a column each, and how a value is kept there.
_COLUMNS: dict[str, tuple[str, Any]] = {
    "type": ("type", int),
    "importance": ("importance_bits", codec.to_bits),
    "event_at": ("event_at", None),
    "valid_until": ("own_valid_until", None),
    "private": ("private", int),
    "source": ("source", None),
    "state": ("own_state", int),
    "tags": ("tags", lambda tags: codec.to_json(codec.to_tags(tags))),
    "metadata": ("metadata", codec.to_json),
    "content": ("content", None),
}


class RecordReads(HistoryReads):
    """Reading memories by their ids."""

    def get(self, scope: Scope, id: str) -> Row | None:
        """The memory of this id in this scope in whatever state, or None (also when another scope has it)."""
        return self.get_many(scope, (id,)).get(id)

    def get_many(self, scope: Scope, ids: Collection[str]) -> dict[str, Row]:
        """Those of ``ids`` that this scope holds, by id, in whatever state."""
        number = self.scope_no(scope)
        if number is None:
            return {}
        rows = self._rows(
            "WHERE m.scope_no = ? AND m.id IN (SELECT value FROM json_each(?))", (number, json.dumps(list(ids)))
        )
        return {row.memory.id: row for row in rows}

    def fetch(self, scope: Scope, rids: Sequence[int]) -> list[Row]:
        """The rows of ``rids`` in that order; those that are gone or of another scope are left out."""
        number = self.scope_no(scope)
        if number is None:
            return []
        rows = self._rows(
            "WHERE m.rid IN (SELECT value FROM json_each(?)) AND +m.scope_no = ?", (json.dumps(list(rids)), number)
        )
        found = {row.rid: row for row in rows}
        return [found[rid] for rid in rids if rid in found]

    def find_duplicate(
        self,
        scope_no: int,
        type: MemoryType,
        event_at: Micros | None,
        source: str,
        content: str,
        *,
        exclude_rid: int | None = None,
        now: Micros | None = None,
    ) -> Memory | None:
        """The oldest active, unexpired memory with equal type, event_at, source and content (NFC, trimmed), or None.

        ``exclude_rid``: not this one (for updates). ``now`` decides expiry; None = the store's clock.
        """
        moment = self._context.clock() if now is None else now
        digest = codec.signed(content_hash(content))
        parameters = (scope_no, digest, content, int(type), event_at, source, moment, exclude_rid)
        return next((row.memory for row in self._rows(_DUPLICATE, parameters)), None)

    def contents_among(self, scope_no: int, digests: Collection[int]) -> set[int]:
        """Those of ``digests`` (memxd.text.content_hash) that a memory of the scope has, in whatever state."""
        wanted = json.dumps([codec.signed(digest) for digest in digests])
        found = self._connection.execute(
            "SELECT content_hash FROM memories WHERE scope_no = ? AND content_hash IN (SELECT value FROM json_each(?))",
            (scope_no, wanted),
        )
        return {codec.unsigned(digest) for (digest,) in found.fetchall()}

    def pending_vectors(self, limit: int, *, after_rid: int = 0, private: bool = True) -> list[Row]:
        """Memories of all scopes that wait for a vector, by rid ascending above ``after_rid``.

        ``private`` False leaves private ones out (they must not go to a remote embedder).
        """
        rows = self._rows(
            "INDEXED BY memories_pending WHERE m.vector_pending = 1 AND m.rid > ? AND m.private <= ? "
            "ORDER BY m.rid LIMIT ?",
            (after_rid, int(private), limit),
        )
        return sorted(rows, key=lambda row: row.rid)

    def _stored(self, rid: int) -> Row:
        """The row of ``rid``; MemoryNotFoundError when it is gone."""
        rows = self._rows("WHERE m.rid = ?", (rid,))
        if not rows:
            raise MemoryNotFoundError("there is no such memory in this scope")
        return rows[0]


class RecordWrites(RecordReads, HistoryWrites, SupersessionWrites):
    """Changing memories."""

    def update(self, rid: int, fields: Mapping[str, Any], *, chunks: Sequence[NewChunk] | None = None) -> Row:
        """Give a memory new values; keys: content, type, tags, metadata, importance, event_at, valid_until, private,
        source, state (ACTIVE or ARCHIVED).

        A content that differs puts the old version into the history and replaces all vectors by ``chunks`` (None =
        pending); otherwise ``chunks`` is not read. Raises MemoryNotFoundError, StateConflictError (``state`` of a
        superseded memory). ``valid_until`` of a superseded memory is kept for the day it is restored. Un-archiving a
        memory that has been superseded makes it superseded. A new ``event_at`` moves the end of those it supersedes.
        """
        old = self._stored(rid)
        if "state" in fields and old.memory.state == State.SUPERSEDED:
            raise StateConflictError(
                "a superseded memory's state follows from what supersedes it; remove the supersedes link "
                "(memx links, memx unlink) to bring it back"
            )
        changed = "content" in fields and fields["content"] != old.memory.content
        columns = {_COLUMNS[key][0]: _kept(key, value) for key, value in fields.items()}
        revision = self._next_revision()
        columns |= {"revision": revision, "updated_at": max(self._now(), old.memory.updated_at)}
        if changed:
            self._keep_version(old)
            columns |= {
                "vector_pending": int(chunks is None),
                "content_hash": codec.signed(content_hash(fields["content"])),
                "fold_hash": codec.signed(fold_hash(fields["content"])),
            }
        assignments = ", ".join(f"{column} = ?" for column in columns)
        self._connection.execute(f"UPDATE memories SET {assignments} WHERE rid = ?", (*columns.values(), rid))
        if "tags" in fields:
            self._connection.execute("DELETE FROM memory_tags WHERE rid = ?", (rid,))
            self._add_tags(old.scope_no, rid, codec.to_tags(fields["tags"]))
        if "metadata" in fields:
            self._connection.execute("DELETE FROM memory_facts WHERE rid = ?", (rid,))
            self._add_facts(old.scope_no, rid, fields["metadata"])
        self._derive(rid)
        dead = self._drop_chunks(rid) if changed else ()
        fresh = self._add_chunks(rid, chunks or ()) if changed else None
        row = self._log_row(revision, rid, text=changed, chunks=fresh, dead_vids=dead)
        if "event_at" in fields and fields["event_at"] != old.memory.event_at:
            self._refresh(self._superseded_by(rid))
        return row

    def set_vectors(self, rid: int, chunks: Sequence[NewChunk], *, content_hash: int | None = None) -> bool:
        """Give a memory its vectors (backfill, re-embedding). Neither updated_at nor the memory's revision changes.

        False, and nothing done, when the row is gone or ``content_hash`` (memxd.text) is given and not its any more.
        """
        found = self._connection.execute("SELECT content_hash FROM memories WHERE rid = ?", (rid,)).fetchone()
        if found is None or (content_hash is not None and codec.unsigned(found[0]) != content_hash):
            return False
        dead = self._drop_chunks(rid)
        fresh = self._add_chunks(rid, chunks)
        self._connection.execute("UPDATE memories SET vector_pending = 0 WHERE rid = ?", (rid,))
        self._log_row(self._next_revision(), rid, chunks=fresh, dead_vids=dead)
        return True

    def _add_tags(self, number: int, rid: int, tags: tuple[str, ...]) -> None:
        for tag in tags:
            self._connection.execute("INSERT INTO memory_tags(scope_no, tag, rid) VALUES (?, ?, ?)", (number, tag, rid))

    def _add_facts(self, number: int, rid: int, metadata: Json) -> None:
        for fact in codec.facts(metadata):
            self._connection.execute(
                "INSERT OR IGNORE INTO memory_facts(scope_no, fact, rid) VALUES (?, ?, ?)", (number, fact, rid)
            )

    def _add_chunks(self, rid: int, chunks: Sequence[NewChunk]) -> tuple[Chunk, ...]:
        added: list[Chunk] = []
        for number, (start, stop, vector) in enumerate(chunks):
            vid = self._connection.execute(
                "INSERT INTO chunks(rid, number, start, stop, vector) VALUES (?, ?, ?, ?, ?)",
                (rid, number, start, stop, vector),
            ).lastrowid
            assert vid is not None
            added.append(Chunk(vid, number, start, stop, vector))
        return tuple(added)

    def _drop_chunks(self, rid: int) -> tuple[int, ...]:
        found = self._connection.execute("DELETE FROM chunks WHERE rid = ? RETURNING vid", (rid,))
        return tuple(sorted(vid for (vid,) in found.fetchall()))


def _kept(key: str, value: Any) -> Any:
    convert = _COLUMNS[key][1]
    return value if convert is None or value is None else convert(value)
