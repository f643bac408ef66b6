"""What the ranking kernels refuse at their entry, large inputs, and that long runs let other threads work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from memxd._fast import Kernels

I32 = np.zeros(3, np.int32)
F64 = np.zeros(3)
U8, U32, U64 = np.zeros(3, np.uint8), np.zeros(3, np.uint32), np.zeros(3, np.uint64)
I64, F32 = np.zeros(3, np.int64), np.zeros(3, np.float32)
W = (0.45, 0.25, 0.05, 0.1)
COLUMNS = (I64, U32, U32, F32)

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
    "rank_all: semantic shorter": lambda r: r.rank_all(U8, F64[:2], *COLUMNS, 0, 1, W, 3),
    "rank_all: column shorter": lambda r: r.rank_all(U8, None, I64[:2], U32, U32, F32, 0, 1, W, 3),
    "rank_all: negative k": lambda r: r.rank_all(U8, None, *COLUMNS, 0, 1, W, -1),
    "rank_all: half-life 0": lambda r: r.rank_all(U8, None, *COLUMNS, 0, 0, W, 1),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
def test_bad_arguments_are_refused(kernels: Kernels, call: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (numpy and Cython word it differently)
        call(kernels.rank)


def test_what_is_no_array_is_refused(kernels: Kernels) -> None:
    with pytest.raises(TypeError):
        kernels.rank.normalise([0.5])  # type: ignore[arg-type]


def _columns(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(7)
    return (
        rng.integers(1_600_000_000_000_000, 1_760_000_000_000_000, n),
        rng.integers(0, 50, n).astype(np.uint32) * (rng.random(n) < 0.5).astype(np.uint32),
        rng.integers(0, 30_000, n).astype(np.uint32),
        rng.random(n).astype(np.float32),
    )


@pytest.mark.parametrize("n", [511, 512, 513, 4_096, 4_097, 20_000])
def test_large_inputs_equal_the_twin(compiled: Kernels, twins: Kernels, n: int) -> None:
    rng = np.random.default_rng(n)
    mask = (rng.random(n) < 0.9).astype(np.uint8)
    args = (mask, rng.random(n), *_columns(n), 1_760_000_000_000_000, 30 * 86_400_000_000, W, 50)
    for got, want in zip(compiled.rank.rank_all(*args), twins.rank.rank_all(*args), strict=True):
        np.testing.assert_array_equal(got, want)


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
    args = (np.ones(n, np.uint8), None, *_columns(n), 1_760_000_000_000_000, 86_400_000_000, W, 10)
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
    args = (np.ones(n, np.uint8), None, *_columns(n), 1_760_000_000_000_000, 86_400_000_000, W, 20)
    want = compiled.rank.rank_all(*args)[0].tolist()
    answers: list[list[int]] = []

    def run() -> None:
        answers.extend(compiled.rank.rank_all(*args)[0].tolist() for _ in range(5))

    threads = [threading.Thread(target=run, name=f"rank-{i}") for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [want] * 40
