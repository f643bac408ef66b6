"""A committed segment as searches see it: mapped arrays, checked when they are opened.

Owns opening a folder's committed state (``open_folder``) and the look-up of posting lists. Everything is verified
before it is believed: manifest, stamp, sizes and checksums, document numbers and rids; a posting list's numbers when
it is first asked for, since the kernel trusts them. Immutable and shared by threads; files stay mapped while anyone
holds the arrays, also when a merge has unlinked them. Used by ``state``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from whoosh.filedb.filestore import FileStorage
from whoosh.index import TOC
from whoosh.reading import TermNotFound

from memxd.index.durable import Watched
from memxd.index.lexical.codec import (
    DOCUMENTS,
    EXTENSIONS,
    FIELD,
    INDEX_NAME,
    POSTINGS,
    FlatCodec,
    map_words,
    read_documents,
    read_list,
    schema,
)
from memxd.index.lexical.files import DamagedError, Manifest, read_manifest, verify
from memxd.index.lexical.hits import Int32, UInt8

#: Row ids are dense: one beyond this is not ours, and arrays by rid would not fit in memory.
RID_LIMIT = 1 << 28
_CACHED_TERMS = 50_000


class LoadedSegment:
    """One segment (a ``codec.FlatSegment``): ``rids`` ascend strictly, ``alive`` is as of the commit, by document."""

    def __init__(self, folder: Path, segment: Any) -> None:
        self.segment_id: str = segment.segment_id()
        self.size_bytes = 0
        self._files: list[Watched] = []
        for extension in EXTENSIONS:
            size, crc = segment.sums[extension]
            verify(folder / segment.make_filename(extension), size, crc)
            self._files.append(Watched(folder / segment.make_filename(extension)))
            self.size_bytes += size
        self.rids, self.lengths = read_documents(folder / segment.make_filename(DOCUMENTS))
        count = self.rids.shape[0]
        if count != segment.doc_count_all() or count == 0 or self.rids[0] < 0 or self.rids[-1] >= RID_LIMIT:
            raise DamagedError(f"{self.segment_id} holds impossible rows")
        if (self.rids[1:] <= self.rids[:-1]).any() or (self.lengths < 0).any():
            raise DamagedError(f"{self.segment_id} holds rows in disorder")
        self.alive: UInt8 = np.ones(count, np.uint8)
        self.alive[np.fromiter(segment.deleted_docs(), np.int64)] = 0
        self._terms = FlatCodec().terms_reader(FileStorage(str(folder)), segment)
        self._words: Int32 = map_words(folder / segment.make_filename(POSTINGS))
        self._known: dict[str, tuple[Int32, Int32] | None] = {}

    def check(self) -> None:
        """Raise DamagedError when a file was cut short since it was opened; to be asked before its maps are read."""
        if not all(file.holds() for file in self._files):
            raise DamagedError(f"{self.segment_id} was cut short")

    def postings(self, term: str) -> tuple[Int32, Int32] | None:
        """(documents, frequencies) of a term, None when no document has it. Raises DamagedError."""
        try:
            return self._known[term]
        except KeyError:
            found = self._find(term)
        if len(self._known) >= _CACHED_TERMS:
            self._known.clear()
        self._known[term] = found
        return found

    def _find(self, term: str) -> tuple[Int32, Int32] | None:
        try:
            info = self._terms.term_info(FIELD, term.encode())
        except TermNotFound:
            return None
        except Exception as error:  # the sums were right at open: what has changed since may fail in any way
            raise DamagedError(f"{self.segment_id} cannot be read ({type(error).__name__}: {error})") from error
        try:
            docs, tfs = read_list(self._words, info)
        except ValueError as error:
            raise DamagedError(f"{self.segment_id}: {error}") from error
        if docs[0] < 0 or docs[-1] >= self.rids.shape[0] or (docs[1:] <= docs[:-1]).any() or tfs.min() < 1:
            raise DamagedError(f"{self.segment_id} holds an impossible posting list")
        return docs, tfs


@dataclass(frozen=True, slots=True)
class Committed:
    """A folder's committed state; ``segments`` only those not known before, ``segment_ids`` all."""

    manifest: Manifest
    segments: tuple[LoadedSegment, ...]
    segment_ids: tuple[str, ...]


def open_folder(folder: Path, stamp: str, known: Collection[str] = ()) -> Committed | None:
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
        loaded = tuple(LoadedSegment(folder, segment) for segment in fresh)
    except DamagedError:
        raise
    except Exception as error:  # the sums were right: files of a foreign make may still fail in any way
        raise DamagedError(f"cannot be read ({type(error).__name__}: {error})") from error
    seen = np.concatenate([segment.rids[segment.alive != 0] for segment in loaded] or [np.empty(0, np.int32)])
    if np.unique(seen).shape[0] != seen.shape[0]:
        raise DamagedError("one row is alive in two segments")
    return Committed(manifest, loaded, tuple(segment.segment_id() for segment in toc.segments))
