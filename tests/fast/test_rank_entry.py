"""What the ranking kernels refuse at their entry, large inputs, and that long runs let other threads work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rank_world import make_columns, make_legs, make_rules

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
    "rank_all: unknown fusion": lambda r: r.rank_all(SOME, NONE, NONE, ALL, RULES._replace(fusion=0), 3),
    "rank_all: rids of 64 bit": lambda r: r.rank_all(I64, NONE, NONE, ALL, RULES, 3),
    "rank_all: a leg of floats": lambda r: r.rank_all(SOME, F32, NONE, ALL, RULES, 3),
    "rank_all: a leg of two dimensions": lambda r: r.rank_all(SOME, NONE, SOME.reshape(1, 3), ALL, RULES, 3),
    "rank_all: rids not contiguous": lambda r: r.rank_all(np.arange(6, dtype=np.int32)[::2], NONE, NONE, ALL, RULES, 3),
    "rank_legs: rid beyond the columns": lambda r: r.rank_legs(
        LEGS._replace(keyword_rids=SOME + np.int32(1)), ALL, RULES
    ),
    "rank_legs: negative rid": lambda r: r.rank_legs(LEGS._replace(vector_rids=SOME - np.int32(1)), ALL, RULES),
    "rank_legs: lengths differ": lambda r: r.rank_legs(LEGS._replace(keyword_match=F64[:2]), ALL, RULES),
    "rank_legs: one column shorter": lambda r: r.rank_legs(LEGS, ALL._replace(fold_hash=U64[:2]), RULES),
    "rank_legs: float32 cosines": lambda r: r.rank_legs(LEGS._replace(vector_cosines=F32), ALL, RULES),
    "rank_legs: not contiguous": lambda r: r.rank_legs(LEGS._replace(keyword_bm25=np.zeros(6)[::2]), ALL, RULES),
    "rank_legs: two dimensions": lambda r: r.rank_legs(LEGS._replace(keyword_bm25=np.zeros((3, 1))), ALL, RULES),
    "rank_legs: half-life 0": lambda r: r.rank_legs(LEGS, ALL, RULES._replace(half_life=0)),
    "rank_legs: negative rrf_k": lambda r: r.rank_legs(LEGS, ALL, RULES._replace(rrf_k=-1)),
    "rank_legs: unknown dedup": lambda r: r.rank_legs(LEGS, ALL, RULES._replace(dedup=5)),
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
        lambda r: r.rank_all([0], NONE, NONE, ALL, RULES, 1),
        lambda r: r.rank_all(SOME, None, NONE, ALL, RULES, 1),
        lambda r: r.rank_all(None, NONE, NONE, ALL, RULES, 1),
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


def test_inputs_that_nobody_may_write_to_are_taken(kernels: Kernels) -> None:
    columns, legs = make_columns(20), make_legs(20, 6, 5)
    rids = np.arange(20, dtype=np.int32)

    def ranked() -> list[Any]:
        some = kernels.rank.rank_legs(legs, columns, RULES)
        everything = kernels.rank.rank_all(rids, legs.vector_rids, legs.keyword_rids, columns, RULES, 2)
        return [np.asarray(part) for part in (*some, *everything)]

    before = ranked()
    for array in (rids, *columns, *(array for array in legs if array is not None)):
        array.flags.writeable = False
    for mine, other in zip(ranked(), before, strict=True):
        np.testing.assert_array_equal(mine, other)


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
