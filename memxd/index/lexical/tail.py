"""Documents that are in no file yet: postings in memory, searched like a segment, later folded into one.

Owns growable arrays by term. Not thread safe: ``state`` guards it with its lock, and what it hands out are copies; a
list is copied again only when it has grown. The child process unpacks what ``pack`` gives it, and gathers documents in
the same way when it rebuilds.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping

import numpy as np

from memxd._fast import bm25_py
from memxd._fast.bm25_py import Bm25Kernel, Postings, Segment
from memxd.index.lexical.hits import Int32, UInt8
from memxd.index.lexical.packing import pack


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
        self._lists: dict[str, tuple[array[int], array[int]]] = {}
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
        lists = self._lists
        for term, count in counts.items():
            entry = lists.get(term)
            if entry is None:
                lists[term] = array("i", (doc,)), array("i", (count,))
            else:
                entry[0].append(doc)
                entry[1].append(count)
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
        if known is None or known.size != len(entry[0]):
            docs, tfs = np.array(entry[0], np.int32), np.array(entry[1], np.int32)
            lengths = np.frombuffer(self.lengths, np.int32)[docs]
            known = self._known[term] = self._kernel.Postings(docs, *pack(tfs, lengths), len(self.rids))
        return known

    def documents(self) -> tuple[Int32, Int32, Int32, UInt8]:
        """(rids, lengths, scope numbers, alive) in order of arrival."""
        rids, lengths, scopes = (np.array(part, np.int32) for part in (self.rids, self.lengths, self.scopes))
        return rids, lengths, scopes, (np.frombuffer(self._died, np.uint8) == 0).astype(np.uint8)

    def lists(self) -> Iterator[tuple[bytes, Int32, Int32]]:
        """(term, documents, frequencies) in ascending order of the terms' bytes."""
        for term, entry in sorted((term.encode(), entry) for term, entry in self._lists.items()):
            yield term, np.array(entry[0], np.int32), np.array(entry[1], np.int32)

    def pack(self) -> list[bytes]:
        """Everything as bytes: counts, rids, lengths, scopes, sizes of lists, postings, died, terms (by newlines)."""
        names = "\n".join(self._lists).encode()
        sizes = array("i", (len(docs) for docs, _ in self._lists.values()))
        head = np.array([len(self.rids), len(self._lists), sum(sizes), len(names)], np.int64)
        docs = b"".join([docs.tobytes() for docs, _ in self._lists.values()])
        tfs = b"".join([tfs.tobytes() for _, tfs in self._lists.values()])
        return [
            head.tobytes(), self.rids.tobytes(), self.lengths.tobytes(), self.scopes.tobytes(), sizes.tobytes(),
            docs, tfs, bytes(self._died), names,
        ]  # fmt: skip

    @classmethod
    def unpack(cls, data: bytes) -> Tail:
        """The inverse of ``pack`` joined. Raises ValueError for a wrong size."""
        documents, terms, postings, size = (int(n) for n in np.frombuffer(data, np.int64, 4))
        words = np.frombuffer(data, np.int32, 3 * documents + terms + 2 * postings, 32)
        at = 32 + words.nbytes
        if len(data) != at + documents + size:
            raise ValueError("the batch is cut short")
        self = cls()
        rids, lengths, scopes, sizes, docs, tfs = np.split(
            words, np.cumsum([documents, documents, documents, terms, postings], dtype=np.int64)
        )
        self.rids, self.lengths, self.scopes = (array("i", part.tobytes()) for part in (rids, lengths, scopes))
        self._died = bytearray(data[at : at + documents])
        self.dead = sum(self._died)
        names = data[at + documents :].decode().split("\n") if terms else []
        start = 0
        for name, count in zip(names, sizes.tolist(), strict=True):
            stop = start + count
            self._lists[name] = array("i", docs[start:stop].tobytes()), array("i", tfs[start:stop].tobytes())
            start = stop
        return self
