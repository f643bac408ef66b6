"""Tags of rows, as numbered tag sets: few rows have a set of their own, so a filter is decided once per set.

Owns the vocabulary, the sets and their hashes; the number of a row's set stands in ``ColumnArrays.tag_set``. Sets are
only ever added, and kept as flat arrays, as the snapshot has them: a start unpacks nothing, and a verdict over old sets
stays good. Sets that no row uses any more vanish with the next snapshot file. Used by ``Columns`` under its lock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from memxd.model import Filter

__all__ = ["PackedTags", "TagSets", "Verdict", "tag_hash"]

#: uint8[sets]: 1 = the set satisfies a filter.
Verdict = npt.NDArray[np.uint8]
_RECENT = 4_096
_Item = TypeVar("_Item", np.int32, np.uint64)


def tag_hash(tags: Iterable[str]) -> int:
    """64 bits that are equal for equal sets of tags whatever their order; 0 only for no tags."""
    distinct = sorted(set(tags))
    if not distinct:
        return 0
    digest = hashlib.blake2b(digest_size=8, person=b"memxd-tags")
    for tag in distinct:
        raw = tag.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(4, "little") + raw)
    return int.from_bytes(digest.digest(), "little") or 1


@dataclass(frozen=True, slots=True)
class PackedTags:
    """Tag sets as arrays: ``lengths`` (int32[sets], the first is 0) and ``members`` (int32, positions in ``names``) one
    set after the other, ``hashes`` uint64[sets]."""

    names: tuple[str, ...]
    lengths: npt.NDArray[np.int32]
    members: npt.NDArray[np.int32]
    hashes: npt.NDArray[np.uint64]

    def used(self, numbers: npt.NDArray[np.int32]) -> tuple[PackedTags, npt.NDArray[np.int32]]:
        """Only the empty set and those whose numbers occur; and int32[sets]: old number -> new (0 for the unused)."""
        keep = np.zeros(self.lengths.shape[0], np.bool_)
        keep[numbers] = True
        keep[0] = True
        renumber = np.where(keep, np.cumsum(keep) - 1, 0).astype(np.int32)
        tags, members = np.unique(self.members[np.repeat(keep, self.lengths)], return_inverse=True)
        names = tuple(self.names[tag] for tag in tags)
        return PackedTags(names, self.lengths[keep], members.astype(np.int32), self.hashes[keep]), renumber


NO_TAGS = PackedTags((), np.zeros(1, np.int32), np.empty(0, np.int32), np.zeros(1, np.uint64))


class TagSets:
    """Numbered sets of tags; number 0 is the empty set."""

    def __init__(self, packed: PackedTags = NO_TAGS) -> None:
        self._names = list(packed.names)
        self._tag_number = dict(zip(packed.names, range(len(packed.names)), strict=True))
        self._size = len(packed.lengths)
        self._lengths, self._members, self._hashes = packed.lengths, packed.members, packed.hashes
        self._used = len(packed.members)
        self._owners = np.repeat(np.arange(self._size, dtype=np.int32), packed.lengths)  # by member: its set
        self._by_hash: dict[int, list[int]] | None = None
        self._recent: dict[tuple[str, ...], tuple[int, int]] = {}  # what was asked lately

    def __len__(self) -> int:
        return self._size

    def pack(self) -> PackedTags:
        """The present sets as arrays, which later sets do not touch."""
        size, used = self._size, self._used
        return PackedTags(tuple(self._names), self._lengths[:size], self._members[:used], self._hashes[:size])

    def number(self, tags: tuple[str, ...]) -> tuple[int, int]:
        """(number, hash) of this set of tags; a new set gets the next number."""
        if not tags:
            return 0, 0
        found = self._recent.get(tags)
        if found is None:
            if len(self._recent) >= _RECENT:
                self._recent.clear()
            found = self._recent[tags] = self._number(tags)
        return found

    def _number(self, tags: tuple[str, ...]) -> tuple[int, int]:
        digest = tag_hash(tags)
        members = sorted({self._tag(tag) for tag in tags})
        if self._by_hash is None:
            self._by_hash = {}
            for number, known in enumerate(self._hashes[: self._size].tolist()):
                self._by_hash.setdefault(known, []).append(number)
        alike = self._by_hash.setdefault(digest, [])
        for number in alike:
            if self._set(number) == members:
                return number, digest
        alike.append(self._append(members, digest))
        return alike[-1], digest

    def _set(self, number: int) -> list[int]:
        begin = int(np.searchsorted(self._owners[: self._used], number))
        found: list[int] = self._members[begin : begin + int(self._lengths[number])].tolist()
        return found

    def _append(self, members: list[int], digest: int) -> int:
        number, end = self._size, self._used + len(members)
        self._lengths = _longer(self._lengths, number + 1)
        self._hashes = _longer(self._hashes, number + 1)
        self._members, self._owners = _longer(self._members, end), _longer(self._owners, end)
        self._lengths[number], self._hashes[number] = len(members), digest
        self._members[self._used : end], self._owners[self._used : end] = members, number
        self._size, self._used = number + 1, end
        return number

    def _tag(self, tag: str) -> int:
        number = self._tag_number.setdefault(tag, len(self._names))
        if number == len(self._names):
            self._names.append(tag)
        return number

    def passing(self, wanted: Filter, known: Verdict | None = None) -> Verdict | None:
        """Which sets satisfy the filter's three tag conditions; None when it has none. ``known``: what this answered
        for the same filter before, so that only sets since then are looked at."""
        if not (wanted.tags_any or wanted.tags_all or wanted.tags_none):
            return None
        begin = 0 if known is None else len(known)
        if known is not None and begin == self._size:
            return known
        fresh = np.full(self._size - begin, not wanted.tags_any, np.uint8)
        for tag in wanted.tags_any:
            fresh[self._holding(tag, begin)] = 1
        for tag in wanted.tags_all:
            holding = np.zeros(len(fresh), np.uint8)
            holding[self._holding(tag, begin)] = 1
            fresh &= holding
        for tag in wanted.tags_none:
            fresh[self._holding(tag, begin)] = 0
        return fresh if known is None else np.concatenate([known, fresh])

    def _holding(self, tag: str, begin: int) -> npt.NDArray[np.int32]:
        """Sets that hold the tag, counted from set ``begin``."""
        number = self._tag_number.get(tag)
        if number is None:
            return np.empty(0, np.int32)
        owners = self._owners[: self._used]
        at = int(np.searchsorted(owners, begin)) if begin else 0
        found: npt.NDArray[np.int32] = owners[at:][self._members[at : self._used] == number] - np.int32(begin)
        return found


def _longer(array: npt.NDArray[_Item], size: int) -> npt.NDArray[_Item]:
    """The same array when it has room for ``size``, else a larger copy; never one that came from outside."""
    if size <= len(array) and array.flags.writeable:
        return array
    larger = np.zeros(size + size // 2 + 16, array.dtype)
    larger[: len(array)] = array
    return larger
