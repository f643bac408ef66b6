"""The transactions of memories that are stored: one each, or one for a run of them.

Owns what happens between BEGIN and COMMIT when memories come in: answered retries, duplicates, superseding, the insert.
A run of plain items (new ids, new contents, nothing superseded) is written at once, which costs a third. Does not embed
and does not validate. Called by ``turns.py``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from memxd.engine import answers, validate
from memxd.engine.embedding import Embedding
from memxd.engine.idempotency import Retry
from memxd.errors import MemoryNotFoundError, MemxdError
from memxd.model import Memory, MemoryType, NewMemory, Scope, StoreAnswer
from memxd.store import NewRow, ReadTxn, Row, Terms, WriteTxn

Answers = list[StoreAnswer | MemxdError]


@dataclass(slots=True)
class Ready:
    """A validated item, with its vectors once they are made. ``skipped``: not embedded, because an equal row exists.

    ``terms``, ``digest`` and ``fold``: what the keyword index makes of it, ``content_hash`` and ``fold_hash`` of
    memxd.text, made here so that the writer thread has less to do while others wait.
    """

    scope: Scope
    new: NewMemory
    retry: Retry
    embedding: Embedding
    skipped: bool = False
    terms: Terms | None = None
    digest: int = 0
    fold: int = 0

    @property
    def type(self) -> MemoryType:
        return self.new.type or MemoryType.SEMANTIC


class _EqualRowGoneError(MemxdError):
    """The equal row that made embedding needless was changed before the commit: embed and try again."""

    reason = "EQUAL_ROW_GONE"


def equal_row(read: ReadTxn, scope_no: int, item: Ready) -> Memory | None:
    """The memory that this one would repeat."""
    new = item.new
    return read.find_duplicate(scope_no, item.type, new.event_at, new.source, new.content)


class _ApartError(MemxdError):
    """Some items of a run need a transaction of their own: those at ``positions``. Nothing was written."""

    reason = "APART"

    def __init__(self, positions: set[int]) -> None:
        super().__init__("not all of these are new")
        self.positions = positions


#: How ``turns.py`` knows them.
Apart, EqualRowGone = _ApartError, _EqualRowGoneError


def store_run(txn: WriteTxn, run: Sequence[Ready]) -> list[StoreAnswer]:
    """Store plain items at once. Raises _ApartError when some turn out not to be plain."""
    apart = _repeated(run) | _known(txn, run)
    if apart:
        raise _ApartError(apart)
    rows = txn.insert_many([_new_row(item) for item in run])
    stored: list[StoreAnswer] = []
    for item, row in zip(run, rows, strict=True):
        answer = StoreAnswer(row.memory, row.memory.revision)
        retry = item.retry
        if retry.request_id:
            txn.remember(row.scope_no, retry.rpc, retry.request_id, retry.body, answers.dump(answer), (row.rid,))
        stored.append(answer)
    return stored


def _repeated(run: Sequence[Ready]) -> set[int]:
    """Positions of items whose request id or content stands before them in the same run."""
    ids: set[tuple[Scope, str]] = set()
    contents: set[tuple[Scope, int]] = set()
    repeated: set[int] = set()
    for n, item in enumerate(run):
        request, content = (item.scope, item.retry.request_id), (item.scope, item.digest)
        if (item.retry.request_id and request in ids) or (not item.new.allow_duplicate and content in contents):
            repeated.add(n)
        ids.add(request)
        contents.add(content)
    return repeated


def _known(txn: WriteTxn, run: Sequence[Ready]) -> set[int]:
    """Positions of items that may have been answered before, or whose content the scope holds (whoever's it is:
    whether it is equal in all that counts is looked at for each)."""
    by_scope: dict[Scope, list[int]] = defaultdict(list)
    for n, item in enumerate(run):
        by_scope[item.scope].append(n)
    known: set[int] = set()
    for scope, positions in by_scope.items():
        scope_no = txn.scope_no(scope, create=False)
        if not scope_no:
            continue
        asked = {run[n].retry.request_id for n in positions} - {""}
        answered = txn.requests_among(scope_no, run[positions[0]].retry.rpc, asked) if asked else set()
        unique = {run[n].digest for n in positions if not run[n].new.allow_duplicate}
        there = txn.contents_among(scope_no, unique) if unique else set()
        known |= {n for n in positions if run[n].retry.request_id in answered}
        known |= {n for n in positions if run[n].digest in there and not run[n].new.allow_duplicate}
    return known


def _new_row(item: Ready) -> NewRow:
    new = item.new
    return NewRow(
        item.scope,
        new.content,
        item.type,
        new.tags,
        new.metadata,
        0.5 if new.importance is None else new.importance,
        new.event_at,
        new.valid_until,
        new.private,
        new.source,
        item.embedding.to_store,
        terms=item.terms,
        content_hash=item.digest,
        fold_hash=item.fold,
    )


def store_one(txn: WriteTxn, item: Ready) -> StoreAnswer:
    """Store an item of any kind. Raises _EqualRowGoneError."""
    return item.retry.once(txn, lambda: _store_in(txn, item))


def _store_in(txn: WriteTxn, item: Ready) -> tuple[StoreAnswer, list[int]]:
    """Everything that may be to do for one item."""
    new = item.new
    scope_no = txn.scope_no(item.scope)
    equal = None if new.allow_duplicate else equal_row(txn, scope_no, item)
    if equal is not None:
        row = txn.get(item.scope, equal.id)
        assert row is not None  # the same transaction has just seen it
        row = _merge_into(txn, row, new)
    elif item.skipped and item.embedding.pending:
        raise _EqualRowGoneError("the equal memory was changed meanwhile")
    else:
        [row] = txn.insert_many([_new_row(item)])
    if new.supersedes:
        _supersede(txn, item.scope, new, row)
        row = txn.get(item.scope, row.memory.id) or row
    return StoreAnswer(row.memory, txn.revision(), equal is not None), [row.rid]


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
