"""BM25 over flat posting arrays, in plain Python and numpy: the twin and oracle of ``_bm25``.

Owns the arithmetic of the keyword leg: statistics counted within a selection of rows, scores, the k best. Knows no
files, terms or texts: ``memxd/index/lexical/search.py`` finds the arrays and checked them when they were loaded.

BM25 as of Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), eq. 3.15, with the
idf that never falls below 0 (as in Lucene), ln(1 + (N - df + 1/2) / (df + 1/2)):
score = sum over terms of  tf (k1 + 1) / (tf + (k1 (1 - b) + (k1 b / average) length)) * (idf * weight).
All in float64 and in this very order of operations, terms in the order given, so that neither the way rows are cut
into segments nor the path taken (dense or sparse) changes a bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Int32: TypeAlias = npt.NDArray[np.int32]
Int64: TypeAlias = npt.NDArray[np.int64]
UInt8: TypeAlias = npt.NDArray[np.uint8]
Float64: TypeAlias = npt.NDArray[np.float64]

#: One segment: rids int32[d] (document number -> row id, >= 0, no rid alive in two places), alive uint8[d] (0 =
#: removed), and whether rids ascend strictly (then a small selection is looked up, not whole posting lists read).
Segment: TypeAlias = tuple[Int32, UInt8, bool]
#: One posting list: segment number, document numbers int32[n] strictly ascending and < d, frequencies int32[n] >= 1.
Postings: TypeAlias = tuple[int, Int32, Int32]


class Scored(NamedTuple):
    """What ``score`` answers."""

    rids: Int32  # int32[n <= k] by (score descending, rid ascending), only rows with a term
    scores: Float64  # float64[n], > 0
    also: Float64  # float64[len(also)], 0.0 where no term matches or the row is not selected
    idf: Float64  # float64[t], 0.0 where df is 0
    df: Int64  # int64[t] selected rows with the term
    rows: int  # selected rows that the index holds (N)
    average: float  # their mean length, 0.0 when there are none


class Bm25Kernel(Protocol):
    """The functions of this pair."""

    def score(
        self,
        segments: Sequence[Segment],
        postings: Sequence[Sequence[Postings]],
        weights: Float64,
        lengths: Int32,
        rids: Int32,
        mask: UInt8 | None,
        k1: float,
        b: float,
        k: int,
        also: Int32,
    ) -> Scored: ...


def score(
    segments: Sequence[Segment],
    postings: Sequence[Sequence[Postings]],
    weights: Float64,
    lengths: Int32,
    rids: Int32,
    mask: UInt8 | None,
    k1: float,
    b: float,
    k: int,
    also: Int32,
) -> Scored:
    """Score every selected row that holds a term, and give the k best. Raises ValueError for a negative k.

    ``postings[t]``: the lists of term t, one at most per segment. ``weights`` float64[t] > 0. ``lengths`` int32 by rid
    (-1 = the index does not hold the row; every rid that is alive in a segment has one >= 0). The selection is ``rids``
    (int32[m], strictly ascending, >= 0); ``mask`` uint8 by rid says the same for the dense path, None takes the sparse
    one, with equal results. ``k1`` >= 0, ``b`` 0..1, ``also`` int32[a] >= 0.
    """
    if k < 0:
        raise ValueError("k is negative")
    held = rids[rids < lengths.shape[0]]
    held = held[lengths[held] >= 0]  # rows that count
    rows, total = held.shape[0], int(lengths[held].sum(dtype=np.int64))
    average = total / rows if rows else 0.0
    fixed, slope = k1 * (1.0 - b), (k1 * b / average if total else 0.0)
    selected, sums = np.zeros(lengths.shape[0], np.bool_), np.zeros(lengths.shape[0], np.float64)
    selected[held] = True
    idf, df = np.zeros(len(postings), np.float64), np.zeros(len(postings), np.int64)
    for term, lists in enumerate(postings):
        matches = [_matching(segments[number], docs, tfs, selected) for number, docs, tfs in lists]
        df[term] = count = sum(found.shape[0] for found, _ in matches)
        idf[term] = math.log(1.0 + (rows - count + 0.5) / (count + 0.5)) if count else 0.0
        weight = float(idf[term]) * float(weights[term])
        for found, tf in matches:
            sums[found] += tf * (k1 + 1.0) / (tf + (fixed + slope * lengths[found])) * weight
    best = _best(sums, k)
    extra = np.array([sums[rid] if rid < sums.shape[0] else 0.0 for rid in also.tolist()], np.float64)
    return Scored(best, sums[best], extra, idf, df, rows, average)


def _matching(segment: Segment, docs: Int32, tfs: Int32, selected: npt.NDArray[np.bool_]) -> tuple[Int32, Float64]:
    rids, alive, _ = segment
    found = rids[docs]
    keep = (alive[docs] != 0) & selected[found]
    return found[keep], tfs[keep].astype(np.float64)


def _best(sums: Float64, k: int) -> Int32:
    found = np.flatnonzero(sums)
    order = np.lexsort((found, -sums[found]))[:k]
    return found[order].astype(np.int32)
