"""Giving memories their vectors later, when the embedder could not when they were stored.

Owns the background thread that looks for pending vectors, embeds them at low urgency and commits them, and the answer
to "may some memories of this scope be missing from the vector leg". Private memories wait for as long as the embedder
is remote; they are not counted as missing, because they are not going to come. Called by the engine's face.
"""

from __future__ import annotations

import logging
import threading
from functools import partial

from memxd.engine.embedding import NewChunk, embed_contents
from memxd.engine.vectors import Space, Vectors
from memxd.errors import CancelledError, EmbedderUnavailableError, MemxdError
from memxd.model import Change, Deadline, RowFeatures
from memxd.store import Row, Store, WriteTxn
from memxd.text import content_hash
from memxd.threads import Steady, at_rest, at_work

log = logging.getLogger(__name__)

#: Memories embedded between two looks at whether the daemon stops.
BATCH = 32
#: Seconds between two tries while the embedder is down.
RETRY_SECONDS = 5.0


class Backfill:
    """Pending vectors. ``noticed`` is told of every committed change, ``pending_in`` answers searches."""

    def __init__(self, store: Store, vectors: Vectors) -> None:
        self._store = store
        self._vectors = vectors
        self._lock = threading.Lock()
        self._waiting: dict[int, int] = {}  # rid -> scope number
        self._wake = threading.Event()
        self._stop = False
        self._thread = Steady(self._run, "memxd-backfill", "embeds what had to wait for its vector", daemon=False)

    def start(self) -> None:
        """Take over what a former run left pending, and begin."""
        self._take_over()
        self._thread.start()
        self._wake.set()

    def renew(self) -> None:
        """Another model serves: look anew at what is pending, and give it vectors."""
        with self._lock:
            self._waiting.clear()
        self._take_over()
        self._wake.set()

    def _take_over(self) -> None:
        after = 0
        while rows := self._pending(after, 1_000):
            with self._lock:
                self._waiting.update({row.rid: row.scope_no for row in rows})
            after = rows[-1].rid

    def end(self) -> None:
        """Ask the thread to end, without waiting for it."""
        self._stop = True
        self._wake.set()

    def stop(self) -> None:
        """End the thread; what is pending stays so in the store."""
        self.end()
        if self._thread.is_alive():
            self._thread.join()

    def noticed(self, changes: list[Change]) -> None:
        """Called on the writer thread after each commit."""
        added = False
        with self._lock:
            for change in changes:
                features = change.features
                if features is not None and self._is_awaited(features):
                    self._waiting[change.rid] = features.scope_no
                    added = True
                else:
                    self._waiting.pop(change.rid, None)
        if added:
            self._wake.set()

    def _is_awaited(self, features: RowFeatures) -> bool:
        """False also for a private memory while the embedder is remote: its vector is not going to come."""
        return features.vector_pending and not (features.private and self._vectors.embedder.info.remote)

    def pending_in(self, scope_no: int) -> bool:
        """Whether some memory of the scope still waits for its vector."""
        if not self._waiting:
            return False
        with self._lock:
            return scope_no in self._waiting.values()

    def _pending(self, after: int, limit: int) -> list[Row]:
        with self._store.read() as read:
            return read.pending_vectors(limit, after_rid=after, private=not self._vectors.embedder.info.remote)

    def _run(self) -> None:
        while True:
            at_rest()
            self._wake.wait()
            self._wake.clear()
            at_work()
            if self._stop:
                return
            try:
                self._drain()
            except CancelledError:
                return  # what is pending stays so in the store
            except EmbedderUnavailableError as error:
                log.debug("vectors still pending: %s", error.message)
                self._again_later()
            except MemxdError as error:
                log.error("completing vectors failed, will try again: %s", error.message)
                self._again_later()

    def _again_later(self) -> None:
        if not self._wake.wait(RETRY_SECONDS):
            self._wake.set()

    def _drain(self) -> None:
        after = done = 0
        space = self._vectors.current
        if not space.matched:
            return  # every memory is embedded again, these as well
        until_stop = Deadline(is_cancelled=lambda: self._stop)
        while not (self._stop or space.over) and (rows := self._pending(after, BATCH)):
            after = rows[-1].rid
            for row in rows:
                if self._stop or space.over:
                    return
                if row.rid not in self._waiting:
                    continue  # erased, completed or made private since the batch was read
                chunks = embed_contents(space.embedder, [row.memory.content], until_stop)[0]
                hashed = content_hash(row.memory.content)
                self._store.write(partial(_complete, space, row.rid, chunks, hashed))
                done += 1
        if done:
            log.info("completed %d pending vectors", done)


def _complete(space: Space, rid: int, chunks: tuple[NewChunk, ...], hashed: int, txn: WriteTxn) -> None:
    if not space.over:
        txn.set_vectors(rid, chunks, content_hash=hashed)
