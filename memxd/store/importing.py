"""Taking memories over as another store had them: with their ids, times, counts, versions and links.

Owns what differs from storing: nothing is made here that the other store has made already, and what follows from the
links (superseding) is derived without a new time of change. Everything else is as in ``records.py`` and ``links.py``.
Part of a write transaction; validation is done. Called by the engine's import.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from memxd.errors import DuplicateLinkError, InvalidArgumentError, StateConflictError
from memxd.model import Change, Chunk, Link, LinkType, Memory, Scope
from memxd.store import codec
from memxd.store.base import CHUNKS, TEXT
from memxd.store.exporting import ExportReads
from memxd.store.inserting import CHUNK_ROWS, FACTS, TAGS
from memxd.store.links import SAME, LinkWrites
from memxd.store.records import RecordWrites
from memxd.store.rows import insert_rows
from memxd.store.types import NewChunk, Row, Terms, Version
from memxd.text import content_hash, fold_hash

#: Versions of another store come before every revision of this one; their order is their number's.
_BEFORE = 1 << 40


class Taken(NamedTuple):
    """A memory that is taken over. ``chunks`` None = vector pending; ``terms`` go to the indexes with the change."""

    memory: Memory
    chunks: Sequence[NewChunk] | None
    terms: Terms | None = None


class ImportWrites(RecordWrites, LinkWrites, ExportReads):
    """Taking over."""

    def import_memory(self, memory: Memory, chunks: Sequence[NewChunk] | None, *, over: int | None = None) -> Row:
        """Take a memory over as it is; its ``state`` (ACTIVE, ARCHIVED) and ``valid_until`` are its callers' own.

        ``chunks`` None = vector pending. ``over``: the rid of the one of this id that it replaces, whose versions,
        vectors and counts go; links stay. The id must not be taken otherwise.
        """
        number = self.scope_no(memory.scope)
        revision = self._next_revision()
        columns = _columns(memory) | {"vector_pending": int(chunks is None), "revision": revision}
        dead: tuple[int, ...] = ()
        if over is None:
            columns |= {"scope_no": number, "id": memory.id}
            marks = ", ".join("?" * len(columns))
            rid = self._connection.execute(
                f"INSERT INTO memories({', '.join(columns)}) VALUES ({marks})", tuple(columns.values())
            ).lastrowid
            assert rid is not None
        else:
            rid = over
            dead = self._empty(rid)
            assignments = ", ".join(f"{column} = ?" for column in columns)
            self._connection.execute(f"UPDATE memories SET {assignments} WHERE rid = ?", (*columns.values(), rid))
            self._derive(rid)
        self._add_tags(number, rid, codec.to_tags(memory.tags))
        self._add_facts(number, rid, memory.metadata)
        row = self._log_row(revision, rid, text=True, chunks=self._add_chunks(rid, chunks or ()), dead_vids=dead)
        if over is not None:
            for target in self._superseded_by(rid):
                self._settle(target)
        return row

    def ids_among(self, scope: Scope, ids: Collection[str]) -> set[str]:
        """Those of ``ids`` that a memory of the scope has, in whatever state."""
        found = self._connection.execute(
            "SELECT id FROM memories WHERE scope_no = ? AND id IN (SELECT value FROM json_each(?))",
            (self.scope_no(scope, create=False), json.dumps(list(ids))),
        )
        return {id for (id,) in found.fetchall()}

    def import_all(self, taken: Sequence[Taken]) -> None:
        """As ``import_memory`` for several of one scope, in this order and by few statements; all or none. None of
        their ids may be taken."""
        if not taken:
            return
        number, now = self.scope_no(taken[0].memory.scope), self._now()
        last, vid = self._last("memories"), self._last("chunks")
        rows: list[dict[str, Any]] = []
        tags: list[tuple[int, str, int]] = []
        facts: list[tuple[int, int, int]] = []
        chunks: list[tuple[int, int, int, int, int, bytes]] = []
        for rid, (memory, given, terms) in enumerate(taken, start=last + 1):
            revision = self._next_revision()
            own = {"rid": rid, "scope_no": number, "id": memory.id, "vector_pending": int(given is None)}
            rows.append(columns := _columns(memory) | own | {"revision": revision})
            tags += [(number, tag, rid) for tag in codec.to_tags(memory.tags)]
            facts += [(number, fact, rid) for fact in codec.facts(memory.metadata)]
            told = [Chunk(vid + n, n - 1, *chunk) for n, chunk in enumerate(given or (), start=1)]
            chunks += [(chunk.vid, rid, chunk.number, chunk.start, chunk.end, chunk.vector) for chunk in told]
            vid += len(told)
            features = codec.features(
                Row(rid, number, _as_stored(memory, revision, given is None)),
                codec.unsigned(columns["content_hash"]),
                codec.unsigned(columns["fold_hash"]),
            )
            self.changes.append(Change(revision, rid, features, memory.content, tuple(told), (), terms))
            self._late.add_change(revision, rid, now, TEXT | CHUNKS, None)
        head = f"INSERT INTO memories({', '.join(rows[0])})"
        insert_rows(self._connection, head, [tuple(columns.values()) for columns in rows])
        insert_rows(self._connection, TAGS, tags)
        insert_rows(self._connection, FACTS, facts)
        insert_rows(self._connection, CHUNK_ROWS, chunks)

    def import_version(self, rid: int, number: int, version: Version) -> bool:
        """Add an earlier version, number 1 being the oldest; False when the memory has it already.

        Raises StateConflictError when it has another version of this number.
        """
        if any(replace(known, revision=0) == replace(version, revision=0) for known in self.history(rid)):
            return False
        place = number - _BEFORE
        taken = self._connection.execute("SELECT 1 FROM history WHERE rid = ? AND revision = ?", (rid, place))
        if taken.fetchone():
            raise StateConflictError("the memory has another version of this number", metadata={"number": str(number)})
        self._add_version(rid, place, version.replaced_at, version)
        return True

    def import_link(self, source_rid: int, target_rid: int, link: Link) -> None:
        """Take a link over. Raises as ``insert_link``; DuplicateLinkError when these are linked by another id."""
        number, _, _ = self._ends(source_rid, target_rid)
        same = self._connection.execute(SAME, (source_rid, target_rid, int(link.type), int(link.bidirectional)))
        if (found := same.fetchone()) is not None:
            raise DuplicateLinkError("these memories are linked in this way already", metadata={"id": found[0]})
        if link.type == LinkType.SUPERSEDES:
            if link.bidirectional:
                raise InvalidArgumentError.field("bidirectional", "a supersedes link leads one way only")
            self._refuse_circle(source_rid, target_rid)
        self._insert_link(number, source_rid, target_rid, link)
        self._log_row(self._next_revision(), source_rid)
        if link.type == LinkType.SUPERSEDES:
            self._settle(target_rid)

    def _settle(self, rid: int) -> None:
        """Derive a row anew; a change takes a revision, but no time: it happened in the other store."""
        if self._derive(rid):
            revision = self._next_revision()
            self._connection.execute("UPDATE memories SET revision = ? WHERE rid = ?", (revision, rid))
            self._log_row(revision, rid)

    def _empty(self, rid: int) -> tuple[int, ...]:
        """Take from a memory what its replacement brings anew; answers the vectors that die."""
        for table in ("memory_tags", "memory_facts", "history"):
            self._connection.execute(f"DELETE FROM {table} WHERE rid = ?", (rid,))
        self.erased = True
        return self._drop_chunks(rid)


def _as_stored(memory: Memory, revision: int, pending: bool) -> Memory:
    """The memory as it would be read again."""
    return replace(memory, tags=codec.to_tags(memory.tags), revision=revision, vector_pending=pending)


def _columns(memory: Memory) -> dict[str, Any]:
    """What an import sets, by column."""
    return {
        "type": int(memory.type),
        "state": int(memory.state),
        "own_state": int(memory.state),
        "importance_bits": codec.to_bits(memory.importance),
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
        "event_at": memory.event_at,
        "valid_until": memory.valid_until,
        "own_valid_until": memory.valid_until,
        "private": int(memory.private),
        "access_count": memory.access_count,
        "last_accessed_at": memory.last_accessed_at,
        "retrieval_count": memory.retrieval_count,
        "last_retrieved_at": memory.last_retrieved_at,
        "content_hash": codec.signed(content_hash(memory.content)),
        "fold_hash": codec.signed(fold_hash(memory.content)),
        "source": memory.source,
        "tags": codec.to_json(codec.to_tags(memory.tags)),
        "metadata": codec.to_json(memory.metadata),
        "content": memory.content,
    }
