"""A search is handed to another thread unless an import has the few cores there are."""

from __future__ import annotations

import importlib
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from vector_world import PLAIN, everything, stored, unit

from memxd.index.vector import VectorIndex

D, ROWS = 16, 64


def taken_over(index: VectorIndex, query: np.ndarray, patience: float) -> bool:
    """Whether another thread takes the search, once one waits for work."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        probe = index.begin(query, everything(ROWS), 5)
        if probe is not None:
            assert len(index.finish(probe).rids) == 5
            return True
        time.sleep(0.001)
    return False


def test_an_import_keeps_few_cores_for_itself_and_for_the_one_who_asks(tmp_path: Path) -> None:
    dot = importlib.import_module("memxd._fast._dot")
    vectors = unit(np.random.default_rng(3).standard_normal((ROWS, D)))
    changes = [stored(n + 1, n, vectors[n : n + 1]) for n in range(ROWS)]
    for cores, kept in ((2, True), (8, False)):
        tuning = replace(PLAIN, cores=cores, worth=1)
        index = VectorIndex.open(tmp_path / str(cores), model_id="m", dimension=D, dot=dot, tuning=tuning)
        for change in changes[:16]:
            index.apply(change)  # one by one: no import
        assert taken_over(index, vectors[0], 30.0)
        index.apply_all(changes[16:])
        assert taken_over(index, vectors[0], 0.2) != kept
        index._bulk_until = 0.0  # a second later
        assert taken_over(index, vectors[0], 30.0)
        index.close()
