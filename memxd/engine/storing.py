"""Storing: one memory, or a stream of them.

Owns Store and StoreMany from validation to acknowledgement: duplicates, superseding, embedding before the transaction,
what may stay without a vector. Does not search. Called by the engine's face.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

from memxd.engine import validate
from memxd.engine.committing import Ready, equal_row
from memxd.engine.content import public_text
from memxd.engine.courtesy import Courtesy
from memxd.engine.embedding import Embedding, embed_contents, own_vector, to_bytes
from memxd.engine.idempotency import Retry
from memxd.engine.stream import Grouped, ahead, groups
from memxd.engine.turns import Group, Line
from memxd.engine.vectors import Vectors
from memxd.errors import EmbedderUnavailableError, MemxdError
from memxd.index.lexical.analyzer import document_terms
from memxd.model import NO_DEADLINE, Deadline, NewMemory, Scope, StoreAnswer
from memxd.store import ReadTxn, Store
from memxd.text import content_hash, fold_hash

log = logging.getLogger(__name__)

#: Items of a stream that are embedded and committed together at most.
GROUP = 64

#: One item of StoreMany: where it goes, the memory, its retry key; or why it could not even be read.
Item = tuple[Scope, NewMemory, str] | MemxdError


class Storing:
    """The verbs that bring memories in."""

    def __init__(self, store: Store, vectors: Vectors, courtesy: Courtesy) -> None:
        self._store = store
        self._vectors = vectors
        self._courtesy = courtesy

    def store(
        self, scope: Scope, new: NewMemory, request_id: str = "", deadline: Deadline = NO_DEADLINE
    ) -> StoreAnswer:
        """Store one memory; durable, embedded and indexed when it returns. Errors as the contract names them."""
        ready = self._prepare(scope, new, request_id, "Store")
        self._complete([ready], deadline)
        answer = self._line(deadline).begin([ready]).finish()[0]
        if isinstance(answer, MemxdError):
            raise answer
        return answer

    def store_many(
        self, items: Iterable[Item] | Grouped[Item], deadline: Deadline = NO_DEADLINE
    ) -> Iterator[StoreAnswer | MemxdError]:
        """Store a stream; one answer or refusal for each item, in order, as soon as it is durable.

        Whatever has arrived meanwhile, up to 64 items, is embedded and committed together, and made ready while those
        before it are written.
        """
        for answers in self.store_groups(items, deadline):
            yield from answers

    def store_groups(
        self, items: Iterable[Item] | Grouped[Item], deadline: Deadline = NO_DEADLINE
    ) -> Iterator[list[StoreAnswer | MemxdError]]:
        """As ``store_many``, with the answers that became durable together in one list of 1..64."""
        line = self._line(deadline)
        begun = (self._begin(group, line, deadline) for group in groups(items, GROUP))
        with closing(ahead(begun, "memxd-stream-ready")) as waiting:
            for answers, group in waiting:
                places = [place for place, answer in enumerate(answers) if answer is _PLACE]
                for place, answer in zip(places, group.finish(), strict=True):
                    answers[place] = answer
                yield answers

    def _begin(
        self, group: Sequence[Item], line: Line, deadline: Deadline
    ) -> tuple[list[StoreAnswer | MemxdError], Group]:
        answers, ready = self._made_ready(group, deadline)
        return answers, line.begin(ready)

    def _made_ready(
        self, group: Sequence[Item], deadline: Deadline
    ) -> tuple[list[StoreAnswer | MemxdError], list[Ready]]:
        """Refusals in their places, and what is left to be written, with vectors."""
        deadline.check()
        answers: list[StoreAnswer | MemxdError] = []
        ready: list[Ready] = []
        for item in group:
            if len(group) > 1:
                self._courtesy.step_aside()
            try:
                if isinstance(item, MemxdError):
                    raise item
                ready.append(self._prepare(*item, "StoreMany"))
                answers.append(_PLACE)
            except MemxdError as error:
                answers.append(error)
        self._complete(ready, deadline)
        return answers, ready

    # -- before the transaction ------------------------------------------------------------------------------------

    def _prepare(self, scope: Scope, new: NewMemory, request_id: str, rpc: str) -> Ready:
        clean_scope = validate.scope(scope)
        clean = validate.new_memory(new)
        retry = Retry.of(clean_scope, rpc, request_id, clean)
        digest, fold = content_hash(clean.content), fold_hash(clean.content)
        if new.vector is not None:
            space = self._vectors.current
            vector = own_vector(space, "memory.vector", new.vector, new.model_id)
            chunk = (0, len(clean.content), to_bytes(vector))
            return Ready(clean_scope, clean, retry, Embedding((chunk,), space=space), digest=digest, fold=fold)
        if new.model_id:
            raise validate.fail("memory.model_id", "names the model of memory.vector, which is absent")
        return Ready(clean_scope, clean, retry, Embedding((), pending=True), digest=digest, fold=fold)

    def _complete(self, items: list[Ready], deadline: Deadline) -> None:
        """Embed what needs it, and the rest that takes time but no transaction."""
        pending = [item for item in items if item.embedding.pending]
        if pending:
            with self._store.read(deadline) as read:
                for item in pending:
                    item.skipped = self._is_known(read, item)
        self._finish(items, deadline)

    def _finish(self, items: list[Ready], deadline: Deadline) -> None:
        self._embed(items, deadline)
        for item in items:
            if len(items) > 1:
                self._courtesy.step_aside()
            if not item.skipped:
                item.terms = document_terms(public_text(item.new.content))

    def _line(self, deadline: Deadline) -> Line:
        """A transaction for each item, or for many, all in one commit."""
        return Line(self._store, deadline, lambda late: self._finish(late, deadline))

    def _is_known(self, read: ReadTxn, item: Ready) -> bool:
        """True when this is a retry or an equal row exists: no vector will be needed."""
        scope_no = read.scope_no(item.scope)
        if scope_no is None:
            return False
        if item.retry.request_id and read.recall(scope_no, item.retry.rpc, item.retry.request_id):
            return True
        return not item.new.allow_duplicate and equal_row(read, scope_no, item) is not None

    def _embed(self, items: list[Ready], deadline: Deadline) -> None:
        """Give the items their vectors; those that cannot have any now stay pending."""
        space = self._vectors.current
        lacking = [
            item for item in items if item.embedding.pending and not item.skipped and space.may_embed(item.new.private)
        ]
        if not lacking:
            return
        try:
            made = embed_contents(space.embedder, [item.new.content for item in lacking], deadline)
        except EmbedderUnavailableError as error:
            log.warning("storing %d memories without vectors: %s", len(lacking), error.message)
            return
        for item, chunks in zip(lacking, made, strict=True):
            item.embedding = Embedding(chunks, space=space)


#: Holds a place in a list of answers until the real one is there.
_PLACE = MemxdError("not answered")
