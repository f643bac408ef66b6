"""Starting: from the fork to SERVING, and to the first answer; after a clean stop and after a kill.

The kill is SIGKILL for the daemon and its children in the middle of an import with vectors given, so that the indexes
lag behind the store and a graph or a merge may be half built. After the start that follows, every acknowledged record
must be there. The files are in the page cache (the machine was not rebooted); the interpreter's own start counts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from memxd.bench.client_process import SHOW_ALL
from memxd.bench.measure import Budget, Measurement, Result, Unit, timed
from memxd.bench.served import Served, serve
from memxd.bench.stores import BuiltStore
from memxd.client import Client, Item
from memxd.errors import MemxdError

if TYPE_CHECKING:
    from memxd.bench.context import Bench

NAME = "start"
#: Seconds to SERVING at the size that budgets are about, and at a million.
START, START_LARGE, LARGE = 2.0, 5.0, 1_000_000


def run(bench: Bench) -> Result:
    """Start at every size, several times."""
    rows: list[Measurement] = []
    budgets: list[Budget] = []
    for size in bench.sizes if not bench.quick else (bench.main,):
        clean = _clean_starts(bench, size, rows)
        with bench.copy(size) as copy:
            killed = _after_a_kill(bench, copy, rows)
        if size == bench.main or size >= LARGE:
            limit = START_LARGE if size >= LARGE else START
            judged = bench.judged(size)
            budgets += [
                Budget(NAME, "start to SERVING after a clean stop", size, clean, limit, "s", judged=judged),
                Budget(NAME, "start to SERVING after kill -9 in an import", size, killed, limit, "s", judged=judged),
            ]
    return Result(tuple(rows), tuple(budgets), ("from fork to SERVING, interpreter included; files in the page cache",))


def _clean_starts(bench: Bench, size: int, rows: list[Measurement]) -> float:
    """The slowest of a few starts in seconds."""
    folder = bench.store(size).folder
    starts, firsts, seconds_ = [], [], []
    for _ in range(bench.samples(5, 2)):
        with serve(bench, folder) as served, served.client() as client:
            starts.append(served.seconds_to_serving)
            first, second = _two_searches(bench, client, size)
            firsts.append(first)
            seconds_.append(second)
    rows += [
        _row("start to SERVING", size, "after a clean stop", starts, "s"),
        _row("search after start", size, "first", firsts, "ms"),
        _row("search after start", size, "second", seconds_, "ms"),
    ]
    return max(starts)


def _row(stage: str, size: int, variant: str, seconds: list[float], unit: Unit) -> Measurement:
    return Measurement.of(NAME, stage, size, variant, np.array(seconds), unit)


def _two_searches(bench: Bench, client: Client, size: int) -> tuple[float, float]:
    """Seconds of the first and the second search, both embedded, over a channel that is connected."""
    questions = iter(bench.questions(2, min(size, 10_000)))
    client.wait_ready()
    both = timed(lambda: client.search(next(questions), ranking=SHOW_ALL, record_retrieval=False), 2, warmup=0)
    return float(both.wall[0]), float(both.wall[1])


def _after_a_kill(bench: Bench, copy: BuiltStore, rows: list[Measurement]) -> float:
    """The slowest of a few starts after a kill, in seconds. Raises RuntimeError when a record was lost."""
    starts, firsts, expected = [], [], copy.size
    for number in range(bench.samples(3, 1)):
        wanted = bench.samples(3_000, 300)
        with serve(bench, copy.folder) as served:
            expected += _import_and_kill(bench, served, wanted, number)
        with serve(bench, copy.folder) as served, served.client() as client:
            starts.append(served.seconds_to_serving)
            firsts.append(_two_searches(bench, client, copy.size)[0])
            there = client.count()
            if there < expected:
                raise RuntimeError(f"{expected - there} acknowledged records were lost by the kill")
            expected = there
    rows += [
        _row("start to SERVING", copy.size, "after kill -9 in an import", starts, "s"),
        _row("search after start", copy.size, "first after a kill", firsts, "ms"),
    ]
    return max(starts)


def _import_and_kill(bench: Bench, served: Served, wanted: int, number: int) -> int:
    """Pour records in, kill the daemon when ``wanted`` are acknowledged; how many were."""
    acknowledged = 0
    lock = threading.Event()

    def items() -> Iterator[Item]:
        for vector, text in zip(bench.vectors.queries(wanted + 2_000), bench.source.texts(wanted + 2_000), strict=True):
            yield Item(
                f"{text} {number}", vector=vector.tolist(), model_id=bench.embedder.info.id, allow_duplicate=True
            )

    with served.client() as client:
        try:
            for answer in client.store_many(items()):
                if isinstance(answer, MemxdError):
                    raise answer
                acknowledged += 1
                if acknowledged == wanted:
                    lock.set()
                    served.kill()
        except MemxdError:
            if not lock.is_set():
                raise
        while not lock.is_set():
            time.sleep(0.01)
    return acknowledged
