"""Where a segment's posting lists stand: one term looked up in a mapped ``.trm``.

Owns ``Dictionary``, which opens Whoosh's hash table of terms as ``codec`` writes it; a kernel reads it
(``text_py.find_term``). Whoosh's own reader finds the same in twenty times the time, and a search for new words asks
every segment for each of them. Knows no postings. Used by ``segment``.
"""

from __future__ import annotations

import struct
from array import array
from itertools import chain
from pathlib import Path

from whoosh.filedb.filetables import OrderedHashReader, md5_hash

from memxd._fast import load_kernels
from memxd.index.lexical.codec import FIELD, MappedFile

#: As in ``analyzer``: both kernels answer the same.
_kernel = load_kernels().text


class Dictionary:
    """The terms of one ``.trm`` file. Raises ValueError and what Whoosh raises for a file of another make."""

    def __init__(self, path: Path) -> None:
        file = MappedFile(path)
        reader = OrderedHashReader(file, path.stat().st_size)
        if reader.hashfn is not md5_hash:
            raise ValueError("a dictionary with another hash")
        self._map = file._map
        self._tables = array("q", chain.from_iterable(reader.tables)).tobytes()
        self._field = struct.pack("!H", reader.extras["fieldmap"].get(FIELD, 0xFFFF))

    def find(self, term: str) -> tuple[int, int, int] | None:
        """(documents, offset, size) of a term's list in ``.pst``, in bytes; None when no document has it. Raises
        ValueError for a file that was changed since it was checked; it must not have been cut short."""
        return _kernel.find_term(self._map, self._tables, self._field, term)
