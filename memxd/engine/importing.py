"""Import: lines (docs/FORMAT.md) into a scope, each taken over or refused on its own.

Owns what counts as the same (everything but counts and vectors), so that the same lines may come again, and what is
done with an id that is taken; embedding before the transaction, for what is new; and the counting. Reading a line is
``reading_lines.py``'s, taking it over the store's. Called by the engine's face.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np

from memxd.engine import validate
from memxd.engine.courtesy import Courtesy
from memxd.engine.embedding import NewChunk, embed_contents
from memxd.engine.reading_lines import Line, MemoryLine, VersionLine, named, read_line
from memxd.engine.validate import fail
from memxd.engine.vectors import Vectors
from memxd.errors import (
    DuplicateLinkError,
    DuplicateMemoryError,
    EmbedderUnavailableError,
    MemoryNotFoundError,
    MemxdError,
)
from memxd.model import NO_DEADLINE, Conflict, Deadline, ImportStep, LineRefusal, Link, Memory, Scope
from memxd.store import Store, Whole, WriteTxn

log = logging.getLogger(__name__)

#: Lines that are embedded and committed together.
GROUP = 64


class Outcome(Enum):
    """What became of a line that was not refused."""

    ADDED = "added"
    UNCHANGED = "unchanged"
    REPLACED = "replaced"
    KEPT = "kept"


@dataclass(slots=True)
class _Item:
    """A line, what it holds, and its vectors once they are made."""

    number: int
    raw: bytes
    line: Line | None = None
    chunks: tuple[NewChunk, ...] | None = None
    refusal: MemxdError | None = None


@dataclass(slots=True)
class _State:
    """What one import remembers from line to line."""

    scope: Scope
    conflict: Conflict
    lines: int
    counts: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    refused: int = 0
    #: Memories that were not taken over: their versions are not either.
    passed_by: dict[str, Outcome | None] = field(default_factory=dict)


class Importing:
    """The verb ``import_lines``."""

    def __init__(self, store: Store, vectors: Vectors, courtesy: Courtesy) -> None:
        self._store = store
        self._vectors = vectors
        self._courtesy = courtesy

    def import_lines(
        self,
        scope: Scope,
        batches: Iterable[Sequence[bytes]],
        conflict: Conflict | None = None,
        first_line: int = 1,
        deadline: Deadline = NO_DEADLINE,
    ) -> Iterator[ImportStep]:
        """Take over lines without their line feeds, as they arrive; a step for each group, once it is durable.

        ``first_line``: the number of the first one. Raises InvalidArgumentError for the scope, and the store's errors:
        what the last step told of is stored all the same, and the same lines may come again.
        """
        start = validate.integer("first_line", first_line, 1, 1, 1 << 53)
        state = _State(validate.scope(scope), conflict or Conflict.REFUSE, start - 1)
        for batch in batches:
            for at in range(0, len(batch), GROUP):
                deadline.check()
                yield self._take(state, batch[at : at + GROUP], deadline)

    def _take(self, state: _State, group: Sequence[bytes], deadline: Deadline) -> ImportStep:
        items = [_Item(state.lines + n, raw) for n, raw in enumerate(group, start=1)]
        for item in items:
            self._courtesy.step_aside()
            try:
                item.line = read_line(item.raw, state.scope)
                if isinstance(item.line, MemoryLine):
                    item.chunks = self._own_chunks(item.line)
            except MemxdError as error:
                if error.metadata.get("field", "").startswith("header."):
                    raise  # not a file of ours, or of a version that nobody here can read
                item.refusal = error
                kind, id = named(item.raw)
                if kind == "memory":
                    state.passed_by[id] = None
        items = [item for item in items if item.line is not None or item.refusal is not None]
        self._embed(state, items, deadline)
        sound = [item for item in items if item.refusal is None]
        answers = self._store.write_all([_committer(state, item) for item in sound], deadline)
        for item, answer in zip(sound, answers, strict=True):
            if not isinstance(answer, MemxdError):
                state.counts[answer] += 1
            elif isinstance(answer, DuplicateMemoryError | DuplicateLinkError) or not answer.retryable:
                item.refusal = answer
            else:
                raise answer  # the disk is full, the daemon stops: no fault of the line
        state.lines += len(group)
        refusals = tuple(_refusal(item) for item in items if item.refusal is not None)
        state.refused += len(refusals)
        counts = {outcome.value: count for outcome, count in state.counts.items()}
        return ImportStep(
            state.lines, **counts, refused=state.refused, refusals=refusals, revision=self._store.revision
        )

    def _own_chunks(self, line: MemoryLine) -> tuple[NewChunk, ...] | None:
        """The vectors that came along, when they are of our model; None = to be made."""
        info = self._vectors.embedder.info
        if not line.chunks or not self._vectors.matched or line.model_id != info.id:
            return None
        for n, (_, _, raw) in enumerate(line.chunks):
            if len(raw) != 2 * info.dimension:
                raise fail(f"chunks[{n}].vector", f"must have {info.dimension} numbers of two bytes")
            length = float(np.linalg.norm(np.frombuffer(raw, "<f2").astype(np.float64)))
            if not 0.99 <= length <= 1.01:
                raise fail(f"chunks[{n}].vector", "must be of unit length")
        return line.chunks

    def _embed(self, state: _State, items: list[_Item], deadline: Deadline) -> None:
        """Make the vectors of memories that are new or will be replaced."""
        lacking = [
            (item, item.line.memory)
            for item in items
            if isinstance(item.line, MemoryLine) and item.refusal is None and item.chunks is None
            if self._vectors.may_embed(item.line.memory.private)
        ]
        if not lacking:
            return
        with self._store.read(deadline) as read:
            known = read.get_many(state.scope, [memory.id for _, memory in lacking])
        if state.conflict is not Conflict.REPLACE:
            lacking = [(item, memory) for item, memory in lacking if memory.id not in known]
        try:
            made = embed_contents(self._vectors.embedder, [memory.content for _, memory in lacking], deadline)
        except EmbedderUnavailableError as error:
            log.warning("importing %d memories without vectors: %s", len(lacking), error.message)
            return
        for (item, _), chunks in zip(lacking, made, strict=True):
            item.chunks = chunks


def _refusal(item: _Item) -> LineRefusal:
    assert item.refusal is not None
    return LineRefusal(item.number, *named(item.raw), item.refusal.reason, item.refusal.message)


def _committer(state: _State, item: _Item) -> Callable[[WriteTxn], Outcome]:
    """The transaction of one line."""
    line = item.line
    if isinstance(line, MemoryLine):
        memory = line.memory

        def take_memory(txn: WriteTxn) -> Outcome:
            outcome: Outcome | None = None
            try:
                outcome = _memory_in(txn, state.conflict, memory, item.chunks)
            finally:
                if outcome in (None, Outcome.KEPT):
                    state.passed_by[memory.id] = outcome
                else:
                    state.passed_by.pop(memory.id, None)
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


def _version_in(txn: WriteTxn, state: _State, line: VersionLine) -> Outcome:
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
