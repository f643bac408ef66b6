"""Many posting lists at once: how the writing child holds, gathers and unpacks them.

Owns ``Flat`` (lists one behind the other in flat arrays, so that numpy works on a million postings in one call rather
than on each term by itself), and the two places they come from: texts that the child analysed (``Gathered``) and a
packed tail (``unpack``). Runs in the child process; ``merge`` puts sources together, ``writer`` and ``codec`` write.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple, Protocol

import numpy as np

from memxd.index.lexical.hits import Int32, Int64, UInt8


class Postings(Protocol):
    """Posting lists of one source in ascending order of terms, and how many documents each has (int64[t], >= 1)."""

    @property
    def terms(self) -> list[bytes]: ...

    @property
    def counts(self) -> Int64: ...

    def read(self, first: int, last: int) -> tuple[Int32, Int32]:
        """(documents, frequencies) of the lists first..last-1, one behind the other."""
        ...


class Flat(NamedTuple):
    """Lists held in memory: ``docs`` and ``tfs`` int32[sum of counts]."""

    terms: list[bytes]
    counts: Int64
    docs: Int32
    tfs: Int32

    def read(self, first: int, last: int) -> tuple[Int32, Int32]:
        """See ``Postings``."""
        start, stop = int(self.counts[:first].sum()), int(self.counts[:last].sum())
        return self.docs[start:stop], self.tfs[start:stop]


@dataclass(frozen=True, slots=True)
class Source:
    """Documents in any order: rids, lengths, scope numbers, alive, and their postings."""

    rids: Int32
    lengths: Int32
    scopes: Int32
    alive: UInt8
    postings: Postings


class Gathered:
    """Documents as they come, their postings numbered by term; cheap to add to, sorted once by ``source``."""

    def __init__(self) -> None:
        self._rids, self._lengths, self._scopes = array("i"), array("i"), array("i")
        self._sizes, self._ids, self._tfs = array("i"), array("i"), array("i")
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)

    def __len__(self) -> int:
        return len(self._rids)

    @property
    def postings(self) -> int:
        """How many there are."""
        return len(self._ids)

    def add(self, rid: int, counts: Mapping[str, int], length: int, scope_no: int) -> None:
        """Append a document."""
        self._rids.append(rid)
        self._lengths.append(length)
        self._scopes.append(scope_no)
        self._sizes.append(len(counts))
        self._ids.extend(map(self._numbers.__getitem__, counts))
        self._tfs.extend(counts.values())

    def source(self) -> Source:
        """Everything, as something to merge."""
        rids, lengths, scopes = (np.array(part, np.int32) for part in (self._rids, self._lengths, self._scopes))
        docs = np.repeat(np.arange(len(self), dtype=np.int32), np.array(self._sizes, np.int32))
        terms, places = _sorted(list(self._numbers))
        of_posting = places[np.array(self._ids, np.int32)]
        order = np.argsort(of_posting, kind="stable")
        counts = np.bincount(of_posting, minlength=len(terms))
        flat = Flat(terms, counts, docs[order], np.array(self._tfs, np.int32)[order])
        return Source(rids, lengths, scopes, np.ones(len(self), np.uint8), flat)


def _sorted(names: Sequence[str]) -> tuple[list[bytes], Int32]:
    """(the names' bytes ascending, the place of each name among them)."""
    encoded = [name.encode() for name in names]
    order = sorted(range(len(encoded)), key=encoded.__getitem__)
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return [encoded[at] for at in order], places


def unpack(data: bytes) -> Source:
    """The inverse of ``Tail.pack`` joined. Raises ValueError for a wrong size."""
    documents, terms, postings, size = (int(n) for n in np.frombuffer(data, np.int64, 4))
    words = np.frombuffer(data, np.int32, 3 * documents + terms + 2 * postings, 32)
    at = 32 + words.nbytes
    if len(data) != at + documents + size:
        raise ValueError("the batch is cut short")
    rids, lengths, scopes, sizes, docs, tfs = np.split(
        words, np.cumsum([documents, documents, documents, terms, postings], dtype=np.int64)
    )
    alive = (np.frombuffer(data, np.uint8, documents, at) == 0).astype(np.uint8)
    names, places = _sorted(data[at + documents :].decode().split("\n") if terms else [])
    order = np.argsort(np.repeat(places, sizes), kind="stable")
    counts = np.zeros(terms, np.int64)
    counts[places] = sizes
    return Source(rids, lengths, scopes, alive, Flat(names, counts, docs[order], tfs[order]))
