"""The rows of one generation: a flat float16 file of vectors and, in memory, whose each row is.

Row numbers are dense and only grow within a generation; a dead row keeps its place until the next generation leaves it
out. Rows of one memory form a chain (``head`` by rid, ``after`` by row, ascending). Vectors are written with pwrite, so
that a full disk is an error and no signal, and read through a mapping. Owns the two files of a generation; knows no
graph and no manifest. One applier at a time; searchers take ``view()``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from memxd.index.durable import Watched
from memxd.index.vector.files import RECORDS, VECTORS
from memxd.model import Chunk

__all__ = ["RECORD", "DimensionError", "RowView", "Rows"]

Int32 = npt.NDArray[np.int32]
#: What the second file keeps of each row.
RECORD = np.dtype([("vid", "<i8"), ("rid", "<i4"), ("chunk", "<i4")])
_Item = TypeVar("_Item", np.int32, np.int64)
_COPY = 1024  # rows moved at once, so that no other thread waits long for the GIL


class DimensionError(ValueError):
    """A vector of another dimension than the index's."""


@dataclass(frozen=True, slots=True)
class RowView:
    """References that belong together. Values may change under the reader; a row at or beyond an array's length is
    newer than the view. ``rids`` is -1 for a dead row."""

    matrix: npt.NDArray[np.float16]  # [capacity, dimension]
    head: Int32  # by rid: first row, -1 = none
    after: Int32  # by row: next row of the same rid, -1 = none
    rids: Int32  # by row
    chunks: Int32  # by row: number of the chunk in its memory


