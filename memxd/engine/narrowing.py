"""Which rows have certain metadata: asked of SQLite once, and then corrected by what changed.

Owns a few remembered answers, each of one revision; gathering a hundred thousand rows anew for every search would cost
more than the search. Lists of ids are not remembered: they are short. Called by question.py.
"""

from __future__ import annotations

import threading
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from memxd.engine.canonical import digest
from memxd.model import Filter, Scope, View
from memxd.store import ReadTxn

Rids: TypeAlias = NDArray[np.int32]

#: Answers that are remembered, and the largest of them in rows (4 bytes each).
_ANSWERS, _LARGEST = 8, 500_000
#: Changes after which an answer is asked for anew.
_CHANGES = 512


class Narrowing:
    """Remembered answers by scope and metadata. Safe to call from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[int, Rids]] = {}

    def rids(self, read: ReadTxn, scope: Scope, wanted: Filter) -> Rids | None:
        """int32[n] ascending: the scope's rows with one of ``wanted.ids``, with all of ``wanted.metadata`` and with
        what a filter for cleaning up asks for, in every state; None when nothing of it is asked for."""
        if wanted.for_cleaning:  # counts change without a revision, so there is nothing to remember an answer by
            asked = Filter(
                ids=wanted.ids,
                metadata=wanted.metadata,
                importance_below=wanted.importance_below,
                unused_since=wanted.unused_since,
                valid_until=wanted.valid_until,
            )
            return np.array(read.select_rids(scope, View(asked, 0, every_state=True)), np.int32)
        if wanted.ids or not wanted.metadata:
            if not wanted.ids:
                return None
            return np.array(read.rids_matching(scope, ids=wanted.ids, metadata=wanted.metadata or None), np.int32)
        number = read.scope_no(scope)
        if number is None:
            return np.empty(0, np.int32)
        key, revision = digest("metadata", number, wanted.metadata), read.revision()
        with self._lock:
            known = self._known.get(key)
        found = None if known is None else self._corrected(read, number, wanted, *known)
        if found is None:
            found = np.array(read.rids_matching(scope, metadata=wanted.metadata), np.int32)
        if len(found) <= _LARGEST:
            self._keep(key, revision, found)
        return found

    @staticmethod
    def _corrected(read: ReadTxn, number: int, wanted: Filter, since: int, rids: Rids) -> Rids | None:
        """The answer as of this snapshot; None when too much has changed (or the answer is of a later one)."""
        touched = read.touched_since(since, _CHANGES)
        if not touched:
            return rids if touched is not None else None
        present = np.array(read.rids_with(number, wanted.metadata, touched), np.int32)
        changed = np.unique(np.array(touched, np.int32))
        at = np.searchsorted(rids, changed)
        inside = at < len(rids)
        gone = at[inside][rids[at[inside]] == changed[inside]]
        kept = np.delete(rids, gone)
        return np.insert(kept, np.searchsorted(kept, present), present)

    def _keep(self, key: str, revision: int, rids: Rids) -> None:
        with self._lock:
            if key not in self._known and len(self._known) >= _ANSWERS:
                del self._known[next(iter(self._known))]
            self._known[key] = revision, rids
