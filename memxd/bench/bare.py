"""Bare USearch over the stores' vectors: the graph without memxd around it, for peers and for rates.

Owns building it with the parameters that memxd's own vector index uses (f16, cosine, and its connectivity and beam
widths), on two threads, and keeping the file beside the stores. Called by the questions about vectors, writing and the
parents.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memxd.native import Index

if TYPE_CHECKING:
    from memxd.bench.context import Bench

#: As the budget says: bare USearch with both cores.
THREADS = 2
_BATCH = 10_000
#: M and the beam when building: memxd's own. The beam when searching: what memxd's first look keeps.
CONNECTIVITY, EXPANSION_ADD, EXPANSION_SEARCH = 16, 128, 192


@dataclass(frozen=True, slots=True)
class Bare:
    """A graph of the first ``size`` vectors, key = row, opened as a view. ``seconds``: what building it took."""

    index: Index
    path: Path
    size: int
    seconds: float


def empty_index(dimension: int, search_width: int = EXPANSION_SEARCH) -> Index:
    """An index with memxd's own parameters. ``search_width``: ef, the beam when searching."""
    return Index(
        ndim=dimension,
        metric="cos",
        dtype="f16",
        connectivity=CONNECTIVITY,
        expansion_add=EXPANSION_ADD,
        expansion_search=search_width,
    )


def add_all(index: Index, vectors: NDArray[np.float32], first: int = 0, threads: int = THREADS) -> float:
    """Add float32[n, d] under the keys ``first`` and on; the seconds it took."""
    began = time.perf_counter()
    try:
        index.add(np.arange(first, first + len(vectors), dtype=np.uint64), vectors, copy=True, threads=threads)
    except RuntimeError as error:
        if "terminated" in str(error):  # what USearch makes of Ctrl-C
            raise KeyboardInterrupt from error
        raise
    return time.perf_counter() - began


def bare_graph(bench: Bench, size: int) -> Bare:
    """The graph of a store of ``size`` records, found in the run's folder or built into it."""
    generator = bench.vectors
    recipe = f"{generator.recipe} {size} {CONNECTIVITY} {EXPANSION_ADD}"
    name = f"usearch-{size}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    path, told = bench.options.work / name, bench.options.work / f"{name}.json"
    if not told.is_file():
        seconds = _build(bench, size, path)
        told.write_text(json.dumps({"recipe": recipe, "seconds": seconds}), encoding="utf-8")
    index = empty_index(generator.dimension)
    index.view(str(path))
    return Bare(index, path, size, float(json.loads(told.read_text(encoding="utf-8"))["seconds"]))


def _build(bench: Bench, size: int, path: Path) -> float:
    generator = bench.vectors
    index, seconds = empty_index(generator.dimension), 0.0
    with bench.progress.work(f"building a bare USearch graph of {size:,} vectors", size) as step:
        for first in range(0, size, _BATCH):
            vectors, _ = generator.rows(first, min(first + _BATCH, size))
            seconds += add_all(index, vectors, first)
            step(first + len(vectors))
    half = path.with_suffix(".part")
    index.save(str(half))
    os.replace(half, path)
    return seconds


def hnswlib_graph(bench: Bench, size: int) -> Any:
    """hnswlib's graph of the same vectors (float32, cosine, the same M and beam), found or built.

    Raises ImportError when it is not installed.
    """
    import hnswlib

    generator = bench.vectors
    recipe = f"{generator.recipe} {size} {CONNECTIVITY} {EXPANSION_ADD}"
    path = bench.options.work / f"hnswlib-{size}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    index = hnswlib.Index(space="cosine", dim=generator.dimension)
    if path.is_file():
        index.load_index(str(path), max_elements=size)
        return index
    index.init_index(size, M=CONNECTIVITY, ef_construction=EXPANSION_ADD, random_seed=7)
    with bench.progress.work(f"building a graph of hnswlib of {size:,} vectors", size) as step:
        for first in range(0, size, _BATCH):
            vectors, _ = generator.rows(first, min(first + _BATCH, size))
            index.add_items(vectors, np.arange(first, first + len(vectors)), num_threads=THREADS)
            step(first + len(vectors))
    half = path.with_suffix(".part")
    index.save_index(str(half))
    os.replace(half, path)
    return index
