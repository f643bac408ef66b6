"""Import: lines (docs/FORMAT.md) into a scope, each taken over or refused on its own.

Owns the order of steps: reading, vectors and terms before the transaction, for what is new, a group ahead of the one
that is written; and the counting. Reading a line is ``reading_lines.py``'s, what becomes of it ``taking.py``'s. Called
by the engine's face.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

import numpy as np

from memxd.engine import validate
from memxd.engine.content import public_text
from memxd.engine.courtesy import Courtesy
from memxd.engine.embedding import NewChunk, embed_contents
from memxd.engine.reading_lines import MemoryLine, named, read_line
from memxd.engine.stream import ahead
from memxd.engine.taking import Item, State, take_all
from memxd.engine.validate import fail
from memxd.engine.vectors import Space, Vectors
from memxd.errors import DuplicateLinkError, DuplicateMemoryError, EmbedderUnavailableError, MemxdError
from memxd.index.lexical.analyzer import document_terms
from memxd.model import NO_DEADLINE, Conflict, Deadline, ImportStep, LineRefusal, Scope
from memxd.store import Store

log = logging.getLogger(__name__)

#: Lines that are embedded and committed together.
GROUP = 64


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
        state = State(validate.scope(scope), conflict or Conflict.REFUSE, start - 1)
        prepared = self._prepared(state.scope, state.conflict, batches, start, deadline)
        with closing(ahead(prepared, "memxd-import-ready")) as groups:
            for items in groups:
                yield self._take(state, items, deadline)

    def _prepared(
        self, scope: Scope, conflict: Conflict, batches: Iterable[Sequence[bytes]], number: int, deadline: Deadline
    ) -> Iterator[list[Item]]:
        """Groups of lines, read, with vectors and terms; while one is written, the next is made ready."""
        for batch in batches:
            for at in range(0, len(batch), GROUP):
                deadline.check()
                items = [Item(n, raw) for n, raw in enumerate(batch[at : at + GROUP], start=number)]
                number += len(items)
                for item in items:
                    self._courtesy.step_aside()
                    self._read(item, scope)
                self._embed(scope, conflict, items, deadline)
                yield items

    def _read(self, item: Item, scope: Scope) -> None:
        try:
            item.line = read_line(item.raw, scope)
            if isinstance(item.line, MemoryLine):
                item.space = self._vectors.current
                item.chunks = _own_chunks(item.line, item.space)
                item.terms = document_terms(public_text(item.line.memory.content))
        except MemxdError as error:
            if error.metadata.get("field", "").startswith("header."):
                raise  # not a file of ours, or of a version that nobody here can read
            item.refusal = error

    def _take(self, state: State, items: Sequence[Item], deadline: Deadline) -> ImportStep:
        for item in items:
            if item.refusal is not None:
                kind, id = named(item.raw)
                if kind == "memory":
                    state.note(id, None)
        sound = [item for item in items if item.refusal is None and item.line is not None]
        for item, answer in zip(sound, take_all(self._store, state, sound, deadline), strict=True):
            if not isinstance(answer, MemxdError):
                state.counts[answer] += 1
            elif isinstance(answer, DuplicateMemoryError | DuplicateLinkError) or not answer.retryable:
                item.refusal = answer
            else:
                raise answer  # the disk is full, the daemon stops: no fault of the line
        state.lines += len(items)
        refusals = tuple(_refusal(item) for item in items if item.refusal is not None)
        state.refused += len(refusals)
        counts = {outcome.value: count for outcome, count in state.counts.items()}
        return ImportStep(
            state.lines, **counts, refused=state.refused, refusals=refusals, revision=self._store.revision
        )

    def _embed(self, scope: Scope, conflict: Conflict, items: list[Item], deadline: Deadline) -> None:
        """Make the vectors of memories that are new or will be replaced."""
        space = self._vectors.current
        lacking = [
            (item, item.line.memory)
            for item in items
            if isinstance(item.line, MemoryLine) and item.refusal is None and item.chunks is None
            if space.may_embed(item.line.memory.private)
        ]
        if not lacking:
            return
        with self._store.read(deadline) as read:
            known = read.get_many(scope, [memory.id for _, memory in lacking])
        if conflict is not Conflict.REPLACE:
            lacking = [(item, memory) for item, memory in lacking if memory.id not in known]
        try:
            made = embed_contents(space.embedder, [memory.content for _, memory in lacking], deadline)
        except EmbedderUnavailableError as error:
            log.warning("importing %d memories without vectors: %s", len(lacking), error.message)
            return
        for (item, _), chunks in zip(lacking, made, strict=True):
            item.chunks, item.space = chunks, space


def _refusal(item: Item) -> LineRefusal:
    assert item.refusal is not None
    return LineRefusal(item.number, *named(item.raw), item.refusal.reason, item.refusal.message)


def _own_chunks(line: MemoryLine, space: Space) -> tuple[NewChunk, ...] | None:
    """The vectors that came along, when they are of our model; None = to be made."""
    info = space.embedder.info
    if not line.chunks or not space.matched or line.model_id != info.id:
        return None
    for n, (_, _, raw) in enumerate(line.chunks):
        if len(raw) != 2 * info.dimension:
            raise fail(f"chunks[{n}].vector", f"must have {info.dimension} numbers of two bytes")
        length = float(np.linalg.norm(np.frombuffer(raw, "<f2").astype(np.float64)))
        if not 0.99 <= length <= 1.01:
            raise fail(f"chunks[{n}].vector", "must be of unit length")
    return line.chunks
