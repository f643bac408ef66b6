"""The rows of each scope in ascending order, and the last answer to the usual question.

``ScopeRows`` owns one scope's rid list (appends are cheap, deleted rows stay in the list until they are many: readers
check the state anyway) and a cached selection of its active, unexpired rows. Not thread-safe: ``Columns`` holds its
lock around every call; the arrays handed out stay valid after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memxd.index.columns.arrays import ColumnArrays
from memxd.index.selection import Selection

__all__ = ["CachedSelection", "ScopeRows", "group_by_scope"]

Rids = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class CachedSelection:
    """The default view of a scope at its ``epoch``, right for every moment in the half-open [begin, end)."""

    epoch: int
    begin: int
    end: int
    selection: Selection


class ScopeRows:
    """One scope's rids. ``epoch`` counts the changes of its rows."""

    __slots__ = ("_dead", "_rids", "_size", "_sorted", "cached", "epoch")

    def __init__(self, rids: Rids) -> None:
        self._rids = rids
        self._size = rids.shape[0]
        self._sorted = True
        self._dead = 0
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
