"""A committed segment as searches see it: mapped arrays, checked when they are opened.

Owns opening a folder's committed state (``open_folder``), the look-up of posting lists, and which documents have died.
Everything is verified before it is believed: manifest, stamp, sizes and checksums, document numbers and rids; a posting
list's numbers when it is first asked for, since the kernel trusts them. Shared by threads, and immutable but for the
deaths, which are only ever added: a search names how many of them it sees. What every search reads (rids, lengths) and
small files are in memory, large ones stay mapped while anyone holds the arrays, also when a merge has unlinked them.
Used by ``state``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from whoosh.filedb.filestore import FileStorage
from whoosh.index import TOC

from memxd._fast.bm25_py import Bm25Kernel, Postings
from memxd.index.durable import Watched
from memxd.index.lexical.codec import (
    DOCUMENTS,
    EXTENSIONS,
    INDEX_NAME,
    POSTINGS,
    TERMS,
    Documents,
    map_words,
    read_documents,
    schema,
)
from memxd.index.lexical.dictionary import Dictionary
from memxd.index.lexical.files import DamagedError, Manifest, read_manifest, verify
from memxd.index.lexical.hits import Bools, Int32

#: Row ids are dense: one beyond this is not ours, and arrays by rid would not fit in memory.
RID_LIMIT = 1 << 28
_CACHED_TERMS = 50_000
#: Of a term that was not asked for yet; no posting list is it.
_UNKNOWN: Any = object()
#: Files of postings up to so many bytes are read rather than mapped: no search has to ask whether they are still whole.
_READ_BYTES = 4 << 20


class LoadedSegment:
    """One segment (a ``codec.FlatSegment``). ``rids`` ascend strictly within a scope; ``deaths`` documents are dead, at
    first those of the commit."""

    def __init__(self, folder: Path, segment: Any, kernel: Bm25Kernel) -> None:
        self.segment_id: str = segment.segment_id()
        self.size_bytes = 0
        self._kernel = kernel
        files: dict[str, Watched] = {}
        for extension in EXTENSIONS:
            size, crc = segment.sums[extension]
            verify(folder / segment.make_filename(extension), size, crc)
            files[extension] = Watched(folder / segment.make_filename(extension))
            self.size_bytes += size
        documents = Documents(*map(np.array, read_documents(folder / segment.make_filename(DOCUMENTS))))
        self.rids, self.lengths, scopes, self._starts = documents
        count = self.rids.shape[0]
        if count != segment.doc_count_all() or count == 0 or self.rids.min() < 0 or self.rids.max() >= RID_LIMIT:
            raise DamagedError(f"{self.segment_id} holds impossible rows")
        if not _in_order(documents) or (self.lengths < 0).any():
            raise DamagedError(f"{self.segment_id} holds rows in disorder")
        self._scopes: list[int] = scopes.tolist()
        self.deaths = 0
        self._died, self._dead = np.zeros(count, np.int32), np.zeros(count, np.int32)
        self.handle = kernel.Segment(self.rids, self.lengths, self._died, self._dead)
        self.kill_all(segment.deleted_docs())
        self._terms = Dictionary(folder / segment.make_filename(TERMS))
        self._words: Int32 = map_words(folder / segment.make_filename(POSTINGS))
        self._names, self._mapped = files[TERMS], files[POSTINGS]
        self._whole = self._words.nbytes <= _READ_BYTES
        if self._whole:
            self._words = self._words.copy()
        self._known: dict[str, Postings | None] = {}

    def __len__(self) -> int:
        return len(self.rids)

    @property
    def alive(self) -> Bools:
        """bool[d]: which documents are living."""
        alive: Bools = self._died == 0
        return alive

    def kill(self, doc: int) -> None:
        """One more document is dead. For one thread at a time; searches may go on."""
        if not self._died[doc]:
            self._dead[self.deaths] = doc
            self.deaths += 1
            self._died[doc] = self.deaths

    def kill_all(self, docs: Iterable[int]) -> None:
        """These documents are dead."""
        for doc in docs:
            self.kill(doc)

    def range_of(self, scope_no: int) -> tuple[int, int]:
        """Documents low..high-1 are the scope's."""
        at = bisect_left(self._scopes, scope_no)
        if at == len(self._scopes) or self._scopes[at] != scope_no:
            return 0, 0
        return int(self._starts[at]), int(self._starts[at + 1])

    def scope_of(self, doc: int) -> int:
        """The scope of a document."""
        return self._scopes[int(np.searchsorted(self._starts, doc, "right")) - 1]

    def totals(self) -> Iterable[tuple[int, int, int]]:
        """(scope, living documents, sum of their lengths) of each scope."""
        alive, at = self.alive, self._starts[:-1]
        rows = np.add.reduceat(alive.astype(np.int64), at)
        sizes = np.add.reduceat(self.lengths * alive, at, dtype=np.int64)
        return zip(self._scopes, rows.tolist(), sizes.tolist(), strict=True)

    def documents_of(self, rids: Int32) -> Int32:
        """The living document of each rid (int32[n]) that has one here, int32[<= n]."""
        alive = np.flatnonzero(self.alive)
        return alive[np.isin(self.rids[alive], rids)].astype(np.int32)

    def check(self) -> None:
        """Raise DamagedError when the postings were cut short since they were opened; to be asked before they are
        read."""
        if not (self._whole or self._mapped.holds()):
            raise DamagedError(f"{self.segment_id} was cut short")

    def postings(self, terms: Sequence[str]) -> list[Postings | None]:
        """The documents of each term, None when no document has it. Raises DamagedError."""
        known = self._known
        try:
            return [known[term] for term in terms]
        except KeyError:
            if not self._names.holds():
                raise DamagedError(f"{self.segment_id} was cut short") from None
        found = [known.get(term, _UNKNOWN) for term in terms]
        return [self._find(term) if it is _UNKNOWN else it for term, it in zip(terms, found, strict=True)]

    def _find(self, term: str) -> Postings | None:
        try:
            place = self._terms.find(term)
            found = None if place is None else self._kernel.Postings.cut(self._words, *place, len(self.rids))
        except ValueError as error:  # the sums were right at open: it was changed since
            raise DamagedError(f"{self.segment_id} cannot be read ({error})") from error
        if len(self._known) >= _CACHED_TERMS:
            self._known.clear()
        self._known[term] = found
        return found


