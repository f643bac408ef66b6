"""How long does one kernel call take that ranks every record of a store, and one that ranks 1,000 candidates?

Owns the comparison with NumPy (``numpy_rank``) and with the plain Python twin on the same seeded rows. In one call: RRF
of both legs, recency, frequency, importance, weights, z-score, sigmoid, the best 30, repetitions folded; over all
records, and over 1,000 that lie anywhere in columns as long as the store. Beside it what a search asks of 1,000
candidates, which is more: every one judged with place of the cosine, word match and relevance, in order, its evidence
kept for the explanation. There seven reads of memory a row, far apart, cost more than the arithmetic. Every time is the
whole call from Python. Needs no store. Asked by ``runner``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from memxd._fast import load_kernels
from memxd._fast.protocols import LegRanking, RankColumns, RankKernel, RankLegs, RankRules, ScopeRanking
from memxd.bench import numpy_rank
from memxd.bench.context import Bench
from memxd.bench.measure import Budget, Measurement, Result, Timed, alternate, timed
from memxd.bench.numpy_rank import Int32
from memxd.model import DAY

_NAME = "rerank"
_K = 30
_CANDIDATES = 1_000
_NOW = 1_767_225_600_000_000
#: How many rows a leg brings when the whole scope is ranked.
_LEG = 100
#: The twin's time grows with the rows; beyond this it says nothing new.
_TWIN_LIMIT = 250_000
_WHOLE = RankRules(
    fusion=2, vector_asked=True, keyword_asked=True, rrf_k=60, vector_weight=1.0, keyword_weight=1.0,
    weights=(0.45, 0.25, 0.05, 0.10), now=_NOW, half_life=30 * DAY, normalise=True, dedup=4,
    band=(0.78, 0.92), shifts=(0.0, 0.0, 0.035), word_share=0.75, relevance=(-3.2, 4.2, 2.6),
)  # fmt: skip
_LEGS = _WHOLE._replace(fusion=1, weights=(0.84, 0.05, 0.01, 0.10), vector_weight=0.6, keyword_weight=0.4)


@dataclass(frozen=True, slots=True)
class Rows:
    """Records 0..n-1: rids (int32, ascending), what ranking reads of each, and the rids of two legs, best first."""

    rids: Int32
    columns: RankColumns
    vector: Int32
    keyword: Int32


def run(bench: Bench) -> Result:
    """All records of each size, then 1,000 candidates by the same call, then as a search asks for them."""
    measurements: list[Measurement] = []
    budgets: list[Budget] = []
    everything: dict[str, Timed] = {}
    for size in bench.sizes:
        found = _everything(bench, make_rows(bench.rng(11, size), size))
        measurements += [Measurement.of(_NAME, "rank all records", size, who, t, "ms") for who, t in found.items()]
        if size == bench.main:
            everything = found
            budgets.append(_budget(bench, "rank all records in one call", size, found, 1.0, "ms"))
    size = bench.main
    rows = make_rows(bench.rng(12), size)
    found = _few(bench, rows)
    stage = f"rank {_CANDIDATES:,} candidates in one call"
    measurements += [Measurement.of(_NAME, stage, size, who, t, "us") for who, t in found.items()]
    budgets.append(_budget(bench, stage, size, found, 20.0, "us"))
    found = _candidates(bench, rows)
    stage = f"judge {_CANDIDATES:,} candidates of a search"
    measurements += [Measurement.of(_NAME, stage, size, who, t, "us") for who, t in found.items()]
    notes = [_sentence(size, everything)] if everything else []
    notes.append(f"best {_K}; the twin is plain Python, the oracle of the kernel: equal bit for bit")
    return Result(tuple(measurements), tuple(budgets), tuple(notes))


def make_rows(rng: np.random.Generator, n: int) -> Rows:
    """``n`` records: ages up to two years, few retrievals, fifty repetitions, two legs that share half their rows."""
    order = rng.permutation(n).astype(np.int32)
    leg = min(_LEG, n // 2)
    content, folded = (rng.integers(1, 1 << 63, n, np.uint64) for _ in range(2))
    for hashes in (content, folded):
        hashes[:: max(1, n // 50)] = hashes[0]
    columns = RankColumns(
        reference=(_NOW - rng.integers(0, 730 * DAY, n)).astype(np.int64),
        retrieval=(rng.geometric(0.5, n) - 1).astype(np.uint32),
        access=(rng.geometric(0.3, n) - 1).astype(np.uint32),
        importance=rng.random(n, np.float32),
        type=rng.integers(1, 4, n).astype(np.uint8),
        cjk=(rng.random(n) < 0.1).astype(np.uint8) * np.uint8(2),
        content_hash=content,
        fold_hash=folded,
        tag_hash=np.zeros(n, np.uint64),
    )
    return Rows(np.arange(n, dtype=np.int32), columns, order[:leg].copy(), order[leg // 2 : leg // 2 + leg].copy())


def make_legs(rng: np.random.Generator, rows: Rows, candidates: int) -> RankLegs:
    """``candidates`` rows in all, a fifth of them in both legs, with plausible cosines, BM25 and word matches."""
    chosen = rng.permutation(len(rows.rids))[:candidates].astype(np.int32)
    a, b = chosen[: len(chosen) * 6 // 10].copy(), chosen[len(chosen) * 4 // 10 :].copy()
    cosine = np.clip(rng.normal(0.84, 0.04, len(rows.rids)), 0.6, 1.0)
    bm25, match = rng.gamma(2.0, 3.0, len(rows.rids)), rng.beta(2.0, 3.0, len(rows.rids))
    a, b = a[np.lexsort((a, -cosine[a]))], b[np.lexsort((b, -bm25[b]))]
    return RankLegs(a, cosine[a], bm25[a], match[a], b, cosine[b], bm25[b], match[b])


def whole_scope(kernel: RankKernel, rows: Rows) -> ScopeRanking:
    """One call over all rows."""
    return kernel.rank_all(rows.rids, rows.vector, rows.keyword, rows.columns, _WHOLE, _K)


def both_legs(kernel: RankKernel, rows: Rows, legs: RankLegs) -> LegRanking:
    """One call over the candidates."""
    return kernel.rank_legs(legs, rows.columns, _LEGS)


def numpy_scope(rows: Rows) -> tuple[Int32, numpy_rank.Float64, numpy_rank.Float64]:
    """The same in NumPy."""
    return numpy_rank.rank_all(rows.vector, rows.keyword, rows.columns, _WHOLE, _K)


def numpy_few(rows: Rows) -> tuple[Int32, numpy_rank.Float64, numpy_rank.Float64]:
    """The same in NumPy for rows that lie anywhere in the columns."""
    gathered: list[Any] = [column[rows.rids] for column in rows.columns]
    few = RankColumns(*gathered)
    vector, keyword = (np.searchsorted(rows.rids, leg).astype(np.int32) for leg in (rows.vector, rows.keyword))
    best, z, score = numpy_rank.rank_all(vector, keyword, few, _WHOLE, _K)
    return rows.rids[best], z, score


def numpy_legs(rows: Rows, legs: RankLegs) -> tuple[Int32, numpy_rank.Float64, numpy_rank.Float64]:
    """The same in NumPy."""
    return numpy_rank.rank_legs(legs, rows.columns, _LEGS)


def _sentence(size: int, found: dict[str, Timed]) -> str:
    """What reranking every record takes, by whom; "sub-millisecond" only where it was."""
    told = ", ".join(f"{who} {t.p50 * 1e3:,.3g} ms" for who, t in found.items() if who != "memxd")
    ours = found["memxd"].p50 * 1e3
    return (
        f"rerank across {size:,} records in {ours:.3g} ms{', sub-millisecond' if ours < 1.0 else ''}: one kernel call, "
        f"against {told} (p50)"
    )


def _everything(bench: Bench, rows: Rows) -> dict[str, Timed]:
    """One call over every row, by each variant; that they agree is looked at first."""
    kernel, twin = bench.kernels.rank, load_kernels("py").rank
    ours = whole_scope(kernel, rows)
    if ours.ids[0][ours.kept][:_K].tolist() != numpy_scope(rows)[0].tolist():
        raise AssertionError("the kernel and NumPy rank differently")
    calls = {"memxd": lambda _: whole_scope(kernel, rows), "numpy": lambda _: numpy_scope(rows)}
    found = alternate(calls, range(bench.samples(300)))
    if len(rows.rids) <= _TWIN_LIMIT:
        found["python twin"] = timed(lambda: whole_scope(twin, rows), bench.samples(3, 1), warmup=0)
    return found


def _few(bench: Bench, rows: Rows) -> dict[str, Timed]:
    """The same call over 1,000 rows anywhere among the records, half of them brought by a leg."""
    chosen = bench.rng(14).permutation(len(rows.rids))[:_CANDIDATES].astype(np.int32)
    half = len(chosen) // 2
    few = Rows(np.sort(chosen), rows.columns, chosen[: half // 2].copy(), chosen[half // 4 : half].copy())
    kernel, twin = bench.kernels.rank, load_kernels("py").rank
    ours = whole_scope(kernel, few)
    if ours.ids[0][ours.kept][:_K].tolist() != numpy_few(few)[0].tolist():
        raise AssertionError("the kernel and NumPy rank differently")
    found = {"memxd": timed(lambda: whole_scope(kernel, few), bench.samples(2_000, 50))}
    found["numpy"] = timed(lambda: numpy_few(few), bench.samples(2_000, 50))
    found["python twin"] = timed(lambda: whole_scope(twin, few), bench.samples(20, 2), warmup=0)
    return found


def _candidates(bench: Bench, rows: Rows) -> dict[str, Timed]:
    legs = make_legs(bench.rng(13), rows, min(_CANDIDATES, len(rows.rids)))
    kernel, twin = bench.kernels.rank, load_kernels("py").rank
    ours = both_legs(kernel, rows, legs)
    if ours.ids[0][ours.kept].tolist() != numpy_legs(rows, legs)[0].tolist():
        raise AssertionError("the kernel and NumPy rank differently")
    calls = {"memxd": lambda _: both_legs(kernel, rows, legs), "numpy": lambda _: numpy_legs(rows, legs)}
    found = alternate(calls, range(bench.samples(2_000, 50)))
    found["python twin"] = timed(lambda: both_legs(twin, rows, legs), bench.samples(20, 2), warmup=0)
    return found


def _budget(
    bench: Bench, name: str, size: int, found: dict[str, Timed], allowed: float, unit: Literal["ms", "us"]
) -> Budget:
    ours, peer = (found[who].p50 * (1e3 if unit == "ms" else 1e6) for who in ("memxd", "numpy"))
    judged = bench.judged(size)
    return Budget(_NAME, name, size, ours, allowed, unit, peer="numpy", peer_figure=peer, judged=judged)
