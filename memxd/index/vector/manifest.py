"""The manifest: which files of the directory count, how far, and the sums that tell damage.

Owns the format and the order of writing: data first and synced, then the manifest by rename. What lies beyond the
manifest's count is not there. Layout: 8 bytes magic, u32 length of the header, u64 xor and u64 sum of what follows,
the header as JSON, one bit per row (alive), the pairs of sums of each block of vectors. Used by ``VectorIndex``.
"""

from __future__ import annotations

import json
import os
import struct
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from memxd.failpoints import reach
from memxd.index.durable import block_sums, write_whole
from memxd.index.vector.files import MANIFEST
from memxd.index.vector.rows import RECORD, Rows, RowView

__all__ = ["FORMAT", "GraphFile", "Identity", "Manifest", "ManifestError", "Saver", "load_rows", "read_manifest"]

FORMAT = 3
Records: TypeAlias = npt.NDArray[np.void]
#: Rows whose vectors share one pair of sums.
BLOCK = 4096
_MAGIC = b"memxdvec"
_HEAD = struct.Struct("<8sIQQ")


class ManifestError(Exception):
    """A file is damaged, foreign or of another format; the text says which, for Status and the log."""


@dataclass(frozen=True, slots=True)
class GraphFile:
    """A graph over the rows 0..rows-1 of its generation. ``links`` is the file that is walked, ``base`` USearch's own,
    from which it can be extended; each with (size, xor, sum). The rest is the shape of ``links``."""

    links: str
    base: str
    rows: int
    entries: int
    fan: int
    blocks: int
    upper_fan: int
    entry: int
    levels: int
    links_sums: tuple[int, int, int]
    base_sums: tuple[int, int, int]

    @classmethod
    def of(cls, fields: dict[str, Any]) -> GraphFile:
        """From JSON. Raises KeyError, TypeError."""
        sums = {name: tuple(fields[name]) for name in ("links_sums", "base_sums")}
        return cls(**{**fields, **sums})


