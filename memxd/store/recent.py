"""Rows as they were read last, so that what searches often find costs no statement.

Owns rows by rid, within a byte bound, and the rule that none is ever older than what SQLite would answer: the writer
says before a COMMIT which rows change (they leave at once, and what is being read meanwhile is not taken in), and
afterwards the new revision and counts. Knows no SQL. Read and filled by ``readers.py``, told by ``writer.py``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memxd.model import Micros
from memxd.store.counters import Counts

#: What all rows together may take, in bytes, about; one that takes more than a hundredth of it is not kept.
BUDGET = 16 << 20
_OBJECTS = 1_000  # bytes of a row without its text, about


class Recent:
    """Rows by rid as ``codec.ROW`` arrays. Safe to use from many threads."""

    def __init__(self, budget: int = BUDGET) -> None:
        self._budget = budget
        self._lock = threading.Lock()
        self._rows: dict[int, tuple[list[Any], int]] = {}  # with what it takes; the oldest first
        self._size = 0
        self._committing = False
        self._generation = 0
        self._revision = 0

    @property
    def revision(self) -> int:
        """The newest committed revision."""
        return self._revision

    def get(self, rids: Iterable[int]) -> tuple[dict[int, list[Any]], int, int]:
        """(those of ``rids`` that are here, the revision they are of, a ticket for ``put`` and ``is_valid``)."""
        rows = self._rows
        with self._lock:
            found = {rid: rows[rid][0] for rid in rids if rid in rows}
            return found, self._revision, -1 if self._committing else self._generation

    def is_valid(self, ticket: int) -> bool:
        """Whether nothing was committed since ``get`` gave the ticket."""
        return ticket == self._generation

    def put(self, read: Sequence[list[Any]], size: int, ticket: int) -> None:
        """Take in what was read after ``get`` gave the ticket; ``size`` is the length of its text. Passed over when
        something was committed meanwhile."""
        each = _OBJECTS + 2 * size // max(1, len(read))
        if each > self._budget // 100:
            return
        with self._lock:
            if ticket != self._generation:
                return
            for values in read:
                if values[0] not in self._rows:
                    self._rows[values[0]] = values, each
                    self._size += each
            while self._size > self._budget:
                self._drop(next(iter(self._rows)))

    def changing(self, rids: Iterable[int]) -> None:
        """These rows are about to change: COMMIT comes next, then ``changed``, whatever comes of it."""
        with self._lock:
            self._committing = True
            self._generation += 1
            for rid in rids:
                self._drop(rid)

    def changed(self, revision: int, counts: Mapping[int, Counts]) -> None:
        """The transaction is over: the newest committed revision, and the new counts of the rows whose counts it
        wrote."""
        with self._lock:
            self._committing = False
            self._generation += 1
            self._revision = revision
            for rid, (accesses, accessed_at, retrievals, retrieved_at) in counts.items():
                known = self._rows.get(rid)
                if known is not None:
                    fresh: list[int | Micros | None] = [accesses, accessed_at, retrievals, retrieved_at]
                    known[0][16:20] = fresh

    def _drop(self, rid: int) -> None:
        known = self._rows.pop(rid, None)
        if known is not None:
            self._size -= known[1]
