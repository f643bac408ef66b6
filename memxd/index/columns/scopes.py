"""The rows of each scope in ascending order, and the last answer to the usual question.

``ScopeRows`` owns one scope's rid list (appends are cheap, deleted rows stay in the list until they are many: readers
check the state anyway) and a cached selection of its active, unexpired rows. Not thread-safe: ``Columns`` holds its
lock around every call; the arrays handed out stay valid after it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memxd.index.columns.arrays import FOREVER, NO_EVENT, ColumnArrays
from memxd.index.selection import Selection
from memxd.model import State

__all__ = ["CachedSelection", "ScopeRows", "group_by_scope", "select_default"]

Rids = npt.NDArray[np.int32]


_RECENT = 256  # changes after which the usual answer is made anew rather than corrected


@dataclass(frozen=True, slots=True)
class CachedSelection:
    """The default view of a scope at its ``epoch``, right for every moment in the half-open [begin, end)."""

    epoch: int
    begin: int
    end: int
    selection: Selection

    def refreshed(self, arrays: ColumnArrays, touched: list[int], now: int, epoch: int) -> CachedSelection:
        """The same after changes of the ``touched`` rows: copies instead of a look at every row of the scope."""
        rids = np.unique(np.array(touched, np.int32))
        part = select_default(arrays, rids, now, epoch, self.selection.scope_no)
        old, new = self.selection.rids, part.selection.rids
        if len(old) and rids[0] <= old[-1]:
            old = old[~Selection(rids, arrays.capacity).contains(old)] if len(rids) > 16 else _without(old, rids)
        merged = np.insert(old, np.searchsorted(old, new), new) if len(new) else old
        selection = self.selection.changed(merged, rids, new, arrays.capacity)
        return CachedSelection(epoch, max(self.begin, part.begin), min(self.end, part.end), selection)


def select_default(arrays: ColumnArrays, rids: Rids, now: int, epoch: int, scope_no: int) -> CachedSelection:
    """The active, unexpired ones of ``rids`` (of this scope) at ``now``, and for which moments that stays true."""
    active = rids[arrays.state.take(rids) == State.ACTIVE]
    until = arrays.valid_until.take(active)
    unexpired = until > now
    begin = int(until[~unexpired].max(initial=NO_EVENT))
    end = int(until[unexpired].min(initial=FOREVER))
    return CachedSelection(epoch, begin, end, Selection(active[unexpired], arrays.capacity, scope_no))


def _without(rids: Rids, gone: Rids) -> Rids:
    at = np.searchsorted(rids, gone)
    at = at[at < len(rids)]
    return np.delete(rids, at[np.isin(rids[at], gone)])


class ScopeRows:
    """One scope's rids. ``epoch`` counts the changes of its rows."""

    __slots__ = ("_dead", "_recent", "_rids", "_size", "_sorted", "cached", "epoch")

    def __init__(self, rids: Rids) -> None:
        self._rids = rids
        self._size = rids.shape[0]
        self._sorted = True
        self._dead = 0
        self._recent: deque[int] = deque(maxlen=_RECENT)
        self.epoch = 0
        self.cached: CachedSelection | None = None

    def add(self, rid: int) -> None:
        """A row that is new to the scope."""
        if self._size == self._rids.shape[0]:
            bigger = np.empty(max(16, self._size + self._size // 2), np.int32)
            bigger[: self._size] = self._rids[: self._size]
            self._rids = bigger
        if self._size and rid <= self._rids[self._size - 1]:
            self._sorted = False
        self._rids[self._size] = rid
        self._size += 1

    def drop(self) -> None:
        """One of the rows is gone (its state says which)."""
        self._dead += 1

    def touch(self, rid: int) -> None:
        """One of the rows changed, came or went."""
        self.epoch += 1
        self._recent.append(rid)

    def touched_since_cached(self) -> list[int] | None:
        """The rows that changed since the cached selection was made; None when they are too many, or none is cached."""
        behind = _RECENT + 1 if self.cached is None else self.epoch - self.cached.epoch
        if behind > len(self._recent):
            return None
        return list(self._recent)[len(self._recent) - behind :]

    def rids(self, arrays: ColumnArrays) -> Rids:
        """int32[n] ascending: every row of the scope, and perhaps some deleted ones."""
        if not self._sorted:
            self._replace(np.unique(self._rids[: self._size]))
        if self._dead > 256 and 2 * self._dead > self._size:
            rids = self._rids[: self._size]
            self._replace(rids[arrays.state[rids] != 0])
            self._dead = 0
        return self._rids[: self._size]

    def _replace(self, rids: Rids) -> None:
        self._rids, self._size, self._sorted = rids, rids.shape[0], True


def group_by_scope(arrays: ColumnArrays) -> dict[int, ScopeRows]:
    """Every scope's rows, from the arrays alone."""
    rids = np.flatnonzero(arrays.state).astype(np.int32)
    scopes = arrays.scope[rids]
    order = np.argsort(scopes, kind="stable")
    numbers, starts = np.unique(scopes[order], return_index=True)
    ordered = rids[order]
    parts = np.split(ordered, starts[1:])
    return {int(number): ScopeRows(part.copy()) for number, part in zip(numbers, parts, strict=False)}
