"""Storing: one memory, or a stream of them.

Owns Store and StoreMany from validation to acknowledgement: duplicates, superseding, embedding before the transaction,
what may stay without a vector. Does not search. Called by the engine's face.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from memxd.engine import validate
from memxd.engine.content import public_text
from memxd.engine.embedding import Embedding, embed_contents, own_vector, to_bytes
from memxd.engine.idempotency import Retry
from memxd.engine.stream import Grouped, groups
from memxd.engine.vectors import Vectors
from memxd.errors import EmbedderUnavailableError, MemoryNotFoundError, MemxdError
from memxd.index.lexical.analyzer import document_terms
from memxd.model import NO_DEADLINE, Deadline, Memory, MemoryType, NewMemory, Scope, StoreAnswer
from memxd.store import ReadTxn, Row, Store, Terms, WriteTxn

log = logging.getLogger(__name__)

#: Items of a stream that are embedded and committed together at most.
GROUP = 64

#: One item of StoreMany: where it goes, the memory, its retry key; or why it could not even be read.
Item = tuple[Scope, NewMemory, str] | MemxdError


@dataclass(slots=True)
class _Ready:
    """A validated item, with its vectors once they are made. ``skipped``: not embedded, because an equal row exists.

    ``terms``: what the keyword index makes of it, made here so that the writer thread has less to do while others wait.
    """

    scope: Scope
    new: NewMemory
    retry: Retry
    embedding: Embedding
    skipped: bool = False
    terms: Terms | None = None

    @property
    def type(self) -> MemoryType:
        return self.new.type or MemoryType.SEMANTIC


class _EqualRowGoneError(MemxdError):
    """The equal row that made embedding needless was changed before the commit: embed and try again."""

    reason = "EQUAL_ROW_GONE"


class Storing:
    """The verbs that bring memories in."""

    def __init__(self, store: Store, vectors: Vectors) -> None:
        self._store = store
        self._vectors = vectors

    def store(
        self, scope: Scope, new: NewMemory, request_id: str = "", deadline: Deadline = NO_DEADLINE
    ) -> StoreAnswer:
        """Store one memory; durable, embedded and indexed when it returns. Errors as the contract names them."""
        ready = self._prepare(scope, new, request_id, "Store")
        answer = self._store_ready([ready], deadline)[0]
        if isinstance(answer, MemxdError):
            raise answer
        return answer

    def store_many(
        self, items: Iterable[Item] | Grouped[Item], deadline: Deadline = NO_DEADLINE
    ) -> Iterator[StoreAnswer | MemxdError]:
        """Store a stream; one answer or refusal for each item, in order, as soon as it is durable.

        Whatever has arrived meanwhile, up to 64 items, is embedded and committed together.
        """
        for group in groups(items, GROUP):
            deadline.check()
            answers: list[StoreAnswer | MemxdError] = []
            ready: list[_Ready] = []
            places: list[int] = []
            for item in group:
                try:
                    if isinstance(item, MemxdError):
                        raise item
                    ready.append(self._prepare(*item, "StoreMany"))
                    places.append(len(answers))
                    answers.append(_PLACE)
                except MemxdError as error:
                    answers.append(error)
            for place, answer in zip(places, self._store_ready(ready, deadline), strict=True):
                answers[place] = answer
            yield from answers

    # -- before the transaction ------------------------------------------------------------------------------------

    def _prepare(self, scope: Scope, new: NewMemory, request_id: str, rpc: str) -> _Ready:
        clean_scope = validate.scope(scope)
        clean = validate.new_memory(new)
        retry = Retry.of(clean_scope, rpc, request_id, clean)
        if new.vector is not None:
            vector = own_vector(self._vectors, "memory.vector", new.vector, new.model_id)
            chunk = (0, len(clean.content), to_bytes(vector))
            return _Ready(clean_scope, clean, retry, Embedding((chunk,)))
        if new.model_id:
            raise validate.fail("memory.model_id", "names the model of memory.vector, which is absent")
        return _Ready(clean_scope, clean, retry, Embedding((), pending=True))

    def _store_ready(self, items: list[_Ready], deadline: Deadline) -> list[StoreAnswer | MemxdError]:
        """Embed what needs it, then one transaction for each item, all in one commit."""
        pending = [item for item in items if item.embedding.pending]
        if pending:
            with self._store.read(deadline) as read:
                for item in pending:
                    item.skipped = self._is_known(read, item)
        answers = self._commit_all(items, deadline)
        again = [n for n, a in enumerate(answers) if isinstance(a, _EqualRowGoneError)]
        for n in again:
            items[n].skipped = False
        if again:
            for n, answer in zip(again, self._commit_all([items[n] for n in again], deadline), strict=True):
                answers[n] = answer
        return answers

    def _commit_all(self, items: list[_Ready], deadline: Deadline) -> list[StoreAnswer | MemxdError]:
        """Everything that takes time but no transaction, then the transactions."""
        self._embed(items, deadline)
        for item in items:
            if not item.skipped:
                item.terms = document_terms(public_text(item.new.content))
        return self._store.write_all([_committer(item) for item in items], deadline)

    def _is_known(self, read: ReadTxn, item: _Ready) -> bool:
        """True when this is a retry or an equal row exists: no vector will be needed."""
        scope_no = read.scope_no(item.scope)
        if scope_no is None:
            return False
        if item.retry.request_id and read.recall(scope_no, item.retry.rpc, item.retry.request_id):
            return True
        return not item.new.allow_duplicate and _equal_row(read, scope_no, item) is not None

    def _embed(self, items: list[_Ready], deadline: Deadline) -> None:
        """Give the items their vectors; those that cannot have any now stay pending."""
        lacking = [
            item
            for item in items
            if item.embedding.pending and not item.skipped and self._vectors.may_embed(item.new.private)
        ]
        if not lacking:
            return
        try:
            made = embed_contents(self._vectors.embedder, [item.new.content for item in lacking], deadline)
        except EmbedderUnavailableError as error:
            log.warning("storing %d memories without vectors: %s", len(lacking), error.message)
            return
        for item, chunks in zip(lacking, made, strict=True):
            item.embedding = Embedding(chunks)


#: Holds a place in a list of answers until the real one is there.
_PLACE = MemxdError("not answered")


def _equal_row(read: ReadTxn, scope_no: int, item: _Ready) -> Memory | None:
    new = item.new
    return read.find_duplicate(scope_no, item.type, new.event_at, new.source, new.content)


def _committer(item: _Ready) -> Callable[[WriteTxn], StoreAnswer]:
    """The transaction of one item."""
    return lambda txn: item.retry.once(txn, lambda: _store_in(txn, item))


def _store_in(txn: WriteTxn, item: _Ready) -> tuple[StoreAnswer, list[int]]:
    new = item.new
    scope_no = txn.scope_no(item.scope)
    equal = None if new.allow_duplicate else _equal_row(txn, scope_no, item)
    if equal is not None:
        row = txn.get(item.scope, equal.id)
        assert row is not None  # the same transaction has just seen it
        row = _merge_into(txn, row, new)
    elif item.skipped and item.embedding.pending:
        raise _EqualRowGoneError("the equal memory was changed meanwhile")
    else:
        row = _insert(txn, item)
    if new.supersedes:
        _supersede(txn, item.scope, new, row)
        row = txn.get(item.scope, row.memory.id) or row
    return StoreAnswer(row.memory, txn.revision(), equal is not None), [row.rid]


def _insert(txn: WriteTxn, item: _Ready) -> Row:
    new = item.new
    return txn.insert(
        item.scope,
        content=new.content,
        type=item.type,
        tags=new.tags,
        metadata=new.metadata,
        importance=0.5 if new.importance is None else new.importance,
        event_at=new.event_at,
        valid_until=new.valid_until,
        private=new.private,
        source=new.source,
        chunks=None if item.embedding.pending else item.embedding.chunks,
        terms=item.terms,
    )


def _merge_into(txn: WriteTxn, row: Row, new: NewMemory) -> Row:
    """Add the tags and metadata keys that the equal row lacks; what it has stays as it is."""
    tags = validate.tags("memory.tags", (*row.memory.tags, *new.tags))
    metadata = validate.metadata("memory.metadata", {**new.metadata, **row.memory.metadata})
    changed: dict[str, object] = {}
    if tags != row.memory.tags:
        changed["tags"] = tags
    if metadata != dict(row.memory.metadata):
        changed["metadata"] = metadata
    return txn.update(row.rid, changed) if changed else row


def _supersede(txn: WriteTxn, scope: Scope, new: NewMemory, row: Row) -> None:
    found = txn.get_many(scope, new.supersedes)
    for n, id in enumerate(new.supersedes):
        if id not in found:
            raise MemoryNotFoundError(
                f"memory.supersedes[{n}]: no memory with this id in this scope", metadata={"id": id}
            )
    already = {
        edge.target_id for edge in txn.list_links(row.rid, types=(), limit=10_000) if edge.source_id == row.memory.id
    }
    old = [r.rid for id, r in found.items() if id not in already and r.rid != row.rid]
    if old:
        txn.supersede(old, row.rid)
