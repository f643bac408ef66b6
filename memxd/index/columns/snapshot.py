"""The file of the columns: arrays as they are, tag sets, one checksum; written whole, read whole.

Owns the format. Layout: 8 bytes magic, u32 length of the header, u64 xor and u64 sum of what follows (``block_sums``
over header and payload), the header as JSON (format, database id, watermark, rows, length of each part), then the
parts: the arrays of ``STORED`` for rids 0..rows-1, the tag names as JSON, the tag sets as int32 lengths and members
with a uint64 hash each. Arrays that follow from others are not stored. Used by ``Columns``.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from memxd.index.columns.arrays import DTYPES, NAMES, NEVER, NO_EVENT, ColumnArrays, allocate
from memxd.index.columns.tags import PackedTags, TagSets
from memxd.index.durable import block_sums, write_whole

__all__ = ["FILE_NAME", "FORMAT", "SnapshotError", "read_snapshot", "write_snapshot"]

FILE_NAME = "columns.bin"
FORMAT = 2
_MAGIC = b"memxdcol"
_HEAD = struct.Struct("<8sIQQ")
_DERIVED = {"reference", "retrieved_or_created", "importance", "tag_hash"}
STORED = tuple(name for name in NAMES if name not in _DERIVED)


class SnapshotError(Exception):
    """The file is damaged, foreign or of another format; the text says which, for Status and the log."""


def write_snapshot(path: Path, arrays: ColumnArrays, tags: PackedTags, watermark: int, database: str = "") -> None:
    """Write the rows (arrays nobody changes meanwhile). Nothing of deleted rows goes along. Raises OSError."""
    rows = int(arrays.state.nonzero()[0].max(initial=-1)) + 1
    alive = arrays.state[:rows] != 0
    tags, renumber = tags.used(arrays.tag_set[:rows][alive])
    parts = [np.where(alive, getattr(arrays, n)[:rows], 0).astype(DTYPES[n]) for n in STORED]
    parts[STORED.index("tag_set")] = renumber[parts[STORED.index("tag_set")]]
    names = np.frombuffer(json.dumps(tags.names).encode("utf-8", "surrogatepass"), np.uint8)
    parts += [names, tags.lengths, tags.members, tags.hashes]
    blobs = [np.ascontiguousarray(p).view(np.uint8) for p in parts]
    header: dict[str, Any] = {"format": FORMAT, "database": database, "watermark": watermark, "rows": rows}
    header["parts"] = [b.shape[0] for b in blobs]
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + _HEAD.size) % 8)  # words of the file begin at words of the arrays
    payload = np.concatenate([np.frombuffer(text, np.uint8), *blobs])
    write_whole(path, [_HEAD.pack(_MAGIC, len(text), *block_sums(payload)), payload.data])


def read_snapshot(path: Path, database: str = "", spare: int = 1024) -> tuple[ColumnArrays, TagSets, int]:
    """(arrays with ``spare`` room, tag sets, watermark). Raises SnapshotError, OSError (FileNotFoundError: no file)."""
    raw = np.fromfile(path, np.uint8)
    if raw.shape[0] < _HEAD.size:
        raise SnapshotError("the file is shorter than its header")
    magic, length, *sums = _HEAD.unpack(raw[: _HEAD.size].tobytes())
    if magic != _MAGIC:
        raise SnapshotError("the file is not a columns snapshot")
    payload = raw[_HEAD.size :].copy()
    if list(block_sums(payload)) != sums:
        raise SnapshotError("the checksum does not match")
    try:
        header = json.loads(payload[:length].tobytes())
        if header["format"] != FORMAT:
            raise SnapshotError(f"format {header['format']} is not {FORMAT}")
        if header["database"] != database:
            raise SnapshotError("it was made for another database")
        return _decode(header, _split(payload[length:], header["parts"]), spare)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise SnapshotError(f"the content does not hold together ({type(error).__name__})") from error


def _split(payload: npt.NDArray[np.uint8], sizes: list[int]) -> Iterator[npt.NDArray[np.uint8]]:
    at = 0
    for size in sizes:
        yield payload[at : at + size]
        at += size


def _decode(
    header: dict[str, int], parts: Iterator[npt.NDArray[np.uint8]], spare: int
) -> tuple[ColumnArrays, TagSets, int]:
    rows = header["rows"]
    arrays = allocate(rows + spare)
    for name in STORED:
        getattr(arrays, name)[:rows] = np.frombuffer(next(parts).tobytes(), DTYPES[name])
    names = tuple(json.loads(next(parts).tobytes()))
    lengths, members = (np.frombuffer(next(parts).tobytes(), np.int32) for _ in range(2))
    tags = PackedTags(names, lengths, members, np.frombuffer(next(parts).tobytes(), np.uint64))
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
