"""What is done with the lines of an import within their transactions.

Owns what counts as the same (everything but counts and vectors) and what becomes of an id that is taken. Neighbouring
memories are taken over together, by few statements; when anything in such a run is refused, it is undone, and it and
what stands behind it are taken line by line, so that each is answered as if it had come alone. Reads no line and makes
no vector. Called by ``importing.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from memxd.engine.embedding import NewChunk
from memxd.engine.reading_lines import Line, MemoryLine, VersionLine
from memxd.engine.vectors import Space
from memxd.errors import DuplicateLinkError, DuplicateMemoryError, MemoryNotFoundError, MemxdError
from memxd.model import Conflict, Deadline, Link, Memory, Scope
from memxd.store import Store, Taken, Terms, Whole, WriteTxn


class Outcome(Enum):
    """What became of a line that was not refused."""

    ADDED = "added"
    UNCHANGED = "unchanged"
    REPLACED = "replaced"
    KEPT = "kept"


@dataclass(slots=True)
class Item:
    """A line, what it holds, and its vectors and terms once they are made."""

    number: int
    raw: bytes
    line: Line | None = None
    chunks: tuple[NewChunk, ...] | None = None
    terms: Terms | None = None
    refusal: MemxdError | None = None
    space: Space | None = None  # of the vectors

    @property
    def to_store(self) -> tuple[NewChunk, ...] | None:
        """The vectors, None = pending: also those of a model that is over. Ask within the transaction."""
        return None if self.space is not None and self.space.over else self.chunks


@dataclass(slots=True)
class State:
    """What one import remembers from line to line."""

    scope: Scope
    conflict: Conflict
    lines: int
    counts: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    refused: int = 0
    #: Memories that were not taken over: their versions are not either.
    passed_by: dict[str, Outcome | None] = field(default_factory=dict)

    def note(self, id: str, outcome: Outcome | None) -> None:
        """What became of a memory; None = refused."""
        if outcome in (None, Outcome.KEPT):
            self.passed_by[id] = outcome
        else:
            self.passed_by.pop(id, None)


class _ApartError(MemxdError):
    """Something ahead of this line has to be told apart first. Nothing was written."""

    reason = "APART"


def take_all(store: Store, state: State, items: Sequence[Item], deadline: Deadline) -> list[Outcome | MemxdError]:
    """Take lines over in their order, all in one commit; the outcome or refusal of each."""
    told: dict[int, Outcome | MemxdError] = {}
    runs, run_in = list(_runs(items)), _Together(state)
    works = [run_in.work([items[n] for n in run]) for run in runs]
    left: list[int] = []
    for run, answer in zip(runs, store.write_all(works, deadline), strict=True):
        if not isinstance(answer, MemxdError):
            told |= zip(run, answer, strict=True)
        elif len(run) == 1 and not isinstance(answer, _ApartError):
            told[run[0]] = answer
        else:
            left += run
    alone = store.write_all([_committer(state, items[n]) for n in left], deadline) if left else []
    told |= zip(left, alone, strict=True)
    return [told[n] for n in range(len(items))]


def _runs(items: Sequence[Item]) -> Iterator[list[int]]:
    """Neighbouring memories of different ids, together; what is no memory, alone."""
    run: list[int] = []
    ids: set[str] = set()
    for n, item in enumerate(items):
        id = item.line.memory.id if isinstance(item.line, MemoryLine) else ""
        if run and (not id or id in ids):
            yield run
            run, ids = [], set()
        if id:
            run.append(n)
            ids.add(id)
        else:
            yield [n]
    if run:
        yield run


class _Together:
    """The transactions of a first try. Once a run is undone, what stands behind it must not overtake it."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._broken = False

    def work(self, run: Sequence[Item]) -> Callable[[WriteTxn], list[Outcome | MemxdError]]:
        """The transaction of a run."""
        alone = _committer(self._state, run[0]) if len(run) == 1 else None

        def take(txn: WriteTxn) -> list[Outcome | MemxdError]:
            if self._broken:
                raise _ApartError("something ahead is told apart first")
            if alone is not None:
                return [alone(txn)]
            try:
                return _memories_in(txn, self._state, run)
            except BaseException:
                self._broken = True
                raise

        return take


