"""One question to one snapshot: finds the posting lists, asks the kernel, and explains what it answered.

Owns the choice of path (dense or sparse) and the arithmetic of an explanation, which repeats the kernel's bit for bit.
Pure functions over immutable arrays; called by ``LexicalIndex`` in any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memxd._fast.bm25_py import Bm25Kernel, Postings, Scored, Segment
from memxd.index.lexical.hits import Int32, LexicalHits, QueryTerms, SelectedRows
from memxd.index.lexical.state import Lists, Snapshot
from memxd.model import TermMatch

#: A row looked up costs about as much as this many postings read.
_LOOKUP = 8
#: Counting this many rows of the mask costs as much as one posting.
_MASK_ROWS = 16


@dataclass(frozen=True, slots=True)
class Bm25:
    """The parameters and the kernel: k1 >= 0 (how soon a frequency saturates), b in 0..1 (how much length counts)."""

    kernel: Bm25Kernel
    k1: float = 1.2
    b: float = 0.75

    def __post_init__(self) -> None:
        if not (0.0 <= self.k1 <= 1_000.0 and 0.0 <= self.b <= 1.0):  # NaN fails too
            raise ValueError(f"BM25 needs k1 in 0..1,000 and b in 0..1, not {self.k1} and {self.b}")


def gather(snapshot: Snapshot, terms: Sequence[str], tails: Sequence[Sequence[Lists]]) -> list[list[Postings]]:
    """For each term its posting lists in the snapshot's segments. Raises DamagedError."""
    first_tail = len(snapshot.loaded)
    for segment in snapshot.loaded:
        segment.check()
    found: list[list[Postings]] = []
    for term, in_tails in zip(terms, tails, strict=True):
        lists = [(i, segment.postings(term)) for i, segment in enumerate(snapshot.loaded)]
        lists += [(first_tail + i, entry) for i, entry in enumerate(in_tails)]
        found.append([(i, *entry) for i, entry in lists if entry is not None])
    return found


def score(
    bm25: Bm25,
    snapshot: Snapshot,
    postings: Sequence[Sequence[Postings]],
    weights: Sequence[float],
    selection: SelectedRows,
    k: int,
    also: Int32,
) -> Scored:
    """Ask the kernel, by the cheaper path."""
    rids = np.ascontiguousarray(selection.rids, np.int32)
    reading = sum(docs.shape[0] for lists in postings for _, docs, _ in lists)
    sparse = rids.shape[0] * _LOOKUP < reading + snapshot.lengths.shape[0] // _MASK_ROWS
    mask = None if sparse else np.ascontiguousarray(selection.mask, np.uint8)
    return bm25.kernel.score(
        snapshot.segments, postings, np.array(weights, np.float64), snapshot.lengths, rids, mask,
        bm25.k1, bm25.b, k, np.ascontiguousarray(also, np.int32),
    )  # fmt: skip


def hits(terms: QueryTerms, scored: Scored) -> LexicalHits:
    """The kernel's answer in the leg's words."""
    told = zip(terms.terms, scored.idf.tolist(), scored.df.tolist(), strict=True)
    matched = [(term, idf, df) for term, idf, df in told if df > 0]
    return LexicalHits(
        rids=scored.rids,
        scores=scored.scores,
        also_scores=scored.also,
        matched_terms=tuple(term for term, _, _ in matched),
        idf=tuple(idf for _, idf, _ in matched),
        document_frequency=tuple(df for _, _, df in matched),
        rows=scored.rows,
        average_length=scored.average,
    )


def explain(
    bm25: Bm25,
    snapshot: Snapshot,
    postings: Sequence[Sequence[Postings]],
    terms: QueryTerms,
    selection: SelectedRows,
    rids: Sequence[int],
) -> list[tuple[TermMatch, ...]]:
    """For each rid the terms it matches, in query order; a row that is not selected matches none."""
    scored = score(bm25, snapshot, postings, terms.weights, selection, 0, np.empty(0, np.int32))
    wanted = np.array(rids, np.int32)
    counts = np.where(_selected(selection, wanted), frequencies(snapshot, postings, wanted), 0)
    fixed = bm25.k1 * (1.0 - bm25.b)
    slope = bm25.k1 * bm25.b / scored.average if scored.average > 0.0 else 0.0
    answers: list[tuple[TermMatch, ...]] = []
    for at, rid in enumerate(rids):
        matches: list[TermMatch] = []
        for i in np.flatnonzero(counts[:, at]).tolist():
            tf, idf, length = int(counts[i, at]), float(scored.idf[i]), float(snapshot.lengths[rid])
            part = tf * (bm25.k1 + 1.0) / (tf + (fixed + slope * length)) * (idf * terms.weights[i])
            matches.append(TermMatch(terms.terms[i], idf, tf, part))
        answers.append(tuple(matches))
    return answers


def frequencies(snapshot: Snapshot, postings: Sequence[Sequence[Postings]], rids: Int32) -> Int32:
    """How often each term stands in each row: int32[terms, n] for rids int32[n] in any order; 0 for unknown rows."""
    counts = np.zeros((len(postings), rids.shape[0]), np.int32)
    places = [_documents(segment, rids) for segment in snapshot.segments]
    for term, lists in enumerate(postings):
        for number, docs, tfs in lists:
            doc = places[number]
            at = np.minimum(np.searchsorted(docs, doc), docs.shape[0] - 1)
            counts[term] += np.where(docs[at] == doc, tfs[at], 0).astype(np.int32)
    return counts


def _documents(segment: Segment, rids: Int32) -> Int32:
    """The living document of each rid in this segment, int32[n]; -1 where there is none."""
    held, alive, ascending = segment
    if not held.shape[0]:
        return np.full(rids.shape[0], -1, np.int32)
    if ascending:
        doc = np.minimum(np.searchsorted(held, rids), held.shape[0] - 1)
    else:  # in order of arrival; a row that was replaced has dead documents before the living one
        living = np.flatnonzero(alive)
        if not living.shape[0]:
            return np.full(rids.shape[0], -1, np.int32)
        by_rid = living[np.argsort(held[living], kind="stable")]
        doc = by_rid[np.minimum(np.searchsorted(held[by_rid], rids), by_rid.shape[0] - 1)]
    return np.where((held[doc] == rids) & (alive[doc] != 0), doc, -1).astype(np.int32)


def _selected(selection: SelectedRows, rids: Int32) -> npt.NDArray[np.bool_]:
    """bool[n]: which rids are selected."""
    if not len(selection):
        return np.zeros(rids.shape[0], np.bool_)
    at = np.minimum(np.searchsorted(selection.rids, rids), len(selection) - 1)
    return np.equal(selection.rids[at], rids)
