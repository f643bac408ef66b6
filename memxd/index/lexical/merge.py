"""Several sources of postings -> one segment's worth, in ascending order of (scope, rid) and of terms.

Owns the merge at the level of arrays and the policy which segments to merge when. Runs in the child process only;
``writer`` hands the result to Whoosh. Dead documents are left out, so that an erased text is gone from the files too.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from memxd.index.lexical.bulk import Lists, joined, pieces
from memxd.index.lexical.codec import Documents
from memxd.index.lexical.hits import Int32, Int64, UInt8
from memxd.index.lexical.tail import Tail

#: More segments than this besides the largest are merged into one.
SMALL_SEGMENTS = 8
#: When the others together hold this share of the largest, or so much of all is dead, everything becomes one.
OTHERS_SHARE = 1 / 3
DEAD_SHARE = 1 / 4
#: Postings that are sorted in memory at a time.
PIECE = 4_000_000


class Postings(Protocol):
    """Posting lists of one source: ``terms`` in ascending order of their bytes, ``sizes`` int64[terms]."""

    @property
    def terms(self) -> list[bytes]: ...

    @property
    def sizes(self) -> Int64: ...

    def take(self, first: int, last: int) -> Lists:
        """The lists of terms first..last-1."""
        ...


@dataclass(frozen=True, slots=True)
class Source:
    """Documents in any order: rids, lengths, scope numbers, alive, and their postings."""

    rids: Int32
    lengths: Int32
    scopes: Int32
    alive: UInt8
    postings: Postings


@dataclass(frozen=True, slots=True)
class Merged:
    """What ``writer`` writes: the documents and the lists (to be read once), a few millions of postings at a time."""

    documents: Documents
    lists: Iterator[Lists]


def of_tail(tail: Tail) -> Source:
    """A tail as a source."""
    return Source(*tail.documents(), TailPostings(tail))


class TailPostings:
    """The posting lists of a tail."""

    def __init__(self, tail: Tail) -> None:
        self._lists = tail.lists()
        self._stops = np.append(0, np.cumsum(self._lists.sizes))

    @property
    def terms(self) -> list[bytes]:
        """See ``Postings``."""
        return self._lists.terms

    @property
    def sizes(self) -> Int64:
        """See ``Postings``."""
        return self._lists.sizes

    def take(self, first: int, last: int) -> Lists:
        """See ``Postings``."""
        every, low, high = self._lists, self._stops[first], self._stops[last]
        return Lists(every.terms[first:last], every.sizes[first:last], every.docs[low:high], every.tfs[low:high])


def merge(sources: Sequence[Source]) -> Merged:
    """Everything alive in the sources. Raises ValueError when one rid is alive twice."""
    rids = np.concatenate([source.rids for source in sources])
    lengths = np.concatenate([source.lengths for source in sources])
    scopes = np.concatenate([source.scopes for source in sources])
    live = np.flatnonzero(np.concatenate([source.alive for source in sources]))
    if np.unique(rids[live]).shape[0] != live.shape[0]:
        raise ValueError("one row is alive in two places")
    order = live[np.lexsort((rids[live], scopes[live]))]
    held, starts_of = np.unique(scopes[order], return_index=True)
    documents = Documents(rids[order], lengths[order], held, np.append(starts_of, order.shape[0]).astype(np.int32))
    numbers = np.full(rids.shape[0], -1, np.int32)
    numbers[order] = np.arange(order.shape[0], dtype=np.int32)
    starts = np.cumsum([0, *(source.rids.shape[0] for source in sources)])
    maps = [numbers[starts[i] : starts[i + 1]] for i in range(len(sources))]
    return Merged(documents, _lists(sources, maps))


def _lists(sources: Sequence[Source], maps: Sequence[Int32]) -> Iterator[Lists]:
    every = sorted(set().union(*(source.postings.terms for source in sources)))
    sizes = np.zeros(len(every), np.int64)
    numbers = {term: number for number, term in enumerate(every)}
    for source in sources:
        terms = source.postings.terms
        sizes[np.fromiter(map(numbers.__getitem__, terms), np.int64, len(terms))] += source.postings.sizes
    del numbers
    for first, last in pieces(sizes, PIECE):
        parts = []
        for source, numbered in zip(sources, maps, strict=True):
            terms = source.postings.terms
            low, high = bisect_left(terms, every[first]), bisect_right(terms, every[last - 1])
            parts.append((source.postings.take(low, high), numbered))
        lists = joined(parts)
        if lists.terms:
            yield lists


def to_merge(sizes: Sequence[tuple[int, int]], erase: bool = False) -> list[int]:
    """Which segments to merge into one, given (documents, dead) of each; empty = none. ``erase``: every one that holds
    dead documents, few as they may be, so that their words leave the disk.

    Two levels: one large segment, and small ones that are merged together when there are many. So a search meets few
    segments, and a document is rewritten seldom: with the small ones now and then, with all when these weigh enough.
    """
    if not sizes:
        return []
    if erase:
        return [i for i, (_, dead) in enumerate(sizes) if dead]
    largest = max(range(len(sizes)), key=lambda i: sizes[i][0])
    total, dead = sum(size for size, _ in sizes), sum(dead for _, dead in sizes)
    others = [i for i in range(len(sizes)) if i != largest]
    if dead >= max(1, total * DEAD_SHARE):
        return list(range(len(sizes)))
    if len(others) < SMALL_SEGMENTS:
        return []
    if total - sizes[largest][0] >= sizes[largest][0] * OTHERS_SHARE:
        return list(range(len(sizes)))
    return others
