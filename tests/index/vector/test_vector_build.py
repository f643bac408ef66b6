"""The order in which the building process adds rows."""

from __future__ import annotations

import numpy as np
from vector_world import unit

from memxd import native
from memxd.index.vector import build

assert native.onnxruntime  # before USearch, which ``build`` loads: memxd/native.py says why

D = 48


def _topics(rows: int) -> np.ndarray:
    """Unit vectors float16[rows, D] around 60 topics, in no order."""
    rng = np.random.default_rng(3)
    topics = rng.standard_normal((60, D))
    return unit(topics[rng.integers(0, 60, rows)] + 0.5 * rng.standard_normal((rows, D))).astype(np.float16)


def _nearness(vectors: np.ndarray) -> float:
    """Mean cosine of one to the next."""
    wide = vectors.astype(np.float32)
    return float(np.einsum("ij,ij->i", wide[1:], wide[:-1]).mean())


def test_rows_come_in_neighbourhoods_and_each_once() -> None:
    vectors = _topics(20_000)
    lists = list(build.batches(vectors, 500, 1_024))
    rows = np.concatenate(lists)
    assert max(map(len, lists)) <= 1_024
    assert np.array_equal(np.sort(rows), np.arange(500, 20_000))
    assert np.array_equal(rows, np.concatenate(list(build.batches(vectors, 500, 1_024))))
    assert _nearness(vectors[rows]) > 0.5 > _nearness(vectors) + 0.3


def test_an_empty_graph_begins_with_rows_as_they_came() -> None:
    vectors = _topics(6)
    assert [list(part) for part in build.batches(vectors, 0, 4)] == [[0, 1, 2, 3], [4, 5]]
    assert [list(part) for part in build.batches(vectors, 5, 4)] == [[5]]
    assert list(build.batches(vectors, 6, 4)) == []
