"""Where a segment's posting lists stand: one term looked up in a mapped ``.trm``.

Owns ``Dictionary``, which reads Whoosh's hash table of terms as ``codec`` writes it. Whoosh's own reader finds the same
in seven times the calls, and a search for new words asks every segment for each of them. Knows no postings. Used by
``segment``.
"""

from __future__ import annotations

import struct
from hashlib import md5
from pathlib import Path

from whoosh.filedb.filetables import OrderedHashReader, md5_hash

from memxd.index.lexical.codec import FIELD, MappedFile

#: A slot of the hash table: hash, place of the item (0 = an empty slot). An item: sizes of key and value, then these.
_SLOT = struct.Struct("!Iq")
_SIZES = struct.Struct("!ii")
#: Of ``codec``'s value: documents, where the list begins in bytes, how many it has.
_PLACE = struct.Struct("!5xI14xqi")


class Dictionary:
    """The terms of one ``.trm`` file. Raises ValueError and what Whoosh raises for a file of another make."""

    def __init__(self, path: Path) -> None:
        file = MappedFile(path)
        reader = OrderedHashReader(file, path.stat().st_size)
        if reader.hashfn is not md5_hash:
            raise ValueError("a dictionary with another hash")
        self._map = file._map
        self._tables: list[tuple[int, int]] = reader.tables
        self._field = struct.pack("!H", reader.extras["fieldmap"].get(FIELD, 0xFFFF))

    def find(self, term: str) -> tuple[int, int, int] | None:
        """(documents, offset, size) of a term's list in ``.pst``, in bytes; None when no document has it. A file cut
        short or changed since it was checked raises whatever."""
        key = self._field + term.encode()
        wanted = int.from_bytes(md5(key, usedforsecurity=False).digest()[-4:], "big")
        start, slots = self._tables[wanted & 255]
        first = (wanted >> 8) % slots if slots else 0
        for step in range(slots):
            found, at = _SLOT.unpack_from(self._map, start + (first + step) % slots * _SLOT.size)
            if not at:
                return None
            if found != wanted:
                continue
            size, _ = _SIZES.unpack_from(self._map, at)
            at += _SIZES.size
            if self._map[at : at + size] == key:
                place: tuple[int, int, int] = _PLACE.unpack_from(self._map, at + size)
                return place
        return None
