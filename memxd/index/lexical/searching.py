"""One question to one snapshot: finds the posting lists, asks the kernel, and explains what it answered.

Owns the choice of path (dense or sparse) and the arithmetic of an explanation, which repeats the kernel's bit for bit.
Pure functions over immutable arrays; called by ``LexicalIndex`` in any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memxd._fast.bm25_py import Bm25Kernel, Postings, Scored
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
    chosen = set(selection.rids.tolist())
    fixed = bm25.k1 * (1.0 - bm25.b)
    slope = bm25.k1 * bm25.b / scored.average if scored.average > 0.0 else 0.0
    answers: list[tuple[TermMatch, ...]] = []
    for rid in rids:
        place = _place(snapshot, rid) if rid in chosen else None
        matches: list[TermMatch] = []
        for i, lists in enumerate(postings if place is not None else ()):
            tf = sum(_frequency(docs, tfs, place[1]) for number, docs, tfs in lists if place and number == place[0])
            if tf:
                idf = float(scored.idf[i])
                length = float(snapshot.lengths[rid])
                part = tf * (bm25.k1 + 1.0) / (tf + (fixed + slope * length)) * (idf * terms.weights[i])
                matches.append(TermMatch(terms.terms[i], idf, tf, part))
        answers.append(tuple(matches))
    return answers


def _place(snapshot: Snapshot, rid: int) -> tuple[int, int] | None:
    """(segment, document) where a row lives."""
    for number, (rids, alive, ascending) in enumerate(snapshot.segments):
        found = np.searchsorted(rids, [rid, rid + 1]) if ascending else None
        docs = np.arange(*found) if found is not None else np.flatnonzero(rids == rid)
        docs = docs[alive[docs] != 0]
        if docs.shape[0]:
            return number, int(docs[0])
    return None


def _frequency(docs: Int32, tfs: Int32, doc: int) -> int:
    at = int(np.searchsorted(docs, doc))
    return int(tfs[at]) if at < docs.shape[0] and docs[at] == doc else 0
