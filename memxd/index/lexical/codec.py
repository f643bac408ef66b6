"""A Whoosh codec whose postings are flat arrays that a kernel reads where they lie.

Owns the files of a segment. Whoosh keeps the term dictionary (``.trm``), the list of segments, deletions, generations
and locks; ours are ``.pst`` (for each term int32 document numbers, their packed frequencies and lengths, and the
frequencies too large for that: ``packing``; aligned, native byte order) and ``.doc`` (int32 rid and exact int32 length
of each document; Whoosh would round lengths to a byte; then the scopes and where the documents of each begin). Within
a segment documents stand in ascending order of (scope, rid), so that a scope's are a piece of every list. No stored
fields, no columns, no compound files, nothing pickled but Whoosh's TOC, which is checked before it is read. Made by
``writer``, read by ``segment``.
"""

from __future__ import annotations

import mmap
import secrets
import struct
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
from whoosh.codec import base, whoosh3
from whoosh.fields import KEYWORD, Schema
from whoosh.filedb.filetables import OrderedHashWriter
from whoosh.filedb.structfile import StructFile
from whoosh.matching.mcore import ListMatcher
from whoosh.system import pack_ushort

from memxd._fast.lists import cut_list
from memxd.index.lexical.hits import Int32, Int64, UInt32
from memxd.index.lexical.packing import frequencies, pack
from memxd.index.lexical.postings import Flat

INDEX_NAME = "MAIN"
FIELD = "text"
TERMS, POSTINGS, DOCUMENTS = ".trm", ".pst", ".doc"
EXTENSIONS = (TERMS, POSTINGS, DOCUMENTS)
_MAGIC = b"MXDOCS02"
#: What Whoosh keeps of a term (``W3TermInfo``): flags, weight, documents, two lengths, largest weight, first and last
#: document, and where its list lies.
_INFO = struct.Struct("!BfIBBfIIqi")


def schema() -> Schema:
    """One field that holds terms; nothing is stored."""
    return Schema(**{FIELD: KEYWORD(stored=False, scorable=True)})


