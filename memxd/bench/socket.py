"""A search end to end: the real daemon as a process, its socket, one Python client, k = 10, explain off.

Owns the rows of the end-to-end budgets: the empty call as the floor, the question's vector cached, new words with the
caller's own vector, every hit explained, the question embedded (beside one embedding of the same run), four clients,
the first search after a start, and where the time goes. The peers are the parents' pipelines in process (``parents``).

The stores' vectors are drawn and the model's own are far from them: the graph's walk takes longer than it does for a
question of the same structure ("vector given"), and refusing is turned off, since all would be refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from memxd.bench.client_process import SHOW_ALL, Load
from memxd.bench.load import put_load
from memxd.bench.measure import IN_A_ROW, Budget, Measurement, Result, Timed, alternate, timed
from memxd.bench.parents import PUBLISHED, parents
from memxd.bench.served import Served, serve
from memxd.client import Client
from memxd.model import SearchAnswer

if TYPE_CHECKING:
    from memxd.bench.context import Bench

NAME = "socket"
#: Budgets in milliseconds.
CACHED_P50, CACHED_P99, FOUR_CLIENTS_P50 = 2.0, 6.0, 6.0
#: Beyond search and embedding: two measurements of different runs of a machine never agree better than this.
EMBEDDED_SLACK = 0.5
LARGE_FACTOR = 2.0
QUESTIONS = 64
CACHED, EMBEDDED, ALONE = "memxd, cached", "memxd, embedded", "one embedding"
#: Questions are about the first so many texts: making all texts of the largest store anew takes longer than asking.
AMONG = 50_000


class _Asking:
    """The calls that are timed, over one client."""

    def __init__(self, bench: Bench, client: Client, size: int, samples: int) -> None:
        self._client = client
        fresh, number = 3 * (samples + 8), bench.sizes.index(size)
        texts = bench.questions(QUESTIONS + (number + 1) * fresh, min(size, AMONG))
        self._texts = texts[:QUESTIONS]
        self._vectors = [tuple(v.tolist()) for v in bench.query_vectors(QUESTIONS)]
        self._model = bench.embedder.info.id
        # Seen by no cache: the embedder of this process has met those of the sizes before.
        self._fresh = iter(texts[QUESTIONS + number * fresh :])
        self._embedder = bench.embedder

    def warm(self) -> None:
        """Ask everything once; from then on every vector is cached. Raises RuntimeError when nothing is found."""
        for at in range(QUESTIONS):
            if not self.cached(at).hits or not self.given(at, self._texts[at]).hits:
                raise RuntimeError("a question found nothing: its time would mean nothing")

    def calls(self) -> dict[str, Callable[[int], object]]:
        """By variant; each takes the number of a question."""
        return {
            "empty call": lambda _: self._client.wait_ready(),
            CACHED: self.cached,
            "memxd, new words, vector given": lambda at: self.given(at, next(self._fresh)),
            "memxd, cached, explained": lambda at: self.cached(at, explain=True),
            EMBEDDED: lambda _: self._ask(next(self._fresh)),
            ALONE: lambda _: self._embedder.embed_query(next(self._fresh)),
        }

    def cached(self, at: int, *, explain: bool = False, timings: bool = False) -> SearchAnswer:
        """A question that was asked before."""
        return self._ask(self._texts[at % QUESTIONS], explain=explain, timings=timings)

    def given(self, at: int, text: str) -> SearchAnswer:
        """A question with a vector of the stores' structure brought along."""
        vector = self._vectors[at % QUESTIONS]
        return self._client.search(text, vector=vector, model_id=self._model, ranking=SHOW_ALL, record_retrieval=False)

    def _ask(self, text: str, *, explain: bool = False, timings: bool = False) -> SearchAnswer:
        return self._client.search(text, ranking=SHOW_ALL, explain=explain, timings=timings, record_retrieval=False)


def run(bench: Bench) -> Result:
    """Ask at every size."""
    rows: list[Measurement] = []
    budgets: list[Budget] = []
    medians: dict[int, float] = {}
    for size in bench.sizes:
        with serve(bench, bench.store(size).folder) as served, served.client() as client:
            times = _one_size(bench, served, client, size, rows)
        medians[size] = times[CACHED].p50 * 1e3
        budgets += _budgets(bench, size, times, rows[-1].p50)
    peers = _peers(bench, rows)
    budgets = [_beside(budget, peers) if budget.size == bench.main else budget for budget in budgets]
    if max(medians) > bench.main:
        budgets.append(_large(bench, medians))
    notes = tuple(f"{who}: {what} (not measured here)" for who, what in PUBLISHED.items())
    return Result(tuple(rows), tuple(budgets), notes)


