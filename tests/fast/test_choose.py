"""The pair that chooses rows: vectors, equal answers of the twins over blocks and gaps, refusals of bad arrays."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memxd._fast import choose_py
from memxd.index.columns.arrays import DTYPES

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "choose" / "cases.json").read_text())["cases"]
COLUMNS = ("state", "type", "valid_until", "created", "event", "importance_exact", "tag_set")
LARGEST = 2**63 - 1


@pytest.fixture(params=["twin", "compiled"])
def kernel(request: pytest.FixtureRequest) -> Any:
    return choose_py if request.param == "twin" else importlib.import_module("memxd._fast._choose")


def table(values: list[int] | None) -> np.ndarray | None:
    if values is None:
        return None
    made = np.zeros(256, np.uint8)
    made[values] = 1
    return made


@pytest.mark.parametrize("case", CASES)
def test_the_vectors_hold(kernel: Any, case: dict[str, Any]) -> None:
    names = [name.removesuffix("_exact") for name in COLUMNS]
    arrays = [np.array(case["columns"][n], DTYPES[full]) for n, full in zip(names, COLUMNS, strict=True)]
    for wish in case["wishes"]:
        tags = None if wish["tags"] is None else np.array(wish["tags"], np.uint8)
        chosen, begin, end = kernel.choose(
            np.array(case["rids"], np.int32), *arrays, wish["rule"], wish["now"], table(wish["states"]),
            table(wish["types"]), tags, wish["created"], wish["event"], wish["importance_min"],
        )  # fmt: skip
        assert (chosen.dtype, chosen.tolist(), begin, end) == (np.int32, wish["chosen"], wish["begin"], wish["end"])
    grouped, starts = kernel.group(arrays[-1], arrays[0])
    assert [grouped.tolist(), starts.tolist()] == case["group"]


def big(rows: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    until = np.where(rng.random(rows) < 0.7, LARGEST, rng.integers(0, 100, rows))
    event = np.where(rng.random(rows) < 0.5, -LARGEST - 1, rng.integers(0, 100, rows))
    values = (
        rng.integers(0, 4, rows), rng.integers(1, 6, rows), until, rng.integers(0, 100, rows), event,
        rng.random(rows), rng.integers(0, 60, rows),
    )  # fmt: skip
    return [value.astype(DTYPES[name]) for value, name in zip(values, COLUMNS, strict=True)]


@pytest.mark.parametrize("rows", [0, 1, 1023, 1024, 1025, 5000])
@pytest.mark.parametrize("share", [1.0, 0.6])
def test_the_twins_agree_over_blocks_and_gaps(rows: int, share: float) -> None:
    compiled = importlib.import_module("memxd._fast._choose")
    arrays = big(rows, rows)
    rng = np.random.default_rng(rows + 1)
    rids = np.flatnonzero(rng.random(rows) < share).astype(np.int32)
    tags = (rng.random(60) < 0.3).astype(np.uint8)
    for rule in range(4):
        for n in range(8):
            wish = (
                rule, 50, table([1, 2]), table([2, 4]) if n & 1 else None, tags if n & 2 else None,
                (10, 80) if n & 4 else None, (20, 90) if n & 1 else None, 0.25 if n & 2 else None,
            )  # fmt: skip
            left, right = (k.choose(rids, *arrays, *wish) for k in (choose_py, compiled))
            assert np.array_equal(left[0], right[0])
            assert left[1:] == right[1:]
    scopes = rng.integers(0, 50, rows).astype(np.int32)
    for a, b in zip(choose_py.group(scopes, arrays[0]), compiled.group(scopes, arrays[0]), strict=True):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)


@pytest.mark.parametrize("rids", [[-1], [8], [3, 3], [4, 2], [0, 2**31 - 1]])
def test_rids_outside_or_in_disorder_are_refused(kernel: Any, rids: list[int]) -> None:
    with pytest.raises(ValueError, match="ascend"):
        kernel.choose(np.array(rids, np.int32), *big(8, 1), 1, 0, None, None, None, None, None, None)


def test_what_would_be_read_beyond_an_array_is_refused(kernel: Any) -> None:
    arrays, rids = big(8, 1), np.arange(8, dtype=np.int32)
    free = (None, None, None)
    for n in range(1, len(arrays)):
        short = [a[:7] if i == n else a for i, a in enumerate(arrays)]
        with pytest.raises(ValueError, match="shorter"):
            kernel.choose(rids, *short, 1, 0, None, None, None, *free)
    for verdicts in (np.zeros(0, np.uint8), np.zeros(3, np.uint8)):
        with pytest.raises(ValueError, match="tag set"):
            kernel.choose(rids, *arrays[:-1], np.full(8, 3, np.int32), 1, 0, None, None, verdicts, *free)
    with pytest.raises(ValueError, match="tag set"):
        kernel.choose(rids, *arrays[:-1], np.full(8, -1, np.int32), 1, 0, None, None, np.zeros(3, np.uint8), *free)
    with pytest.raises(ValueError, match="256"):
        kernel.choose(rids, *arrays, 1, 0, None, np.zeros(255, np.uint8), None, *free)
    for rule in (-1, 0, 4):
        with pytest.raises(ValueError, match="rule"):
            kernel.choose(rids, *arrays, rule, 0, None, None, None, *free)
    for scope in (-1, 2**28):
        with pytest.raises(ValueError, match="scope numbers"):
            kernel.group(np.array([scope], np.int32), np.ones(1, np.uint8))
