"""Writes the keyword index: commits of documents and deletions, and merges, through Whoosh, made durable.

Owns the folder's contents while it runs (under the folder's lock): recovery of what a crash left, the order of syncs,
the manifest. Runs in the child process (``worker``) and never in the daemon, whose searches it would disturb.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from whoosh.filedb.filestore import FileStorage
from whoosh.index import TOC, FileIndex, clean_files
from whoosh.writing import SegmentWriter

from memxd.index.lexical.codec import (
    EXTENSIONS,
    FIELD,
    INDEX_NAME,
    FlatCodec,
    FlatSegment,
    read_documents,
    schema,
)
from memxd.index.lexical.files import Manifest, checksum, read_manifest, sync, write_manifest
from memxd.index.lexical.merge import Merged, merge, to_merge
from memxd.index.lexical.postings import Flat, Source
from memxd.index.lexical.reading import SegmentPostings


class IndexFolder:
    """The folder as its one writer sees it. ``stamp`` goes into the manifest."""

    def __init__(self, folder: Path, stamp: str) -> None:
        self.folder = folder
        self._stamp = stamp
        self._storage = FileStorage(str(folder))
        self._recover()
        self._index = FileIndex(self._storage, indexname=INDEX_NAME)

    def _recover(self) -> None:
        """Drop what a crash left: later generations that no manifest names, unnamed segments, temporary files."""
        shutil.rmtree(self.folder / f"{INDEX_NAME}.tmp", ignore_errors=True)
        manifest = read_manifest(self.folder)
        if manifest is None:
            for path in self.folder.glob(f"*{INDEX_NAME}_*"):
                path.unlink()
            self._storage.create_index(schema(), INDEX_NAME)
            self.publish(0, 0)
            return
        for path in self.folder.glob(f"_{INDEX_NAME}_*.toc*"):
            if path.name != TOC._filename(INDEX_NAME, manifest.generation):
                path.unlink()
        toc = TOC.read(self._storage, INDEX_NAME, gen=manifest.generation)
        clean_files(self._storage, INDEX_NAME, manifest.generation, toc.segments)

    @property
    def watermark(self) -> int:
        """The committed revision."""
        manifest = read_manifest(self.folder)
        return manifest.watermark if manifest else 0

    def publish(self, generation: int, watermark: int) -> None:
        """Sync a TOC and name it in the manifest: the commit."""
        path = self.folder / TOC._filename(INDEX_NAME, generation)
        sync(path)
        sync(self.folder)
        write_manifest(self.folder, Manifest(self._stamp, watermark, generation, *checksum(path)))

    def fold(self, tail: Source | None, deletes: Mapping[str, Sequence[int]], watermark: int) -> None:
        """One commit: a new segment of the tail's living documents, deletions by segment and document number."""
        documents = merge([tail]) if tail is not None and tail.alive.any() else None
        if documents is None and not deletes:
            self.publish(self._index.latest_generation(), watermark)
            return
        with _Commit(self, watermark) as commit:
            commit.delete(deletes)
            if documents is not None:
                commit.write(documents)

    def merge(self, deletes: Mapping[str, Sequence[int]], erase: bool = False, tidy: bool = False) -> bool:
        """Merge what the policy says (``to_merge``), deletions applied; False when there was nothing to merge
        (deletions wait)."""
        segments = self._index._read_toc().segments
        chosen = to_merge(
            [
                (segment.doc_count_all(), segment.deleted_count() + len(deletes.get(segment.segment_id(), ())))
                for segment in segments
            ],
            erase,
            tidy,
        )
        if not chosen:
            return False
        with _Commit(self, self.watermark) as commit:
            commit.delete(deletes)
            commit.replace([commit.writer.segments[i] for i in chosen])
        return True

    def source(self, segment: Any) -> Source:
        """A segment of this folder as something to merge."""
        held = read_documents(self.folder / segment.make_filename(".doc"))
        alive = np.ones(held.rids.shape[0], np.uint8)
        alive[np.fromiter(segment.deleted_docs(), np.int64)] = 0
        scopes = np.repeat(held.scopes, np.diff(held.starts))
        return Source(held.rids, held.lengths, scopes, alive, SegmentPostings(self._storage, segment))

    def open_writer(self, watermark: int) -> FoldWriter:
        """Whoosh's writer for the next generation (takes Whoosh's lock)."""
        return FoldWriter(self, self._index, watermark)


class FoldWriter(SegmentWriter):
    """Whoosh's segment writer, fed whole posting lists, whose commit survives a power cut."""

    def __init__(self, owner: IndexFolder, index: FileIndex, watermark: int) -> None:
        super().__init__(index, codec=FlatCodec(), compound=False)  # type: ignore[no-untyped-call]
        self._owner = owner
        self._watermark = watermark
        self._lists: Iterator[Flat] = iter(())

    def take(self, merged: Merged) -> None:
        """The documents of the new segment."""
        self.perdocwriter.set_documents(merged.documents)
        self.fieldwriter.set_lengths(merged.documents.lengths)
        self._lists = merged.lists
        self.docnum = merged.documents.rids.shape[0]
        self._added = self.docnum > 0

    def _flush_segment(self) -> None:
        self.perdocwriter.close()
        self.fieldwriter.start_field(FIELD, self.schema[FIELD])
        for lists in self._lists:
            self.fieldwriter.add_lists(lists)
        self.fieldwriter.finish_field()
        self.fieldwriter.close()
        folder = Path(self.storage.folder)
        sums = {}
        for extension in EXTENSIONS:
            path = folder / self.newsegment.make_filename(extension)
            sync(path)
            sums[extension] = checksum(path)
        self.newsegment.sums = sums

    def _commit_toc(self, segments: list[FlatSegment]) -> None:
        TOC(self.schema, segments, self.generation).write(self.storage, self.indexname)
        self._owner.publish(self.generation, self._watermark)
        clean_files(self.storage, self.indexname, self.generation, segments)


class _Commit:
    """One generation: collects what changes, then commits, or cancels when something failed."""

    def __init__(self, owner: IndexFolder, watermark: int) -> None:
        self.writer: Any = owner.open_writer(watermark)
        self._owner = owner
        self._replaced: list[FlatSegment] = []

    def __enter__(self) -> _Commit:
        return self

    def delete(self, deletes: Mapping[str, Sequence[int]]) -> None:
        """Mark documents of existing segments deleted; segments that are gone are skipped."""
        by_id = {segment.segment_id(): segment for segment in self.writer.segments}
        for segment_id, docs in deletes.items():
            if segment_id in by_id:
                for doc in docs:
                    by_id[segment_id].delete_document(doc)

    def write(self, documents: Merged) -> None:
        """A new segment of these."""
        self.writer.take(documents)

    def replace(self, segments: list[FlatSegment]) -> None:
        """A new segment in the place of these."""
        self._replaced = segments
        self.writer.take(merge([self._owner.source(segment) for segment in segments]))

    def _policy(self, writer: Any, segments: list[FlatSegment]) -> list[FlatSegment]:
        return [segment for segment in segments if segment not in self._replaced]

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.writer.commit(mergetype=self._policy)
        else:
            self.writer.cancel()
