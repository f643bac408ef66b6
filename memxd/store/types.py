"""The small shapes that go in and out of the store.

Owns rows, cursors, pages, edges and totals as the store hands them out. Knows no SQL. Called by everybody who uses the
store; callers' nouns (Memory, Link, View, Change) are in ``memxd/model.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from memxd.model import Change, Json, Link, Memory, MemoryType, Micros, Order, Scope

#: A chunk to be stored: half-open span in the content's characters, and the vector as little-endian float16 bytes of
#: unit length (2 bytes per dimension). The list position is the chunk's number.
NewChunk: TypeAlias = tuple[int, int, bytes]
#: What the keyword index makes of a text: how often each term stands in it, and its length. Passed on as it is.
Terms: TypeAlias = tuple[dict[str, int], int]
#: Told of committed changes in revision order, before any of their callers is answered.
CommitListener: TypeAlias = Callable[[list[Change]], None]
#: Told of flushed counters as new absolute values: (rid, access_count, retrieval_count, last_retrieved_at).
CounterListener: TypeAlias = Callable[[list[tuple[int, int, int, "Micros | None"]]], None]


class Row(NamedTuple):
    """A memory with its dense internal id (``rid``, never reused) and its scope's number."""

    rid: int
    scope_no: int
    memory: Memory


class Cursor(NamedTuple):
    """The place in a list after which a page begins: the sort value and id of the last row of the page before.

    ``value`` is created_at, "event_at, else created_at" (both microseconds), importance or (for links) strength.
    """

    value: float
    id: str

    @classmethod
    def of(cls, memory: Memory, order: Order) -> Cursor:
        """The cursor that continues after ``memory`` in a list ordered by ``order``."""
        if order in (Order.CREATED_AT_DESC, Order.CREATED_AT_ASC):
            return cls(memory.created_at, memory.id)
        if order in (Order.EVENT_AT_DESC, Order.EVENT_AT_ASC):
            return cls(memory.created_at if memory.event_at is None else memory.event_at, memory.id)
        return cls(memory.importance, memory.id)

    @classmethod
    def of_link(cls, link: Link) -> Cursor:
        """The cursor that continues after ``link`` in a list of links (strongest first)."""
        return cls(link.strength, link.id)


class RowPage(NamedTuple):
    """Rows of a list in order; ``more`` tells whether there are rows behind the last one."""

    rows: list[Row]
    more: bool


class Edge(NamedTuple):
    """A link with the rids of its ends, for walking."""

    link: Link
    source_rid: int
    target_rid: int


class Totals(NamedTuple):
    """Counts over all scopes. ``scopes`` counts scopes that hold at least one memory."""

    memories: int
    links: int
    vectors_pending: int
    scopes: int


class ScopeTotals(NamedTuple):
    """How many memories a scope holds: in every state, and active (expired included)."""

    scope: Scope
    total: int
    active: int


class Remembered(NamedTuple):
    """What is known of a request id: the hash of the request's body, and the answer.

    ``answer`` None: a memory that the answer told of was erased since, and the answer with it. The request counts as
    done all the same; the caller is told that the memory is not found, and nothing is stored anew.
    """

    body_hash: bytes
    answer: str | None


@dataclass(frozen=True, slots=True)
class Version:
    """A memory as it was before a change of content.

    ``revision`` and ``updated_at`` are that version's own; ``replaced_at`` is when the next one took its place.
    """

    content: str
    type: MemoryType
    tags: tuple[str, ...]
    metadata: Json
    importance: float
    event_at: Micros | None
    valid_until: Micros | None
    private: bool
    source: str
    revision: int
    updated_at: Micros
    replaced_at: Micros
