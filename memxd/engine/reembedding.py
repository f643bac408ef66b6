"""A change of the embedding model: every memory embedded again, beside the vectors that serve until all is there.

Owns the background thread that fills the store's next vectors from the memories' texts, builds the next vector index
from them, and exchanges both at once on the writer thread. What it has made is in the store, so a killed daemon goes on
where it was. Private memories never go to a remote embedder: they are found by words. Called by the engine's face.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial

from memxd.embed import Embedder
from memxd.engine.courtesy import Courtesy
from memxd.engine.embedding import embed_contents
from memxd.engine.indexes import Indexes
from memxd.engine.vectors import Space, Vectors
from memxd.errors import CancelledError, EmbedderUnavailableError, MemxdError
from memxd.index.vector import VectorIndex
from memxd.model import ChangePhase, Deadline, ModelChange
from memxd.store import NextModel, ReadTxn, Row, Store, WriteTxn
from memxd.text import content_hash
from memxd.threads import Steady

log = logging.getLogger(__name__)

#: Memories embedded and committed together: what a kill costs at most.
BATCH = 64
#: Seconds between two tries while the embedder is down.
RETRY_SECONDS = 5.0
#: Seconds for which the former model stays open for searches that have begun with it.
GRACE_SECONDS = 5.0
#: Memories stored while the next index was built, at most so many of which wait for their vector after the exchange.
FEW = 16
#: Rounds of catching up with what is stored meanwhile, before the exchange is made anyway.
_ROUNDS = 20


class Reembedding:
    """One change of model, from the store's to ``target``'s; ``status`` None = there is none."""

    def __init__(
        self,
        store: Store,
        indexes: Indexes,
        vectors: Vectors,
        target: Embedder,
        courtesy: Courtesy,
        exchanged: Callable[[], None],
    ) -> None:
        """``exchanged`` is called once the new model serves: what still waits for a vector may have it now."""
        self._store, self._indexes, self._vectors, self._target = store, indexes, vectors, target
        self._courtesy = courtesy
        self._exchanged = exchanged
        self._from = vectors.current
        self._due = self._from.stored_model != target.info.id
        self._phase = ChangePhase.EMBEDDING
        self._done, self._problem = 0, ""
        self._stop = threading.Event()
        self._deadline = Deadline(is_cancelled=self._stop.is_set)
        self._fresh: list[int] = []  # rids whose vectors the next index may lack
        self._old_index: VectorIndex | None = None
        role = "embeds every memory again when the model changes"
        self._thread = Steady(self._run, "memxd-reembed", role, daemon=False)

    def under_way(self) -> bool:
        """Whether the store's vectors are not yet of the embedder's model."""
        return self._due

    def start(self) -> None:
        """Begin, or go on with what a former run left; without a change of model, wipe what is left of the last."""
        self._thread.start()

    def end(self) -> None:
        """Ask the thread to end, without waiting for it; the new model's embedder is closed."""
        self._stop.set()
        self._target.close()

    def stop(self) -> None:
        """End the thread; what is made stays in the store. The former model is closed."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._close_former()

    def status(self) -> ModelChange | None:
        """How far it is; ``total`` counts the memories whose text may reach the new model."""
        if not self._due:
            return None
        with self._store.read() as read:
            total = read.totals().memories if self._private else read.count_public()
        return ModelChange(
            from_id=self._from.stored_model,
            to_id=self._target.info.id,
            to_dimension=self._target.info.dimension,
            phase=self._phase,
            done=min(self._done, total),
            total=total,
            former_serves=self._from.matched,
            message=self._problem,
        )

    @property
    def _private(self) -> bool:
        return not self._target.info.remote

    # -- the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._work()
                return
            except CancelledError:
                return  # what is made is in the store
            except EmbedderUnavailableError as error:
                self._later(error.message)
            except MemxdError as error:
                log.error("embedding the memories again failed, will try again: %s", error.message)
                self._later(error.message)
            except Exception as error:  # a fault of ours must not end the thread that would try again
                log.exception("embedding the memories again failed, will try again")
                self._later(type(error).__name__)

    def _later(self, problem: str) -> None:
        self._problem = problem
        self._stop.wait(RETRY_SECONDS)

    def _work(self) -> None:
        if self._due:
            self._begin()
            self._embed_all()
            self._phase = ChangePhase.INDEXING
            self._exchange()
            self._exchanged()
            self._stop.wait(GRACE_SECONDS)
            self._close_former()
        while not self._stop.is_set() and self._store.write(WriteTxn.wipe_old):
            self._courtesy.step_aside()

    def _begin(self) -> None:
        info = self._target.info
        with self._store.read() as read:
            other = read.next_model() not in (None, info.id)
        while other and not self._stop.is_set():
            other = self._store.write(WriteTxn.wipe_next)
        while not self._stop.is_set() and self._store.write(WriteTxn.wipe_old):
            pass  # a change before this one
        self._deadline.check()
        model = NextModel(info.id, info.dimension, info.passage_prefix)
        self._store.write(lambda txn: txn.begin_next(model))
        with self._store.read() as read:
            self._done = read.count_next()
        log.info("embedding every memory again", extra={"fields": {"model": info.id, "done": self._done}})

    def _embed_all(self) -> None:
        after = 0
        while rows := self._lacking(after) or self._lacking(0):
            self._embed(rows)
            after = rows[-1].rid
            self._courtesy.step_aside()

    def _lacking(self, after: int) -> list[Row]:
        self._deadline.check()
        with self._store.read() as read:
            return read.lacking_next(BATCH, after_rid=after, private=self._private)

    def _embed(self, rows: list[Row]) -> None:
        contents = [row.memory.content for row in rows]
        chunks = embed_contents(self._target, contents, self._deadline)
        made = [(row.rid, content_hash(text), c) for row, text, c in zip(rows, contents, chunks, strict=True)]
        self._done += self._store.write(lambda txn: txn.put_next(made))
        self._fresh += [row.rid for row in rows]
        self._problem = ""

    # -- the exchange ----------------------------------------------------------------------------------------------

    def _exchange(self) -> None:
        """Build the next index, catch up with what is stored meanwhile, and put both in the place of the former."""
        index = self._indexes.places.begin(self._target.info.id, self._target.info.dimension)
        try:
            built = self._build(index)
            for _ in range(_ROUNDS):
                self._embed_all()
                built = self._follow(index, built)
                with self._store.read() as read:
                    if read.count_lacking_next(FEW + 1, private=self._private) <= FEW:
                        break
            index.flush(self._deadline)
            space = Space(self._target, self._target.info.id, self._target.info.dimension)
            self._store.write(partial(self._adopt, index, space, built))
        except BaseException:
            if self._vectors.current is self._from:
                index.close()
                self._indexes.places.remove_other()
            raise
        log.info("every memory is embedded again", extra={"fields": {"model": space.stored_model}})

    def _build(self, index: VectorIndex) -> int:
        """All next vectors into the empty index; the revision they are of."""
        with self._store.read() as read:
            revision, total = read.revision(), read.count_next()
            self._fresh.clear()  # this thread's own, all committed before this snapshot
            with closing(read.next_changes()) as changes:
                index.rebuild(changes, total, revision=revision, deadline=self._deadline)
        return revision

    def _follow(self, index: VectorIndex, built: int) -> int:
        """What was stored and embedded since ``built``, into the index; the revision it is then of."""
        with self._store.read() as read:
            return self._take(read, index, built)

    def _take(self, read: ReadTxn, index: VectorIndex, built: int) -> int:
        touched = dict.fromkeys((*self._fresh, *read.rids_since(built)))
        self._fresh.clear()
        for change in read.next_changes(list(touched)):
            index.apply(change)
        return read.revision()

    def _adopt(self, index: VectorIndex, space: Space, built: int, txn: WriteTxn) -> None:
        self._take(txn, index, built)
        txn.adopt_next()
        former = self._from

        def committed() -> None:
            former.over = True  # first: who began with it looks at this before its answer leaves
            self._old_index = self._indexes.use_vector(index)
            self._vectors.current = space
            self._due = False

        txn.committed = committed

    def _close_former(self) -> None:
        """What searches that began before the exchange may still have needed."""
        if self._old_index is not None:
            old, self._old_index = self._old_index, None
            old.close()
            self._indexes.places.remove_other()
        if self._from.embedder is not self._target:
            self._from.embedder.close()
