"""The ranking kernels answer the shared vectors: ids, ranks and order exactly, values within 1e-12."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memxd._fast import Kernels
from memxd.model import Dedup

VECTORS = Path(__file__).parents[1] / "vectors" / "rank"
#: dtype of each argument; None = passed as it is.
ARGUMENTS: dict[str, tuple[str | None, ...]] = {
    "fuse_rrf": ("i4", "i4", None, None, None),
    "factors": ("i4", "i8", "u4", "u4", "f4", None, None),
    "combine": ("f8", "f8", "f8", "f8", None),
    "normalise": ("f8",),
    "top_k": ("f8", "i4", None),
    "dedup": ("i4", "i4", "u1", "u8", "u8", "u8", None, None),
    "rank_all": ("u1", "f8", "i8", "u4", "u4", "f4", None, None, None, None),
}


def _cases() -> list[Any]:
    files = {f: json.loads((VECTORS / f"{f}.json").read_text(encoding="utf-8")) for f in ARGUMENTS}
    return [
        pytest.param(function, case["args"], case["expect"], id=f"{function}-{case['name']}")
        for function, file in files.items()
        for case in file["cases"]
    ]


def _array(values: Any, dtype: str | None) -> Any:
    if dtype is None:
        return tuple(values) if isinstance(values, list) else values
    if values is None:
        return None
    return np.array([float(v) if isinstance(v, str) else v for v in values], dtype)


@pytest.mark.parametrize(("function", "args", "expect"), _cases())
def test_shared_vector(kernels: Kernels, function: str, args: list[Any], expect: list[Any]) -> None:
    arguments = [_array(value, dtype) for value, dtype in zip(args, ARGUMENTS[function], strict=True)]
    answer = getattr(kernels.rank, function)(*arguments)
    answers = answer if isinstance(answer, tuple) else (answer,)
    for got, want in zip(answers, expect, strict=True):
        if isinstance(got, np.ndarray) and got.dtype == np.float64:
            np.testing.assert_allclose(got, _array(want, "f8"), rtol=1e-12, atol=1e-15)
        else:
            assert np.asarray(got).tolist() == want


def test_every_vector_file_is_used() -> None:
    assert {path.stem for path in VECTORS.glob("*.json")} == set(ARGUMENTS)


def test_dedup_modes_are_the_contracts() -> None:
    assert [mode.value for mode in (Dedup.OFF, Dedup.CONTENT, Dedup.TAGS, Dedup.ADAPTIVE)] == [1, 2, 3, 4]
