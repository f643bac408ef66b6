"""What one search sees of the keyword index: the segments as of a moment, and where the rows it asks about are.

Owns the shapes that ``State`` makes under its lock and ``searching`` reads without it. Nothing in them changes
afterwards, but that more documents of the segments die: a snapshot says how many deaths count.
"""

from __future__ import annotations

from typing import NamedTuple

from memxd._fast.bm25_py import Part, Postings, Segment
from memxd.index.lexical.hits import Int32
from memxd.index.lexical.segment import LoadedSegment

#: Scopes whose parts a snapshot remembers: the next search in one of them is spared looking them up.
_PARTS = 64


class Snapshot(NamedTuple):
    """The segments as of a moment: the committed ones, how many deaths of each count, the tails likewise."""

    loaded: tuple[LoadedSegment, ...]
    deaths: tuple[int, ...]
    tails: tuple[tuple[Segment, int, int, int], ...]
    numbers: Int32  # by number in ``State``: place among loaded and tails; the last one is -1, for "nowhere"
    epoch: int  # which set of committed segments it is of
    by_scope: dict[int, list[Part]]  # what ``parts`` found lately


class Frozen(NamedTuple):
    """What one search sees. ``rows`` and ``total``: living rows of the scope and the sum of their lengths."""

    snapshot: Snapshot
    in_tails: list[list[Postings | None]]  # by tail and term
    rows: int
    total: int
    places: Int32 | None  # int32[2m]: segment, then document of each selected row; None when they are many
    also: Int32  # int32[2a]: likewise

    def parts(self, scope_no: int) -> list[Part]:
        """Each segment as the kernel takes it."""
        snapshot = self.snapshot
        parts = snapshot.by_scope.get(scope_no)
        if parts is None:
            parts = [
                (segment.handle, deaths, *segment.range_of(scope_no))
                for segment, deaths in zip(snapshot.loaded, snapshot.deaths, strict=True)
            ]
            parts.extend(snapshot.tails)
            if len(snapshot.by_scope) >= _PARTS:
                snapshot.by_scope.clear()
            snapshot.by_scope[scope_no] = parts
        return parts
