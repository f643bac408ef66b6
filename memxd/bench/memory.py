"""Memory: what the daemon and its children hold after a thousand mixed searches, and whether it grows.

PSS from the kernel's ``smaps_rollup``: private pages count whole, mapped index files by the share of this process, as
far as they were touched. With the default model loaded. The growth is judged over further searches after the first
thousand, when every lazily made thing is there.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from memxd.bench.client_process import SHOW_ALL
from memxd.bench.measure import Budget, Measurement, Result
from memxd.bench.served import Served, serve
from memxd.client import Client, rank, where

if TYPE_CHECKING:
    from memxd.bench.context import Bench

NAME = "memory"
#: Megabytes (1e6 bytes) at the size that budgets are about, and how much more after as many searches again.
PSS, GROWTH = 600.0, 15.0
#: Seconds for background work to settle before memory is read.
_SETTLE = 1.5


def run(bench: Bench) -> Result:
    """Measure at every size; the budget is about the main one."""
    rows: list[Measurement] = []
    budgets: list[Budget] = []
    curves: dict[str, list[float]] = {}
    for size in bench.sizes if not bench.quick else (bench.main,):
        with serve(bench, bench.store(size).folder) as served, served.client() as client:
            track = _track(bench, served, client, size)
        curves[f"{size:,}"] = [round(mb, 1) for mb in track]
        rows.append(Measurement.one(NAME, "PSS, daemon and children", size, "after the start", track[0], "MB"))
        rows.append(Measurement.one(NAME, "PSS, daemon and children", size, "after searches", track[1], "MB"))
        rows.append(Measurement.one(NAME, "growth over as many again", size, "memxd", track[-1] - track[1], "MB"))
        if size == bench.main:
            judged = bench.judged(size) and bench.real_model
            budgets += [
                Budget(NAME, "memory (PSS) after 1,000 mixed searches", size, track[1], PSS, "MB", judged=judged),
                Budget(
                    NAME, "growth over 3,000 further searches", size, track[-1] - track[1], GROWTH, "MB", judged=judged
                ),
            ]
    return Result(tuple(rows), tuple(budgets), curves={"PSS in MB after 0, 1,000, 2,000... searches": curves})


def _track(bench: Bench, served: Served, client: Client, size: int) -> list[float]:
    """MB after the start and after each of four rounds of searches."""
    n = bench.samples(1_000, 40)
    questions = bench.questions(4 * n, min(size, 50_000))
    track = [served.pss()]
    for part in range(4):
        for number, text in enumerate(questions[part * n : part * n + n]):
            _mixed(client, number, text)
        time.sleep(_SETTLE)
        track.append(served.pss())
    return track


def _mixed(client: Client, number: int, text: str) -> None:
    """Searches of every kind in turn: plain, filtered, explained, by words, by another profile, many hits."""
    kind = number % 8
    client.search(
        text,
        k=100 if kind == 1 else None,
        filter=where(tags_any=["any-5"]) if kind == 2 else where(types=["episodic"]) if kind == 3 else None,
        mode="keyword" if kind == 4 else None,
        ranking=rank("memx", reject=False) if kind == 5 else SHOW_ALL,
        explain=kind == 6,
        exact=kind == 7,
        record_retrieval=False,
    )
