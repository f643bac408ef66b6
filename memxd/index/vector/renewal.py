"""How the vector index is made anew while it serves: rebuilt from the store, freed of its dead, its graph extended.

Owns that only one of these runs at a time, that a rebuild takes precedence, and that what was begun in vain leaves no
files. Runs on the caller's thread (rebuild) or on the upkeep thread (renew). Owned by ``VectorIndex``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from memxd.errors import IndexUnavailableError
from memxd.index.durable import storage_error
from memxd.index.vector.files import remove_others
from memxd.index.vector.generation import Generation, Successor
from memxd.index.vector.holder import Holder
from memxd.index.vector.tuning import VectorTuning
from memxd.index.vector.upkeep import GraphBuildError
from memxd.model import Change, Deadline, IndexState

__all__ = ["Renewal"]


class Renewal:
    """Makes next generations and graphs of what ``holder`` holds."""

    def __init__(self, holder: Holder, tuning: VectorTuning) -> None:
        self._holder = holder
        self.tuning = tuning
        self._making = threading.Lock()  # one next generation at a time; taken before the holder's locks
        self._interrupt = threading.Event()  # the renewal shall give way

    def due(self) -> int:
        """0 = nothing to do, 1 = when things settle, 2 = at once."""
        if self._holder.state is not IndexState.READY or self.gives_way():
            return 0
        return self._holder.current.renewal_due(self.tuning)

    def gives_way(self) -> bool:
        """True when a renewal has to end."""
        return self._holder.closed or self._interrupt.is_set()

    def rebuild(
        self,
        changes: Iterator[Change],
        total: int,
        progress: Callable[[int, int], None] | None,
        revision: int,
        deadline: Deadline,
    ) -> None:
        """See ``VectorIndex.rebuild``."""
        holder = self._holder
        self._interrupt.set()
        with self._making:
            self._interrupt.clear()
            with holder.lock:
                holder.catch_up = []
            try:
                number = holder.current.rows.generation + 1
                fresh = Generation.begin(holder.directory, number, holder.identity.dimension)
                try:
                    revision = max(revision, fresh.fill(self._open_still(changes, deadline), total, progress))
                    holder.swap(lambda: fresh.catch_up(holder.catch_up or []), revision)
                finally:
                    if holder.current is not fresh:
                        fresh.delete_files()
            except OSError as error:
                raise storage_error(error, "the vector index") from error
            finally:
                holder.catch_up = None

    def _open_still(self, changes: Iterator[Change], deadline: Deadline) -> Iterator[Change]:
        for change in changes:
            deadline.check()
            if self._holder.closed:
                raise IndexUnavailableError("the vector index was closed", metadata={"cause": "closed"})
            yield change

    def renew(self) -> None:
        """A next generation without the dead, or a graph that knows all rows. On the upkeep thread. Raises OSError,
        GraphBuildError, ManifestError, MemxdError."""
        with self._making:
            if not self.due():
                return
            try:
                if self._holder.current.worn(self.tuning):
                    self._succeed()
                else:
                    self._extend()
            except GraphBuildError:
                if not self.gives_way():
                    raise

    def _succeed(self) -> None:
        holder, old = self._holder, self._holder.current
        successor = Successor(holder.directory, old, self.tuning)

        def finish() -> tuple[Generation, int]:
            self._still_ready()
            return successor.finish(), holder.watermark

        try:
            successor.prepare(self.gives_way)
            holder.swap(finish, 0)
        finally:
            if holder.current is old:
                successor.new.delete_files()

    def _extend(self) -> None:
        holder, current = self._holder, self._holder.current
        former = current.graph
        try:
            graph = current.extended(holder.directory, self.tuning, self.gives_way)
            self._still_ready()
            holder.swap_graph(current, graph)
        finally:
            if current.graph is former:
                remove_others(holder.directory, current.rows.generation, current.graph_names())

    def _still_ready(self) -> None:
        if self._holder.state is not IndexState.READY:  # changes were refused meanwhile: only a rebuild brings them
            raise GraphBuildError("the index failed meanwhile")
