"""Many callers at once: what 1, 4, 16 and 64 clients get done, and what happens when there are too many.

Closed loop: each client sends its next call when the last one is answered. Mixed is 75 % search and 25 % store, no
question asked twice, so that every search embeds; cached asks the same 64 questions over and over. Up to 16 clients are
a process each, 64 are 16 processes of 4 threads. The published figure beside it is the memex service's: 113 requests a
second of 75/25 on four cores, p50 110 ms a search and 160 ms a write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memxd.bench.client_process import Load
from memxd.bench.load import Floats, Seen, put_load
from memxd.bench.measure import Budget, Measurement, Result
from memxd.bench.served import Served, serve

if TYPE_CHECKING:
    from memxd.bench.context import Bench

NAME = "concurrency"
CLIENTS, CLIENTS_QUICK = (1, 4, 16, 64), (1, 16)
#: Client processes at most; starting one costs a share of a second.
PROCESSES, PROCESSES_QUICK = 16, 4
#: memex's published load test: requests a second on four cores, and medians in ms.
MEMEX_RATE, MEMEX_SEARCH_MS, MEMEX_STORE_MS = 113.0, 110.0, 160.0
PUBLISHED: dict[str, list[list[float]]] = {"memex, published, 4 cores": [[50, MEMEX_RATE]]}
MIXED_RATE, CACHED_RATE = 226.0, 600.0
STORE_SHARE = 0.25
#: The overload: so few places for so many clients.
PENDING, CROWD = 8, 64


@dataclass(frozen=True, slots=True)
class _Run:
    """One load and what the daemon spent on it."""

    seen: Seen
    daemon_cpu: float


def run(bench: Bench) -> Result:
    """Ask at the size that budgets are about, on a copy that may be written to."""
    size = bench.main
    texts = bench.questions(bench.samples(20_000, 2_000), size)
    seconds = 1.0 if bench.quick else 10.0
    rows: list[Measurement] = []
    budgets: list[Budget] = []
    curve: dict[str, list[list[float]]] = {"memxd, 75/25, embedded": [], "memxd, cached": []}
    with bench.copy(size) as store:
        with serve(bench, store.folder) as served:
            for clients in CLIENTS_QUICK if bench.quick else CLIENTS:
                budgets += _one_crowd(bench, served, texts, clients, seconds, size, rows, curve)
        with serve(bench, store.folder, "--max-pending", str(PENDING), "--workers", "2") as served:
            budgets += _overload(bench, served, texts, 2 * seconds, size, rows)
    notes = (
        f"memex's published figures, on four cores: {MEMEX_RATE:g} requests/s (75/25), p50 {MEMEX_SEARCH_MS:g} ms a "
        f"search and {MEMEX_STORE_MS:g} ms a write; not measured here",
        "clients: one process each up to 16; 64 are 16 processes with 4 threads; they share the machine's cores with "
        "the daemon",
    )
    return Result(tuple(rows), tuple(budgets), notes, curves={"clients": curve | PUBLISHED})


def _one_crowd(
    bench: Bench,
    served: Served,
    texts: list[str],
    clients: int,
    seconds: float,
    size: int,
    rows: list[Measurement],
    curve: dict[str, list[list[float]]],
) -> list[Budget]:
    mixed = _load(served, texts, Load(clients, seconds, STORE_SHARE, seed=clients, processes=_processes(bench)))
    cached = _load(served, texts, Load(clients, seconds, distinct=False, seed=clients, processes=_processes(bench)))
    rows += [
        _latency("mixed: search", size, clients, mixed.seen.search_ms),
        _latency("mixed: store", size, clients, mixed.seen.store_ms),
        _rate("mixed: calls", size, clients, mixed),
        _latency("cached: search", size, clients, cached.seen.search_ms),
        _rate("cached: calls", size, clients, cached),
    ]
    for line, run in zip(curve.values(), (mixed, cached), strict=True):
        line.append([clients, run.seen.rate])
    judged = bench.judged(size)
    if clients != 16:
        return []
    return [
        Budget(
            NAME, "16 clients, 75 % search / 25 % store, every question embedded", size, mixed.seen.rate, MIXED_RATE,
            "1/s", at_least=True, peer="memex, published, 4 cores", peer_figure=MEMEX_RATE, judged=judged,
        ),
        Budget(
            NAME, "16 clients, cached questions", size, cached.seen.rate, CACHED_RATE, "1/s", at_least=True,
            judged=judged,
        ),
    ]  # fmt: skip


def _processes(bench: Bench) -> int:
    return PROCESSES_QUICK if bench.quick else PROCESSES


def _load(served: Served, texts: list[str], load: Load) -> _Run:
    before = served.cpu_seconds()
    seen = put_load(served, texts, load)
    if seen.failures:
        raise RuntimeError(f"{len(seen.failures)} calls failed, such as: {seen.failures[0]}")
    return _Run(seen, served.cpu_seconds() - before)


def _latency(stage: str, size: int, clients: int, ms: Floats, **extra: float) -> Measurement:
    return Measurement.of(NAME, stage, size, f"memxd, {clients} clients", ms / 1e3, "ms", clients=clients, **extra)


def _rate(stage: str, size: int, clients: int, run: _Run) -> Measurement:
    calls = max(1, len(run.seen.searches) + len(run.seen.stores))
    return Measurement.one(
        NAME, stage, size, f"memxd, {clients} clients", run.seen.rate, "1/s", clients=clients,
        refusals=len(run.seen.refusals), daemon_cpu_ms_per_call=run.daemon_cpu / calls * 1e3,
        daemon_cores=run.daemon_cpu / run.seen.seconds,
    )  # fmt: skip


def _overload(
    bench: Bench, served: Served, texts: list[str], seconds: float, size: int, rows: list[Measurement]
) -> list[Budget]:
    """More clients than places: the surplus is refused at once, and those inside are served as fast as before."""
    part = len(texts) // 10  # what the first load asked is cached: the second would begin with it, and embed later
    fits = _load(served, texts[:part], Load(PENDING, seconds / 2, seed=1, processes=_processes(bench))).seen
    crowd = Load(CROWD, seconds, pause=0.25, seed=2, processes=_processes(bench))
    seen = _load(served, texts[part:], crowd).seen
    if not len(seen.refusals):
        raise RuntimeError(f"{CROWD} clients at {PENDING} places, and nobody was refused")
    first, last = _third(seen.searches, seconds, 0), _third(seen.searches, seconds, 2)
    rows += [
        _latency("overload: refusal", size, CROWD, seen.refusals[:, 1], places=PENDING),
        _latency("overload: served", size, CROWD, seen.search_ms, places=PENDING),
        _latency("as many as fit: served", size, PENDING, fits.search_ms, places=PENDING),
    ]
    judged = bench.judged(size)
    return [
        Budget(
            NAME, "overload: a refusal (RESOURCE_EXHAUSTED), p50 against an answer's", size,
            float(np.median(seen.refusals[:, 1])), float(np.median(seen.search_ms)), "ms", judged=judged,
            note=f"{CROWD} clients at {PENDING} places, {len(seen.refusals)} refusals, {len(seen.searches)} answers",
        ),
        Budget(
            NAME, "overload: latency of the last third against the first", size, last, 1.5 * first, "ms",
            judged=judged, note="p50; a growing queue would show here",
        ),
    ]  # fmt: skip


def _third(calls: Floats, seconds: float, number: int) -> float:
    """The median latency (ms) of one third of the time; infinite when nothing was answered in it."""
    at = calls[:, 0]
    part = calls[(at >= seconds * number / 3) & (at < seconds * (number + 1) / 3), 1]
    return float(np.median(part)) if len(part) else float("inf")
