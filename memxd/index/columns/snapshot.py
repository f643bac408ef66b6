"""The file of the columns: arrays as they are, tag sets, one checksum; written whole, read whole.

Owns the format. Layout: 8 bytes magic and u64 length of the header, the header as JSON (format, database id, watermark,
rows), then the parts: the arrays of ``STORED`` for rids 0..rows-1, the tag names as JSON, the tag sets as int32 lengths
and members with a uint64 hash each; then u64 length of each of the last four; u64 xor and u64 sum of everything before
(``block_sums``). Every part is padded to 8 bytes. Arrays that follow from others are not stored. Used by ``Columns``.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from memxd.index.columns.arrays import DTYPES, NAMES, NEVER, NO_EVENT, ColumnArrays, allocate
from memxd.index.columns.tags import PackedTags, TagSets
from memxd.index.durable import add_sums, block_sums, write_whole

__all__ = ["FILE_NAME", "FORMAT", "SnapshotError", "read_snapshot", "write_snapshot"]

FILE_NAME = "columns.bin"
FORMAT = 3
_MAGIC = b"memxdcol"
_HEAD = struct.Struct("<8sQ")
_TAIL = struct.Struct("<6Q")
_WORD = 8
_LONGEST_HEADER = 4096
_DERIVED = {"reference", "retrieved_or_created", "importance", "tag_hash"}
#: ``state`` stands last: a row that comes while the arrays are written is then whole, or not there.
STORED = (*(name for name in NAMES if name not in _DERIVED and name != "state"), "state")
_Bytes = npt.NDArray[np.uint8]


class SnapshotError(Exception):
    """The file is damaged, foreign or of another format; the text says which, for Status and the log."""


def write_snapshot(
    path: Path, arrays: ColumnArrays, rows: int, pack: Callable[[], PackedTags], watermark: int, database: str = ""
) -> None:
    """Write the first ``rows`` rows. Nothing of deleted rows goes along. Raises OSError.

    The arrays may change meanwhile: what changes is newer than ``watermark``, so that the change log brings it again.
    ``pack`` is called after the rows' sets are read, so that it knows each of them. One array is copied at a time.
    """
    write_whole(path, _summed(_parts(arrays, rows, pack, watermark, database)))


def _parts(
    arrays: ColumnArrays, rows: int, pack: Callable[[], PackedTags], watermark: int, database: str
) -> Iterator[bytes | _Bytes]:
    """Everything but the checksum, in order."""
    text = json.dumps({"format": FORMAT, "database": database, "watermark": watermark, "rows": rows}).encode()
    yield _HEAD.pack(_MAGIC, len(text))
    yield text
    alive = arrays.state[:rows] != 0
    sets = np.where(alive, arrays.tag_set[:rows], 0).astype(np.int32)
    tags, renumber = pack().used(sets)
    sets = renumber[sets]
    for name in STORED:
        values = sets if name == "tag_set" else np.where(alive, getattr(arrays, name)[:rows], 0).astype(DTYPES[name])
        yield values.view(np.uint8)
    names = json.dumps(tags.names).encode("utf-8", "surrogatepass")
    yield names
    for array in (tags.lengths, tags.members, tags.hashes):
        yield np.ascontiguousarray(array).view(np.uint8)
    yield struct.pack("<4Q", len(names), len(tags.lengths), len(tags.members), len(tags.hashes))


def _summed(parts: Iterator[bytes | _Bytes]) -> Iterator[memoryview]:
    """Each part padded, and at the end the sums over all of them."""
    sums = (0, 0)
    for part in parts:
        data = np.frombuffer(part, np.uint8) if isinstance(part, bytes) else part
        sums = add_sums(sums, block_sums(data))
        yield data.data
        if lacking := -len(data) % _WORD:
            yield memoryview(bytes(lacking))
    yield memoryview(struct.pack("<2Q", *sums))


class _Reader:
    """Reads a file part by part, summing up."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._left = size
        self.sums = (0, 0)

    def into(self, target: npt.NDArray[Any]) -> None:
        """Fill the array (contiguous) from the next part."""
        data = target.view(np.uint8).reshape(-1)
        padded = len(data) + -len(data) % _WORD
        if padded > self._left:
            raise SnapshotError("the file is shorter than it says")
        self._left -= padded
        if self._file.readinto(data.data) != len(data):  # type: ignore[attr-defined]
            raise SnapshotError("the file is shorter than it was")
        if self._file.read(padded - len(data)).strip(b"\0"):
            raise SnapshotError("there is something between its parts")
        self.sums = add_sums(self.sums, block_sums(data))

    def array(self, length: int, dtype: Any) -> npt.NDArray[Any]:
        """The next part, ``length`` values."""
        if length * np.dtype(dtype).itemsize > self._left:
            raise SnapshotError("the file is shorter than it says")
        values = np.empty(length, dtype)
        self.into(values)
        return values


def read_snapshot(path: Path, database: str = "", spare: int = 1024) -> tuple[ColumnArrays, TagSets, int]:
    """(arrays with ``spare`` room, tag sets, watermark). Raises SnapshotError, OSError (FileNotFoundError: no file)."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < _HEAD.size + _TAIL.size:
            raise SnapshotError("the file is shorter than its header")
        file.seek(size - _TAIL.size)
        *lengths, xor, total = _TAIL.unpack(file.read(_TAIL.size))
        file.seek(0)
        reader = _Reader(file, size - 16)
        try:
            return _read(reader, lengths, (xor, total), database, spare)
        except (ValueError, KeyError, TypeError, IndexError, MemoryError) as error:
            raise SnapshotError(f"the content does not hold together ({type(error).__name__})") from error


def _read(
    reader: _Reader, lengths: list[int], sums: tuple[int, int], database: str, spare: int
) -> tuple[ColumnArrays, TagSets, int]:
    magic, length = _HEAD.unpack(reader.array(_HEAD.size, np.uint8).tobytes())
    if magic != _MAGIC or length > _LONGEST_HEADER:
        raise SnapshotError("the file is not a columns snapshot")
    header = json.loads(reader.array(length, np.uint8).tobytes())
    if header["format"] != FORMAT:
        raise SnapshotError(f"format {header['format']} is not {FORMAT}")
    rows = int(header["rows"])
    arrays = allocate(rows + spare)
    for name in STORED:
        reader.into(getattr(arrays, name)[:rows])
    names = tuple(json.loads(reader.array(lengths[0], np.uint8).tobytes()))
    sizes, members = (reader.array(n, np.int32) for n in lengths[1:3])
    tags = PackedTags(names, sizes, members, reader.array(lengths[3], np.uint64))
    reader.array(4, np.uint64)  # the lengths, which are summed as well
    if reader.sums != sums:
        raise SnapshotError("the checksum does not match")
    if header["database"] != database:
        raise SnapshotError("it was made for another database")
    _derive(arrays, tags)
    return arrays, TagSets(tags), int(header["watermark"])


def _derive(arrays: ColumnArrays, tags: PackedTags) -> None:
    """Fill the arrays that follow from the stored ones."""
    arrays.importance[:] = arrays.importance_exact
    arrays.tag_hash[:] = tags.hashes[arrays.tag_set]
    never = arrays.last_retrieved == NEVER
    arrays.retrieved_or_created[:] = np.where(never, arrays.created, arrays.last_retrieved)
    fallback = np.where(arrays.event == NO_EVENT, arrays.created, arrays.event)
    arrays.reference[:] = np.where(never, fallback, arrays.last_retrieved)
