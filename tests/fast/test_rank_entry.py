"""What the ranking kernels refuse at their entry, large inputs, and that long runs let other threads work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rank_world import make_columns, make_rules

from memxd._fast import Kernels
from memxd._fast.protocols import RankColumns, RankLegs

I32 = np.zeros(3, np.int32)
F64 = np.zeros(3)
U8, U32, U64 = np.zeros(3, np.uint8), np.zeros(3, np.uint32), np.zeros(3, np.uint64)
I64, F32 = np.zeros(3, np.int64), np.zeros(3, np.float32)
W = (0.45, 0.25, 0.05, 0.1)
COLUMNS = (I64, U32, U32, F32)
ALL = RankColumns(*COLUMNS, U8, U8, U64, U64, U64)
SOME, NONE = np.arange(3, dtype=np.int32), np.empty(0, np.int32)
LEGS = RankLegs(SOME, F64, None, None, SOME, None, F64, F64)
RULES = make_rules()

REFUSED: dict[str, Callable[[Any], Any]] = {
    "fuse_rrf: wrong dtype": lambda r: r.fuse_rrf(I64, I32, 60, 1.0, 1.0),
    "fuse_rrf: negative k": lambda r: r.fuse_rrf(I32, I32, -1, 1.0, 1.0),
    "factors: rid beyond the columns": lambda r: r.factors(np.array([3], np.int32), *COLUMNS, 0, 1),
    "factors: negative rid": lambda r: r.factors(np.array([-1], np.int32), *COLUMNS, 0, 1),
    "factors: one column shorter": lambda r: r.factors(I32 + np.int32(2), I64, U32[:2], U32, F32, 0, 1),
    "factors: half-life 0": lambda r: r.factors(I32, *COLUMNS, 0, 0),
    "combine: lengths differ": lambda r: r.combine(F64, F64, F64[:2], F64, W),
    "combine: three weights": lambda r: r.combine(F64, F64, F64, F64, W[:3]),
    "normalise: not contiguous": lambda r: r.normalise(np.zeros(6)[::2]),
    "normalise: two dimensions": lambda r: r.normalise(np.zeros((2, 2))),
    "normalise: float32": lambda r: r.normalise(F32),
    "top_k: lengths differ": lambda r: r.top_k(F64, I32[:2], 1),
    "top_k: negative k": lambda r: r.top_k(F64, I32, -1),
    "dedup: position out of range": lambda r: r.dedup(np.array([3], np.int32), I32, U8, U64, U64, U64, 2, 5),
    "dedup: negative position": lambda r: r.dedup(np.array([-1], np.int32), I32, U8, U64, U64, U64, 2, 5),
    "dedup: unknown mode": lambda r: r.dedup(I32, I32, U8, U64, U64, U64, 5, 5),
    "dedup: negative limit": lambda r: r.dedup(I32, I32, U8, U64, U64, U64, 2, -1),
    "dedup: lengths differ": lambda r: r.dedup(I32, I32, U8, U64, U64, U64[:2], 2, 5),
    "rank_all: rids not ascending": lambda r: r.rank_all(np.array([1, 0], np.int32), NONE, NONE, ALL, RULES, 3),
    "rank_all: a rid twice": lambda r: r.rank_all(np.array([0, 1, 1], np.int32), NONE, NONE, ALL, RULES, 3),
    "rank_all: negative rid": lambda r: r.rank_all(np.array([-1, 0], np.int32), NONE, NONE, ALL, RULES, 3),
    "rank_all: rid beyond the columns": lambda r: r.rank_all(np.array([0, 3], np.int32), NONE, NONE, ALL, RULES, 3),
    "rank_all: one column shorter": lambda r: r.rank_all(SOME, NONE, NONE, ALL._replace(tag_hash=U64[:2]), RULES, 3),
    "rank_all: wrong dtype": lambda r: r.rank_all(SOME, NONE, NONE, ALL._replace(cjk=I32), RULES, 3),
    "rank_all: negative k": lambda r: r.rank_all(SOME, NONE, NONE, ALL, RULES, -1),
    "rank_all: half-life 0": lambda r: r.rank_all(SOME, NONE, NONE, ALL, RULES._replace(half_life=0), 3),
    "rank_all: unknown dedup": lambda r: r.rank_all(SOME, NONE, NONE, ALL, RULES._replace(dedup=0), 3),
    "rank_all: negative rrf_k": lambda r: r.rank_all(SOME, NONE, NONE, ALL, RULES._replace(rrf_k=-1), 3),
    "rank_legs: rid beyond the columns": lambda r: r.rank_legs(
        LEGS._replace(keyword_rids=SOME + np.int32(1)), ALL, RULES
    ),
    "rank_legs: negative rid": lambda r: r.rank_legs(LEGS._replace(vector_rids=SOME - np.int32(1)), ALL, RULES),
    "rank_legs: lengths differ": lambda r: r.rank_legs(LEGS._replace(keyword_match=F64[:2]), ALL, RULES),
    "rank_legs: one column shorter": lambda r: r.rank_legs(LEGS, ALL._replace(fold_hash=U64[:2]), RULES),
    "rank_legs: float32 cosines": lambda r: r.rank_legs(LEGS._replace(vector_cosines=F32), ALL, RULES),
    "rank_legs: unknown fusion": lambda r: r.rank_legs(LEGS, ALL, RULES._replace(fusion=4)),
    "rank_legs: three weights": lambda r: r.rank_legs(LEGS, ALL, RULES._replace(weights=W[:3])),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
def test_bad_arguments_are_refused(kernels: Kernels, call: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (numpy and Cython word it differently)
        call(kernels.rank)


@pytest.mark.parametrize(
    "call",
    [
        lambda r: r.normalise([0.5]),
        lambda r: r.rank_all([0], NONE, NONE, ALL, RULES, 1),
        lambda r: r.rank_all(SOME, NONE, NONE, ALL._replace(reference=None), RULES, 1),
        lambda r: r.rank_legs(LEGS._replace(vector_rids=None), ALL, RULES),
        lambda r: r.rank_legs(LEGS._replace(vector_cosines=None), ALL, RULES),
        lambda r: r.rank_legs(LEGS._replace(keyword_bm25=None), ALL, RULES),
        lambda r: r.rank_legs(LEGS, ALL._replace(tag_hash=None), RULES),
    ],
)
def test_what_is_no_array_is_refused(kernels: Kernels, call: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError):
        call(kernels.rank)


def test_inputs_are_left_alone(kernels: Kernels) -> None:
    raw = np.array([0.3, np.nan, np.inf, 0.1])
    raw.flags.writeable = False
    rids = np.array([4, 2, 3, 1], np.int32)
    rids.flags.writeable = False
    kernels.rank.normalise(raw)
    kernels.rank.top_k(raw, rids, 2)
    kernels.rank.fuse_rrf(rids, rids, 60, 1.0, 1.0)
    assert rids.tolist() == [4, 2, 3, 1]


def test_long_runs_let_other_threads_work(compiled: Kernels) -> None:
    """With the GIL held, this thread could not take one step between the middle and the end of a call."""
    n = 3_000_000
    args = (np.arange(n, dtype=np.int32), NONE, NONE, make_columns(n), RULES, 10)
    calls: list[tuple[float, float]] = []
    finished = threading.Event()

    def run() -> None:
        for _ in range(20):
            start = time.perf_counter()
            compiled.rank.rank_all(*args)
            calls.append((start, time.perf_counter()))
        finished.set()

    worker = threading.Thread(target=run, name="rank-all")
    worker.start()
    steps: list[float] = []
    while not finished.is_set():
        steps.append(time.perf_counter())
        time.sleep(0.0005)
    worker.join()
    inside = [s for s in steps for start, end in calls if start + 0.3 * (end - start) < s < end - 0.3 * (end - start)]
    assert inside


def test_many_threads_get_the_same_answer(compiled: Kernels) -> None:
    n = 50_000
    args = (np.arange(n, dtype=np.int32), NONE, NONE, make_columns(n), RULES, 20)
    want = compiled.rank.rank_all(*args).ids.tolist()
    answers: list[list[int]] = []

    def run() -> None:
        answers.extend(compiled.rank.rank_all(*args).ids.tolist() for _ in range(5))

    threads = [threading.Thread(target=run, name=f"rank-{i}") for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [want] * 40
