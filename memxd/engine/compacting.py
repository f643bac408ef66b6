"""Compact: index files without what is dead, and an empty log.

Owns which indexes are worth it. SQLite overwrites what is erased at once (secure_delete); an index file keeps it until
it is written anew, which a rebuild does, beside the old files; one that was damaged and set aside goes. After it no
file of the data directory holds anything of an erased memory, but for kept copies of earlier days. The database is not
made smaller: VACUUM would hold up every writer and need its size again, and the free pages are zeros that are used
again. Called by the engine's face.
"""

from __future__ import annotations

from collections.abc import Iterator

from memxd.engine.indexes import Indexes
from memxd.model import NO_DEADLINE, Deadline, IndexKind, Progress
from memxd.store import Store


class Compacting:
    """The verb ``compact``."""

    def __init__(self, store: Store, indexes: Indexes) -> None:
        self._store = store
        self._indexes = indexes

    def compact(self, deadline: Deadline = NO_DEADLINE) -> Iterator[Progress]:
        """Write every index with dead entries anew, then empty the log; yields the rebuilds' progress.

        Raises as ``Indexes.rebuild`` and the store's errors.
        """
        self._indexes.flush(deadline)
        for status in self._indexes.status():
            # The columns keep tags by their text, and no count of those that nobody carries any more.
            if status.dead_entries or status.kind is IndexKind.COLUMNS:
                yield from self._indexes.rebuild(status.kind, deadline)
        self._indexes.flush(deadline)
        self._indexes.lexical.forget_broken()
        self._store.empty_log(deadline)
