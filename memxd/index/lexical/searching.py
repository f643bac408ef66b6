"""One question to one snapshot: finds the posting lists, asks the kernel, and explains what it answered.

Owns the choice of path (reading lists, or looking the selected rows up) and the arithmetic of an explanation, which
repeats the kernel's bit for bit. Pure functions over what ``State.freeze`` gives; called by ``LexicalIndex`` in any
thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memxd._fast.bm25_py import Bm25Kernel, Part, Postings, Scored
from memxd.index.lexical.hits import Int32, LexicalHits, Prior, QueryTerms, SelectedRows
from memxd.index.lexical.snapshot import Frozen
from memxd.model import TermMatch

#: Up to so many selected rows may be looked up one by one instead of reading lists.
FEW = 4_096
#: One look-up of a row in a list costs about as much as this many postings read.
_LOOKUP = 12
#: A selection of less than this share of all row ids is searched rather than made a mask.
_MASK_SHARE = 64


@dataclass(frozen=True, slots=True)
class Bm25:
    """The parameters and the kernel: k1 >= 0 (how soon a frequency saturates), b in 0..1 (how much length counts)."""

    kernel: Bm25Kernel
    k1: float = 1.2
    b: float = 0.75

    def __post_init__(self) -> None:
        if not (0.0 <= self.k1 <= 1_000.0 and 0.0 <= self.b <= 1.0):  # NaN fails too
            raise ValueError(f"BM25 needs k1 in 0..1,000 and b in 0..1, not {self.k1} and {self.b}")


class Asked(NamedTuple):
    """A question and the moment of the index that answered it."""

    frozen: Frozen
    postings: list[Postings | None]
    terms: QueryTerms
    prior: Prior | None
    selection: SelectedRows


def gather(frozen: Frozen, terms: Sequence[str]) -> list[Postings | None]:
    """Segment by segment the posting list of each term. Raises DamagedError."""
    found: list[Postings | None] = []
    for segment in frozen.snapshot.loaded:
        segment.check()
        found += segment.postings(terms)
    for lists in frozen.in_tails:
        found.extend(lists)
    return found


def score(
    bm25: Bm25,
    frozen: Frozen,
    postings: list[Postings | None],
    terms: QueryTerms,
    prior: Prior | None,
    selection: SelectedRows,
    k: int,
    also: Int32,
) -> Scored:
    """Ask the kernel, by the cheaper path."""
    count = len(terms.terms)
    held, prior_rows = (None, 0.0) if prior is None else (prior.held, prior.rows)
    parts = frozen.parts(selection.scope_no)
    rids = selection.rids
    places = frozen.places
    if places is not None and len(rids) * _LOOKUP * count > _reading(parts, postings, count):
        places = None
    mask = selection.mask if places is None and len(rids) * _MASK_SHARE >= selection.capacity else None
    return bm25.kernel.score(
        parts, postings, terms.weights, held, prior_rows, selection.scope_no, frozen.rows, frozen.total,
        rids, mask, places, also, frozen.also, bm25.k1, bm25.b, k,
    )  # fmt: skip


def _reading(parts: Sequence[Part], postings: Sequence[Postings | None], terms: int) -> float:
    """About how many postings reading the lists meets, at most."""
    reading = 0.0
    for number, (segment, _, low, high) in enumerate(parts):
        share = (high - low) / max(1, segment.size)
        for found in postings[number * terms : (number + 1) * terms]:
            if found is not None:
                reading += found.size * share
    return reading


def hits(terms: QueryTerms, scored: Scored) -> LexicalHits:
    """The kernel's answer in the leg's words."""
    return LexicalHits(*scored, terms.terms)


def explain(
    bm25: Bm25,
    frozen: Frozen,
    postings: list[Postings | None],
    terms: QueryTerms,
    selection: SelectedRows,
    rids: Int32,
) -> list[tuple[TermMatch, ...]]:
    """For each rid (those frozen as ``also``) the terms it matches, in query order; a row that is not selected matches
    none."""
    scored = score(bm25, frozen, postings, terms, None, selection, 0, rids)
    fixed = bm25.k1 * (1.0 - bm25.b)
    slope = bm25.k1 * bm25.b / scored.average if scored.average > 0.0 else 0.0
    parts = frozen.parts(selection.scope_no)
    answers: list[tuple[TermMatch, ...]] = []
    for at in range(len(rids)):
        number, doc = int(frozen.also[at]), int(frozen.also[len(rids) + at])
        matches: list[TermMatch] = []
        for i, term in enumerate(terms.terms if scored.also[at] > 0.0 else ()):
            found = postings[number * len(terms) + i]
            tf = 0 if found is None else found.frequency(doc)
            if tf:
                idf, length = float(scored.idf[i]), float(parts[number][0].length(doc))
                part = tf * (bm25.k1 + 1.0) / (tf + (fixed + slope * length)) * (idf * terms.weights[i])
                matches.append(TermMatch(term, idf, tf, part))
        answers.append(tuple(matches))
    return answers
