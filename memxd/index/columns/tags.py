"""Tags of rows, as numbered tag sets: few rows have a set of their own, so a filter is decided once per set.

Owns the vocabulary, the sets and their hashes; the number of a row's set stands in ``ColumnArrays.tag_set``. A tag
filter answers one byte per set, and one gather per row applies it. Sets that no row uses any more vanish with the next
snapshot file. What a file held is unpacked at first use, so that a start does not wait for it. Used by ``Columns``
under its lock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memxd.model import Filter

__all__ = ["PackedTags", "TagSets", "tag_hash"]


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
        self._packed: PackedTags | None = packed
        self._names: list[str] = []
        self._sets: list[tuple[int, ...]] = []
        self._hashes: list[int] = []
        self._tag_number: dict[str, int] = {}
        self._set_number: dict[tuple[int, ...], int] = {}
        self._holders: list[list[int]] = []  # by tag: the sets that hold it

    def _unpack(self) -> None:
        packed, self._packed = self._packed, None
        if packed is None:
            return
        for name in packed.names:
            self._tag(name)
        ends, flat = np.cumsum(packed.lengths).tolist(), packed.members.tolist()
        sizes, hashes = packed.lengths.tolist(), packed.hashes.tolist()
        for size, end, digest in zip(sizes, ends, hashes, strict=True):
            self._append(tuple(flat[end - size : end]), digest)

    def pack(self) -> PackedTags:
        """The present sets as arrays."""
        if self._packed is not None:
            return self._packed
        return PackedTags(
            tuple(self._names),
            np.fromiter(map(len, self._sets), np.int32, len(self._sets)),
            np.fromiter((tag for tags in self._sets for tag in tags), np.int32),
            np.array(self._hashes, np.uint64),
        )

    def number(self, tags: Iterable[str]) -> tuple[int, int]:
        """(number, hash) of this set of tags; a new set gets the next number."""
        self._unpack()
        members = tuple(sorted({self._tag(tag) for tag in tags}))
        number = self._set_number.get(members)
        if number is None:
            number = self._append(members, tag_hash(self._names[tag] for tag in members))
        return number, self._hashes[number]

    def _append(self, members: tuple[int, ...], digest: int) -> int:
        number = len(self._sets)
        self._sets.append(members)
        self._hashes.append(digest)
        self._set_number[members] = number
        for tag in members:
            self._holders[tag].append(number)
        return number

    def _tag(self, tag: str) -> int:
        number = self._tag_number.setdefault(tag, len(self._names))
        if number == len(self._names):
            self._names.append(tag)
            self._holders.append([])
        return number

    def passing(self, wanted: Filter) -> npt.NDArray[np.bool_]:
        """bool[sets]: which sets satisfy the filter's three tag conditions."""
        self._unpack()
        verdict = np.full(len(self._sets), not wanted.tags_any, np.bool_)
        for tag in wanted.tags_any:
            verdict[self._holding(tag)] = True
        for tag in wanted.tags_all:
            holding = np.zeros(len(self._sets), np.bool_)
            holding[self._holding(tag)] = True
            verdict &= holding
        for tag in wanted.tags_none:
            verdict[self._holding(tag)] = False
        return verdict

    def _holding(self, tag: str) -> list[int]:
        number = self._tag_number.get(tag)
        return [] if number is None else self._holders[number]
