"""The parents' pipelines follow their published formulas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memxd.bench import bare
from memxd.bench.bare import add_all, empty_index
from memxd.bench.parents import MemexLike, MemXLike
from memxd.bench.truth import nearest
from memxd.index.vector.tuning import VectorTuning

DIMENSION = 16


def unit(rng: np.random.Generator, n: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """float32[n, 16] of length 1."""
    made = rng.standard_normal((n, DIMENSION)).astype(np.float32)
    scaled: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = made / np.linalg.norm(made, axis=1, keepdims=True)
    return scaled


@pytest.fixture
def memx(tmp_path: Path) -> MemXLike:
    vectors = unit(np.random.default_rng(1), 40)
    graph = empty_index(DIMENSION)
    add_all(graph, vectors, threads=1)
    return MemXLike(tmp_path, [f"note number{n} about tea" for n in range(40)], graph)


def test_memx_finds_by_meaning_and_by_all_words(memx: MemXLike) -> None:
    vectors = unit(np.random.default_rng(1), 40)
    assert memx.search("number7 tea", vectors[7])[0] == 7
    assert 9 in memx.search("number9 about", vectors[3])
    memx.close()


def test_memx_refuses_what_is_far_and_shares_no_word(memx: MemXLike) -> None:
    vectors = unit(np.random.default_rng(1), 40)
    away = -vectors.sum(axis=0)
    assert memx.search("quasar", away / np.linalg.norm(away)) == []
    memx.close()


def test_memex_weighs_cosine_and_age() -> None:
    vector = unit(np.random.default_rng(2), 1)
    same = np.repeat(vector, 90, axis=0)
    assert MemexLike(same).search(vector[0], 10) == list(range(10))  # equal cosines: the newest first


def test_nearest_counts_only_what_passes() -> None:
    rng = np.random.default_rng(3)
    vectors, queries = unit(rng, 50).astype(np.float16), unit(rng, 4)
    passing = np.arange(50) % 10 == 0
    scores = queries @ vectors.astype(np.float32).T
    expected = -np.sort(-np.where(passing, scores, -np.inf), axis=1)[:, :7]
    found = nearest(vectors, queries, 7, passing)
    assert np.isneginf(found[:, 5:]).all()
    np.testing.assert_allclose(found[:, :5], expected[:, :5], atol=1e-6)


def test_the_bare_graph_is_built_as_memxds_own() -> None:
    tuning = VectorTuning()
    assert (tuning.connectivity, tuning.expansion_add) == (bare.CONNECTIVITY, bare.EXPANSION_ADD)
    assert tuning.near == bare.EXPANSION_SEARCH
