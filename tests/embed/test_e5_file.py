"""The E5S1 reader: values as the format says, and a clear error for every kind of damage."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from memxd.embed.e5_file import E5File
from memxd.errors import ModelFileError


def test_reads_sizes_vocabulary_and_scores(tiny_e5: Path) -> None:
    with E5File(tiny_e5) as model:
        assert (model.shape.hidden, model.shape.layers, model.shape.heads, model.shape.feed_forward) == (64, 2, 2, 128)
        assert (model.shape.bos, model.shape.pad, model.shape.eos, model.shape.unk) == (0, 1, 2, 3)
        assert model.pieces()[4:6] == ["▁", "▁ab"]
        assert model.pieces()[9] == "ä"
        assert model.scores().dtype == np.float32
        assert model.scores()[0] == -1


def test_a_block_is_scale_times_nibble_minus_eight(tiny_e5: Path) -> None:
    with E5File(tiny_e5) as model:
        block = model.blocks("l0.q.w", 64)[3, 1]
        row = model.matrix("l0.q.w", 64)[3, 32:]
    scale = np.float32(block["scale"])
    for j in range(16):
        assert row[j] == scale * (int(block["nibbles"][j] & 15) - 8)
        assert row[j + 16] == scale * (int(block["nibbles"][j] >> 4) - 8)


def test_arrays_outlive_the_file(tiny_e5: Path) -> None:
    with E5File(tiny_e5) as model:
        bias = model.floats("l0.q.b")
    assert np.isfinite(bias).all()


def test_a_file_cut_anywhere_is_refused(tiny_e5: Path) -> None:
    whole = tiny_e5.read_bytes()
    for size in [0, 3, 4, 40, 71, 80, 150, 200, 400, len(whole) // 2, len(whole) - 1]:
        tiny_e5.write_bytes(whole[:size])
        with pytest.raises(ModelFileError):
            E5File(tiny_e5)


@pytest.mark.parametrize(
    ("at", "value", "told"),
    [
        (0, b"E5S2", "not an E5S1"),
        (8, struct.pack("<i", -1), "impossible sizes"),
        (16, struct.pack("<i", 3), "impossible sizes"),
        (40, struct.pack("<i", 64), "impossible sizes"),
        (48, struct.pack("<i", 99), "special pieces"),
        (64, struct.pack("<Q", 1 << 60), "ends early"),
        (72, struct.pack("<I", 5), "offsets are damaged"),
        (120, struct.pack("<f", float("nan")), "scores are damaged"),
    ],
)
def test_damage_is_named(tiny_e5: Path, at: int, value: bytes, told: str) -> None:
    raw = bytearray(tiny_e5.read_bytes())
    raw[at : at + len(value)] = value
    tiny_e5.write_bytes(raw)
    with pytest.raises(ModelFileError, match=told):
        E5File(tiny_e5)


def test_missing_file_and_missing_tensor_are_named(tiny_e5: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="cannot read"):
        E5File(tmp_path / "none.bin")
    with E5File(tiny_e5) as model:
        with pytest.raises(ModelFileError, match="no tensor l9"):
            model.floats("l9")
        with pytest.raises(ModelFileError, match="no rows of 288"):
            model.blocks("l0.q.w", 96 * 3)
