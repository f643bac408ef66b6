"""Compact: index files without what is dead, and an empty log.

Owns which indexes are worth it. SQLite overwrites what is erased at once (secure_delete); an index file keeps it until
it is written anew, which a rebuild does, beside the old files. After it no file of the data directory holds anything
of an erased memory. Called by the engine's face.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from memxd.engine.indexes import Indexes
from memxd.failpoints import reach
from memxd.index.lexical.files import SET_ASIDE
from memxd.model import NO_DEADLINE, Deadline, IndexKind, Progress
from memxd.store import Store, WriteTxn


class Compacting:
    """The verb ``compact``."""

    def __init__(self, store: Store, indexes: Indexes, folder: Path, changing: Callable[[], bool]) -> None:
        """``changing``: whether a change of model is under way."""
        self._store = store
        self._indexes = indexes
        self._folder = folder
        self._changing = changing

    def compact(self, deadline: Deadline = NO_DEADLINE) -> Iterator[Progress]:
        """Write every index with dead entries anew, drop what is kept of a damaged one, and empty the log; yields the
        rebuilds' progress.

        Raises as ``Indexes.rebuild`` and the store's errors.
        """
        self._indexes.flush(deadline)
        for status in self._indexes.status():
            # The columns keep tags by their text, and no count of those that nobody carries any more.
            if status.dead_entries or status.kind is IndexKind.COLUMNS:
                yield from self._indexes.rebuild(status.kind, deadline)
                reach("compact.rebuilt")
        for aside in self._folder.glob(f"*/{SET_ASIDE}"):
            shutil.rmtree(aside, ignore_errors=True)
        while not self._changing() and self._store.write(WriteTxn.wipe_next, deadline):
            pass  # vectors of a model that was chosen for a while
        self._indexes.flush(deadline)
        self._store.empty_log(deadline)
