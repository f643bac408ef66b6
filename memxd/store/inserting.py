"""Storing new memories, one or many.

Owns how a new memory's rows come into the tables memories, chunks, memory_tags and memory_facts, and the numbers it
gets (rid, vid), which are never given twice. Many are inserted as one is, but by few statements: their order, ids,
revisions and changes are those of as many single inserts. Part of every transaction; validation is done.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from memxd.errors import DuplicateMemoryError
from memxd.model import Change, Chunk, Json, Memory, MemoryType, Micros, RowFeatures, Scope, State
from memxd.model.quick import quick
from memxd.store import codec
from memxd.store.base import CHUNKS, TEXT
from memxd.store.records import RecordWrites
from memxd.store.rows import insert_rows
from memxd.store.types import NewChunk, Row, Terms
from memxd.text import cjk_share, content_hash, fold_hash

_MEMORIES = """INSERT INTO memories(rid, scope_no, id, type, state, own_state, importance_bits, created_at, updated_at,
 event_at, valid_until, own_valid_until, private, vector_pending, revision, content_hash, fold_hash, source, tags,
 metadata, content)"""
#: What stands beside a memory, for ``insert_rows``.
CHUNK_ROWS = "INSERT INTO chunks(vid, rid, number, start, stop, vector)"
TAGS = "INSERT INTO memory_tags(scope_no, tag, rid)"
FACTS = "INSERT OR IGNORE INTO memory_facts(scope_no, fact, rid)"
_ACTIVE = int(State.ACTIVE)

_memory, _features, _change, _chunk = quick(Memory), quick(RowFeatures), quick(Change), quick(Chunk)


@dataclass(slots=True)
class NewRow:
    """A memory to be stored, active.

    ``chunks`` None = vector pending; ``()`` = nothing to embed (not pending). ``id`` and ``created_at`` None = made
    from the store's clock and id factory (only import brings its own). ``terms`` go to the indexes with the change.
    ``content_hash``, ``fold_hash`` (memxd.text) None = made here.
    """

    scope: Scope
    content: str
    type: MemoryType
    tags: Collection[str] = ()
    metadata: Json | None = None
    importance: float = 0.5
    event_at: Micros | None = None
    valid_until: Micros | None = None
    private: bool = False
    source: str = ""
    chunks: Sequence[NewChunk] | None = None
    id: str | None = None
    created_at: Micros | None = None
    terms: Terms | None = None
    content_hash: int | None = None
    fold_hash: int | None = None


class InsertWrites(RecordWrites):
    """Storing memories."""

    def insert(self, scope: Scope, *, content: str, type: MemoryType, **rest: Any) -> Row:
        """Store one memory; ``rest`` as in ``NewRow``. Raises DuplicateMemoryError when the scope has this id."""
        return self.insert_many([NewRow(scope, content, type, **rest)])[0]

    def insert_many(self, news: Sequence[NewRow]) -> list[Row]:
        """Store memories in this order; all or none. Raises DuplicateMemoryError when the scope has one of these
        ids."""
        rid, vid = self._last("memories"), self._last("chunks")
        now = self._now()
        memories: list[tuple[Any, ...]] = []
        tags: list[tuple[int, str, int]] = []
        facts: list[tuple[int, int, int]] = []
        chunks: list[tuple[int, int, int, int, int, bytes]] = []
        rows: list[Row] = []
        changes: list[Change] = []
        scope, number = None, 0
        for new in news:
            if len(news) > 1:
                self._context.between()
            rid += 1
            if new.scope is not scope:  # mostly the same for all
                scope, number = new.scope, self.scope_no(new.scope)
            if new.id is not None and self._has(number, new.id):
                raise DuplicateMemoryError("this scope has a memory of this id already", metadata={"id": new.id})
            memory, metadata = self._made(new, now)
            digest = content_hash(new.content) if new.content_hash is None else new.content_hash
            fold = fold_hash(new.content) if new.fold_hash is None else new.fold_hash
            memories.append(_columns(rid, number, memory, metadata, digest, fold))
            tags += [(number, tag, rid) for tag in memory.tags]
            if memory.metadata:
                facts += [(number, fact, rid) for fact in codec.facts(memory.metadata)]
            told: list[Chunk] = []
            for at, (start, stop, vector) in enumerate(new.chunks or ()):
                vid += 1
                chunks.append((vid, rid, at, start, stop, vector))
                told.append(_chunk(vid, at, start, stop, vector))
            rows.append(Row(rid, number, memory))
            features = _row_features(rid, number, memory, digest, fold)
            changes.append(_change(memory.revision, rid, features, new.content, tuple(told), (), new.terms))
        self._insert_all(_MEMORIES, memories)
        self._insert_all(TAGS, tags)
        self._insert_all(FACTS, facts)
        self._insert_all(CHUNK_ROWS, chunks)
        for change in changes:
            self._late.add_change(change.revision, change.rid, now, TEXT | CHUNKS, None)
        self.changes += changes
        return rows

    def _insert_all(self, head: str, rows: Sequence[tuple[Any, ...]]) -> None:
        insert_rows(self._connection, head, rows)

    def _has(self, number: int, identity: str) -> bool:
        return bool(
            self._connection.execute(
                "SELECT 1 FROM memories WHERE scope_no = ? AND id = ?", (number, identity)
            ).fetchone()
        )

    def _made(self, new: NewRow, now: Micros) -> tuple[Memory, str]:
        """The memory, with the next revision, and its metadata as JSON."""
        facts = codec.to_json(new.metadata) if new.metadata else "{}"
        created = now if new.created_at is None else new.created_at
        memory = _memory(
            self._context.ids(created) if new.id is None else new.id,
            new.scope,
            new.content,
            new.type,
            codec.to_tags(new.tags) if new.tags else (),
            json.loads(facts) if new.metadata else {},
            new.importance + 0.0,
            created,
            created,
            new.event_at,
            new.valid_until,
            State.ACTIVE,
            new.private,
            new.source,
            self._next_revision(),
            vector_pending=new.chunks is None,
        )
        return memory, facts


def _columns(rid: int, number: int, memory: Memory, metadata: str, digest: int, fold: int) -> tuple[Any, ...]:
    return (
        rid, number, memory.id, int(memory.type), _ACTIVE, _ACTIVE, codec.to_bits(memory.importance), memory.created_at,
        memory.updated_at, memory.event_at, memory.valid_until, memory.valid_until, int(memory.private),
        int(memory.vector_pending), memory.revision, codec.signed(digest), codec.signed(fold), memory.source,
        codec.to_json(memory.tags) if memory.tags else "[]", metadata, memory.content,
    )  # fmt: skip


def _row_features(rid: int, number: int, memory: Memory, digest: int, fold: int) -> RowFeatures:
    """As ``codec.features``, of a memory that was never found or read."""
    return _features(
        rid, number, memory.id, int(memory.type), _ACTIVE, memory.importance, memory.created_at, memory.event_at,
        memory.valid_until, 0, 0, None, digest, fold, memory.tags, memory.private, memory.vector_pending,
        cjk_share(memory.content),
    )  # fmt: skip