def _memories_in(txn: WriteTxn, state: State, run: Sequence[Item]) -> list[Outcome | MemxdError]:
    """Take over a run of memories; refusals that undo nothing stand in their places."""
    lines = [item.line for item in run if isinstance(item.line, MemoryLine)]
    known = txn.ids_among(state.scope, [line.memory.id for line in lines])
    outcomes: list[Outcome | MemxdError] = []
    fresh: list[Taken] = []
    for item, line in zip(run, lines, strict=True):
        memory = line.memory
        if memory.id not in known:
            fresh.append(Taken(memory, item.to_store, item.terms))
            outcomes.append(Outcome.ADDED)
            continue
        txn.import_all(fresh)  # first, so that revisions are in the order of lines
        fresh = []
        try:
            outcomes.append(_memory_in(txn, state.conflict, memory, item.to_store))
        except DuplicateMemoryError as refusal:  # raised before anything was written
            outcomes.append(refusal)
    txn.import_all(fresh)
    for line, told in zip(lines, outcomes, strict=True):
        state.note(line.memory.id, None if isinstance(told, MemxdError) else told)
    return outcomes


def _committer(state: State, item: Item) -> Callable[[WriteTxn], Outcome]:
    """The transaction of one line."""
    line = item.line
    if isinstance(line, MemoryLine):
        memory = line.memory

        def take_memory(txn: WriteTxn) -> Outcome:
            outcome: Outcome | None = None
            try:
                outcome = _memory_in(txn, state.conflict, memory, item.to_store)
            finally:
                state.note(memory.id, outcome)
            return outcome

        return take_memory
    if isinstance(line, VersionLine):
        return lambda txn: _version_in(txn, state, line)
    assert line is not None
    return lambda txn: _link_in(txn, state.conflict, line)


def _memory_in(txn: WriteTxn, conflict: Conflict, memory: Memory, chunks: tuple[NewChunk, ...] | None) -> Outcome:
    known = txn.export_memory(memory.scope, memory.id)
    if known is None:
        txn.import_memory(memory, chunks)
        return Outcome.ADDED
    if _is_same(txn, known, memory):
        return Outcome.UNCHANGED
    if conflict is Conflict.KEEP:
        return Outcome.KEPT
    if conflict is Conflict.REPLACE:
        txn.import_memory(memory, chunks, over=known.rid)
        return Outcome.REPLACED
    raise DuplicateMemoryError(
        "this scope has another memory of this id; on_conflict decides which one stays", metadata={"id": memory.id}
    )


def _is_same(txn: WriteTxn, known: Whole, memory: Memory) -> bool:
    """Equal but for counts. What ended by a superseder that was left out of the export is told by its end."""
    counts: dict[str, Any] = {
        "access_count": 0,
        "last_accessed_at": None,
        "retrieval_count": 0,
        "last_retrieved_at": None,
    }
    mine, theirs = replace(known.memory, **counts), replace(memory, **counts)
    if mine == theirs:
        return True
    derived = txn.get(memory.scope, memory.id)
    assert derived is not None  # the same transaction has just seen it
    return replace(mine, valid_until=derived.memory.valid_until) == theirs


def _version_in(txn: WriteTxn, state: State, line: VersionLine) -> Outcome:
    if line.memory_id in state.passed_by:
        if state.passed_by[line.memory_id] is Outcome.KEPT:
            return Outcome.KEPT
        raise MemoryNotFoundError("the memory of this version was refused", metadata={"id": line.memory_id})
    row = txn.get(state.scope, line.memory_id)
    if row is None:
        raise MemoryNotFoundError("memory_id: no memory with this id in this scope", metadata={"id": line.memory_id})
    return Outcome.ADDED if txn.import_version(row.rid, line.number, line.version) else Outcome.UNCHANGED


def _link_in(txn: WriteTxn, conflict: Conflict, link: Link) -> Outcome:
    known = txn.get_link(link.scope, link.id)
    if known == link:
        return Outcome.UNCHANGED
    if known is not None and conflict is Conflict.KEEP:
        return Outcome.KEPT
    if known is not None and conflict is not Conflict.REPLACE:
        raise DuplicateLinkError("this scope has another link of this id", metadata={"id": link.id})
    ends = txn.get_many(link.scope, (link.source_id, link.target_id))
    for name, id in (("source_id", link.source_id), ("target_id", link.target_id)):
        if id not in ends:
            raise MemoryNotFoundError(f"{name}: no memory with this id in this scope", metadata={"id": id})
    if known is not None:
        txn.delete_link(link.scope, link.id)
    txn.import_link(ends[link.source_id].rid, ends[link.target_id].rid, link)
    return Outcome.ADDED if known is None else Outcome.REPLACED
