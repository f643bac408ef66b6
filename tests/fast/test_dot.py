"""The dot pair: bits equal between twins, vectors and a naive loop; order and ties; hostile rows."""

from __future__ import annotations

import importlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memxd._fast import dot_py
from memxd._fast.dot_py import Effort, GraphArrays
from memxd._fast.protocols import DotKernel

SHARED = json.loads((Path(__file__).parents[1] / "vectors" / "dot" / "cases.json").read_text())
CASES, WALKS = SHARED["cases"], SHARED["walks"]


@pytest.fixture(params=["twin", "compiled", "portable"])
def kernel(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "twin":
        yield dot_py
        return
    compiled = importlib.import_module("memxd._fast._dot")
    compiled.use_portable(request.param == "portable")
    yield compiled
    compiled.use_portable(False)


def compiled_kernel() -> Any:
    return importlib.import_module("memxd._fast._dot")


def same_bits(left: np.ndarray, right: np.ndarray) -> bool:
    """Equal bit for bit, any NaN equal to any NaN."""
    nan = np.isnan(left)
    return bool(np.array_equal(nan, np.isnan(right)) and np.array_equal(left[~nan].view("u4"), right[~nan].view("u4")))


def naive(query: np.ndarray, row: np.ndarray) -> float:
    """The documented order spelled out, each operation rounded to float32 through struct."""

    def f32(x: float) -> float:
        return float(struct.unpack("<f", struct.pack("<f", x))[0])

    lanes = [0.0] * 16
    for i, (q, v) in enumerate(zip(query.tolist(), row.astype(np.float32).tolist(), strict=True)):
        lanes[i % 16] = f32(lanes[i % 16] + f32(q * v))
    for step in (8, 4, 2, 1):
        for j in range(step):
            lanes[j] = f32(lanes[j] + lanes[j + step])
    return lanes[0]


def chains(lengths: list[int], rids: list[int], capacity: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows 0, 1, 2, ... dealt to ``rids`` in runs of ``lengths``."""
    head = np.full(capacity, -1, np.int32)
    after = np.full(max(1, sum(lengths)), -1, np.int32)
    row = 0
    for rid, length in zip(rids, lengths, strict=True):
        if length:
            head[rid] = row
        for step in range(length):
            if step + 1 < length:
                after[row] = row + 1
            row += 1
    return head, after


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"d{c['dimension']}")
def test_vectors_hold_bit_for_bit(kernel: DotKernel, case: dict[str, Any]) -> None:
    query = np.array(case["query"], np.uint32).view(np.float32)
    matrix = np.array(case["matrix"], np.uint16).view(np.float16).reshape(-1, case["dimension"])
    head, after = np.array(case["head"], np.int32), np.array(case["after"], np.int32)
    rids = np.arange(matrix.shape[0], dtype=np.int32)
    assert kernel.dot_rows(query, matrix, rids).view("u4").tolist() == case["dot_rows"]
    best, rows = kernel.best_by_rid(query, matrix, head, after, np.arange(len(after), dtype=np.int32), rids)
    assert rows.tolist() == case["best_rows"]
    narrow = best.astype(np.float32).view("u4").tolist()
    assert [None if r < 0 else b for b, r in zip(narrow, rows, strict=True)] == case["best"]
    top_rids, cosines, top_rows = kernel.search_rids(query, matrix, head, after, rids, 4)
    assert top_rids.tolist() == case["top_rids"]
    assert cosines.view("u4").tolist() == case["top_cosines"]
    assert top_rows.tolist() == case["top_rows"]


@pytest.mark.parametrize("case", WALKS, ids=lambda c: f"share{c['effort'][-1]}")
def test_vectors_of_walks_hold_bit_for_bit(kernel: DotKernel, case: dict[str, Any]) -> None:
    query = np.array(case["query"], np.uint32).view(np.float32)
    matrix = np.array(case["matrix"], np.uint16).view(np.float16).reshape(-1, len(query))
    links, at, upper = (np.array(case[name], np.int32) for name in ("links", "at", "upper"))
    graph = GraphArrays(links, at, upper, case["entry"], case["levels"])
    by_row, mask = np.array(case["by_row"], np.int32), np.array(case["mask"], np.uint8)
    head, after = np.arange(len(matrix), dtype=np.int32), np.full(len(matrix), -1, np.int32)
    rids, effort = np.flatnonzero(mask).astype(np.int32), Effort(*case["effort"])
    found = kernel.search_graph(query, matrix, head, after, by_row, graph, mask, rids, len(matrix), 5, effort)
    assert found[0].tolist() == case["top_rids"]
    assert found[1].view("u4").tolist() == case["top_cosines"]
    assert found[3] == case["compared"]


@given(st.integers(1, 70), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_the_sum_is_the_documented_one(width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    query = (rng.standard_normal(width) * 10.0 ** rng.integers(-6, 4)).astype(np.float32)
    matrix = (rng.standard_normal((3, width)) * 10.0 ** rng.integers(-7, 3)).astype(np.float16)
    rows = np.array([2, 0, 1], np.int32)
    expected = np.array([naive(query, matrix[r]) for r in rows], np.float32)
    assert same_bits(dot_py.dot_rows(query, matrix, rows), expected)
    compiled = compiled_kernel()
    assert same_bits(compiled.dot_rows(query, matrix, rows), expected)
    compiled.use_portable(True)
    assert same_bits(compiled.dot_rows(query, matrix, rows), expected)
    compiled.use_portable(False)


def test_every_half_converts_alike(kernel: DotKernel) -> None:
    halves = np.arange(65_536, dtype=np.uint16).view(np.float16).reshape(-1, 1)
    rows = np.arange(65_536, dtype=np.int32)
    expected = halves[:, 0].astype(np.float32)
    expected[expected == 0] = 0  # a lane begins at +0, so -0 becomes +0
    assert same_bits(kernel.dot_rows(np.ones(1, np.float32), halves, rows), expected)
    wide = np.zeros((65_536, 16), np.float16)  # through the vector units as well
    wide[:, 5] = halves[:, 0]
    assert same_bits(kernel.dot_rows(np.ones(16, np.float32), wide, rows), expected)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_twins_agree_on_chains_and_order(data: st.DataObject) -> None:
    width = data.draw(st.sampled_from([1, 3, 16, 20]))
    rids = data.draw(st.lists(st.integers(0, 40), unique=True, max_size=20))
    lengths = data.draw(st.lists(st.integers(0, 4), min_size=len(rids), max_size=len(rids)))
    k = data.draw(st.integers(0, 25))
    head, after = chains(lengths, rids, 41)
    seed = data.draw(st.integers(0, 1000))
    rng = np.random.default_rng(seed)
    # few distinct values: many ties
    matrix = rng.integers(-2, 3, (after.shape[0], width)).astype(np.float16)
    matrix[rng.random(matrix.shape) < 0.02] = data.draw(st.sampled_from([0.0, np.nan, np.inf, -np.inf]))
    query = rng.integers(-2, 3, width).astype(np.float32)
    asked = np.array(data.draw(st.permutations([*range(41), -1, 41, 900])), np.int32)
    compiled = compiled_kernel()
    numbers = rng.integers(0, 9, len(after)).astype(np.int32)
    left, right = (m.best_by_rid(query, matrix, head, after, numbers, asked) for m in (dot_py, compiled))
    assert same_bits(left[0].astype(np.float32), right[0].astype(np.float32))
    assert left[1].tolist() == right[1].tolist()
    left, right = (m.search_rids(query, matrix, head, after, asked, k) for m in (dot_py, compiled))
    assert left[0].tolist() == right[0].tolist()
    assert same_bits(left[1], right[1])
    assert left[2].tolist() == right[2].tolist()
    assert [(-c, r) for c, r in zip(left[1], left[0], strict=True)] == sorted(
        (-c, r) for c, r in zip(left[1], left[0], strict=True)
    )


def test_rows_that_are_not_there_have_no_cosine(kernel: DotKernel) -> None:
    matrix = np.ones((2, 4), np.float16)
    query = np.ones(4, np.float32)
    out = kernel.dot_rows(query, matrix, np.array([-1, 0, 2, 1, 99], np.int32))
    assert np.isnan(out).tolist() == [True, False, True, False, True]
    # a head that points past the matrix (a newer row than this snapshot) is no vector
    head, after = np.array([5, 1], np.int32), np.array([-1, -1], np.int32)
    rids, cosines, rows = kernel.search_rids(query, matrix, head, after, np.array([0, 1, 7], np.int32), 9)
    assert (rids.tolist(), cosines.tolist(), rows.tolist()) == ([1], [4.0], [1])


def test_nothing_in_nothing_out(kernel: DotKernel) -> None:
    none, query = np.empty(0, np.int32), np.ones(4, np.float32)
    empty, one = np.empty((0, 4), np.float16), np.ones((1, 4), np.float16)
    zero = np.zeros(1, np.int32)
    assert kernel.dot_rows(query, one, none).shape == (0,)
    assert np.isnan(kernel.dot_rows(query, empty, zero)).all()
    for matrix, head, after, rids, k in (
        (empty, none, none, zero, 3),
        (one, zero, zero - 1, none, 3),
        (one, zero, zero - 1, zero, 0),
    ):
        assert [len(part) for part in kernel.search_rids(query, matrix, head, after, rids, k)] == [0, 0, 0]
    best, rows = kernel.best_by_rid(query, empty, none, none, none, zero)
    assert np.isnan(best).all()
    assert rows.tolist() == [-1]


def test_a_row_of_nan_never_matches(kernel: DotKernel) -> None:
    matrix = np.array([[np.nan, 0], [0.5, 0.5], [np.inf, -np.inf]], np.float16)
    head, after = np.array([0, 2], np.int32), np.array([1, -1, -1], np.int32)
    asked = np.arange(2, dtype=np.int32)
    rids, cosines, rows = kernel.search_rids(np.ones(2, np.float32), matrix, head, after, asked, 5)
    assert (rids.tolist(), cosines.tolist(), rows.tolist()) == ([0], [1.0], [1])


def small_world(rng: np.random.Generator, nodes: int, levels: int) -> GraphArrays:
    """Random links on every level: some to nowhere, some twice."""
    links = rng.integers(-2, nodes + 2, (nodes, 6)).astype(np.int32)
    at = np.full(nodes, -1, np.int32)
    high = rng.permutation(nodes)[: max(1, nodes // 4)]
    at[high] = np.arange(len(high), dtype=np.int32) * levels
    upper = rng.choice(high, (len(high) * levels, 3)).astype(np.int32)
    return GraphArrays(links, at, upper, int(high[0]), levels)


@given(st.integers(0, 2**32 - 1), st.integers(1, 90), st.sampled_from([0.03, 0.3, 0.8, 1.0]), st.integers(0, 25))
@settings(max_examples=150, deadline=None)
def test_twins_walk_a_graph_alike(seed: int, nodes: int, share: float, k: int) -> None:
    rng = np.random.default_rng(seed)
    rows = nodes + int(rng.integers(0, 8))  # some that the graph does not know
    by_row = np.sort(rng.integers(0, rows, rows)).astype(np.int32)  # some memories with several rows
    head, after = np.full(rows, -1, np.int32), np.full(rows, -1, np.int32)
    for row in range(rows - 1, -1, -1):
        after[row], head[by_row[row]] = head[by_row[row]], row
    by_row[rng.random(rows) < 0.1] = -1
    matrix = rng.integers(-2, 3, (rows, 16)).astype(np.float16)  # few distinct values: many ties
    matrix[rng.random(matrix.shape) < 0.002] = np.nan
    query = rng.integers(-2, 3, 16).astype(np.float32)
    graph = small_world(rng, nodes, int(rng.integers(0, 4)))
    mask = (rng.random(rows) < share).astype(np.uint8)
    rids = np.flatnonzero(mask).astype(np.int32)
    beams = [int(rng.integers(1, 30)), *rng.integers(0, 30, 3).tolist()]
    effort = Effort(
        *beams, budget=int(rng.choice([3, 40, 10**9])), share=share,
        many=int(rng.choice([5, 30, 10**9])), far=float(rng.choice([0.3, 1.0, 1.5, np.inf])),
        most=int(rng.choice([0, 20, 500])), floor=float(rng.choice([-np.inf, 0.0, 4.0])),
    )  # fmt: skip
    asked = (query, matrix, head, after, by_row, graph, mask, rids, int(rng.integers(nodes, rows + 3)), k, effort)
    left, right = dot_py.search_graph(*asked), compiled_kernel().search_graph(*asked)
    assert left[0].tolist() == right[0].tolist()
    assert same_bits(left[1], right[1])
    assert left[2].tolist() == right[2].tolist()
    assert left[3] == right[3]
    assert not mask[left[0]].size or mask[left[0]].all()


def test_a_walk_as_wide_as_the_graph_finds_what_a_scan_finds(kernel: DotKernel) -> None:
    rng = np.random.default_rng(4)
    matrix = rng.standard_normal((300, 24)).astype(np.float16)
    links = np.stack([np.roll(np.arange(300), step) for step in (1, -1, 17, -17)], axis=1).astype(np.int32)
    graph = GraphArrays(links, np.full(300, -1, np.int32), np.empty((0, 2), np.int32), 0, 0)
    head, after = np.arange(300, dtype=np.int32), np.full(300, -1, np.int32)
    for share in (1.0, 0.4):
        mask = (rng.random(300) < share).astype(np.uint8)
        rids = np.flatnonzero(mask).astype(np.int32)
        query = rng.standard_normal(24).astype(np.float32)
        wide = Effort(300, 300, 300, 300, 10**9, share)
        found = kernel.search_graph(query, matrix, head, after, head, graph, mask, rids, 300, 20, wide)
        expected = kernel.search_rids(query, matrix, head, after, rids, 20)
        assert [part.tolist() for part in found[:3]] == [part.tolist() for part in expected]


def test_a_question_that_is_far_from_everything_is_looked_for_again(kernel: DotKernel) -> None:
    rng = np.random.default_rng(6)
    place = rng.standard_normal(24)
    vectors = place + 0.1 * rng.standard_normal((300, 24))  # one region, the question opposite
    matrix = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    links = np.stack([np.roll(np.arange(300), step) for step in (1, -1, 17, -17)], axis=1).astype(np.int32)
    graph = GraphArrays(links, np.full(300, -1, np.int32), np.empty((0, 2), np.int32), 0, 0)
    head, after, mask = np.arange(300, dtype=np.int32), np.full(300, -1, np.int32), np.ones(300, np.uint8)
    far, close = (-place / np.linalg.norm(place)).astype(np.float32), matrix[150].astype(np.float32)
    once = Effort(near=8, some=300, wide=300, needed=1, budget=10**9, share=1.0)

    def found(query: dot_py.F32, effort: Effort) -> tuple[list[int], int]:
        rids, *_, compared = kernel.search_graph(query, matrix, head, after, head, graph, mask, head, 300, 5, effort)
        return rids.tolist(), compared

    all_of_it = [kernel.search_rids(query, matrix, head, after, head, 5)[0].tolist() for query in (far, close)]
    assert found(far, once)[0] != all_of_it[0]
    assert found(far, once._replace(far=1.5))[0] == all_of_it[0]
    assert found(far, once._replace(many=found(far, once)[1] - 1))[0] == all_of_it[0]
    assert found(far, once._replace(near=40, far=1.5, most=300))[0] == all_of_it[0]  # going on, wider
    assert found(close, once._replace(far=1.5))[1] == found(close, once)[1] + 4  # and its neighbour's neighbours
    assert found(far, once._replace(far=1.5, wide=0)) == ([], 10**9 + 1)  # not worth a second look: scan


def test_a_walk_refuses_what_it_cannot_walk(kernel: DotKernel) -> None:
    query, matrix, zero = np.ones(4, np.float32), np.ones((1, 4), np.float16), np.zeros(1, np.int32)
    graph = GraphArrays(np.full((1, 4), -1, np.int32), zero - 1, np.empty((0, 2), np.int32), 0, 0)
    rest = (np.ones(1, np.uint8), zero, 1, 3)
    fine = Effort(1, 1, 1, 1, 99, 1.0)
    assert kernel.search_graph(query, matrix, zero, zero - 1, zero, graph, *rest, fine)[0].tolist() == [0]
    with pytest.raises(ValueError, match="beam"):
        kernel.search_graph(query, matrix, zero, zero - 1, zero, graph, *rest, fine._replace(near=0))
    with pytest.raises(ValueError, match="length"):
        kernel.search_graph(query[:3], matrix, zero, zero - 1, zero, graph, *rest, fine)
    broad = graph._replace(links=np.full((1, 257), -1, np.int32))
    with pytest.raises(ValueError, match="links"):
        kernel.search_graph(query, matrix, zero, zero - 1, zero, broad, *rest, fine)
    for entry in (-1, 1, 2**31 - 1):  # a damaged graph: nothing but the tail is found
        lost = graph._replace(entry=entry)
        assert kernel.search_graph(query, matrix, zero, zero - 1, zero, lost, *rest, fine)[0].tolist() == []
