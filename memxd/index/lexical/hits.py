"""What goes into and comes out of the keyword leg, as immutable values.

Owns the shapes ``analyzer.query_terms`` and ``LexicalIndex.search`` speak in, and their dtypes. Computes nothing.
The engine passes them along; the lexical index makes and reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Int32: TypeAlias = npt.NDArray[np.int32]
Int64: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
UInt8: TypeAlias = npt.NDArray[np.uint8]
UInt32: TypeAlias = npt.NDArray[np.uint32]
Float64: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """A question as the analyzer sees it.

    ``terms`` are unique and in ascending order of their UTF-8 bytes; ``weights[i]`` > 0 is how much ``terms[i]``
    counts: its frequency in the question, times less than 1 for single characters of a longer run (they are there so
    that a text of one character is found, not to outvote the bigrams). Empty when there is nothing to look for.
    """

    terms: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.terms)


@dataclass(frozen=True, slots=True)
class Prior:
    """What is believed of each term before any row is seen: ``rows`` rows, of which ``held`` (float64[terms]) hold
    it."""

    held: Float64
    rows: float


class SelectedRows(Protocol):
    """The rows that may answer (``memxd.index.selection.Selection``)."""

    @property
    def rids(self) -> Int32:
        """int32[m], strictly ascending."""
        ...

    @property
    def mask(self) -> UInt8:
        """uint8 by rid; a rid at or beyond its length is not selected."""
        ...

    @property
    def capacity(self) -> int:
        """Length of the mask."""
        ...

    @property
    def scope_no(self) -> int:
        """The scope of all rows."""
        ...

    def __len__(self) -> int: ...


class LexicalHits(NamedTuple):
    """The best rows by BM25 of a selection, by the statistics of its scope.

    ``rids``: int32[n <= k], by (score descending, rid ascending); only rows with at least one term.
    ``scores``: float64[n], > 0. ``match``: float64[n], 0..1, the share of the question's informativeness that the row
    holds. ``also_scores``, ``also_match``: float64[len(also)], 0.0 where no term matches or the row is not selected.
    ``term_idf`` float64[t] and ``term_df`` int64[t] (rows of the scope with the term): of each of ``terms``, the
    question's. ``rows`` = rows of the scope that the index holds (N of the idf), ``average_length`` their mean length
    in positions.
    """

    rids: Int32
    scores: Float64
    match: Float64
    also_scores: Float64
    also_match: Float64
    term_idf: Float64
    term_df: Int64
    rows: int
    average_length: float
    terms: tuple[str, ...]

    @property
    def matched_terms(self) -> tuple[str, ...]:
        """Terms that occur in at least one row of the scope, in query order."""
        return tuple(term for term, rows in zip(self.terms, self.term_df.tolist(), strict=True) if rows)

    @property
    def idf(self) -> tuple[float, ...]:
        """Of the matched terms."""
        return tuple(self.term_idf[self.term_df > 0].tolist())

    @property
    def document_frequency(self) -> tuple[int, ...]:
        """Of the matched terms."""
        return tuple(self.term_df[self.term_df > 0].tolist())
