"""Several sources of postings -> one segment's worth, in ascending order of (scope, rid) and of terms.

Owns the merge at the level of arrays and the policy which segments to merge when. Runs in the child process only;
``writer`` hands the result to Whoosh. Dead documents are left out, so that an erased text is gone from the files too.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import numpy as np

from memxd.index.lexical.codec import Documents
from memxd.index.lexical.hits import Int32, UInt8
from memxd.index.lexical.tail import Tail

#: More segments than this besides the largest are merged into one.
SMALL_SEGMENTS = 8
#: When the others together hold this share of the largest, or so much of all is dead, everything becomes one.
OTHERS_SHARE = 1 / 3
DEAD_SHARE = 1 / 4


class Postings(Protocol):
    """Posting lists of one source in ascending order of terms: (term, documents, frequencies)."""

    def lists(self) -> Iterator[tuple[bytes, Int32, Int32]]: ...


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
    """What ``writer`` writes: the documents and the lists (to be read once)."""

    documents: Documents
    lists: Iterator[tuple[bytes, Int32, Int32]]


def of_tail(tail: Tail) -> Source:
    """A tail as a source."""
    return Source(*tail.documents(), tail)


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


def _lists(sources: Sequence[Source], maps: Sequence[Int32]) -> Iterator[tuple[bytes, Int32, Int32]]:
    streams = [_numbered(number, source.postings) for number, source in enumerate(sources)]
    together = heapq.merge(*streams, key=lambda entry: entry[0])
    for term, entries in groupby(together, key=lambda entry: entry[0]):
        parts = [(maps[number][docs], tfs) for _, number, docs, tfs in entries]
        docs = parts[0][0] if len(parts) == 1 else np.concatenate([part[0] for part in parts])
        tfs = parts[0][1] if len(parts) == 1 else np.concatenate([part[1] for part in parts])
        if docs.shape[0] > 1:
            order = np.argsort(docs, kind="stable")
            docs, tfs = docs[order], tfs[order]
        first = int(np.searchsorted(docs, 0))  # the dead are -1
        if first < docs.shape[0]:
            yield term, docs[first:], tfs[first:]


def _numbered(number: int, postings: Postings) -> Iterator[tuple[bytes, int, Int32, Int32]]:
    for term, docs, tfs in postings.lists():
        yield term, number, docs, tfs


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
