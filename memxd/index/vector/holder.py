"""What the face of the vector index and its renewal share: the present generation and what is known of it.

Owns the locks, the watermarks, the state, saving, and the exchange of the present generation or its graph for the next
one. Does not search, apply or build. Lock order: ``saving`` (files) before ``lock`` (rows and watermark). Owned by
``VectorIndex``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from memxd.errors import IndexUnavailableError
from memxd.failpoints import reach
from memxd.index.durable import storage_error
from memxd.index.vector.files import remove_others
from memxd.index.vector.generation import Generation
from memxd.index.vector.graph import Graph
from memxd.index.vector.loading import Loaded
from memxd.index.vector.manifest import Identity
from memxd.model import Change, IndexState

__all__ = ["Holder"]

_log = logging.getLogger(__name__)


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

    def fail(self, message: str) -> IndexUnavailableError:
        """No search and no change from here on; answers what a search raises."""
        self.state, self.message = IndexState.FAILED, message
        _log.error("the vector index failed: %s", message)
        return IndexUnavailableError(f"the vector index failed: {message}", metadata={"cause": "failed"})

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

    def swap(self, finish: Callable[[], tuple[Generation, int]], revision: int) -> None:
        """Let ``finish`` complete the next generation while nobody applies, use it, save it, remove the old one."""
        with self.saving:
            with self.lock:
                old = self.current
                self.current, latest = finish()
                self.watermark = max(revision, latest)
                self.state, self.message, self.dirty = IndexState.READY, "", True
            reach("vector.swap")
            old.rows.close()
            self._settle()

    def swap_graph(self, generation: Generation, graph: Graph) -> None:
        """Use a larger graph of the present generation, save that, remove the former one's files."""
        with self.saving:
            with self.lock:
                generation.graph = graph
                self.message, self.dirty = "", True
            self._settle()

    def _settle(self) -> None:
        self.save()
        reach("vector.swapped")
        remove_others(self.directory, self.current.rows.generation, self.current.graph_names())
