"""Documents that are in no file yet: postings in memory, searched like a segment, later folded into one.

Owns growable arrays by term. Not thread safe: ``state`` guards it with its lock, and what it hands out are copies; a
list is copied again only when it has grown. The child process unpacks what ``pack`` gives it
(``postings``).
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping

import numpy as np

from memxd._fast import bm25_py
from memxd._fast.bm25_py import Bm25Kernel, Postings, Segment
from memxd.index.lexical.hits import Int32
from memxd.index.lexical.packing import pack

_PAIR = struct.Struct("=ii")


class Tail:
    """Append-only documents; a document dies, it does not leave. ``number``: this segment's number in ``state``."""

    def __init__(self, number: int = 0, kernel: Bm25Kernel = bm25_py) -> None:
        self.number = number
        self.dead = 0
        self._kernel = kernel
        self.rids = array("i")
        self.lengths = array("i")
        self.scopes = array("i")
        self._died = bytearray()
        # By term, pairs of document and frequency. Bytes, because the garbage collector looks at every array: tens of
        # thousands of them held all threads up for 50 ms at a time.
        self._lists: dict[str, bytearray] = {}
        self._segment: Segment | None = None
        self._known: dict[str, Postings] = {}

    def __len__(self) -> int:
        return len(self.rids)

    def add(self, rid: int, counts: Mapping[str, int], length: int, scope_no: int) -> int:
        """Append a document; its number."""
        doc = len(self.rids)
        self._segment = None
        self.rids.append(rid)
        self.lengths.append(length)
        self.scopes.append(scope_no)
        self._died.append(0)
        lists, once = self._lists, _PAIR.pack(doc, 1)
        for term, count in counts.items():
            pair = once if count == 1 else _PAIR.pack(doc, count)
            entry = lists.get(term)
            if entry is None:
                lists[term] = bytearray(pair)
            else:
                entry += pair
        return doc

    def kill(self, doc: int) -> None:
        """A document no longer counts."""
        self._segment = None
        self.dead += 1 - self._died[doc]
        self._died[doc] = 1

    def segment(self) -> Segment:
        """The documents in order of arrival, as they are now; never changed afterwards. ``dead`` deaths are seen."""
        if self._segment is None:
            died = np.frombuffer(self._died, np.uint8).astype(np.int32)
            rids, lengths, scopes = (np.array(part, np.int32) for part in (self.rids, self.lengths, self.scopes))
            self._segment = self._kernel.Segment(rids, lengths, died, died, scopes)
        return self._segment

    def postings(self, term: str) -> Postings | None:
        """The documents of a term as of now, None when no document has it."""
        entry = self._lists.get(term)
        if entry is None:
            return None
        known = self._known.get(term)
        if known is None or known.size != len(entry) // _PAIR.size:
            docs, tfs = _columns(bytes(entry))
            lengths = np.frombuffer(self.lengths, np.int32)[docs]
            known = self._known[term] = self._kernel.Postings(docs, *pack(tfs, lengths), len(self.rids))
        return known

    def pack(self) -> list[bytes]:
        """Everything as bytes: counts, rids, lengths, scopes, sizes of lists, postings, died, terms (by newlines)."""
        names = "\n".join(self._lists).encode()
        sizes = array("i", [len(pairs) // _PAIR.size for pairs in self._lists.values()])
        head = np.array([len(self.rids), len(self._lists), sum(sizes), len(names)], np.int64)
        docs, tfs = _columns(b"".join(self._lists.values()))
        return [
            head.tobytes(), self.rids.tobytes(), self.lengths.tobytes(), self.scopes.tobytes(), sizes.tobytes(),
            docs.tobytes(), tfs.tobytes(), bytes(self._died), names,
        ]  # fmt: skip


def _columns(pairs: bytes) -> tuple[Int32, Int32]:
    """(documents, frequencies) of pairs."""
    docs, tfs = np.ascontiguousarray(np.frombuffer(pairs, np.int32).reshape(-1, 2).T)
    return docs, tfs
