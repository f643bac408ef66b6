"""Many posting lists at once, as flat arrays: what a segment is merged from and written as.

Owns the arithmetic that would cost microseconds a list in Python when it is done list by list: bringing the lists of
several sources together, and laying lists out as ``codec`` defines them. Pure functions; used by ``merge`` (which says
what goes together) and ``codec`` (which writes).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from memxd.index.lexical.hits import Int32, Int64
from memxd.index.lexical.packing import pack


@dataclass(frozen=True, slots=True)
class Lists:
    """Posting lists one behind the other: ``terms`` in ascending order, ``sizes`` int64[terms] (0 = none), ``docs`` and
    ``tfs`` int32[sum of sizes]."""

    terms: list[bytes]
    sizes: Int64
    docs: Int32
    tfs: Int32


@dataclass(frozen=True, slots=True)
class Laid:
    """Lists as they are written: ``data`` and for each term where its list begins in it, its bytes, its documents,
    the sum and the largest of its frequencies, its first and last document."""

    data: bytes
    infos: Iterator[tuple[bytes, int, int, int, int, int, int, int]]


def joined(parts: list[tuple[Lists, Int32]]) -> Lists:
    """The lists of several sources as one source's; ``maps`` int32 give each document its new number, -1 = left out.
    Documents of a list ascend in the result, and a term without documents is none."""
    terms = sorted(set().union(*(lists.terms for lists, _ in parts)))
    numbers = {term: number for number, term in enumerate(terms)}
    keys, tfs = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    for lists, numbered in parts:
        own = np.fromiter((numbers[term] for term in lists.terms), np.int64, len(lists.terms))
        docs = numbered[lists.docs]
        kept = docs >= 0
        keys.append((np.repeat(own, lists.sizes)[kept] << 32) | docs[kept])
        tfs.append(lists.tfs[kept])
    key, tf = np.concatenate(keys), np.concatenate(tfs)
    if (key[1:] <= key[:-1]).any():
        order = np.argsort(key)  # no two are equal
        key, tf = key[order], tf[order]
    sizes = np.bincount(key >> 32, minlength=len(terms))
    held = np.flatnonzero(sizes)
    named = terms if held.shape[0] == len(terms) else [terms[at] for at in held.tolist()]
    return Lists(named, sizes[held].astype(np.int64), (key & 0xFFFFFFFF).astype(np.int32), tf)


def laid(lists: Lists, lengths: Int32) -> Laid:
    """Lay lists out: for each its documents, its packed frequencies and lengths, the frequencies too large for that.
    ``lengths`` int32 by document. Every list has documents."""
    sizes, stops = lists.sizes, np.cumsum(lists.sizes)
    starts = stops - sizes
    packed, more = pack(lists.tfs, lengths[lists.docs])
    large, large_tfs = more[::2], more[1::2]
    of_list = np.searchsorted(stops, large, "right")
    extra = 2 * np.bincount(of_list, minlength=sizes.shape[0])
    words = 2 * sizes + extra
    begins = np.cumsum(words) - words
    out = np.empty(int(words.sum()), np.int32)
    at = np.arange(lists.docs.shape[0]) + np.repeat(begins - starts, sizes)
    out[at] = lists.docs
    out[at + np.repeat(sizes, sizes)] = packed.view(np.int32)
    nth = np.arange(large.shape[0]) - np.searchsorted(of_list, of_list)
    place = begins[of_list] + 2 * sizes[of_list] + 2 * nth
    out[place], out[place + 1] = large - starts[of_list], large_tfs
    infos = zip(
        lists.terms, (4 * begins).tolist(), (4 * words).tolist(), sizes.tolist(),
        np.add.reduceat(lists.tfs, starts, dtype=np.int64).tolist(), np.maximum.reduceat(lists.tfs, starts).tolist(),
        lists.docs[starts].tolist(), lists.docs[stops - 1].tolist(), strict=True,
    )  # fmt: skip
    return Laid(out.tobytes(), infos)


def pieces(sizes: Int64, most: int) -> list[tuple[int, int]]:
    """Ranges of lists with about ``most`` postings each, in order; an empty list of sizes gives none."""
    if not sizes.shape[0]:
        return []
    cuts = np.unique(np.searchsorted(np.cumsum(sizes), np.arange(most, int(sizes.sum()), most)) + 1)
    return list(pairwise([0, *(int(cut) for cut in cuts if cut < sizes.shape[0]), sizes.shape[0]]))
