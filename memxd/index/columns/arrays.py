"""The by-rid arrays of the columns and how they grow.

Owns dtypes, fill values and what "absent" looks like in each array. Does not know scopes, tags or files. Made by
``Columns``; read by the engine's ranking and the rules in ``visible``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from memxd.model import RowFeatures

__all__ = [
    "FOREVER",
    "NEVER",
    "NO_EVENT",
    "ColumnArrays",
    "allocate",
    "grown",
    "write_all_counters",
    "write_counters",
    "write_row",
]

#: Stand for "no such instant": event (absent), last_retrieved (never), valid_until (never ends).
NO_EVENT = int(np.iinfo(np.int64).min)
NEVER = NO_EVENT
FOREVER = int(np.iinfo(np.int64).max)
COUNT_MAX = int(np.iinfo(np.uint32).max)
U64 = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class ColumnArrays:
    """Features by rid; every array has length ``capacity``. Read only for all but ``Columns``.

    Values of one row may change under a reader; the arrays of one ``ColumnArrays`` never shrink or move. Instants are
    microseconds since 1970.
    """

    type: npt.NDArray[np.uint8]  #: MemoryType
    state: npt.NDArray[np.uint8]  #: State; 0 = no such row
    scope: npt.NDArray[np.int32]  #: scope number
    importance: npt.NDArray[np.float32]  #: 0..1, for ranking
    importance_exact: npt.NDArray[np.float64]  #: as stored, for comparing with a limit
    created: npt.NDArray[np.int64]
    event: npt.NDArray[np.int64]  #: NO_EVENT when absent
    valid_until: npt.NDArray[np.int64]  #: FOREVER when absent
    last_retrieved: npt.NDArray[np.int64]  #: NEVER when absent
    reference: npt.NDArray[np.int64]  #: last_retrieved, else event, else created (profile balanced)
    retrieved_or_created: npt.NDArray[np.int64]  #: last_retrieved, else created (profile memx)
    access: npt.NDArray[np.uint32]
    retrieval: npt.NDArray[np.uint32]
    content_hash: npt.NDArray[np.uint64]
    fold_hash: npt.NDArray[np.uint64]
    tag_hash: npt.NDArray[np.uint64]  #: equal for equal tag sets in any order; 0 = no tags
    tag_set: npt.NDArray[np.int32]  #: number of the tag set in ``tags.TagSets``; 0 = no tags
    private: npt.NDArray[np.uint8]  #: 1 = private
    cjk: npt.NDArray[np.uint8]  #: ``text.cjk_share``: 0 = none, 1 = some, 2 = most of it

    @property
    def capacity(self) -> int:
        """Length of every array."""
        return len(self.state)


DTYPES: dict[str, type[np.generic]] = {
    "type": np.uint8,
    "state": np.uint8,
    "scope": np.int32,
    "importance": np.float32,
    "importance_exact": np.float64,
    "created": np.int64,
    "event": np.int64,
    "valid_until": np.int64,
    "last_retrieved": np.int64,
    "reference": np.int64,
    "retrieved_or_created": np.int64,
    "access": np.uint32,
    "retrieval": np.uint32,
    "content_hash": np.uint64,
    "fold_hash": np.uint64,
    "tag_hash": np.uint64,
    "tag_set": np.int32,
    "private": np.uint8,
    "cjk": np.uint8,
}
NAMES: tuple[str, ...] = tuple(f.name for f in fields(ColumnArrays))


def allocate(capacity: int) -> ColumnArrays:
    """Arrays for rids 0..capacity-1, no row in them."""
    return ColumnArrays(**{name: np.zeros(capacity, DTYPES[name]) for name in NAMES})


def grown(old: ColumnArrays, capacity: int) -> ColumnArrays:
    """The same rows in arrays of at least ``capacity``, with room to spare; readers may go on with the old."""
    new = allocate(max(capacity, old.capacity + old.capacity // 2, 1024))
    for name in NAMES:
        getattr(new, name)[: old.capacity] = getattr(old, name)
    return new


def write_row(arrays: ColumnArrays, row: RowFeatures, tag_set: int, tag_hash: int) -> None:
    """Put a row into its place; the state last, so that a reader of a new row sees the rest."""
    rid = row.rid
    arrays.type[rid] = row.type
    arrays.scope[rid] = row.scope_no
    arrays.importance[rid] = row.importance
    arrays.importance_exact[rid] = row.importance
    arrays.created[rid] = row.created_at
    arrays.event[rid] = NO_EVENT if row.event_at is None else row.event_at
    arrays.valid_until[rid] = FOREVER if row.valid_until is None else row.valid_until
    arrays.content_hash[rid] = row.content_hash & U64
    arrays.fold_hash[rid] = row.fold_hash & U64
    arrays.tag_hash[rid] = tag_hash
    arrays.tag_set[rid] = tag_set
    arrays.private[rid] = row.private
    arrays.cjk[rid] = row.cjk
    write_counters(arrays, rid, row.access_count, row.retrieval_count, row.last_retrieved_at)
    arrays.state[rid] = row.state


def write_new_rows(arrays: ColumnArrays, rows: Sequence[RowFeatures], tags: Sequence[tuple[int, int]]) -> None:
    """``write_row`` for rows that were never there, at once. ``tags``: number and hash of each row's tags."""
    rids = np.array([row.rid for row in rows], np.int64)
    created = np.array([row.created_at for row in rows], np.int64)
    event = np.array([NO_EVENT if row.event_at is None else row.event_at for row in rows], np.int64)
    importance = [row.importance for row in rows]
    arrays.type[rids] = [row.type for row in rows]
    arrays.scope[rids] = [row.scope_no for row in rows]
    arrays.importance[rids] = arrays.importance_exact[rids] = importance
    arrays.created[rids] = created
    arrays.event[rids] = event
    arrays.valid_until[rids] = [FOREVER if row.valid_until is None else row.valid_until for row in rows]
    arrays.content_hash[rids] = np.array([row.content_hash & U64 for row in rows], np.uint64)
    arrays.fold_hash[rids] = np.array([row.fold_hash & U64 for row in rows], np.uint64)
    arrays.tag_hash[rids] = np.array([digest for _, digest in tags], np.uint64)
    arrays.tag_set[rids] = [number for number, _ in tags]
    arrays.private[rids] = [row.private for row in rows]
    arrays.cjk[rids] = [row.cjk for row in rows]
    last = np.array([NEVER if row.last_retrieved_at is None else row.last_retrieved_at for row in rows], np.int64)
    arrays.access[rids] = [min(row.access_count, COUNT_MAX) for row in rows]
    arrays.retrieval[rids] = [min(row.retrieval_count, COUNT_MAX) for row in rows]
    arrays.last_retrieved[rids] = last
    arrays.retrieved_or_created[rids] = np.where(last == NEVER, created, last)
    arrays.reference[rids] = np.where(last == NEVER, np.where(event == NO_EVENT, created, event), last)
    arrays.state[rids] = [row.state for row in rows]  # last, so that a reader of a new row sees the rest