def _in_order(documents: Documents) -> bool:
    """Whether scopes ascend, each has documents, and its rids ascend."""
    rids, _, scopes, starts = documents
    if (scopes[1:] <= scopes[:-1]).any() or starts[0] != 0 or starts[-1] != rids.shape[0]:
        return False
    if (starts[1:] <= starts[:-1]).any():
        return False
    falls = np.flatnonzero(rids[1:] <= rids[:-1]) + 1
    return bool(np.isin(falls, starts).all())


@dataclass(frozen=True, slots=True)
class Committed:
    """A folder's committed state; ``segments`` only those not known before, ``segment_ids`` all."""

    manifest: Manifest
    segments: tuple[LoadedSegment, ...]
    segment_ids: tuple[str, ...]


def open_folder(folder: Path, stamp: str, kernel: Bm25Kernel, known: Collection[str] = ()) -> Committed | None:
    """What the folder's manifest names, None when nothing was ever committed. Raises DamagedError."""
    manifest = read_manifest(folder)
    if manifest is None:
        if folder.exists() and any(folder.glob(f"*{INDEX_NAME}_*")):
            raise DamagedError("the manifest is missing")
        return None
    if manifest.stamp != stamp:
        made_by, _, _ = manifest.stamp.partition(" database-")
        other = "for another database" if made_by == stamp.partition(" database-")[0] else "by another version"
        raise DamagedError(f"made {other} ({manifest.stamp}; this is {stamp})")
    toc_path = folder / TOC._filename(INDEX_NAME, manifest.generation)
    verify(toc_path, manifest.toc_size, manifest.toc_crc)
    try:
        toc = TOC.read(FileStorage(str(folder)), INDEX_NAME, gen=manifest.generation, schema=schema())
        fresh = [segment for segment in toc.segments if segment.segment_id() not in known]
        loaded = tuple(LoadedSegment(folder, segment, kernel) for segment in fresh)
    except DamagedError:
        raise
    except Exception as error:  # the sums were right: files of a foreign make may still fail in any way
        raise DamagedError(f"cannot be read ({type(error).__name__}: {error})") from error
    seen = np.concatenate([segment.rids[segment.alive] for segment in loaded] or [np.empty(0, np.int32)])
    if np.bincount(seen).max(initial=0) > 1:
        raise DamagedError("one row is alive in two segments")
    return Committed(manifest, loaded, tuple(segment.segment_id() for segment in toc.segments))
