"""Stalls: what other work in the same process does to a search.

One busy thread of pure Python can turn a search of one millisecond into a hundred, since every section without the
interpreter's lock has to win it back. Measured twice: in process, an engine with such a thread beside, at the daemon's
switch interval; and at the daemon, cached searches while another caller lists everything, asks for many explained hits,
imports, or has an index rebuilt. The quiet daemon comes first and last, so that a change of the machine shows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from memxd.bench.client_process import SHOW_ALL
from memxd.bench.import_process import importing
from memxd.bench.measure import Budget, Measurement, Result, Seconds, alternate
from memxd.bench.noise_process import KINDS, noise
from memxd.bench.served import Served, serve
from memxd.bench.stores import SCOPE
from memxd.client import Client
from memxd.engine.engine import Engine
from memxd.model import Ranking, SearchQuery

if TYPE_CHECKING:
    from memxd.bench.context import Bench

NAME = "stall"
QUESTIONS = 64
#: Milliseconds that a search may take beside other work: what is promised beside an import.
BESIDE_P99 = 20.0
_PAUSE = 0.002


def run(bench: Bench) -> Result:
    """Measure at the size that budgets are about, on copies."""
    rows: list[Measurement] = []
    with bench.copy(bench.main) as copy:
        with bench.engine(copy.folder) as engine:
            rows += _in_process(bench, engine)
        with serve(bench, copy.folder) as served, served.client() as client:
            rows += _at_the_daemon(bench, served, client)
    judged = bench.judged(bench.main)
    budgets = tuple(
        Budget(
            NAME, f"cached search {row.variant.removeprefix('memxd, ')}, p99", row.size, row.p99, BESIDE_P99, "ms",
            judged=judged, note="as beside an import",
        )
        for row in rows
        if "beside" in row.variant and row.stage.startswith("cached")
    )  # fmt: skip
    return Result(tuple(rows), budgets)


def _in_process(bench: Bench, engine: Engine) -> list[Measurement]:
    n = bench.samples(500)
    questions = bench.questions(QUESTIONS, min(bench.main, 50_000))
    vectors = [tuple(v.tolist()) for v in bench.query_vectors(QUESTIONS)]
    asked = [
        SearchQuery(
            SCOPE, text, vector=vector, model_id=bench.embedder.info.id, ranking=Ranking(reject=False),
            record_retrieval=False,
        )
        for text, vector in zip(questions, vectors, strict=True)
    ]  # fmt: skip
    inputs = [asked[at % QUESTIONS] for at in range(n)]
    stage, size = "search in process", bench.main
    quiet = alternate({"search": engine.search}, inputs)["search"]
    with _busy_thread():
        beside = alternate({"search": engine.search}, inputs)["search"]
    factor = beside.p50 / quiet.p50
    return [
        Measurement.of(NAME, stage, size, "memxd, alone", quiet, "ms"),
        Measurement.of(NAME, stage, size, "memxd, beside a busy Python thread", beside, "ms", times_slower=factor),
    ]


@contextmanager
def _busy_thread() -> Iterator[None]:
    """A thread that never gives the interpreter's lock away by itself."""
    over = False

    def turn() -> None:
        number = 0
        while not over:
            number = (number * 31 + 7) % 1_000_003

    thread = threading.Thread(target=turn, name="busy", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over = True
        thread.join()


def _at_the_daemon(bench: Bench, served: Served, client: Client) -> list[Measurement]:
    seconds = 1.0 if bench.quick else 10.0
    _searches(bench, client, 0.0)
    rows = [_row(bench, "memxd, alone", _searches(bench, client, seconds))]
    for kind, told in KINDS.items():
        with noise(kind, served):
            rows.append(_row(bench, f"memxd, {told}", _searches(bench, client, seconds)))
    n = bench.samples(20_000, 1_500)
    texts = list(bench.source.texts(min(n, bench.source.limit or n)))
    with importing(served, bench.embedder.info.id, texts, bench.vectors.queries(len(texts))):
        rows.append(_row(bench, "memxd, beside an import, vectors given", _searches(bench, client, seconds)))
    rows.append(_row(bench, "memxd, alone again", _searches(bench, client, seconds)))
    return rows


def _row(bench: Bench, variant: str, seconds: Seconds) -> Measurement:
    return Measurement.of(NAME, "cached search over the socket", bench.main, variant, seconds, "ms")


def _searches(bench: Bench, client: Client, seconds: float) -> Seconds:
    """Seconds of each cached search, one every few milliseconds for so long (each question once at least)."""
    questions = bench.questions(QUESTIONS, min(bench.main, 50_000))
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < QUESTIONS or time.perf_counter() < end:
        text, began = questions[len(times) % QUESTIONS], time.perf_counter()
        client.search(text, ranking=SHOW_ALL, record_retrieval=False)
        times.append(time.perf_counter() - began)
        time.sleep(_PAUSE)
    return np.array(times)
