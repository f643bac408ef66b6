"""The rows of one scope that a view lets through: what every leg searches in.

Owns the ascending row ids and, made on first use, the mask by row id. ``Columns.select`` makes selections; the
vector and lexical legs and the ranking read them. What a selection answers never changes, so that one may be shared by
threads and cached; a longer one that begins alike shares its memory (``extended``), so that a new row costs no copy.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Selection"]

Int32 = npt.NDArray[np.int32]
Mask = npt.NDArray[np.uint8]


class _Room:
    """Arrays with space behind what a selection shows of them: ``rids[:used]`` and ``mask[:reach]`` are in use."""

    __slots__ = ("mask", "reach", "rids", "used")

    def __init__(self, rids: Int32, size: int) -> None:
        self.rids = np.empty(size, np.int32)
        self.used = len(rids)
        self.rids[: self.used] = rids
        self.mask: Mask = np.empty(0, np.uint8)
        self.reach = 0


class Selection:
    """Row ids that may be answered.

    ``rids``: int32[m], strictly ascending, each below ``capacity``. ``capacity``: rows that existed when it was made,
    dead ones included; ``Columns.arrays()`` taken later are at least as long. ``scope_no``: the scope all of them
    belong to, which statistics are counted over; -1 = none.
    """

    __slots__ = ("_mask", "_room", "capacity", "rids", "scope_no")

    def __init__(self, rids: Int32, capacity: int, scope_no: int = -1) -> None:
        self.rids = rids
        self.capacity = capacity
        self.scope_no = scope_no
        self._mask: Mask | None = None
        self._room: _Room | None = None

    @classmethod
    def empty(cls) -> Selection:
        """A selection of nothing."""
        return cls(np.empty(0, np.int32), 0)

    def __len__(self) -> int:
        return len(self.rids)

    @property
    def mask(self) -> Mask:
        """uint8[capacity], 1 where the rid is selected. A rid at or above ``capacity`` is not selected."""
        mask = self._mask
        if mask is None:
            mask = np.zeros(self.capacity, np.uint8)
            mask[self.rids] = 1
            self._mask = mask  # two threads may both get here: they make equal masks
        return mask

    def changed(self, rids: Int32, gone: Int32, come: Int32, capacity: int) -> Selection:
        """A selection of ``rids`` that differs from this one by ``gone``, then ``come``: takes a copy of the mask along
        when there is one. ``capacity`` >= this one's."""
        other = Selection(rids, capacity, self.scope_no)
        if self._mask is not None:
            mask = np.zeros(capacity, np.uint8)
            mask[: self.capacity] = self._mask
            mask[gone] = 0
            mask[come] = 1
            other._mask = mask
        return other

    def extended(self, come: Int32, capacity: int) -> Selection:
        """This one and ``come`` behind it: int32[n] ascending, each at least this one's ``capacity`` and below the new
        one. Takes time by ``n`` alone, but for a copy now and then. One caller at a time."""
        size = len(self) + len(come)
        room = self._room
        if room is None or room.used != len(self) or size > len(room.rids):
            room = _Room(self.rids, size + size // 4 + 64)
        room.rids[room.used : size] = come
        room.used = size
        other = Selection(room.rids[:size], capacity, self.scope_no)
        other._room = room
        if (mask := self._mask) is not None:
            if room.reach != self.capacity or capacity > len(room.mask):
                room.mask = np.zeros(capacity + capacity // 4 + 1024, np.uint8)
                room.mask[: self.capacity] = mask
            room.mask[come] = 1
            room.reach = capacity
            other._mask = room.mask[:capacity]
        return other

    def contains(self, rids: Int32) -> npt.NDArray[np.bool_]:
        """bool[n]: which of these rids (int32[n], any order, any value) are selected."""
        if not len(self):
            return np.zeros(rids.shape[0], np.bool_)
        if self._mask is not None:
            inside = (rids >= 0) & (rids < self.capacity)
            found = np.zeros(rids.shape[0], np.bool_)
            found[inside] = self._mask[rids[inside]] != 0
            return found
        at = np.searchsorted(self.rids, rids)
        np.minimum(at, len(self) - 1, out=at)
        same: npt.NDArray[np.bool_] = self.rids[at] == rids
        return same
