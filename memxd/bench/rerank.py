"""How long does one kernel call take that ranks every record of a store, and one that ranks 1,000 candidates?

Owns the comparison with NumPy (``numpy_rank``) and with the plain Python twin on the same seeded rows: ranks of two
legs fused, recency, frequency, importance, weights, z-score, sigmoid, the best 30. Needs no store. Asked by ``runner``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memxd._fast import load_kernels
from memxd._fast.protocols import RankKernel
from memxd.bench import numpy_rank
from memxd.bench.context import Bench
from memxd.bench.measure import Budget, Measurement, Result, Timed, alternate, timed
from memxd.bench.numpy_rank import Rows
from memxd.model import DAY

_K = 30
_CANDIDATES = 1_000
_HALF_LIFE = 30 * DAY
_WEIGHTS = (0.45, 0.25, 0.05, 0.10)
_NOW = 1_767_225_600_000_000
#: How many of a leg's rows carry a rank.
_LEG = 100


def run(bench: Bench) -> Result:
    """All records of each size, then 1,000 candidates."""
    measurements: list[Measurement] = []
    budgets: list[Budget] = []
    for size in bench.sizes:
        rows = make_rows(bench.rng(11, size), size)
        found = _everything(bench, rows)
        measurements += [_row("rank all records", size, name, times, "ms") for name, times in found.items()]
        if size == bench.main:
            budgets.append(_budget("rank all records in one call", bench.judged(size), size, found, 1.0, "ms"))
    size = bench.main
    rows = make_rows(bench.rng(12), size)
    found = _candidates(bench, rows)
    measurements += [_row(f"rank {_CANDIDATES:,} candidates", size, name, times, "us") for name, times in found.items()]
    judged = bench.judged(size)
    budgets.append(_budget(f"rank {_CANDIDATES:,} candidates", judged, size, found, 20.0, "us"))
    note = f"best {_K}; the twin is plain Python, the oracle of the kernel: equal bit for bit"
    return Result(tuple(measurements), tuple(budgets), (note,))


def make_rows(rng: np.random.Generator, n: int) -> Rows:
    """``n`` records: relevance from two ranked legs, ages up to two years, few retrievals, fifty repetitions."""
    order = rng.permutation(n).astype(np.int32)
    leg = min(_LEG, n // 2)
    fused = numpy_rank.rrf(order[:leg], order[leg // 2 : leg // 2 + leg], n, 60)
    hashes = rng.integers(1, 1 << 63, n, np.uint64)
    hashes[:: max(1, n // 50)] = hashes[0]
    return Rows(
        semantic=fused / (2.0 / 61.0),
        reference=(_NOW - rng.integers(0, 730 * DAY, n)).astype(np.int64),
        retrieval=rng.geometric(0.5, n).astype(np.uint32) - np.uint32(1),
        access=rng.geometric(0.3, n).astype(np.uint32) - np.uint32(1),
        importance=rng.random(n, np.float32),
        mask=np.ones(n, np.uint8),
        type=rng.integers(1, 4, n).astype(np.uint8),
        content_hash=hashes,
        fold_hash=hashes,
        tag_hash=np.zeros(n, np.uint64),
    )


def _everything(bench: Bench, rows: Rows) -> dict[str, Timed]:
    """One call over every row, by each variant; the answers are compared first."""
    n = len(rows.mask)
    kernel, twin = bench.kernels.rank, load_kernels("py").rank
    _check(rank_all(kernel, rows), numpy_rank.rerank(rows, _NOW, _HALF_LIFE, _WEIGHTS, _K))
    calls: dict[str, Callable[[int], object]] = {
        "memxd": lambda _: rank_all(kernel, rows),
        "numpy": lambda _: numpy_rank.rerank(rows, _NOW, _HALF_LIFE, _WEIGHTS, _K),
    }
    found = alternate(calls, range(bench.samples(300)))
    if n <= 250_000:  # beyond it the twin says nothing new
        found["python twin"] = timed(lambda: rank_all(twin, rows), 3 if not bench.quick else 1, warmup=0)
    return found


def rank_all(kernel: RankKernel, rows: Rows) -> tuple[Any, ...]:
    """(rids, raw, z, score, n): one kernel call over all rows."""
    return kernel.rank_all(
        rows.mask, rows.semantic, rows.reference, rows.retrieval, rows.access, rows.importance,
        _NOW, _HALF_LIFE, _WEIGHTS, _K,
    )  # fmt: skip


def _candidates(bench: Bench, rows: Rows) -> dict[str, Timed]:
    """1,000 candidates of two legs, fused, ranked and folded."""
    rng = bench.rng(13)
    n = len(rows.mask)
    few = min(_CANDIDATES, n)
    rids = np.sort(rng.permutation(n)[:few]).astype(np.int32)
    legs = rng.permutation(rids).astype(np.int32)
    vector, keyword = legs[: few * 6 // 10].copy(), legs[few * 4 // 10 :].copy()
    kernel, twin = bench.kernels.rank, load_kernels("py").rank
    found = alternate(
        {
            "memxd": lambda _: rank_candidates(kernel, rows, vector, keyword),
            "numpy": lambda _: _numpy_candidates(rows, vector, keyword),
        },
        range(bench.samples(2_000, 50)),
    )
    found["python twin"] = timed(lambda: rank_candidates(twin, rows, vector, keyword), bench.samples(20, 2), warmup=0)
    return found


def rank_candidates(kernel: RankKernel, rows: Rows, vector: NDArray[np.int32], keyword: NDArray[np.int32]) -> object:
    """What a search does with the two legs' rids."""
    rids, rrf, _, _ = kernel.fuse_rrf(vector, keyword, 60, 1.0, 1.0)
    semantic = rrf / (2.0 / 61.0)
    parts = kernel.factors(rids, rows.reference, rows.retrieval, rows.access, rows.importance, _NOW, _HALF_LIFE)
    raw = kernel.combine(semantic, *parts, _WEIGHTS)
    scores = kernel.normalise(raw)
    order = kernel.top_k(raw, rids, len(rids))
    folded = kernel.dedup(
        order, rids, rows.type[rids], rows.content_hash[rids], rows.fold_hash[rids], rows.tag_hash[rids], 4, _K
    )
    return scores, folded


