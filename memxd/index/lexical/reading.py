"""All posting lists of a segment on disk, many at once: what a merge reads.

Owns ``SegmentPostings``. Runs in the child process, where ``writer`` makes it; searches look single lists up through
``segment``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from whoosh.filedb.filetables import OrderedHashReader

from memxd.index.lexical.codec import POSTINGS, TERMS, MappedFile, map_words
from memxd.index.lexical.hits import Int32, Int64
from memxd.index.lexical.packing import frequencies

#: What ``codec`` writes of a term, as a row of an array.
_INFO_TYPE = np.dtype([("head", "V5"), ("df", ">u4"), ("rest", "V14"), ("offset", ">i8"), ("size", ">i4")])


class SegmentPostings:
    """The posting lists of a segment on disk, for a merge. Raises ValueError when one points outside."""

    def __init__(self, storage: Any, segment: Any) -> None:
        folder = Path(storage.folder)
        self._words = map_words(folder / segment.make_filename(POSTINGS))
        path = folder / segment.make_filename(TERMS)
        self.terms: list[bytes] = []
        infos = bytearray()
        for key, info in OrderedHashReader(MappedFile(path), path.stat().st_size).items():
            self.terms.append(key[2:])  # before it the number of the only field
            infos += info
        table = np.frombuffer(infos, _INFO_TYPE)
        self.counts: Int64 = table["df"].astype(np.int64)
        self._at, sizes = table["offset"].astype(np.int64) // 4, table["size"].astype(np.int64) // 4
        self._more = sizes - 2 * self.counts
        sound = (table["offset"] % 4 == 0) & (self.counts >= 1) & (self._more >= 0) & (self._more % 2 == 0)
        if not (sound & (self._at >= 2) & (self._at + sizes <= self._words.shape[0])).all():
            raise ValueError("a term points outside the postings")

    def read(self, first: int, last: int) -> tuple[Int32, Int32]:
        """See ``postings.Postings``."""
        counts, begin = self.counts[first:last], self._at[first:last]
        starts = np.cumsum(counts) - counts
        at = np.arange(int(counts.sum())) + np.repeat(begin - starts, counts)
        docs = self._words[at]
        packed = self._words[at + np.repeat(counts, counts)].view(np.uint32)
        extra = self._more[first:last]
        more = [
            self._words[low : low + size] + np.array([start, 0] * (size // 2), np.int32)
            for start, low, size in zip(
                *(part[extra > 0].tolist() for part in (starts, begin + 2 * counts, extra)), strict=True
            )
        ]
        return docs, frequencies(packed, np.concatenate([*more, np.empty(0, np.int32)]))
