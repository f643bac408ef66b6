"""The transactions of memories that are stored: one each, or one for a run of them.

Owns what happens between BEGIN and COMMIT when memories come in: answered retries, duplicates, superseding, the insert.
A run of plain items (new ids, new contents, nothing superseded) is written at once, which costs a third; when one of
them turns out not to be plain, or anything is refused, the run is undone, its items are told apart, and what follows
waits for them. Does not embed and does not validate. Called by ``storing.py``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from memxd.engine import answers, validate
from memxd.engine.embedding import Embedding
from memxd.engine.idempotency import Retry
from memxd.errors import MemoryNotFoundError, MemxdError
from memxd.model import Deadline, Memory, MemoryType, NewMemory, Scope, StoreAnswer
from memxd.store import NewRow, ReadTxn, Row, Store, Terms, WriteTxn

Answers = list[StoreAnswer | MemxdError]


@dataclass(slots=True)
class Ready:
    """A validated item, with its vectors once they are made. ``skipped``: not embedded, because an equal row exists.

    ``terms``: what the keyword index makes of it, made here so that the writer thread has less to do while others wait.
    """

    scope: Scope
    new: NewMemory
    retry: Retry
    embedding: Embedding
    skipped: bool = False
    terms: Terms | None = None
    digest: int = 0  # memxd.text.content_hash of the content

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


def write_all(
    store: Store, items: Sequence[Ready], deadline: Deadline, complete: Callable[[list[Ready]], None]
) -> Answers:
    """Store the items in their order, with as few commits as possible; one answer or refusal each.

    ``complete`` gives vectors and terms to those that were thought not to need any.
    """
    answers = _write_all(store, items, deadline)
    again = [n for n, answer in enumerate(answers) if isinstance(answer, _EqualRowGoneError)]
    if again:
        late = [items[n] for n in again]
        for item in late:
            item.skipped = False
        complete(late)
        for n, answer in zip(again, _write_all(store, late, deadline), strict=True):
            answers[n] = answer
    return answers


def _write_all(store: Store, items: Sequence[Ready], deadline: Deadline) -> Answers:
    told: dict[int, StoreAnswer | MemxdError] = {}
    left, apart = list(range(len(items))), {n for n, item in enumerate(items) if not _is_plain(item)}
    while left:
        runs = list(_runs(left, apart))
        attempt = _Attempt()
        work = [attempt.of([items[n] for n in run], together=run[0] not in apart) for run in runs]
        left = []
        for run, answer in zip(runs, store.write_all(work, deadline), strict=True):
            if not isinstance(answer, MemxdError):
                told |= zip(run, answer, strict=True)
            elif isinstance(answer, _ApartError):
                apart |= {run[n] for n in answer.positions}
                left += run
            elif len(run) == 1:
                told[run[0]] = answer
            else:  # which of them it was, each tells by itself
                apart |= set(run)
                left += run
    return [told[n] for n in range(len(items))]


class _Attempt:
    """The transactions of one try. Once a run is refused, what stands behind it must not overtake it."""

    def __init__(self) -> None:
        self._broken = False

    def of(self, run: Sequence[Ready], *, together: bool) -> Callable[[WriteTxn], list[StoreAnswer]]:
        """The transaction of some items, or of a single one with all that may be to do for it."""

        def work(txn: WriteTxn) -> list[StoreAnswer]:
            if self._broken:
                raise _ApartError(set())
            if not together:
                return [run[0].retry.once(txn, lambda: _store_in(txn, run[0]))]
            try:
                return _store_run(txn, run)
            except BaseException:
                self._broken = True
                raise

        return work


def _is_plain(item: Ready) -> bool:
    """Whether a run may hold the item, as far as is known before its transaction."""
    return not item.skipped and not item.new.supersedes


def _runs(positions: Sequence[int], apart: Collection[int]) -> Iterator[list[int]]:
    """Neighbours that are not ``apart``, together; the others one by one."""
    for alone, run in groupby(positions, lambda n: n in apart):
        if alone:
            yield from ([n] for n in run)
        else:
            yield list(run)


def _store_run(txn: WriteTxn, run: Sequence[Ready]) -> list[StoreAnswer]:
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
        None if item.embedding.pending else item.embedding.chunks,
        terms=item.terms,
        content_hash=item.digest,
    )


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
