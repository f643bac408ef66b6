"""What the face of the vector index and its renewal share: the present generation and what is known of it.

Owns the locks, the watermarks, the state, saving, and the exchange of the present generation or its graph for the next
one. Does not search, apply or build. Lock order: ``saving`` (files) before ``lock`` (rows and watermark). Owned by
``VectorIndex``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from memxd.errors import IndexUnavailableError, MemxdError, StorageFailedError
from memxd.failpoints import reach
from memxd.index.durable import storage_error
from memxd.index.vector.files import remove_older, remove_others
from memxd.index.vector.generation import Generation
from memxd.index.vector.graph import Graph
from memxd.index.vector.loading import Loaded
from memxd.index.vector.manifest import Identity
from memxd.model import Change, IndexState

__all__ = ["Holder"]

_log = logging.getLogger(__name__)
#: Changes that wait for a disk at most; beyond them a rebuild from the store takes less memory.
_MOST_WAITING = 10_000
#: After so many tries in a row that ended in an error which freeing space does not mend, other files are tried.
_TRIES = 10


class Holder:
    """``current`` is replaced under both locks and read without any: one reference is one moment."""

    def __init__(self, directory: Path, identity: Identity, loaded: Loaded) -> None:
        self.directory, self.identity = directory, identity
        self.lock, self.saving = threading.Lock(), threading.Lock()
        self.current = loaded.generation
        self.state, self.message = IndexState.READY, loaded.message
        self.watermark = self.durable = loaded.watermark
        self.dirty = self.closed = False
        self.catch_up: list[Change] | None = None  # what is applied while a rebuild runs
        self.waiting: Sequence[Change] = ()  # what the disk refused, in order, and how it did
        self.refused: MemxdError | None = None
        self._tries = 0
        self._untidy = True  # what the start did not believe lies there still

    def fail(self, message: str) -> IndexUnavailableError:
        """No search and no change from here on; answers what a search raises."""
        self.state, self.message = IndexState.FAILED, message
        self._forget_waiting()
        _log.error("the vector index failed: %s", message)
        return IndexUnavailableError(f"the vector index failed: {message}", metadata={"cause": "failed"})

    def wait(self, changes: Sequence[Change], refused: MemxdError) -> None:
        """Keep changes that the disk refused; no search until they are taken over. The caller holds ``lock``."""
        self._tries += isinstance(refused, StorageFailedError)
        if len(changes) > _MOST_WAITING or self._tries > _TRIES:
            self.fail(f"{len(changes)} changes were not taken: {refused.message}")
            return
        if self.refused is None:
            _log.warning("the vector index waits until it can be written: %s", refused.message)
        self.waiting, self.refused = changes, refused
        self.state, self.message = IndexState.REBUILDING, f"{len(changes)} changes wait: {refused.message}"

    def willing(self) -> None:
        """Nothing waits any more. The caller holds ``lock``."""
        if self.refused is not None:
            _log.info("the vector index is written again")
            self._forget_waiting()
            self.state, self.message = IndexState.READY, ""

    def _forget_waiting(self) -> None:
        self.waiting, self.refused, self._tries = (), None, 0

    def save(self) -> None:
        """Write what is new; the caller holds ``saving``. Raises a StorageError."""
        with self.lock:
            current, watermark = self.current, self.watermark
            rows, saver = current.rows, current.saver
            alive = rows.view().rids[: rows.count] >= 0
            records = rows.records(saver.saved, rows.count)
            self.dirty = False
        try:
            saver.save(self.identity, watermark, current.graph_file(), alive, records)
        except OSError as error:
            self.dirty = True
            raise storage_error(error, "the vector index") from error
        self.durable = watermark
        if self._untidy:
            remove_older(self.directory, current.rows.generation)
            self._untidy = False

    def swap(self, finish: Callable[[], tuple[Generation, int]], revision: int) -> None:
        """Let ``finish`` complete the next generation while nobody applies, use it, save it, remove the old one."""
        with self.saving:
            with self.lock:
                old = self.current
                self.current, latest = finish()
                self.watermark = max(revision, latest)
                self.state, self.message, self.dirty = IndexState.READY, "", True
                self._forget_waiting()
            reach("vector.swap")
            old.rows.close()
            self._settle()

    def swap_graph(self, generation: Generation, graph: Graph) -> None:
        """Use a larger graph of the present generation, save that, remove the former one's files."""
        with self.saving:
            with self.lock:
                generation.graph = graph
                self.message, self.dirty = "" if self.refused is None else self.message, True
            self._settle()

    def _settle(self) -> None:
        self.save()
        reach("vector.swapped")
        remove_others(self.directory, self.current.rows.generation, self.current.graph_names())
