"""Many small scopes: 20,000 of 50 records each, as a service for many users has them.

Owns a store of its own kind, built once into the run's folder; asks how fast it starts, and how fast a search in one of
the scopes is, each search in another scope so that no cache of scopes helps. The vectors are given; searches by memxd's
own client over the socket with the question's vector cached.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from memxd.bench.client_process import SHOW_ALL
from memxd.bench.measure import Budget, Measurement, Result, alternate
from memxd.bench.served import serve
from memxd.bench.stores import BuiltStore, records, renew
from memxd.client import Client
from memxd.engine.storing import Item
from memxd.errors import MemxdError
from memxd.model import Scope

if TYPE_CHECKING:
    from memxd.bench.context import Bench

NAME = "scopes"
RECORDS = 50
SCOPES, SCOPES_QUICK = 20_000, 40
#: Milliseconds of a search, seconds of a start (the one that a single scope of a million records has).
SEARCH, START = 2.0, 5.0
_DONE = "bench.json"


def run(bench: Bench) -> Result:
    """Build if needed, start a few times, search all over."""
    scopes = SCOPES_QUICK if bench.quick else min(SCOPES, max(bench.sizes) // RECORDS)
    size = scopes * RECORDS
    folder = _store(bench, scopes)
    starts = []
    for _ in range(bench.samples(3, 1)):
        with serve(bench, folder) as served:
            starts.append(served.seconds_to_serving)
    with serve(bench, folder) as served, served.client() as client:
        samples = _searches(bench, client, scopes)
        pss = served.pss()
    rows = (
        Measurement.of(NAME, "start to SERVING", size, f"{scopes:,} scopes", np.array(starts), "s"),
        Measurement.of(NAME, "search in one of many scopes, cached", size, f"{scopes:,} scopes", samples, "ms"),
        Measurement.one(NAME, "PSS, daemon and children", size, f"{scopes:,} scopes", pss, "MB"),
    )
    judged = not bench.quick and scopes == SCOPES
    name = f"{scopes:,} scopes of {RECORDS} records"
    budgets = (
        Budget(NAME, f"{name}: search, p50", size, rows[1].p50, SEARCH, "ms", judged=judged),
        Budget(NAME, f"{name}: start to SERVING", size, max(starts), START, "s", judged=judged),
    )
    return Result(rows, budgets)


def _searches(bench: Bench, client: Client, scopes: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Seconds of each search: few questions, all embedded before, every one in a scope that was not asked yet."""
    questions = bench.questions(16, scopes * RECORDS if scopes < 1_000 else 50_000)
    for text in questions:
        client.scope(user_id=_user(0)).search(text, record_retrieval=False)
    n = min(bench.samples(2_000, 30), scopes)
    order = bench.rng(11).permutation(scopes)[:n].tolist()
    views = [(client.scope(user_id=_user(number)), questions[number % 16]) for number in order]

    def ask(view: tuple[Client, str]) -> None:
        if not view[0].search(view[1], ranking=SHOW_ALL, record_retrieval=False).hits:
            raise RuntimeError("a scope of fifty records answered nothing")

    return alternate({"search": ask}, views, warmup=0)["search"].wall


def _user(number: int) -> str:
    return f"user-{number}"


def _store(bench: Bench, scopes: int) -> Path:
    """The store, found or built."""
    recipe = bench.recipe(scopes * RECORDS)
    folder = bench.options.work / f"scopes-{scopes}-{recipe.name.rpartition('-')[2]}"
    if (folder / _DONE).is_file() and not bench.options.fresh:
        renew(BuiltStore(folder, recipe.size, 0.0), bench.embedder, bench.progress)
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    (folder / "models").symlink_to(bench.options.work / "models")

    def items() -> Iterator[Item]:
        for number, item in enumerate(records(recipe)):
            if isinstance(item, MemxdError):
                raise item
            yield Scope("bench", _user(number % scopes)), item[1], ""

    with bench.engine(folder) as engine, bench.progress.work(f"building {scopes:,} scopes", recipe.size) as step:
        for number, answer in enumerate(engine.store_many(items()), 1):
            if isinstance(answer, MemxdError):
                raise answer
            if number % 1_000 == 0:
                step(number)
        engine.flush()
    renew(BuiltStore(folder, recipe.size, 0.0), bench.embedder, bench.progress)
    (folder / _DONE).write_text(json.dumps({"recipe": recipe.text}), encoding="utf-8")
    return folder