def _numpy_candidates(rows: Rows, vector: NDArray[np.int32], keyword: NDArray[np.int32]) -> object:
    rids = np.union1d(vector, keyword)
    semantic = np.zeros(len(rids))
    for leg in (vector, keyword):
        semantic[np.searchsorted(rids, leg)] += 1.0 / (60 + np.arange(1, len(leg) + 1))
    few = rows.take(rids)
    few.semantic[:] = semantic / (2.0 / 61.0)
    best, z, score = numpy_rank.rerank(few, _NOW, _HALF_LIFE, _WEIGHTS, len(rids))
    return z, score, numpy_rank.fold(few, best)[:_K]


def _check(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> None:
    """Both rank alike; a bench of something else would be worth nothing."""
    if ours[0].tolist() != theirs[0].tolist() or not np.allclose(ours[3], theirs[2], rtol=1e-9):
        raise AssertionError("the kernel and NumPy rank differently")


def _row(stage: str, size: int, name: str, times: Timed, unit: Any) -> Measurement:
    return Measurement.of("rerank", stage, size, name, times, unit)


def _budget(name: str, judged: bool, size: int, found: dict[str, Timed], allowed: float, unit: Any) -> Budget:
    factor = 1e3 if unit == "ms" else 1e6
    ours, peer = found["memxd"].p50 * factor, found["numpy"].p50 * factor
    return Budget("rerank", name, size, ours, allowed, unit, peer="numpy", peer_figure=peer, judged=judged)
