"""Several sources of postings -> one segment's worth, in ascending order of (scope, rid) and of terms.

Owns the merge at the level of arrays and the policy which segments to merge when. Runs in the child process only;
``writer`` hands the result to Whoosh. Dead documents are left out, so that an erased text is gone from the files too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from memxd.index.lexical.codec import Documents
from memxd.index.lexical.hits import Int32, Int64
from memxd.index.lexical.postings import Flat, Postings, Source

#: Postings that are put in order at once, so that a merge of any size takes little memory.
PIECE = 1 << 20
#: More segments than this besides the largest are merged into one.
SMALL_SEGMENTS = 8
#: When the others together hold this share of the largest, or so much of all is dead, everything becomes one.
OTHERS_SHARE = 1 / 3
DEAD_SHARE = 1 / 4
#: In a quiet moment small segments are merged again and again while they hold no more documents than this; larger ones
#: only with others that weigh this share of them, so that a document is not rewritten for each that comes.
TIDY_DOCUMENTS = 20_000
TIDY_SHARE = 1 / 4


@dataclass(frozen=True, slots=True)
class Merged:
    """What ``writer`` writes: the documents and the lists in pieces (to be read once)."""

    documents: Documents
    lists: Iterator[Flat]


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


def _lists(sources: Sequence[Source], maps: Sequence[Int32]) -> Iterator[Flat]:
    everything = [source.postings for source in sources]
    names = sorted(set().union(*(postings.terms for postings in everything)))
    number = {name: at for at, name in enumerate(names)}
    ids = [np.fromiter(map(number.__getitem__, postings.terms), np.int64) for postings in everything]
    counts = np.zeros(len(names), np.int64)
    for postings, own in zip(everything, ids, strict=True):
        counts[own] += postings.counts
    ends = np.cumsum(counts)
    first = 0
    while first < len(names):
        room = int(ends[first] - counts[first]) + PIECE
        last = max(first + 1, int(np.searchsorted(ends, room, "right")))
        parts = [_part(*each, first, last) for each in zip(everything, ids, maps, strict=True)]
        piece = _piece(names[first:last], *(np.concatenate(column) for column in zip(*parts, strict=True)))
        if piece.terms:
            yield piece
        first = last


def _part(postings: Postings, ids: Int64, numbers: Int32, first: int, last: int) -> tuple[Int64, Int32, Int32]:
    """(term from ``first``, new document number, frequency) of each living posting of one source."""
    low, high = (int(at) for at in np.searchsorted(ids, (first, last)))
    docs, tfs = postings.read(low, high)
    terms = np.repeat(ids[low:high] - first, postings.counts[low:high])
    moved = numbers[docs]
    living = moved >= 0  # the dead are -1
    return (terms, moved, tfs) if living.all() else (terms[living], moved[living], tfs[living])


def _piece(names: list[bytes], terms: Int64, docs: Int32, tfs: Int32) -> Flat:
    """The postings in order of (term, document), terms without any left out."""
    key = (terms << 32) | docs
    if (key[1:] <= key[:-1]).any():
        order = np.argsort(key, kind="stable")
        docs, tfs = docs[order], tfs[order]
    counts = np.bincount(terms, minlength=len(names))
    held = np.flatnonzero(counts)
    return Flat([names[at] for at in held.tolist()], counts[held], docs, tfs)


def to_merge(sizes: Sequence[tuple[int, int]], erase: bool = False, tidy: bool = False) -> list[int]:
    """Which segments to merge into one, given (documents, dead) of each; empty = none. ``erase``: every one that holds
    dead documents, few as they may be, so that their words leave the disk. ``tidy``: nothing else is going on, so that
    the small ones need not be many.

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
        return _small_ones(sizes, others) if tidy else []
    if total - sizes[largest][0] >= sizes[largest][0] * OTHERS_SHARE:
        return list(range(len(sizes)))
    return others


def _small_ones(sizes: Sequence[tuple[int, int]], others: Sequence[int]) -> list[int]:
    """The most of the smallest that may be merged in a quiet moment; empty when that is not two."""
    chosen: list[int] = []
    weight = fit = 0
    for i in sorted(others, key=lambda i: sizes[i][0]):
        if sizes[i][0] + weight <= TIDY_DOCUMENTS or weight >= sizes[i][0] * TIDY_SHARE:
            fit = len(chosen) + 1
        weight += sizes[i][0]
        chosen.append(i)
    return sorted(chosen[:fit]) if fit > 1 else []
