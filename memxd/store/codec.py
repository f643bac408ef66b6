"""Rows of the database as the nouns of ``model.py``, and back.

Owns the one column list that a memory is read by, JSON in and out, the bits of ``importance``, signed hashes, and the
canonical form of metadata values for comparison. A row is read as a single JSON array (``ROW``), several rows as one
array of those: one SQLite step, however many rows, because each step may wait for the GIL. Called by the other modules
of the store.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Collection
from typing import Any

from memxd.model import Json, Link, LinkType, Memory, MemoryType, RowFeatures, Scope, State
from memxd.model.quick import quick
from memxd.store.counters import Counters
from memxd.store.types import Row
from memxd.text import cjk_share, content_hash

#: A memory ``m`` as a JSON array; ``row`` and ``features`` read it.
ROW = """json_array(m.rid, m.scope_no, m.id, m.content, m.type, json(m.tags), json(m.metadata), m.importance_bits,
 m.created_at, m.updated_at, m.event_at, m.valid_until, m.state, m.private, m.source, m.revision, m.access_count,
 m.last_accessed_at, m.retrieval_count, m.last_retrieved_at, m.vector_pending, m.superseded_by, m.content_hash,
 m.fold_hash)"""
#: A link ``l`` between ``s`` and ``t`` as columns; ``link`` reads it.
LINK = """l.id, s.id, t.id, l.type, l.strength, l.bidirectional, l.metadata, l.created_at"""

_memory = quick(Memory)
_TYPES = {int(member): member for member in MemoryType}
_STATES = {int(member): member for member in State}
_LONG, _DOUBLE = struct.Struct("<q"), struct.Struct("<d")
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
_SIGN = 1 << 63
_WRAP = 1 << 64
_EXACT = 1 << 53  # integers beyond it are not exact as doubles, which is what the wire carries


def signed(unsigned: int) -> int:
    """A 64-bit hash as SQLite keeps it."""
    return unsigned - _WRAP if unsigned >= _SIGN else unsigned


def unsigned(value: int) -> int:
    """A 64-bit hash as everybody else sees it."""
    return value + _WRAP if value < 0 else value


def to_bits(value: float) -> int:
    """The IEEE 754 bits of a number from 0 to 1; they sort like the number."""
    bits: int = _LONG.unpack(_DOUBLE.pack(value + 0.0))[0]  # + 0.0 turns -0.0 into 0.0
    return bits


def from_bits(bits: int) -> float:
    """The number that ``to_bits`` was given."""
    value: float = _DOUBLE.unpack(_LONG.pack(bits))[0]
    return value


def to_json(value: Any) -> str:
    """Compact JSON with sorted keys; numbers that JSON does not know are refused (ValueError)."""
    return _ENCODER.encode(value)


def to_tags(tags: Collection[str]) -> tuple[str, ...]:
    """Tags as they are kept: sorted, without repeats."""
    return tuple(sorted(set(tags)))


def canonical(value: Any) -> Any:
    """A JSON value in which equal means equal: numbers by value as doubles (1 and 1.0), booleans not numbers."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float):
        number = float(value)
        return int(number) if number.is_integer() and abs(number) <= _EXACT else number
    if isinstance(value, dict):
        return {key: canonical(item) for key, item in value.items()}
    return [canonical(item) for item in value]


def facts(metadata: Json) -> list[int]:
    """A signed 64-bit hash for each top-level key with its value; equal exactly when both are (but for chance)."""
    return [signed(content_hash(to_json([key, canonical(value)]))) for key, value in metadata.items()]


def row(values: list[Any], scope_of: Callable[[int], Scope], counters: Counters) -> Row:
    """The row that a ``ROW`` array tells of, with the counts that are not flushed yet."""
    (
        rid, scope_no, identity, content, kind, tags, metadata, importance, created_at, updated_at, event_at,
        valid_until, state, private, source, revision, accesses, accessed_at, retrievals, retrieved_at, pending,
        superseded_by, _, _,
    ) = values  # fmt: skip
    if counters.counted:
        accesses, accessed_at, retrievals, retrieved_at = counters.present(
            rid, accesses, accessed_at, retrievals, retrieved_at
        )
    memory = _memory(
        identity, scope_of(scope_no), content, _TYPES[kind], tuple(tags), metadata, from_bits(importance), created_at,
        updated_at, event_at, valid_until, _STATES[state], private != 0, source, revision, accesses, accessed_at,
        retrievals, retrieved_at, pending != 0, superseded_by,
    )  # fmt: skip
    return Row(rid, scope_no, memory)


def features(stored: Row, content: int, fold: int) -> RowFeatures:
    """What the column index keeps of a row; ``content`` and ``fold`` are its hashes, unsigned."""
    memory = stored.memory
    return RowFeatures(
        rid=stored.rid,
        scope_no=stored.scope_no,
        id=memory.id,
        type=int(memory.type),
        state=int(memory.state),
        importance=memory.importance,
        created_at=memory.created_at,
        event_at=memory.event_at,
        valid_until=memory.valid_until,
        access_count=memory.access_count,
        retrieval_count=memory.retrieval_count,
        last_retrieved_at=memory.last_retrieved_at,
        content_hash=content,
        fold_hash=fold,
        tags=memory.tags,
        private=memory.private,
        vector_pending=memory.vector_pending,
        cjk=cjk_share(memory.content),
    )


def link(values: tuple[Any, ...], scope: Scope) -> Link:
    """The link that ``LINK`` columns tell of."""
    identity, source, target, kind, strength, bidirectional, metadata, created_at = values
    return Link(
        id=identity,
        scope=scope,
        source_id=source,
        target_id=target,
        type=LinkType(kind),
        strength=strength,
        bidirectional=bool(bidirectional),
        metadata=json.loads(metadata),
        created_at=created_at,
    )
