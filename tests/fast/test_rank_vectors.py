"""The ranking kernels answer the shared vectors: ids, ranks and order exactly, values within 1e-12."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rank_world import make_columns, make_rules, rank_raw, vector_leg

from memxd._fast import Kernels
from memxd._fast.protocols import LEG_VALUES, SCOPE_VALUES, RankColumns, RankKernel, RankLegs
from memxd.model import Dedup

VECTORS = Path(__file__).parents[1] / "vectors" / "rank"
#: dtype of each argument; None = passed as it is. The first five look at one step of a ranking.
ARGUMENTS: dict[str, tuple[str | None, ...]] = {
    "fusion": ("i4", "i4", None, None, None),
    "factors": ("i4", "i8", "u4", "u4", "f4", None, None),
    "scores": ("f8",),
    "order": ("f8", "i4"),
    "folding": (None, "i4", "u1", "u8", "u8", "u8", None),
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


def _cases() -> list[Any]:
    files = {f: json.loads((VECTORS / f"{f}.json").read_text(encoding="utf-8")) for f in ARGUMENTS}
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


def _fusion(kernel: RankKernel, args: list[Any]) -> list[Any]:
    vector, keyword, k, *weights = args
    legs = vector_leg(vector)._replace(
        keyword_rids=keyword, keyword_bm25=np.zeros(len(keyword)), keyword_match=np.zeros(len(keyword))
    )
    rules = make_rules(fusion=2, rrf_k=k, vector_weight=weights[0], keyword_weight=weights[1], dedup=1)
    got = kernel.rank_legs(legs, make_columns(10), rules)
    by_rid = np.argsort(got.ids[0])
    rids, vector_rank, keyword_rank = got.ids[:3, by_rid]
    return [rids, got.values[LEG_VALUES.index("rrf")][by_rid], vector_rank, keyword_rank]


def _factors(kernel: RankKernel, args: list[Any]) -> list[Any]:
    rids, reference, retrieval, access, importance, now, half_life = args
    columns = make_columns(len(reference))._replace(
        reference=reference, retrieval=retrieval, access=access, importance=importance
    )
    got = kernel.rank_legs(vector_leg(rids), columns, make_rules(now=now, half_life=half_life))
    return [got.values[LEG_VALUES.index(name)] for name in ("recency", "frequency", "importance")]


def _scores(kernel: RankKernel, args: list[Any]) -> list[Any]:
    got = rank_raw(kernel, args[0])
    return [got.values[LEG_VALUES.index(name)] for name in ("z", "score")]


def _order(kernel: RankKernel, args: list[Any]) -> list[Any]:
    return [rank_raw(kernel, *args).ids[3]]


def _folding(kernel: RankKernel, args: list[Any]) -> list[Any]:
    order, rids, type_, content, fold, tag, mode = args
    columns = make_columns(int(rids.max(initial=0)) + 1)
    columns.type[rids], columns.content_hash[rids], columns.fold_hash[rids], columns.tag_hash[rids] = (
        type_, content, fold, tag,
    )  # fmt: skip
    cosines = np.empty(len(rids))
    cosines[list(order)] = np.linspace(0.9, 0.1, len(rids))
    rules = make_rules(fusion=3, weights=(1.0, 0.0, 0.0, 0.0), dedup=mode)
    got = kernel.rank_legs(vector_leg(rids, cosines), columns, rules)
    assert got.ids[3].tolist() == list(order)
    return [got.kept, got.ids[4]]


def _rank_all(kernel: RankKernel, args: list[Any]) -> list[Any]:
    got = kernel.rank_all(*args)
    values = dict(zip(SCOPE_VALUES, got.values, strict=True))
    return [got.ids[0], got.ids[3], got.kept, values["raw"], values["z"], values["score"], got.ranked]


def _rank_legs(kernel: RankKernel, args: list[Any]) -> list[Any]:
    got = kernel.rank_legs(RankLegs(*args[:8]), *args[8:])
    values = dict(zip(LEG_VALUES, got.values, strict=True))
    shown = ("cosine", "bm25", "match", "rrf", "semantic", "raw", "z", "score", "relevance")
    return [*got.ids, got.kept, *(values[name] for name in shown), got.best_cosine, got.best_relevance]


ANSWERS: dict[str, Callable[[RankKernel, list[Any]], list[Any]]] = {
    "fusion": _fusion, "factors": _factors, "scores": _scores, "order": _order, "folding": _folding,
    "rank_all": _rank_all, "rank_legs": _rank_legs,
}  # fmt: skip


@pytest.mark.parametrize(("function", "args", "expect"), _cases())
def test_shared_vector(kernels: Kernels, function: str, args: list[Any], expect: list[Any]) -> None:
    arguments = [_array(value, dtype) for value, dtype in zip(args, ARGUMENTS[function], strict=True)]
    answers = ANSWERS[function](kernels.rank, arguments)
    for got, want in zip(answers, expect, strict=True):
        if isinstance(got, float) or (isinstance(got, np.ndarray) and got.dtype == np.float64):
            wanted = _array(want, "f8") if isinstance(want, list) else want
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-15)
        else:
            assert np.asarray(got).tolist() == want


def test_every_vector_file_is_used() -> None:
    assert {path.stem for path in VECTORS.glob("*.json")} == set(ARGUMENTS)


def test_dedup_modes_are_the_contracts() -> None:
    assert [mode.value for mode in (Dedup.OFF, Dedup.CONTENT, Dedup.TAGS, Dedup.ADAPTIVE)] == [1, 2, 3, 4]
