"""The ranking kernels answer the shared vectors: ids, ranks and order exactly, values within 1e-12."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rank_world import make_rules

from memxd._fast import Kernels
from memxd._fast.protocols import LEG_VALUES, SCOPE_VALUES, RankColumns, RankKernel, RankLegs
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
}
#: The two that rank as a whole: their columns and rules go by name.
WHOLE: dict[str, tuple[str | None, ...]] = {
    "rank_all": ("i4", "i4", "i4", "columns", "rules", None),
    "rank_legs": ("i4", "f8", "f8", "f8", "i4", "f8", "f8", "f8", "columns", "rules"),
}
COLUMNS = {
    "reference": "i8", "retrieval": "u4", "access": "u4", "importance": "f4", "type": "u1", "cjk": "u1",
    "content_hash": "u8", "fold_hash": "u8", "tag_hash": "u8",
}  # fmt: skip
USUAL = {
    "vector_weight": 1.0, "keyword_weight": 1.0, "weights": (0.45, 0.25, 0.05, 0.1), "dedup": 1,
    "shifts": (0.0, 0.0, 0.045),
}  # fmt: skip


def _cases(functions: Iterable[str]) -> list[Any]:
    files = {f: json.loads((VECTORS / f"{f}.json").read_text(encoding="utf-8")) for f in functions}
    return [
        pytest.param(function, case["args"], case["expect"], id=f"{function}-{case['name']}")
        for function, file in files.items()
        for case in file["cases"]
    ]


def _array(values: Any, dtype: str | None) -> Any:
    if dtype == "columns":
        return RankColumns(**{name: _array(values[name], of) for name, of in COLUMNS.items()})
    if dtype == "rules":
        return make_rules(**{**USUAL, **{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}})
    if dtype is None:
        return tuple(values) if isinstance(values, list) else values
    if values is None:
        return None
    return np.array([float(v) if isinstance(v, str) else v for v in values], dtype)


@pytest.mark.parametrize(("function", "args", "expect"), _cases(ARGUMENTS))
def test_shared_vector(kernels: Kernels, function: str, args: list[Any], expect: list[Any]) -> None:
    arguments = [_array(value, dtype) for value, dtype in zip(args, ARGUMENTS[function], strict=True)]
    answer = getattr(kernels.rank, function)(*arguments)
    answers = answer if isinstance(answer, tuple) else (answer,)
    for got, want in zip(answers, expect, strict=True):
        if isinstance(got, np.ndarray) and got.dtype == np.float64:
            np.testing.assert_allclose(got, _array(want, "f8"), rtol=1e-12, atol=1e-15)
        else:
            assert np.asarray(got).tolist() == want


def _rank_all(kernel: RankKernel, args: list[Any]) -> list[Any]:
    got = kernel.rank_all(*args)
    values = dict(zip(SCOPE_VALUES, got.values, strict=True))
    return [got.ids[0], got.ids[3], got.kept, values["raw"], values["z"], values["score"], got.ranked]


def _rank_legs(kernel: RankKernel, args: list[Any]) -> list[Any]:
    got = kernel.rank_legs(RankLegs(*args[:8]), *args[8:])
    values = dict(zip(LEG_VALUES, got.values, strict=True))
    shown = ("cosine", "bm25", "match", "rrf", "semantic", "raw", "z", "score", "relevance")
    return [*got.ids, got.kept, *(values[name] for name in shown), got.best_cosine, got.best_relevance]


@pytest.mark.parametrize(("function", "args", "expect"), _cases(WHOLE))
def test_shared_vector_of_a_whole_ranking(kernels: Kernels, function: str, args: list[Any], expect: list[Any]) -> None:
    arguments = [_array(value, dtype) for value, dtype in zip(args, WHOLE[function], strict=True)]
    answers = (_rank_all if function == "rank_all" else _rank_legs)(kernels.rank, arguments)
    for got, want in zip(answers, expect, strict=True):
        if isinstance(got, float) or (isinstance(got, np.ndarray) and got.dtype == np.float64):
            wanted = _array(want, "f8") if isinstance(want, list) else want
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-15)
        else:
            assert np.asarray(got).tolist() == want


def test_every_vector_file_is_used() -> None:
    assert {path.stem for path in VECTORS.glob("*.json")} == {*ARGUMENTS, *WHOLE}


def test_dedup_modes_are_the_contracts() -> None:
    assert [mode.value for mode in (Dedup.OFF, Dedup.CONTENT, Dedup.TAGS, Dedup.ADAPTIVE)] == [1, 2, 3, 4]
