"""Reading, changing and erasing single records, and listing and counting many.

Owns Get, List, Count, Update, Delete, DeleteMany. Does not store new ones (storing.py) or search (search.py). Called by
the engine's face.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TypeAlias

from memxd.engine import paging, validate
from memxd.engine.canonical import digest
from memxd.engine.embedding import Embedding, embed_contents
from memxd.engine.idempotency import Retry
from memxd.engine.indexes import Indexes
from memxd.engine.vectors import Vectors
from memxd.errors import (
    DuplicateMemoryError,
    EmbedderUnavailableError,
    MemoryNotFoundError,
    RevisionMismatchError,
)
from memxd.model import (
    NO_DEADLINE,
    Clock,
    Deadline,
    Filter,
    IndexKind,
    Limits,
    Memory,
    Micros,
    Order,
    Page,
    Patch,
    Scope,
    State,
    StoreAnswer,
    View,
)
from memxd.store import Cursor, Row, Store, WriteTxn

#: Rids whose text an answer holds (named here, because the verb ``list`` hides the type below).
Rids: TypeAlias = list[int]

log = logging.getLogger(__name__)

_PENDING = Embedding((), pending=True)

#: A page stops before its texts pass this, which leaves room for ids, times and framing below 3.5 MiB.
PAGE_BYTES = 3 * 1024 * 1024
#: Fields whose change may make a memory equal to another.
IDENTITY = frozenset({"content", "type", "event_at", "source", "state"})


def not_found(id: str) -> MemoryNotFoundError:
    """The same words whether it never was, was deleted, or belongs to another scope."""
    return MemoryNotFoundError("no memory with this id in this scope", metadata={"id": id})


class Records:
    """The verbs on existing memories."""

    def __init__(self, store: Store, indexes: Indexes, vectors: Vectors, clock: Clock) -> None:
        self._store = store
        self._indexes = indexes
        self._vectors = vectors
        self._clock = clock

    # -- reading -------------------------------------------------------------------------------------------------

    def get(
        self, scope: Scope, id: str, record_access: bool = True, deadline: Deadline = NO_DEADLINE
    ) -> tuple[Memory, int]:
        """One memory in whatever state, and the store's revision."""
        clean = validate.scope(scope)
        wanted = validate.identifier("id", id)
        with self._store.read(deadline) as read:
            row = read.get(clean, wanted)
            revision = read.revision()
        if row is None:
            raise not_found(wanted)
        if record_access:
            self._store.count_access(row.rid)
        return row.memory, revision

    def list(
        self,
        scope: Scope,
        filter: Filter,
        order: Order | None = None,
        page_size: int | None = None,
        page_token: str = "",
        as_of: Micros | None = None,
        include_superseded: bool = False,
        deadline: Deadline = NO_DEADLINE,
    ) -> Page:
        """One page of memories."""
        clean = validate.scope(scope)
        by = order or Order.CREATED_AT_DESC
        size = validate.integer("page_size", page_size, Limits.PAGE_DEFAULT, 1, Limits.PAGE)
        view = self.view(filter, as_of, include_superseded)
        self._settle_counts(view, deadline)
        bound = digest("list", clean, view.filter, by, as_of, include_superseded)
        token = paging.decode(bound, page_token, (int | float, str))
        after = None if token is None else Cursor(token[0], token[1])
        with self._store.read(deadline) as read:
            page = read.list_rows(clean, view, by, after, size, max_bytes=PAGE_BYTES)
            revision = read.revision()
        memories = tuple(row.memory for row in page.rows)
        following = ""
        if page.more and memories:
            following = paging.encode(bound, list(Cursor.of(memories[-1], by)))
        return Page(memories, following, revision)

    def count(
        self,
        scope: Scope,
        filter: Filter,
        as_of: Micros | None = None,
        include_superseded: bool = False,
        deadline: Deadline = NO_DEADLINE,
    ) -> tuple[int, int]:
        """How many memories the filter selects, and the store's revision."""
        clean = validate.scope(scope)
        view = self.view(filter, as_of, include_superseded)
        self._settle_counts(view, deadline)
        return self._count(clean, view, deadline)

    def _count(self, scope: Scope, view: View, deadline: Deadline) -> tuple[int, int]:
        """From the columns, which count as fast as they select, when they can: they know no ids and no metadata."""
        if not view.filter.needs_store and self._indexes.is_whole(IndexKind.COLUMNS):
            return self._indexes.columns.count(self._store.scope_no(scope, deadline), view)
        with self._store.read(deadline) as read:
            return read.count(scope, view), read.revision()

    def view(self, filter: Filter, as_of: Micros | None, include_superseded: bool, every_state: bool = False) -> View:
        """A validated filter, seen now."""
        clean = validate.filter_(filter)
        validate.instant("as_of", as_of)
        if as_of is not None and clean.states:
            raise validate.fail("as_of", "does not go together with filter.states")
        return View(clean, self._clock(), as_of, include_superseded, every_state)

    def _settle_counts(self, view: View, deadline: Deadline) -> None:
        """Whether something is unused, the database only knows once the counts of the last second are written."""
        if view.filter.unused_since is not None:
            self._store.flush_counters(deadline)

    # -- changing ------------------------------------------------------------------------------------------------

    def update(
        self,
        scope: Scope,
        id: str,
        patch: Patch,
        expected_revision: int | None = None,
        request_id: str = "",
        deadline: Deadline = NO_DEADLINE,
    ) -> StoreAnswer:
        """Change the masked fields; a change of content is embedded before the transaction."""
        clean = validate.scope(scope)
        wanted = validate.identifier("id", id)
        new = validate.patch(patch)
        retry = Retry.of(clean, "Update", request_id, wanted, new, expected_revision)
        with self._store.read(deadline) as read:
            known = retry.known(read)
            row = read.get(clean, wanted)
        if isinstance(known, StoreAnswer):
            return known
        if row is None:
            raise not_found(wanted)
        self._check_revision(row, expected_revision)
        made = self._embedded(row.memory, new, deadline)

        def commit(txn: WriteTxn) -> StoreAnswer:
            return retry.once(txn, lambda: self._update_in(txn, clean, wanted, new, expected_revision, made))

        return self._store.write(commit, deadline)

    def _embedded(self, memory: Memory, patch: Patch, deadline: Deadline) -> Embedding:
        """Vectors of the new content; pending when it does not change or they must wait."""
        if "content" not in patch.mask or patch.content == memory.content:
            return _PENDING
        private = patch.private if "private" in patch.mask else memory.private
        space = self._vectors.current
        if not space.may_embed(private):
            return _PENDING
        try:
            return Embedding(embed_contents(space.embedder, [patch.content], deadline)[0], space=space)
        except EmbedderUnavailableError as error:
            log.warning("updating a memory without a vector: %s", error.message)
            return _PENDING

    def _update_in(
        self,
        txn: WriteTxn,
        scope: Scope,
        id: str,
        patch: Patch,
        expected_revision: int | None,
        made: Embedding,
    ) -> tuple[StoreAnswer, Rids]:
        row = txn.get(scope, id)
        if row is None:
            raise not_found(id)
        self._check_revision(row, expected_revision)
        fields = {name: getattr(patch, name) for name in patch.mask}
        after = replace(row.memory, **fields)
        validate.validity("memory", after.event_at, after.valid_until)
        self._check_duplicate(txn, row, after, patch.mask)
        changed = txn.update(row.rid, fields, chunks=made.to_store)
        return StoreAnswer(changed.memory, txn.revision()), [row.rid]

    @staticmethod
    def _check_revision(row: Row, expected: int | None) -> None:
        if expected is not None and expected != row.memory.revision:
            raise RevisionMismatchError(
                f"the memory is at revision {row.memory.revision}, not {expected}; get it again and repeat the change",
                metadata={"revision": str(row.memory.revision)},
            )

    @staticmethod
    def _check_duplicate(txn: WriteTxn, row: Row, after: Memory, mask: frozenset[str]) -> None:
        if not mask & IDENTITY or after.state is not State.ACTIVE:
            return
        same = ("content", "type", "event_at", "source", "state")
        if all(getattr(row.memory, name) == getattr(after, name) for name in same):
            return
        equal = txn.find_duplicate(
            row.scope_no, after.type, after.event_at, after.source, after.content,
            exclude_rid=row.rid,
        )  # fmt: skip
        if equal is not None:
            raise DuplicateMemoryError(
                f"this change would make it equal to memory {equal.id}; change or delete that one",
                metadata={"id": equal.id},
            )

    # -- erasing ---------------------------------------------------------------------------------------------------

    def delete(self, scope: Scope, id: str, request_id: str = "", deadline: Deadline = NO_DEADLINE) -> int:
        """Erase one memory; returns the revision at which it was gone."""
        clean = validate.scope(scope)
        wanted = validate.identifier("id", id)
        retry = Retry.of(clean, "Delete", request_id, wanted)

        def work(txn: WriteTxn) -> tuple[int, Rids]:
            row = txn.get(clean, wanted)
            if row is None:
                raise not_found(wanted)
            txn.delete([row.rid])
            return txn.revision(), []

        return self._store.write(lambda txn: retry.once(txn, lambda: work(txn)), deadline)

    def delete_many(
        self,
        scope: Scope,
        filter: Filter,
        dry_run: bool = False,
        request_id: str = "",
        deadline: Deadline = NO_DEADLINE,
    ) -> tuple[int, int]:
        """Erase what the filter selects in every state, all or nothing; returns how many and the revision."""
        clean = validate.scope(scope)
        view = self.view(filter, None, False, every_state=True)
        self._settle_counts(view, deadline)
        retry = Retry.of(clean, "DeleteMany", request_id, view.filter)
        if dry_run:
            return self._count(clean, view, deadline)

        def work(txn: WriteTxn) -> tuple[tuple[int, int], Rids]:
            deleted = txn.delete(txn.select_rids(clean, view))
            return (deleted, txn.revision()), []

        return self._store.write(lambda txn: retry.once(txn, lambda: work(txn)), deadline)