class Rows:
    """One generation. ``count`` rows in use, ``live`` of them alive, belonging to ``memories`` memories."""

    def __init__(self, directory: Path, generation: int, dimension: int) -> None:
        """Begin empty files, or with ``adopt`` take over what lies there."""
        self.generation = generation
        self.dimension = dimension
        self.vectors_path = directory / VECTORS.format(generation)
        self.records_path = directory / RECORDS.format(generation)
        self.count = self.live = self.memories = 0
        self._width = dimension * 2
        self._file = os.open(self.vectors_path, os.O_RDWR | os.O_CREAT, 0o600)
        self._watched = Watched(self.vectors_path)
        self.vids: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._view = RowView(np.empty((0, dimension), np.float16), *(np.empty(0, np.int32) for _ in range(4)))

    def view(self) -> RowView:
        """What a search works on."""
        return self._view

    def whole(self) -> bool:
        """False when somebody cut the vector file short: no view may be read then."""
        return self._watched.holds(len(self._view.matrix) * self._width)

    def close(self) -> None:
        """Close the file; views stay readable until they are dropped."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def sync(self) -> None:
        """Make the vectors durable. Raises OSError."""
        os.fsync(self._file)

    # -- the applier -------------------------------------------------------------------------------------------------

    def replace(self, rid: int, chunks: Sequence[Chunk]) -> None:
        """Give the memory these chunks (none = it has no vector). Nothing happens when it has exactly these already.

        Raises OSError or DimensionError; nothing changed then.
        """
        old = self.chain(rid)
        if [int(self.vids[row]) for row in old] == [chunk.vid for chunk in chunks]:
            return
        first = -1
        if chunks:
            data = b"".join(chunk.vector for chunk in chunks)
            if any(len(chunk.vector) != self._width for chunk in chunks):
                raise DimensionError("a vector has another dimension than the index")
            numbers = np.fromiter((chunk.number for chunk in chunks), np.int32)
            vids = np.fromiter((chunk.vid for chunk in chunks), np.int64)
            first = self._append(np.full(len(chunks), rid, np.int32), numbers, vids, data)
            self._view.after[first : self.count - 1] = np.arange(first + 1, self.count, dtype=np.int32)
            self._reach(rid)
        if rid < len(self._view.head):
            self._view.head[rid] = first  # from here on searches see the new chunks
        self._kill(old)
        self.memories += bool(chunks) - bool(old)

    def add(self, items: Sequence[tuple[int, Sequence[Chunk]]]) -> None:
        """Give memories that have none their chunks (each has at least one). Raises as ``replace``."""
        first = self.count
        self.extend(items)
        self._reach(max(rid for rid, _ in items))
        view = self._view
        owners = view.rids[first : self.count]
        inner = np.flatnonzero(owners[1:] == owners[:-1])
        view.after[first + inner] = first + inner + 1
        begins = np.ones(len(owners), np.bool_)
        begins[inner + 1] = False
        view.head[owners[begins]] = first + np.flatnonzero(begins)  # from here on searches see them
        self.memories += len(items)

    def drop_vids(self, rid: int, vids: Sequence[int]) -> None:
        """Vectors of the memory that no longer count; others of it stay."""
        old = self.chain(rid)
        gone = [row for row in old if int(self.vids[row]) in vids]
        if not gone:
            return
        stay = [row for row in old if row not in gone]
        for row, following in zip(stay, [*stay[1:], -1], strict=False):
            self._view.after[row] = following
        self._view.head[rid] = stay[0] if stay else -1
        self._kill(gone)
        self.memories -= not stay

    def chain(self, rid: int) -> list[int]:
        """The live rows of a memory, ascending."""
        head = self._view.head
        row = int(head[rid]) if 0 <= rid < len(head) else -1
        rows = []
        while row >= 0:
            rows.append(row)
            row = int(self._view.after[row])
        return rows

    def _kill(self, rows: list[int]) -> None:
        if not rows:
            return
        self._view.rids[rows] = -1
        self.live -= len(rows)

    def _append(self, rids: Int32, chunks: Int32, vids: npt.NDArray[np.int64], data: bytes | memoryview) -> int:
        """Write rows behind the last one, unchained; answers the first row's number."""
        first, end = self.count, self.count + len(rids)
        if end > len(self._view.rids):
            self._make_room(end)
        at, rest = first * self._width, memoryview(data).cast("B")
        while rest:
            written = os.pwrite(self._file, rest, at)
            at, rest = at + written, rest[written:]
        self.vids[first:end] = vids
        self._view.chunks[first:end] = chunks
        self._view.after[first:end] = -1
        self._view.rids[first:end] = rids
        self.count = end
        self.live += len(rids)
        return first

    def _make_room(self, rows: int) -> None:
        """Grow file (a hole: no space is taken), mapping and arrays; old views stay as they are."""
        old, capacity = self._view, max(rows, len(self._view.rids) * 3 // 2, 1024)
        os.ftruncate(self._file, capacity * self._width)
        matrix: npt.NDArray[np.float16] = np.memmap(
            self.vectors_path, np.float16, mode="r", shape=(capacity, self.dimension)
        )
        self.vids = _longer(self.vids, capacity)
        by_row = [_longer(array, capacity) for array in (old.after, old.rids, old.chunks)]
        self._view = RowView(matrix.view(np.ndarray), old.head, *by_row)

    def _reach(self, rid: int) -> None:
        """Make ``head`` long enough for the rid."""
        v = self._view
        if rid >= len(v.head):
            head = _longer(v.head, max(rid + 1, len(v.head) * 3 // 2, 1024))
            self._view = RowView(v.matrix, head, v.after, v.rids, v.chunks)

    # -- in bulk -----------------------------------------------------------------------------------------------------

    def adopt(self, records: npt.NDArray[np.void], alive: npt.NDArray[np.bool_]) -> None:
        """Take over the rows that lie in the file: their records (``RECORD``) and which of them live."""
        self._make_room(len(records) + 1024)
        self.count, self.live = len(records), int(alive.sum())
        self.vids[: self.count] = records["vid"]
        self._view.chunks[: self.count] = records["chunk"]
        self._view.rids[: self.count] = np.where(alive, records["rid"], -1)
        self.chain_all()

    def extend(self, items: Sequence[tuple[int, Sequence[Chunk]]]) -> None:
        """Append the chunks of memories that have none yet, unchained: ``chain_all`` follows. Raises as ``replace``."""
        flat = [(rid, chunk) for rid, chunks in items for chunk in chunks]
        if any(len(chunk.vector) != self._width for _, chunk in flat):
            raise DimensionError("a vector has another dimension than the index")
        rids = np.array([rid for rid, _ in flat], np.int32)
        numbers = np.array([chunk.number for _, chunk in flat], np.int32)
        vids = np.array([chunk.vid for _, chunk in flat], np.int64)
        self._append(rids, numbers, vids, b"".join(chunk.vector for _, chunk in flat))

    def copy_from(self, other: Rows, rows: npt.NDArray[np.int64]) -> None:
        """Append these rows of another generation, unchained: ``chain_all`` follows. Raises OSError."""
        view = other.view()
        for at in range(0, len(rows), _COPY):
            part = rows[at : at + _COPY]
            data = np.ascontiguousarray(view.matrix[part])
            self._append(view.rids[part], view.chunks[part], other.vids[part], data.data)

    def bury(self, rows: npt.NDArray[np.integer]) -> None:
        """Mark rows dead without touching chains: ``chain_all`` follows."""
        self._view.rids[rows] = -1
        self.live = int(np.count_nonzero(self._view.rids[: self.count] >= 0))

    def chain_all(self) -> None:
        """Make every chain anew from ``rids``."""
        rids = self._view.rids[: self.count]
        rows = np.flatnonzero(rids >= 0).astype(np.int32)
        order = np.argsort(rids[rows], kind="stable")
        rows, owners = rows[order], rids[rows][order]
        self._reach(int(owners[-1]) if len(owners) else 0)
        first = np.ones(len(rows), np.bool_)
        first[1:] = owners[1:] != owners[:-1]
        self._view.head[:] = -1
        self._view.after[:] = -1
        self._view.head[owners[first]] = rows[first]
        follows = np.flatnonzero(~first)
        self._view.after[rows[follows - 1]] = rows[follows]
        self.memories = int(first.sum())

    def records(self, begin: int, end: int) -> npt.NDArray[np.void]:
        """A copy of the records of rows begin..end-1."""
        out = np.empty(end - begin, RECORD)
        out["vid"], out["rid"] = self.vids[begin:end], self._view.rids[begin:end]
        out["chunk"] = self._view.chunks[begin:end]
        return out


def _longer(array: npt.NDArray[_Item], length: int) -> npt.NDArray[_Item]:
    """A copy with room; the new part is -1."""
    out = np.full(length, -1, array.dtype)
    out[: len(array)] = array
    return out