class MappedFile(StructFile):
    """A file that reads from a memory map without moving a position, so that threads may share it."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        super().__init__(cast(BinaryIO, self._map), name=path.name)

    def get(self, position: int, length: int) -> bytes:
        return self._map[position : position + length]


class FlatSegment(whoosh3.W3Segment):
    """A segment with the sizes and CRC-32 of its files, kept in Whoosh's TOC."""

    def __init__(self, codec: FlatCodec, indexname: str) -> None:
        super().__init__(codec, indexname)  # type: ignore[no-untyped-call]  # Whoosh's are not typed
        self.sums: dict[str, tuple[int, int]] = {}

    @classmethod
    def _random_id(cls, size: int = 16) -> str:
        return secrets.token_hex(size // 2)  # Whoosh uses the global random: a seeded one makes two equal names


class FlatCodec(whoosh3.W3Codec):
    """The codec Whoosh is told to use."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def per_document_writer(self, storage: Any, segment: Any) -> DocumentWriter:
        return DocumentWriter(storage, segment)

    def per_document_reader(self, storage: Any, segment: Any) -> DocumentReader:
        return DocumentReader(storage, segment)

    def field_writer(self, storage: Any, segment: Any) -> PostingWriter:
        return PostingWriter(storage, segment)

    def terms_reader(self, storage: Any, segment: Any) -> Any:
        path = Path(storage.folder) / segment.make_filename(TERMS)
        postings = Path(storage.folder) / segment.make_filename(POSTINGS)
        return whoosh3.W3TermsReader(self, MappedFile(path), path.stat().st_size, MappedFile(postings))

    def postings_reader(self, dbfile: Any, terminfo: Any, format_: Any, term: Any = None, scorer: Any = None) -> Any:
        docs, packed, more = read_list(np.frombuffer(dbfile._map, np.int32), terminfo)
        weights = frequencies(packed, more).astype(np.float64).tolist()
        return ListMatcher(docs.tolist(), weights, None, format_, scorer=scorer, term=term, terminfo=terminfo)

    def new_segment(self, storage: Any, indexname: str) -> FlatSegment:
        return FlatSegment(self, indexname)


class Documents(NamedTuple):
    """What ``.doc`` holds, in ascending order of (scope, rid)."""

    rids: Int32
    lengths: Int32
    scopes: Int32  #: scope numbers, ascending
    starts: Int32  #: where the documents of each scope begin, and at the end their number


class DocumentWriter(base.PerDocumentWriter):
    """Writes ``.doc``: magic, int64 counts of documents and scopes, the arrays of ``Documents``."""

    def __init__(self, storage: Any, segment: Any) -> None:
        self._file = segment.create_file(storage, DOCUMENTS)
        nothing = np.empty(0, np.int32)
        self._documents = Documents(nothing, nothing, nothing, np.zeros(1, np.int32))
        self.is_closed = False

    def set_documents(self, documents: Documents) -> None:
        """All documents at once."""
        self._documents = documents

    def start_doc(self, docnum: int) -> None:
        raise TypeError("documents come all at once, by set_documents")

    def add_field(self, fieldname: str, fieldobj: Any, value: Any, length: int) -> None:
        self.start_doc(0)

    def add_column_value(self, fieldname: str, columnobj: Any, value: Any) -> None:
        self.start_doc(0)

    def add_vector_items(self, fieldname: str, fieldobj: Any, items: Any) -> None:
        self.start_doc(0)

    def close(self) -> None:
        rids, _, scopes, _ = self._documents
        self._file.write(_MAGIC + np.array([rids.shape[0], scopes.shape[0]], np.int64).tobytes())
        for part in self._documents:
            self._file.write(part.tobytes())
        self._file.close()
        self.is_closed = True


def map_words(path: Path) -> Int32:
    """A file as int32, mapped read-only; the map lives as long as the array."""
    return np.asarray(np.memmap(path, np.int32, "r"))


def read_documents(path: Path) -> Documents:
    """A ``.doc`` file, mapped. Raises ValueError when its shape is wrong."""
    words = map_words(path)
    if words.shape[0] < 6 or words[:2].tobytes() != _MAGIC:
        raise ValueError(f"{path.name} is not a list of documents")
    count, scopes = (int(n) for n in words[2:6].view(np.int64))
    if count < 0 or scopes < 0 or words.shape[0] != 6 + 2 * count + 2 * scopes + 1:
        raise ValueError(f"{path.name} does not hold {count} documents of {scopes} scopes")
    return Documents(*np.split(words[6:], np.cumsum([count, count, scopes])))


class DocumentReader(base.PerDocumentReader):
    """What Whoosh itself asks about documents: how many, which are deleted, how long."""

    def __init__(self, storage: Any, segment: Any) -> None:
        self._segment = segment
        self._lengths = read_documents(Path(storage.folder) / segment.make_filename(DOCUMENTS)).lengths

    def doc_count(self) -> int:
        return int(self._segment.doc_count())

    def doc_count_all(self) -> int:
        return int(self._segment.doc_count_all())

    def has_deletions(self) -> bool:
        return bool(self._segment.has_deletions())

    def is_deleted(self, docnum: int) -> bool:
        return bool(self._segment.is_deleted(docnum))

    def deleted_docs(self) -> Iterator[int]:
        return iter(self._segment.deleted_docs())

    def doc_field_length(self, docnum: int, fieldname: str, default: int = 0) -> int:
        return int(self._lengths[docnum])

    def field_length(self, fieldname: str) -> int:
        return int(self._lengths.sum(dtype=np.int64))

    def min_field_length(self, fieldname: str) -> int:
        return int(self._lengths.min(initial=0))

    def max_field_length(self, fieldname: str) -> int:
        return int(self._lengths.max(initial=0))

    def stored_fields(self, docnum: int) -> dict[str, Any]:
        return {}


class PostingWriter(base.FieldWriter):
    """Writes ``.trm`` through Whoosh and ``.pst`` as flat arrays."""

    def __init__(self, storage: Any, segment: Any) -> None:
        self._terms = OrderedHashWriter(segment.create_file(storage, TERMS))
        self._fields: dict[str, int] = {}
        self._terms.extras["fieldmap"] = self._fields
        self._file = segment.create_file(storage, POSTINGS)
        self._file.write(b"MXPOST02")
        self._lengths: Int32 = np.empty(0, np.int32)
        self._key = b""
        self._term = b""
        self._docs = array("i")
        self._tfs = array("i")
        self.is_closed = False

    def set_lengths(self, lengths: Int32) -> None:
        """Lengths of all documents, before the first list."""
        self._lengths = lengths

    def start_field(self, fieldname: str, fieldobj: Any) -> None:
        self._key = pack_ushort(self._fields.setdefault(fieldname, len(self._fields)))

    def start_term(self, text: bytes) -> None:
        self._term, self._docs, self._tfs = text, array("i"), array("i")

    def add(self, docnum: int, weight: float, vbytes: bytes, length: int | None) -> None:
        self._docs.append(docnum)
        self._tfs.append(int(weight))

    def finish_term(self) -> None:
        docs, tfs = np.array(self._docs, np.int32), np.array(self._tfs, np.int32)
        self.add_lists(Flat([self._term], np.array([len(docs)]), docs, tfs))

    def add_lists(self, lists: Flat) -> None:
        """Whole posting lists; terms come in ascending order, documents ascend strictly, n >= 1 each."""
        terms, counts, docs, tfs = lists
        starts = np.cumsum(counts) - counts
        words, offsets, sizes = _laid_out(starts, counts, docs, tfs, self._lengths[docs])
        columns = (
            np.add.reduceat(tfs, starts, dtype=np.int64), counts, np.maximum.reduceat(tfs, starts), docs[starts],
            docs[starts + counts - 1], self._file.tell() + 4 * offsets, 4 * sizes,
        )  # fmt: skip
        self._file.write(words.tobytes())
        for term, weight, df, most, low, high, offset, size in zip(
            terms, *(column.tolist() for column in columns), strict=True
        ):
            self._terms.add(self._key + term, _INFO.pack(0, weight, df, 1, 0, most, low, high, offset, size))

    def finish_field(self) -> None:
        self._key = b""

    def close(self) -> None:
        self._terms.close()
        self._file.close()
        self.is_closed = True


def _laid_out(starts: Int64, counts: Int64, docs: Int32, tfs: Int32, lengths: Int32) -> tuple[Int32, Int64, Int64]:
    """Lists as they stand in the file: (words, where each begins among them, how many it has)."""
    packed, more = pack(tfs, lengths)
    large, many = more[::2], more[1::2]  # positions and frequencies of those that do not fit
    of_list = np.searchsorted(starts, large, "right") - 1
    extra = np.bincount(of_list, minlength=len(counts))
    sizes = 2 * (counts + extra)
    offsets = np.cumsum(sizes) - sizes
    words = np.empty(int(sizes.sum()), np.int32)
    at = np.arange(docs.shape[0]) + np.repeat(offsets - starts, counts)
    words[at] = docs
    words[at + np.repeat(counts, counts)] = packed.view(np.int32)
    within = np.arange(large.shape[0]) - (np.cumsum(extra) - extra)[of_list]
    at = (offsets + 2 * counts)[of_list] + 2 * within
    words[at], words[at + 1] = large - starts[of_list], many
    return words, offsets, sizes


def read_list(words: Int32, info: Any) -> tuple[Int32, UInt32, Int32]:
    """(document numbers, packed, more) of a term out of a mapped ``.pst``. Raises ValueError when out of its bounds."""
    offset, length = info.extent()
    size = length[0] if isinstance(length, tuple) else length  # Whoosh leaves the tuple that struct gave it
    return cut_list(words, info.doc_frequency(), offset, size)
