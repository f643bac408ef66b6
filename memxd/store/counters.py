"""Access and retrieval counts on their way to the database.

Owns what was counted and not yet flushed, and adds it to what a reader finds in its snapshot, so that a count never
goes back while a flush is under way. Soft by contract: a crash may lose the last second. Counted by callers' threads,
flushed by the writer thread; SQL is here only for the flush.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Collection
from typing import NamedTuple

from memxd.model import Micros


class Counts(NamedTuple):
    """Counts of one row: as a total, or as what is to be added."""

    accesses: int = 0
    accessed_at: Micros | None = None
    retrievals: int = 0
    retrieved_at: Micros | None = None


_NONE = Counts()
#: One statement for all rows, because each step of SQLite may wait for the GIL.
_FLUSH = """UPDATE memories SET access_count = access_count + c.accesses,
 last_accessed_at = coalesce(c.accessed_at, last_accessed_at), retrieval_count = retrieval_count + c.retrievals,
 last_retrieved_at = coalesce(c.retrieved_at, last_retrieved_at)
 FROM (SELECT json_extract(value, '$[0]') AS rid, json_extract(value, '$[1]') AS accesses,
 json_extract(value, '$[2]') AS accessed_at, json_extract(value, '$[3]') AS retrievals,
 json_extract(value, '$[4]') AS retrieved_at FROM json_each(?)) AS c WHERE memories.rid = c.rid"""
_TOTALS = """SELECT
 json_group_array(json_array(rid, access_count, last_accessed_at, retrieval_count, last_retrieved_at))
 FROM memories WHERE rid IN (SELECT json_extract(value, '$[0]') FROM json_each(?))"""


class Counters:
    """Counts by rid that the database does not show yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: dict[int, Counts] = {}
        # Totals of the last flush. A reader may hold a snapshot from before it: the larger number is the true one.
        self._flushed: dict[int, Counts] = {}
        # Written in the transaction that is open now: what was added, and the totals that came of it.
        self._in_flight: dict[int, Counts] = {}
        self._fresh: dict[int, Counts] = {}

    def count_access(self, rid: int, now: Micros) -> None:
        """One more Get of ``rid``."""
        with self._lock:
            old = self._pending.get(rid, _NONE)
            self._pending[rid] = old._replace(accesses=old.accesses + 1, accessed_at=_later(old.accessed_at, now))

    def count_retrievals(self, rids: Collection[int], now: Micros) -> None:
        """One more retrieval of each of ``rids``."""
        pending = self._pending
        with self._lock:
            for rid in rids:
                accesses, accessed_at, retrievals, retrieved_at = pending.get(rid, _NONE)
                if retrieved_at is None or retrieved_at < now:
                    retrieved_at = now
                pending[rid] = Counts(accesses, accessed_at, retrievals + 1, retrieved_at)

    def present(
        self, rid: int, accesses: int, accessed_at: Micros | None, retrievals: int, retrieved_at: Micros | None
    ) -> Counts:
        """A row's counts as of now, given what a snapshot says."""
        with self._lock:
            flushed = self._flushed.get(rid, _NONE)
            pending = self._pending.get(rid, _NONE)
        if flushed is _NONE and pending is _NONE:
            return Counts(accesses, accessed_at, retrievals, retrieved_at)
        return Counts(
            max(accesses, flushed.accesses) + pending.accesses,
            _later(_later(accessed_at, flushed.accessed_at), pending.accessed_at),
            max(retrievals, flushed.retrievals) + pending.retrievals,
            _later(_later(retrieved_at, flushed.retrieved_at), pending.retrieved_at),
        )

    @property
    def counted(self) -> bool:
        """Whether ``present`` may say anything else than what it is given."""
        return bool(self._pending or self._flushed)

    @property
    def waiting(self) -> bool:
        """Whether a flush has anything to do."""
        return bool(self._pending)

    def flush(self, connection: sqlite3.Connection) -> None:
        """Write what is pending within the open transaction. ``committed`` or ``aborted`` must follow."""
        with self._lock:
            batch = dict(self._pending)
        if not batch:
            return
        listed = json.dumps([(rid, *counts) for rid, counts in batch.items()])
        connection.execute(_FLUSH, (listed,))
        [found] = connection.execute(_TOTALS, (listed,)).fetchone()
        totals = {rid: Counts(*counts) for rid, *counts in json.loads(found)}
        with self._lock:
            # First: who looks without the lock whether anything is counted must find it in one place or the other.
            self._flushed = self._flushed | totals
            for rid, counts in batch.items():
                rest = _difference(self._pending[rid], counts)
                if rest is None:
                    del self._pending[rid]
                else:
                    self._pending[rid] = rest
                self._in_flight[rid] = _sum(self._in_flight.get(rid, _NONE), counts)
            self._fresh |= totals

    def committed(self) -> dict[int, Counts]:
        """The transaction is durable. Return the new totals of the rows that were flushed and still exist."""
        if not self._in_flight:
            return {}
        with self._lock:
            totals, self._fresh = self._fresh, {}
            self._flushed = totals
            self._in_flight = {}
        return totals

    def aborted(self) -> None:
        """The transaction is lost: what it flushed is pending again."""
        with self._lock:
            for rid, counts in self._in_flight.items():
                self._pending[rid] = _sum(self._pending.get(rid, _NONE), counts)
            for rid in self._fresh:
                self._flushed.pop(rid, None)
            self._in_flight = {}
            self._fresh = {}


def _later(first: Micros | None, second: Micros | None) -> Micros | None:
    if first is None or second is None:
        return first if second is None else second
    return max(first, second)


def _difference(now: Counts, flushed: Counts) -> Counts | None:
    rest = Counts(
        now.accesses - flushed.accesses, now.accessed_at, now.retrievals - flushed.retrievals, now.retrieved_at
    )
    return rest if rest.accesses or rest.retrievals else None


def _sum(first: Counts, second: Counts) -> Counts:
    return Counts(
        first.accesses + second.accesses,
        _later(first.accessed_at, second.accessed_at),
        first.retrievals + second.retrievals,
        _later(first.retrieved_at, second.retrieved_at),
    )