def _one_size(bench: Bench, served: Served, client: Client, size: int, rows: list[Measurement]) -> dict[str, Timed]:
    n = bench.samples(1_000)
    asking = _Asking(bench, client, size, n)
    client.wait_ready()
    first = timed(lambda: asking.cached(0), 1, warmup=0)
    rows.append(Measurement.of(NAME, "first search after start", size, EMBEDDED, first, "ms"))
    asking.warm()
    before, cached_only = served.cpu_seconds(), bench.samples(200, 10)
    for at in range(cached_only):
        asking.cached(at)
    cpu = (served.cpu_seconds() - before) / cached_only * 1e3
    times = alternate(asking.calls(), range(n), run=IN_A_ROW)
    for variant, samples in times.items():
        extra = {"daemon_cpu_ms": cpu} if variant == CACHED else {}
        rows.append(Measurement.of(NAME, "search over the socket", size, variant, samples, "ms", **extra))
    _by_stage(asking, bench.samples(500), size, rows)
    load = Load(4, 1.0 if bench.quick else 8.0, distinct=False, repeated=QUESTIONS)
    seen = put_load(served, bench.questions(QUESTIONS, min(size, AMONG)), load)
    rows.append(
        Measurement.of(NAME, "search over the socket", size, "memxd, cached, 4 clients", seen.search_ms / 1e3, "ms")
    )
    return times


def _by_stage(asking: _Asking, n: int, size: int, rows: list[Measurement]) -> None:
    """How long each stage inside the daemon takes, and what is outside it: conversion, gRPC, the client."""
    found: dict[str, list[float]] = defaultdict(list)

    def ask(at: int) -> None:
        for stage, micros in asking.cached(at, timings=True).timings:
            found[stage].append(micros / 1e6)

    whole = alternate({"search": ask}, range(n), warmup=0)["search"]
    inside = np.array(found.pop("total"))
    found["wire and client"] = (whole.wall - inside).tolist()
    for stage, seconds in found.items():
        share = {"share_of": "cached search"}
        rows.append(Measurement.of(NAME, stage, size, CACHED, np.array(seconds), "ms", **share))


def _budgets(bench: Bench, size: int, times: dict[str, Timed], four_clients: float) -> list[Budget]:
    if size != bench.main:
        return []
    judged = bench.judged(size)
    cached = times[CACHED]
    embedded, alone = times[EMBEDDED].p50 * 1e3, times[ALONE].p50 * 1e3
    return [
        Budget(NAME, "search over the socket, cached, p50", size, cached.p50 * 1e3, CACHED_P50, "ms", judged=judged),
        Budget(
            NAME, "search over the socket, cached, p99", size, float(np.percentile(cached.wall, 99)) * 1e3, CACHED_P99,
            "ms", judged=judged,
        ),
        Budget(NAME, "the same, 4 clients, p50", size, four_clients, FOUR_CLIENTS_P50, "ms", judged=judged),
        Budget(
            NAME, "the same with the question embedded, p50", size, embedded,
            cached.p50 * 1e3 + alone + EMBEDDED_SLACK, "ms", judged=judged,
            note=f"budget = cached + one embedding of this run ({alone:.2f} ms) + {EMBEDDED_SLACK} ms",
        ),
    ]  # fmt: skip


def _large(bench: Bench, medians: dict[int, float]) -> Budget:
    size = max(medians)
    return Budget(
        NAME, f"search at {size:,} records against {bench.main:,}, p50", size, medians[size],
        LARGE_FACTOR * medians[bench.main], "ms", judged=bench.judged(size),
        note=f"budget = {LARGE_FACTOR:g} times {medians[bench.main]:.2f} ms",
    )  # fmt: skip


def _peers(bench: Bench, rows: list[Measurement]) -> dict[str, float]:
    """Median milliseconds of the parents' pipelines, in process, at the main size."""
    size, n = bench.main, bench.samples(100)
    questions = list(zip(bench.questions(n, size), bench.query_vectors(n), strict=True))
    with parents(bench, size) as (memx, memex):
        times = alternate(
            {"MemX rebuilt": lambda q: memx.search(*q), "memex rebuilt": lambda q: memex.search(q[1])}, questions
        )
    for variant, samples in times.items():
        rows.append(Measurement.of(NAME, "the parents' pipelines in process", size, variant, samples, "ms"))
    return {variant: samples.p50 * 1e3 for variant, samples in times.items()}


def _beside(budget: Budget, peers: dict[str, float]) -> Budget:
    """The first row of the table with the better of the parents beside it."""
    if budget.name != "search over the socket, cached, p50":
        return budget
    best = min(peers, key=lambda name: peers[name])
    return replace(budget, peer=f"{best}, in process", peer_figure=peers[best])