def write_counters(arrays: ColumnArrays, rid: int, access: int, retrieval: int, last_retrieved: int | None) -> None:
    """Put the soft counters of a row into their places (absolute values) and what follows from them."""
    created, event = int(arrays.created[rid]), int(arrays.event[rid])
    arrays.access[rid] = min(access, COUNT_MAX)
    arrays.retrieval[rid] = min(retrieval, COUNT_MAX)
    arrays.last_retrieved[rid] = NEVER if last_retrieved is None else last_retrieved
    arrays.retrieved_or_created[rid] = created if last_retrieved is None else last_retrieved
    fallback = created if event == NO_EVENT else event
    arrays.reference[rid] = fallback if last_retrieved is None else last_retrieved


def write_all_counters(arrays: ColumnArrays, counters: Iterable[tuple[int, int, int, int | None]]) -> bool:
    """``write_counters`` for many (rid, access, retrieval, last_retrieved) at once, since searches wait for it; rows
    that are not there are passed over. Whether there was any."""
    told = [(rid, a, r, NEVER if last is None else last) for rid, a, r, last in counters if 0 <= rid < arrays.capacity]
    if not told:
        return False
    rids, access, retrieval, last = np.array(told, np.int64).T
    there = arrays.state[rids] != 0
    rids, access, retrieval, last = rids[there], access[there], retrieval[there], last[there]
    created, event, ever = arrays.created[rids], arrays.event[rids], last != NEVER
    arrays.access[rids] = np.minimum(access, COUNT_MAX)
    arrays.retrieval[rids] = np.minimum(retrieval, COUNT_MAX)
    arrays.last_retrieved[rids] = last
    arrays.retrieved_or_created[rids] = np.where(ever, last, created)
    arrays.reference[rids] = np.where(ever, last, np.where(event == NO_EVENT, created, event))
    return len(rids) > 0