@dataclass(frozen=True, slots=True)
class Identity:
    """What the vectors are of: a model, and the database that they were stored in."""

    model_id: str
    dimension: int
    database_id: str = ""

    def words(self) -> str:
        """The model, for people."""
        return f"{self.model_id} ({self.dimension} dimensions)"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is durable. ``record_sums``: of the records of rows 0..count-1."""

    format: int
    identity: Identity
    generation: int
    count: int
    watermark: int
    record_sums: tuple[int, int]
    graph: GraphFile | None


def read_manifest(directory: Path) -> tuple[Manifest, npt.NDArray[np.bool_], npt.NDArray[np.uint64]]:
    """(manifest, alive bool[count], sums uint64[blocks, 2]). Raises ManifestError, OSError."""
    raw = (directory / MANIFEST).read_bytes()
    if len(raw) < _HEAD.size or not raw.startswith(_MAGIC):
        raise ManifestError("the manifest is not one of ours")
    _, length, *sums = _HEAD.unpack(raw[: _HEAD.size])
    payload = np.frombuffer(raw, np.uint8)[_HEAD.size :].copy()
    if list(block_sums(payload)) != sums:
        raise ManifestError("the manifest's checksum does not match")
    try:
        fields = json.loads(payload[:length].tobytes())
        if fields["format"] != FORMAT:
            raise ManifestError(f"format {fields['format']} is not {FORMAT}")
        graph = None if fields["graph"] is None else GraphFile.of(fields["graph"])
        identity, record_sums = Identity(**fields["identity"]), tuple(fields["record_sums"])
        manifest = Manifest(**{**fields, "identity": identity, "graph": graph, "record_sums": record_sums})
        bits = (manifest.count + 7) // 8
        alive = np.unpackbits(payload[length : length + bits], count=manifest.count).astype(np.bool_)
        blocks = np.frombuffer(payload[length + bits :].tobytes(), np.uint64).reshape(-1, 2)
    except (ValueError, KeyError, TypeError) as error:
        raise ManifestError(f"the manifest does not hold together ({type(error).__name__})") from error
    return manifest, alive, blocks


def load_rows(
    directory: Path, manifest: Manifest, alive: npt.NDArray[np.bool_], blocks: npt.NDArray[np.uint64]
) -> Rows:
    """The rows of a manifest, every byte checked. Raises ManifestError, OSError."""
    rows = Rows(directory, manifest.generation, manifest.identity.dimension)
    try:
        if os.path.getsize(rows.vectors_path) < manifest.count * manifest.identity.dimension * 2:
            raise ManifestError("the vector file is shorter than it was")
        raw = np.fromfile(rows.records_path, np.uint8, count=manifest.count * RECORD.itemsize)
        if len(raw) != manifest.count * RECORD.itemsize or block_sums(raw) != manifest.record_sums:
            raise ManifestError("the row file is damaged")
        rows.adopt(raw.view(RECORD), alive)
        if not np.array_equal(vector_sums(rows.view(), 0, manifest.count), blocks):
            raise ManifestError("the vector file is damaged")
    except (ManifestError, OSError):
        rows.close()
        raise
    return rows


def vector_sums(view: RowView, begin: int, end: int) -> npt.NDArray[np.uint64]:
    """uint64[blocks, 2]: sums of the vectors of each block from ``begin`` (a multiple of BLOCK) to ``end``."""
    starts = range(begin, end, BLOCK)
    sums = [block_sums(view.matrix[at : min(at + BLOCK, end)].reshape(-1).view(np.uint8)) for at in starts]
    return np.array(sums, np.uint64).reshape(-1, 2)


class Saver:
    """Writes the durable state of one generation, each time only what is new. One caller at a time.

    ``saved``: rows whose records are in their file; these are never written again, so that a crash in the middle of a
    save leaves all that the former manifest speaks of.
    """

    def __init__(self, directory: Path, rows: Rows) -> None:
        """For a generation that was just begun."""
        self._directory = directory
        self._rows = rows
        self.saved = 0
        self._blocks = np.empty((0, 2), np.uint64)
        self._record_sums = (0, 0)

    @classmethod
    def loaded(cls, directory: Path, rows: Rows, manifest: Manifest, blocks: npt.NDArray[np.uint64]) -> Saver:
        """For a generation that ``load_rows`` gave."""
        saver = cls(directory, rows)
        saver.saved, saver._blocks, saver._record_sums = manifest.count, blocks, manifest.record_sums
        return saver

    def save(
        self,
        identity: Identity,
        watermark: int,
        graph: GraphFile | None,
        alive: npt.NDArray[np.bool_],
        records: Records,
    ) -> None:
        """Make the first ``len(alive)`` rows durable. ``alive`` and ``records`` (of the rows from ``saved`` on) are
        copies made at ``watermark``. Raises OSError; the former manifest holds then."""
        count = len(alive)
        _write_at(self._rows.records_path, self.saved * RECORD.itemsize, records)
        self._rows.sync()
        reach("vector.data")
        begin = self.saved // BLOCK
        blocks = np.concatenate([self._blocks[:begin], vector_sums(self._rows.view(), begin * BLOCK, count)])
        xor, total = block_sums(records.view(np.uint8))
        record_sums = (self._record_sums[0] ^ xor, (self._record_sums[1] + total) % 2**64)
        rows = self._rows
        manifest = Manifest(FORMAT, identity, rows.generation, count, watermark, record_sums, graph)
        text = json.dumps(asdict(manifest)).encode()
        bits = np.packbits(alive)
        payload = np.concatenate([np.frombuffer(text, np.uint8), bits, blocks.reshape(-1).view(np.uint8)])
        head = _HEAD.pack(_MAGIC, len(text), *block_sums(payload))
        write_whole(self._directory / MANIFEST, [head, payload.data])
        self.saved, self._blocks, self._record_sums = count, blocks, record_sums


def _write_at(path: Path, offset: int, records: Records) -> None:
    """Write and sync records at a place of their file."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        rest = memoryview(records.view(np.uint8).data)
        while rest:
            written = os.pwrite(handle, rest, offset)
            offset, rest = offset + written, rest[written:]
        os.fsync(handle)
    finally:
        os.close(handle)
