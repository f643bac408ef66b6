"""Exact BM25 over the texts themselves: what the keyword leg's best 30 are compared with.

Owns a plain implementation that knows nothing of segments, files or skipping: it counts every word of every text with
memxd's analyzer and scores every text that has a word of the question, in float64 and in the order of operations that
``memxd/_fast/bm25_py.py`` documents, so that equal means equal to the last bit. Called by ``keyword``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from memxd.bench.progress import Step
from memxd.index.lexical.analyzer import document_terms, query_terms

_K1, _B = 1.2, 0.75


class Oracle:
    """Knows how often each word of ``questions`` stands in each of ``texts``."""

    def __init__(self, texts: Iterable[str], questions: Sequence[str], step: Step) -> None:
        wanted = {term for question in questions for term in query_terms(question).terms}
        lengths: list[int] = []
        held: dict[str, list[tuple[int, int]]] = {term: [] for term in wanted}
        for number, text in enumerate(texts):
            counts, length = document_terms(text)
            lengths.append(length)
            for term in wanted.intersection(counts):
                held[term].append((number, counts[term]))
            if number % 5_000 == 0:
                step(number)
        self._lengths = np.array(lengths, np.float64)
        self._average = sum(lengths) / len(lengths)
        self._held = {term: np.array(pairs, np.int64).reshape(-1, 2) for term, pairs in held.items()}

    def best(self, question: str, k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """(numbers of the k best texts, their scores), by score descending, then number."""
        terms = query_terms(question)
        total, sums = len(self._lengths), np.zeros(len(self._lengths))
        fixed, slope = _K1 * (1.0 - _B), _K1 * _B / self._average
        for term, weight in zip(terms.terms, terms.weights, strict=True):
            numbers, tf = self._held[term].T
            if len(numbers):
                idf = math.log(1.0 + (total - len(numbers) + 0.5) / (len(numbers) + 0.5))
                frequency = tf.astype(np.float64)
                saturated = frequency * (_K1 + 1.0) / (frequency + (fixed + slope * self._lengths[numbers]))
                sums[numbers] += saturated * (idf * weight)
        found = np.flatnonzero(sums)
        order = found[np.lexsort((found, -sums[found]))][:k]
        return order, sums[order]
