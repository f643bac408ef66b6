"""Documents that are in no file yet: postings in memory, searched like a segment, later folded into one.

Owns growable arrays by term. Not thread safe: ``state`` guards it with its lock, and what it hands out are copies.
The child process unpacks what ``pack`` gives it, and gathers documents in the same way when it rebuilds.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping

import numpy as np

from memxd.index.lexical.hits import Int32, UInt8


class Tail:
    """Append-only documents; a document dies, it does not leave. ``number``: this segment's number in ``state``."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.dead = 0
        self._rids = array("i")
        self._lengths = array("i")
        self._alive = bytearray()
        self._lists: dict[str, tuple[array[int], array[int]]] = {}
        self._view: tuple[Int32, UInt8] | None = None

    def __len__(self) -> int:
        return len(self._rids)

    def add(self, rid: int, counts: Mapping[str, int], length: int) -> int:
        """Append a document; its number."""
        doc = len(self._rids)
        self._view = None
        self._rids.append(rid)
        self._lengths.append(length)
        self._alive.append(1)
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
        self._view = None
        self.dead += self._alive[doc]
        self._alive[doc] = 0

    def arrays(self) -> tuple[Int32, UInt8]:
        """(rids in order of arrival, alive), as they are now; never changed afterwards."""
        if self._view is None:
            self._view = np.array(self._rids, np.int32), np.array(self._alive, np.uint8)
        return self._view

    def postings(self, term: str) -> tuple[Int32, Int32] | None:
        """(documents, frequencies) of a term as copies, None when no document has it."""
        entry = self._lists.get(term)
        return None if entry is None else (np.array(entry[0], np.int32), np.array(entry[1], np.int32))

    def lengths(self) -> Int32:
        """Length of each document."""
        return np.array(self._lengths, np.int32)

    def lists(self) -> Iterator[tuple[bytes, Int32, Int32]]:
        """(term, documents, frequencies) in ascending order of the terms' bytes."""
        for term, entry in sorted((term.encode(), entry) for term, entry in self._lists.items()):
            yield term, np.array(entry[0], np.int32), np.array(entry[1], np.int32)

    def pack(self) -> list[bytes]:
        """Everything as bytes: counts, rids, lengths, alive, sizes of lists, postings, terms (newlines between)."""
        names = "\n".join(self._lists).encode()
        sizes = array("i", (len(docs) for docs, _ in self._lists.values()))
        head = np.array([len(self._rids), len(self._lists), sum(sizes), len(names)], np.int64)
        docs = b"".join([docs.tobytes() for docs, _ in self._lists.values()])
        tfs = b"".join([tfs.tobytes() for _, tfs in self._lists.values()])
        return [
            head.tobytes(), self._rids.tobytes(), self._lengths.tobytes(), sizes.tobytes(), docs, tfs,
            bytes(self._alive), names,
        ]  # fmt: skip

    @classmethod
    def unpack(cls, data: bytes) -> Tail:
        """The inverse of ``pack`` joined. Raises ValueError for a wrong size."""
        documents, terms, postings, size = (int(n) for n in np.frombuffer(data, np.int64, 4))
        words = np.frombuffer(data, np.int32, 2 * documents + terms + 2 * postings, 32)
        at = 32 + words.nbytes
        if len(data) != at + documents + size:
            raise ValueError("the batch is cut short")
        self = cls()
        rids, lengths, sizes, docs, tfs = np.split(
            words, np.cumsum([documents, documents, terms, postings], dtype=np.int64)
        )
        self._rids, self._lengths = array("i", rids.tobytes()), array("i", lengths.tobytes())
        self._alive = bytearray(data[at : at + documents])
        self.dead = documents - sum(self._alive)
        names = data[at + documents :].decode().split("\n") if terms else []
        start = 0
        for name, count in zip(names, sizes.tolist(), strict=True):
            stop = start + count
            self._lists[name] = array("i", docs[start:stop].tobytes()), array("i", tfs[start:stop].tobytes())
            start = stop
        return self
