"""A small corpus cut into segments as the kernel takes them, for the tests of BM25."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from memxd._fast import Kernels
from memxd._fast.bm25_py import LARGE, Scored

NONE = np.empty(0, np.int32)
PRIOR_ROWS = 1000.0


@dataclass
class Document:
    """One version of a row. ``death``: 0 = living, n = the n-th of its segment to die."""

    rid: int
    scope: int
    counts: dict[int, int]
    length: int
    death: int = 0


@dataclass
class Corpus:
    """Segments as lists of documents. A segment in ``sorted_ones`` is in order of (scope, rid), as a file is; others
    are in order of arrival. ``seen``: how many deaths of each segment the search sees."""

    segments: list[list[Document]]
    terms: int
    sorted_ones: set[int] = field(default_factory=set)
    seen: list[int] = field(default_factory=list)

    def alive(self, number: int, document: Document) -> bool:
        return document.death == 0 or document.death > self.seen[number]

    def living(self, scope: int) -> list[tuple[int, int, Document]]:
        """(segment, document number, document) of the scope."""
        return [
            (number, at, document)
            for number, documents in enumerate(self.segments)
            for at, document in enumerate(documents)
            if document.scope == scope and self.alive(number, document)
        ]

    def one_sorted(self) -> Corpus:
        """The living documents in one sorted segment."""
        kept = [d for n, documents in enumerate(self.segments) for d in documents if self.alive(n, d)]
        kept = [Document(d.rid, d.scope, d.counts, d.length) for d in sorted(kept, key=lambda d: (d.scope, d.rid))]
        return Corpus([kept], self.terms, {0}, [0])


def packed(tfs: Sequence[int], lengths: Sequence[int]) -> tuple[Any, Any]:
    """(packed, more) of a posting list."""
    words = [min(tf, LARGE) << 16 | min(length, LARGE) for tf, length in zip(tfs, lengths, strict=True)]
    more = [part for at, tf in enumerate(tfs) if tf >= LARGE for part in (at, tf)]
    return np.array(words, np.uint32), np.array(more, np.int32)


def segment_of(kernels: Kernels, documents: Sequence[Document], is_sorted: bool) -> Any:
    died = np.array([d.death for d in documents], np.int32)
    order = sorted((d.death, at) for at, d in enumerate(documents) if d.death)
    dead = np.zeros(len(documents), np.int32)
    dead[: len(order)] = [at for _, at in order]
    rids, lengths = [np.array([getattr(d, name) for d in documents], np.int32) for name in ("rid", "length")]
    scopes = None if is_sorted else np.array([d.scope for d in documents], np.int32)
    return kernels.bm25.Segment(rids, lengths, died, dead, scopes)


def lists_of(kernels: Kernels, documents: Sequence[Document], terms: int) -> list[Any]:
    made: list[Any] = []
    for term in range(terms):
        docs = [at for at, d in enumerate(documents) if d.counts.get(term)]
        words = packed([documents[at].counts[term] for at in docs], [documents[at].length for at in docs])
        made.append(kernels.bm25.Postings(np.array(docs, np.int32), *words, len(documents)) if docs else None)
    return made


def places_of(corpus: Corpus, scope: int, rids: Sequence[int]) -> Any:
    where = {d.rid: (number, at) for number, at, d in corpus.living(scope)}
    both = [where.get(rid, (-1, 0)) for rid in rids]
    return np.array([number for number, _ in both] + [at for _, at in both], np.int32)


class Asked:
    """A corpus as one kernel's objects, so that several questions meet the same ones."""

    def __init__(self, kernels: Kernels, corpus: Corpus) -> None:
        self.kernels, self.corpus = kernels, corpus
        self.handles = [segment_of(kernels, d, n in corpus.sorted_ones) for n, d in enumerate(corpus.segments)]
        self.postings = [found for d in corpus.segments for found in lists_of(kernels, d, corpus.terms)]

    def parts(self, scope: int) -> list[Any]:
        made = []
        for number, documents in enumerate(self.corpus.segments):
            low, high = 0, len(documents)
            if number in self.corpus.sorted_ones:
                mine = [at for at, d in enumerate(documents) if d.scope == scope]
                low, high = (mine[0], mine[-1] + 1) if mine else (0, 0)
            made.append((self.handles[number], self.corpus.seen[number], low, high))
        return made

    def ask(
        self, weights: Sequence[float], scope: int, chosen: Sequence[int], also: Sequence[int] = (), by: str = "mask",
        k: int = 100, k1: float = 1.2, b: float = 0.75, priors: Sequence[float] | None = None,
    ) -> Scored:  # fmt: skip
        living = self.corpus.living(scope)
        rids = np.array(sorted(chosen), np.int32)
        mask = np.zeros(int(rids.max(initial=0)) + 1, np.uint8)
        mask[rids] = 1
        return self.kernels.bm25.score(
            self.parts(scope), self.postings, np.array(weights, np.float64),
            np.array([1.0] * len(weights) if priors is None else priors), PRIOR_ROWS, scope,
            len(living), sum(d.length for _, _, d in living), rids, mask if by == "mask" else None,
            places_of(self.corpus, scope, rids.tolist()) if by == "places" else None,
            np.array(also, np.int32), places_of(self.corpus, scope, also), k1, b, k,
        )  # fmt: skip


def bits(scored: Scored) -> list[Any]:
    return [part.tobytes() if isinstance(part, np.ndarray) else part for part in scored]


def naive(
    corpus: Corpus, weights: Sequence[float], scope: int, chosen: set[int], k1: float, b: float
) -> tuple[dict[int, float], dict[int, float], list[int]]:
    """(scores, word matches, df) straight from the definitions."""
    living = [d for _, _, d in corpus.living(scope)]
    total = sum(d.length for d in living)
    average = total / len(living) if living else 0.0
    df = [sum(1 for d in living if d.counts.get(term)) for term in range(corpus.terms)]
    said = [
        w * math.log1p((len(living) + PRIOR_ROWS - n - 1 + 0.5) / (n + 1.5)) for w, n in zip(weights, df, strict=True)
    ]
    scores: dict[int, float] = {}
    match: dict[int, float] = {}
    for d in living:
        for term, weight in enumerate(weights):
            tf = d.counts.get(term, 0)
            if tf and d.rid in chosen:
                idf = math.log(1 + (len(living) - df[term] + 0.5) / (df[term] + 0.5))
                norm = k1 * (1 - b + b * d.length / average)
                scores[d.rid] = scores.get(d.rid, 0.0) + weight * idf * tf * (k1 + 1) / (tf + norm)
                match[d.rid] = match.get(d.rid, 0.0) + said[term] / sum(said)
    return scores, match, df
