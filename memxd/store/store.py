"""SIGNATURES (first draft to program against)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

from memxd.model import (
    NO_DEADLINE, Change, Clock, Deadline, Direction, IdFactory, Json, Link, LinkType, Memory, MemoryType, Micros, Order, Scope, View,
)
from memxd.store.types import (
    CommitListener, CounterListener, Cursor, Edge, NewChunk, Remembered, Row, RowPage, ScopeTotals, Totals, Version,
)

T = TypeVar("T")


class ReadTxn:
    """One consistent snapshot of the store. Use it within its ``with`` and on one thread; keep it short.

    Memories handed out include the counts not yet flushed.
    """

    # -- the store ---------------------------------------------------------------------------------------------
    def revision(self) -> int:
        """The newest revision of this snapshot; 0 = nothing was ever stored. Inside a WriteTxn: the one last taken."""
        raise NotImplementedError

    def scope_no(self, scope: Scope) -> int | None:
        """The number of a scope, or None when nothing was ever stored in it."""
        raise NotImplementedError

    def scopes(self, limit: int) -> list[ScopeTotals]:
        """The ``limit`` largest scopes that hold memories, largest first, ties by name."""
        raise NotImplementedError

    def totals(self) -> Totals:
        """Counts over all scopes."""
        raise NotImplementedError

    def meta_get(self, key: str) -> str | None:
        """A fact about the database (model id, dimension, prefix), or None."""
        raise NotImplementedError

    # -- memories ----------------------------------------------------------------------------------------------
    def get(self, scope: Scope, id: str) -> Row | None:
        """The memory of this id in this scope in whatever state, or None (also when another scope has it)."""
        raise NotImplementedError

    def get_many(self, scope: Scope, ids: Collection[str]) -> dict[str, Row]:
        """Those of ``ids`` that this scope holds, by id, in whatever state."""
        raise NotImplementedError

    def fetch(self, scope: Scope, rids: Sequence[int]) -> list[Row]:
        """The rows of ``rids`` in that order; those that are gone or of another scope are left out."""
        raise NotImplementedError

    def find_duplicate(
        self, scope_no: int, type: MemoryType, event_at: Micros | None, source: str, content: str,
        *, exclude_rid: int | None = None, now: Micros | None = None,
    ) -> Memory | None:
        """The oldest active, unexpired memory with equal type, event_at, source and content (NFC, trimmed), or None.

        ``exclude_rid``: not this one (for updates). ``now`` decides expiry; None = the store's clock.
        """
        raise NotImplementedError

    def list_rows(
        self, scope: Scope, view: View, order: Order = Order.CREATED_AT_DESC, after: Cursor | None = None, limit: int = 50,
        *, max_bytes: int | None = None,
    ) -> RowPage:
        """Up to ``limit`` rows that the view shows, in order, from behind ``after``.

        ``max_bytes``: stop before the content, metadata and tags handed out pass that many bytes of UTF-8 (the first
        row always comes); ``more`` is then True.
        """
        raise NotImplementedError

    def count(self, scope: Scope, view: View) -> int:
        """How many rows the view shows."""
        raise NotImplementedError

    def select_rids(self, scope: Scope, view: View) -> list[int]:
        """The rids that the view shows, ascending."""
        raise NotImplementedError

    def rids_matching(self, scope: Scope, *, ids: Collection[str] | None = None, metadata: Json | None = None) -> list[int]:
        """The scope's rids with one of ``ids`` and with every key of ``metadata`` equal, ascending, in every state.

        None = no condition; both None is refused (ValueError): use ``select_rids``.
        """
        raise NotImplementedError

    def history(self, rid: int) -> list[Version]:
        """Earlier versions of a memory, newest first."""
        raise NotImplementedError

    def superseders(self, rid: int) -> list[Row]:
        """The memories that supersede ``rid``, the deciding one (earliest event_at, else created_at) first."""
        raise NotImplementedError

    def pending_vectors(self, limit: int, *, after_rid: int = 0, private: bool = True) -> list[Row]:
        """Memories of all scopes that wait for a vector, by rid ascending above ``after_rid``.

        ``private`` False leaves private ones out (they must not go to a remote embedder).
        """
        raise NotImplementedError

    # -- links -------------------------------------------------------------------------------------------------
    def get_link(self, scope: Scope, id: str) -> Link | None:
        """The link of this id in this scope, or None."""
        raise NotImplementedError

    def list_links(
        self, rid: int, direction: Direction = Direction.BOTH, types: Collection[LinkType] = (), strength_min: float = 0.0,
        after: Cursor | None = None, limit: int = 50,
    ) -> list[Link]:
        """Links of a memory, strongest first, ties by id ascending, from behind ``after`` (``Cursor.of_link``).

        A bidirectional link counts both ways. Empty ``types`` = every type. Ask for one more than the page to learn
        whether there are more.
        """
        raise NotImplementedError

    def count_links(
        self, rid: int, direction: Direction = Direction.BOTH, types: Collection[LinkType] = (), strength_min: float = 0.0,
    ) -> int:
        """How many links ``list_links`` would list in all."""
        raise NotImplementedError

    def neighbours(
        self, rids: Collection[int], types: Collection[LinkType] = (), direction: Direction = Direction.BOTH,
        strength_min: float = 0.0, limit: int = 10_000,
    ) -> list[Edge]:
        """The links that lead away from any of ``rids`` in ``direction``, each once, strongest first, ties by id.

        A bidirectional link leads both ways, whichever end is among ``rids``.
        """
        raise NotImplementedError

    # -- changes -----------------------------------------------------------------------------------------------
    def changes_since(self, revision: int) -> Iterator[Change]:
        """What an index at ``revision`` has missed: each touched rid once, in its newest state, ascending revision.

        ``text`` and ``chunks`` are given when any of the missed changes touched them. Valid only when
        ``can_replay(revision)``.
        """
        raise NotImplementedError

    def can_replay(self, revision: int) -> bool:
        """Whether the log still reaches back to just behind ``revision``; if not, an index must be rebuilt.

        False as well for a revision of the future (an index of another or a restored database).
        """
        raise NotImplementedError

    def oldest_change(self) -> int | None:
        """The oldest revision still in the log; None = the log is empty."""
        raise NotImplementedError

    def all_rows(self) -> Iterator[Change]:
        """Every row, by rid ascending, whole, at this snapshot's ``revision()``: what an index is rebuilt from.

        An empty store with a revision above 0 yields one Change of rid 0 that is gone, so that the index learns the
        revision.
        """
        raise NotImplementedError

    # -- request ids -------------------------------------------------------------------------------------------
    def recall(self, scope_no: int, rpc: str, request_id: str) -> Remembered | None:
        """What was answered to this request id within the last 24 h, or None."""
        raise NotImplementedError


class WriteTxn(ReadTxn):
    """A transaction on the writer thread; sees its own changes. Everything of ReadTxn works too.

    Each change of a memory or link takes a revision of its own and is told to the indexes after COMMIT.
    """

    def scope_no(self, scope: Scope, create: bool = True) -> int:  # type: ignore[override]
        """The number of a scope, made when it is new (``create`` False: 0 for none, numbers start at 1)."""
        raise NotImplementedError

    def insert(
        self, scope: Scope, *, content: str, type: MemoryType, tags: Collection[str] = (), metadata: Json | None = None,
        importance: float = 0.5, event_at: Micros | None = None, valid_until: Micros | None = None, private: bool = False,
        source: str = "", chunks: Sequence[NewChunk] | None = None, id: str | None = None, created_at: Micros | None = None,
    ) -> Row:
        """Store a memory, active.

        ``chunks`` None = vector pending; ``()`` = nothing to embed (not pending). ``id`` and ``created_at`` None = made
        from the store's clock and id factory (only import brings its own). Raises DuplicateMemoryError when the scope
        has this id already.
        """
        raise NotImplementedError

    def update(self, rid: int, fields: Mapping[str, Any], *, chunks: Sequence[NewChunk] | None = None) -> Row:
        """Give a memory new values; keys: content, type, tags, metadata, importance, event_at, valid_until, private,
        source, state (ACTIVE or ARCHIVED).

        A content that differs puts the old version into the history and replaces all vectors by ``chunks`` (None =
        pending); otherwise ``chunks`` is not read. Raises MemoryNotFoundError, StateConflictError (``state`` of a
        superseded memory). ``valid_until`` of a superseded memory is kept for the day it is restored. Un-archiving a
        memory that has been superseded makes it superseded. A new ``event_at`` moves the end of those it supersedes.
        """
        raise NotImplementedError

    def set_vectors(self, rid: int, chunks: Sequence[NewChunk], *, content_hash: int | None = None) -> bool:
        """Give a memory its vectors (backfill, re-embedding). Neither updated_at nor the memory's revision changes.

        False, and nothing done, when the row is gone or ``content_hash`` (memxd.text) is given and not its any more.
        """
        raise NotImplementedError

    def supersede(self, old_rids: Collection[int], new_rid: int, at: Micros | None = None) -> list[Link]:
        """Let ``new_rid`` supersede each of ``old_rids``: one SUPERSEDES link (strength 1) each, made ``at`` (None = now).

        The old ones become SUPERSEDED until the last such link (or the newer row) goes; their end is the earliest
        "event_at, else created_at" among those that supersede them, their own valid_until is remembered. An archived
        one stays ARCHIVED, and becomes SUPERSEDED when it is un-archived. Raises MemoryNotFoundError (missing or of
        another scope), LinkCycleError, DuplicateLinkError.
        """
        raise NotImplementedError

    def delete(self, rids: Collection[int]) -> int:
        """Erase memories with vectors, history, links and remembered answers; what they superseded is restored.

        Returns how many there were.
        """
        raise NotImplementedError

    def insert_link(
        self, source_rid: int, target_rid: int, type: LinkType, *, strength: float = 0.7, bidirectional: bool = False,
        metadata: Json | None = None, created_at: Micros | None = None,
    ) -> Link:
        """Link two memories of one scope. SUPERSEDES supersedes the target (see ``supersede``).

        Raises MemoryNotFoundError (either end missing, or not of one scope), InvalidArgumentError (self link),
        DuplicateLinkError (same source, target and type; or reversed when either of the two is bidirectional),
        LinkCycleError.
        """
        raise NotImplementedError

    def delete_link(self, scope: Scope, id: str) -> Link:
        """Remove a link and return what it was; a superseded target is restored. Raises LinkNotFoundError."""
        raise NotImplementedError

    def remember(self, scope_no: int, rpc: str, request_id: str, body_hash: bytes, answer: str, rids: Collection[int] = ()) -> None:
        """Keep an answer (JSON) for 24 h. ``rids``: the memories whose text it holds; erasing one erases the answer."""
        raise NotImplementedError

    def meta_set(self, key: str, value: str) -> None:
        """Set a fact about the database."""
        raise NotImplementedError

    def prune_changes(self, before_revision: int, before_time: Micros) -> int:
        """Forget changes older than both, and return how many. The caller passes the lowest durable watermark + 1 of
        all indexes and a time at least 7 days ago."""
        raise NotImplementedError


class Store:
    """The truth on disk: ``memxd.db`` in a directory, one writer thread, a pool of readers."""

    #: Called on the writer thread after COMMIT and before the callers are answered. Must not raise.
    on_commit: CommitListener | None
    #: Called on the writer thread after a flush of counters. Must not raise.
    on_counters: CounterListener | None

    @classmethod
    def open(cls, directory: Path, *, clock: Clock, ids: IdFactory, readers: int = 4) -> Store:
        """Open or make the database, migrate it if it is older (a copy is left beside), and start the writer.

        Raises SchemaTooNewError, StorageReadOnlyError, StorageFullError, StorageFailedError.
        """
        raise NotImplementedError

    def write(self, fn: Callable[[WriteTxn], T], deadline: Deadline = NO_DEADLINE) -> T:
        """Run ``fn`` in a transaction on the writer thread and return its result once it is durable and applied.

        What is queued commits as one group; an exception of ``fn`` undoes only what it did and is raised here. A
        deadline that passes while queued: not executed. Raises StorageFullError, StorageReadOnlyError,
        StorageFailedError, ShuttingDownError, DeadlineExceededError, CancelledError.
        """
        raise NotImplementedError

    def read(self, deadline: Deadline = NO_DEADLINE) -> AbstractContextManager[ReadTxn]:
        """A snapshot: ``with store.read(deadline) as txn``. Waits for a free reader; do not nest.

        A statement that runs past the deadline is interrupted (DeadlineExceededError, CancelledError).
        """
        raise NotImplementedError

    def count_access(self, rid: int) -> None:
        """Count one Get. In memory; flushed every second and at close."""
        raise NotImplementedError

    def count_retrievals(self, rids: Collection[int]) -> None:
        """Count hits returned by a search."""
        raise NotImplementedError

    def flush_counters(self) -> None:
        """Write the counts to the database now."""
        raise NotImplementedError

    def sizes(self) -> tuple[int, int]:
        """Bytes of the database file and of its write-ahead log."""
        raise NotImplementedError

    @property
    def schema_version(self) -> int:
        """The schema's version (PRAGMA user_version)."""
        raise NotImplementedError

    def close(self) -> None:
        """Finish what is queued, flush counters, fold the log into the database, join the thread. Twice is fine."""
        raise NotImplementedError
