"""BM25 over flat posting lists, in plain Python and numpy: the twin and oracle of ``_bm25``.

Owns the arithmetic of the keyword leg: scores by statistics of a scope, the k best of a selection, and the word match
(the share of the question's informativeness that a row holds). Knows no files, terms or texts: the lexical index finds
the arrays. Here every document of every list is scored; the compiled kernel looks at fewer and answers the same bits.

BM25 as of Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), eq. 3.15, with the
idf that never falls below 0 (as in Lucene), ln(1 + (N - df + 1/2) / (df + 1/2)):
score = sum over terms of  tf (k1 + 1) / (tf + (k1 (1 - b) + (k1 b / average) length)) * (idf * weight).
All in float64 and in this very order of operations, terms in the order given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from memxd._fast.lists import cut_list

Int32: TypeAlias = npt.NDArray[np.int32]
Int64: TypeAlias = npt.NDArray[np.int64]
UInt8: TypeAlias = npt.NDArray[np.uint8]
UInt32: TypeAlias = npt.NDArray[np.uint32]
Float64: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]

#: A packed frequency or length that is this large stands for itself or more.
LARGE = 65_535
#: Weights of terms that a question may have.
WEIGHT_MIN, WEIGHT_MAX = 1e-6, 1e6


class Scored(NamedTuple):
    """What ``score`` answers."""

    rids: Int32  # int32[n <= k] by (score descending, rid ascending), only rows with a term
    scores: Float64  # float64[n], > 0
    match: Float64  # float64[n], 0..1: share of the question's informativeness
    also: Float64  # float64[len(also)], 0.0 where no term matches or the row is not selected
    also_match: Float64  # float64[len(also)], likewise
    idf: Float64  # float64[t], 0.0 where df is 0
    df: Int64  # int64[t] living rows of the scope with the term
    rows: int  # living rows of the scope (N)
    average: float  # their mean length, 0.0 when there are none


class Segment:
    """Documents: ``rids`` int32[d] >= 0, exact ``lengths`` int32[d] >= 0, ``died`` int32[d] (0 = living, n = it was
    the n-th to die) and ``dead`` int32[d], of which the first are the dead documents in that order. ``died`` and
    ``dead`` may grow while searches read them: each search names the deaths it sees. ``scopes`` int32[d] by document,
    or None when a scope's documents lie together. No rid is alive in two places. Raises ValueError, TypeError for
    other arrays."""

    def __init__(self, rids: Int32, lengths: Int32, died: Int32, dead: Int32, scopes: Int32 | None = None) -> None:
        self.size = len(rids)
        if not len(lengths) == len(died) == len(dead) == self.size:
            raise ValueError("a segment's arrays differ in length")
        if scopes is not None and len(scopes) != self.size:
            raise ValueError("scopes has another length")
        if (rids < 0).any() or (lengths < 0).any():
            raise ValueError("a segment holds negative numbers")
        self.rids, self.lengths, self.died, self.scopes = rids, lengths, died, scopes

    def length(self, doc: int) -> int:
        """Length of a document. Raises IndexError."""
        return int(self.lengths[doc])

    def own(self, deaths: int, low: int, high: int, scope: int) -> Bools:
        """bool[d]: which documents are living ones of the scope."""
        own: Bools = (self.died == 0) | (self.died > deaths)
        if self.scopes is not None:
            own &= self.scopes == scope
            return own
        own[:low] = own[high:] = False
        return own


class Postings:
    """One term's documents in a segment of ``limit`` documents or more: ``docs`` int32[n] strictly ascending,
    ``packed`` uint32[n] = frequency << 16 | length, each at most LARGE (what streams through the kernel's bounds), and
    ``more`` int32[2j] = (position, frequency) of each frequency >= LARGE, in order. Raises ValueError when they are
    not."""

    def __init__(self, docs: Int32, packed: UInt32, more: Int32, limit: int) -> None:
        if packed.dtype != np.uint32 or len(packed) != len(docs) or len(more) % 2:
            raise ValueError("a posting list's arrays differ in length")
        self.size = len(docs)
        self.limit = limit
        self.docs = docs
        self.frequencies = (packed >> 16).astype(np.int64)
        large = np.flatnonzero(self.frequencies == LARGE)
        ordered = not self.size or (docs[0] >= 0 and docs[-1] < limit and bool((docs[1:] > docs[:-1]).all()))
        if not ordered or (self.frequencies < 1).any() or not np.array_equal(large, more[::2]):
            raise ValueError("an impossible posting list")
        if (more[1::2] < LARGE).any():
            raise ValueError("an impossible posting list")
        self.frequencies[large] = more[1::2]

    @staticmethod
    def cut(words: Int32, count: int, offset: int, size: int, limit: int) -> Postings:
        """The list of ``count`` documents that begins ``offset`` bytes into ``words`` (int32[w], contiguous) and has
        ``size`` bytes. Raises ValueError when there is none."""
        return Postings(*cut_list(words, count, offset, size), limit)

    def frequency(self, doc: int) -> int:
        """How often the term stands in a document; 0 = it does not."""
        at = int(np.searchsorted(self.docs, doc))
        return int(self.frequencies[at]) if at < self.size and self.docs[at] == doc else 0


#: A segment, the deaths that this search sees in it, and the documents low..high-1 that hold the scope (all of them
#: when the segment has ``scopes``).
Part: TypeAlias = tuple[Segment, int, int, int]
Lists: TypeAlias = list[Postings | None]


class Bm25Kernel(Protocol):
    """The functions of this pair."""

    @property
    def Segment(self) -> Callable[..., Segment]: ...  # the classes

    @property
    def Postings(self) -> type[Postings]: ...

    def score(
        self,
        segments: list[Part],
        postings: Lists,
        weights: Sequence[float],
        priors: Float64 | None,
        prior_rows: float,
        scope: int,
        rows: int,
        total: int,
        rids: Int32,
        mask: UInt8 | None,
        places: Int32 | None,
        also: Int32,
        also_places: Int32,
        k1: float,
        b: float,
        k: int,
    ) -> Scored: ...


def score(
    segments: list[Part],
    postings: list[Postings | None],
    weights: Sequence[float],
    priors: Float64 | None,
    prior_rows: float,
    scope: int,
    rows: int,
    total: int,
    rids: Int32,
    mask: UInt8 | None,
    places: Int32 | None,
    also: Int32,
    also_places: Int32,
    k1: float,
    b: float,
    k: int,
) -> Scored:
    """Score every selected living row of the scope that holds a term; the k best, and what ``also`` rows get.

    ``postings``: segment by segment the list of each term, None = no document. ``weights`` of the t terms, in
    WEIGHT_MIN..WEIGHT_MAX. ``rows`` and ``total``: the scope's living documents and the sum of their lengths. A term
    says weight * ln(1 + (R - d + 1/2) / (d + 1/2)) with d = df + prior, R = rows + prior_rows: ``priors`` float64[t]
    >= 0 and at most ``prior_rows``, None = 0. The selection is ``rids`` (int32[m], strictly ascending, >= 0); ``mask``
    uint8 by rid says the same, or None. ``places`` int32[2m], segments and then documents of ``rids`` (-1 = none), or
    None, says where they are: worth it for few. ``also`` int32[a] with their ``also_places``. ``k1`` 0..1,000, ``b``
    0..1. Raises ValueError for what is out of range."""
    counts = np.array(weights, np.float64)
    terms = len(counts)
    held = np.zeros(terms) if priors is None else priors
    _check(counts, held, prior_rows, rows, total, k1, b, k)
    if len(postings) != len(segments) * terms:
        raise ValueError("postings are not segments x terms")
    if len(also_places) != 2 * len(also) or (places is not None and len(places) != 2 * len(rids)):
        raise ValueError("places has another length")
    for (segment, deaths, low, high), at in zip(segments, range(0, len(postings), terms or 1), strict=False):
        if not 0 <= low <= high <= segment.size or not 0 <= deaths <= segment.size:
            raise ValueError("a range outside the segment")
        if any(found is not None and found.limit > segment.size for found in postings[at : at + terms]):
            raise ValueError("a posting list of a larger segment")
    average = total / rows if rows else 0.0
    owns = [segment.own(deaths, low, high, scope) for segment, deaths, low, high in segments]
    df = _document_frequencies(postings, owns, terms)
    if (df > rows).any():
        raise ValueError("fewer rows than documents with a term")
    idf = np.array([math.log(1.0 + ((rows - n) + 0.5) / (n + 0.5)) if n else 0.0 for n in df.tolist()], np.float64)
    said = _said(counts, held, prior_rows, rows, df)
    fixed, slope = k1 * (1.0 - b), (k1 * b / average if average > 0.0 else 0.0)
    sums, match = [], []
    for number, (segment, _, _, _) in enumerate(segments):
        lists = postings[number * terms : (number + 1) * terms]
        sums.append(_sums(segment, lists, idf * counts, k1, fixed, slope))
        match.append(_match(segment, lists, said))
    best = _best(segments, owns, sums, match, rids, k)
    extra = _also(segments, owns, sums, match, rids, also, also_places)
    return Scored(*best, extra[0], extra[1], idf, df, rows, average)


def _check(
    weights: Float64, priors: Float64, prior_rows: float, rows: int, total: int, k1: float, b: float, k: int
) -> None:
    if k < 0:
        raise ValueError("k is negative")
    if not (0.0 <= k1 <= 1000.0 and 0.0 <= b <= 1.0):  # NaN fails too
        raise ValueError("k1 is not in 0..1,000 or b not in 0..1")
    if rows < 0 or total < 0 or not 0.0 <= prior_rows < math.inf:
        raise ValueError("a negative number of rows")
    if len(weights) != len(priors):
        raise ValueError("weights and priors differ in length")
    fine = (weights >= WEIGHT_MIN) & (weights <= WEIGHT_MAX) & (priors >= 0.0) & (priors <= prior_rows)
    if not fine.all():
        raise ValueError("an impossible weight or prior")


def _document_frequencies(postings: Sequence[Postings | None], owns: Sequence[Bools], terms: int) -> Int64:
    df = np.zeros(terms, np.int64)
    for at, found in enumerate(postings):
        if found is not None:
            df[at % terms] += np.count_nonzero(owns[at // terms][found.docs])
    return df


def _said(weights: Float64, priors: Float64, prior_rows: float, rows: int, df: Int64) -> list[float]:
    """How much each term says, in nats."""
    told = []
    for weight, prior, count in zip(weights.tolist(), priors.tolist(), df.tolist(), strict=True):
        held = count + prior
        told.append(weight * math.log1p(((rows + prior_rows) - held + 0.5) / (held + 0.5)))
    return told


def _sums(
    segment: Segment, lists: Sequence[Postings | None], impact: Float64, k1: float, fixed: float, slope: float
) -> Float64:
    """BM25 by document; 0 = no term."""
    sums = np.zeros(segment.size, np.float64)
    for term, found in enumerate(lists):
        if found is not None:
            tf = found.frequencies.astype(np.float64)
            sums[found.docs] += tf * (k1 + 1.0) / (tf + (fixed + slope * segment.lengths[found.docs])) * impact[term]
    return sums


def _match(segment: Segment, lists: Sequence[Postings | None], said: Sequence[float]) -> Float64:
    """Word match by document."""
    told = np.zeros(segment.size, np.float64)
    everything = 0.0
    for term, found in enumerate(lists):
        everything += said[term]
        if found is not None:
            told[found.docs] += said[term]
    return np.minimum(told / everything, 1.0) if everything > 0.0 else np.zeros(segment.size, np.float64)


def _best(
    segments: Sequence[Part],
    owns: Sequence[Bools],
    sums: Sequence[Float64],
    match: Sequence[Float64],
    rids: Int32,
    k: int,
) -> tuple[Int32, Float64, Float64]:
    found, scores, matches = [np.empty(0, np.int32)], [np.empty(0, np.float64)], [np.empty(0, np.float64)]
    for (segment, _, _, _), own, total, share in zip(segments, owns, sums, match, strict=True):
        keep = own & (total > 0.0) & np.isin(segment.rids, rids)
        found.append(segment.rids[keep])
        scores.append(total[keep])
        matches.append(share[keep])
    all_rids, all_scores = np.concatenate(found), np.concatenate(scores)
    order = np.lexsort((all_rids, -all_scores))[:k]
    return all_rids[order].astype(np.int32), all_scores[order], np.concatenate(matches)[order]


def _also(
    segments: Sequence[Part],
    owns: Sequence[Bools],
    sums: Sequence[Float64],
    match: Sequence[Float64],
    rids: Int32,
    also: Int32,
    places: Int32,
) -> Float64:
    extra = np.zeros((2, len(also)), np.float64)
    for at, (rid, number, doc) in enumerate(zip(also, places[: len(also)], places[len(also) :], strict=True)):
        if not 0 <= number < len(segments) or not 0 <= doc < segments[number][0].size:
            continue
        if segments[number][0].rids[doc] == rid and owns[number][doc] and rid in rids:
            extra[:, at] = sums[number][doc], match[number][doc]
    return extra
