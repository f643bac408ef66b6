"""Writing: one Store at a time, an import with and without vectors, and searches beside an import.

A Store is acknowledged when it is durable, embedded and found by the next search; it is held against one embedding of
the same run. The import with vectors is held against bare USearch adding the same vectors with two threads to a graph
of the same size; the import without against the embedder alone, embedding as many texts with all its threads. Rates are
of acknowledged items over the socket; the graph takes new vectors in later, in a child process, and how long that takes
is told as well. On copies, since all of this writes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from memxd.bench.bare import add_all, bare_graph, empty_index
from memxd.bench.client_process import SHOW_ALL
from memxd.bench.import_process import Importing, importing
from memxd.bench.measure import Budget, Measurement, Result, Seconds, alternate
from memxd.bench.served import Served, serve
from memxd.bench.stores import graph_settled
from memxd.client import Client
from memxd.model import IndexKind

if TYPE_CHECKING:
    from memxd.bench.context import Bench

NAME = "writing"
#: Milliseconds beyond one embedding; shares of the peers' rates; milliseconds of a search beside an import.
STORE, SHARE, BESIDE_P99 = 5.0, 0.75, 20.0
#: Between two searches beside an import: a caller's pace, not a second load.
_PAUSE = 0.005
_SETTLE_SECONDS = 900.0


def run(bench: Bench) -> Result:
    """Write into copies of the store that budgets are about."""
    rows: list[Measurement] = [_disk(bench)]
    budgets: list[Budget] = []
    for ask in (_stores, _import_with_vectors, _import_without_vectors):
        with bench.copy(bench.main) as copy, serve(bench, copy.folder) as served, served.client() as client:
            budgets += ask(bench, served, client, rows)
    notes = (
        f"this disk makes an append durable (fdatasync) in {rows[0].p50:.3f} ms p50, {rows[0].p99:.3f} ms p99; a disk "
        "that needs 10 ms adds them to every Store",
    )
    return Result(tuple(rows), tuple(budgets), notes)


def _disk(bench: Bench) -> Measurement:
    """How long the disk below the stores takes to make a small append durable."""
    with bench.folder("disk-") as folder:
        handle = os.open(folder / "file", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:

            def append(_: int) -> None:
                os.write(handle, bytes(4096))
                os.fdatasync(handle)

            times = alternate({"append": append}, range(bench.samples(500)))["append"]
        finally:
            os.close(handle)
    return Measurement.of(NAME, "fdatasync of a 4 KiB append", 0, "this disk", times, "ms")


def _stores(bench: Bench, served: Served, client: Client, rows: list[Measurement]) -> list[Budget]:
    size, n = bench.main, bench.samples(500)
    fresh = _fresh_texts(bench, 3 * (n + 3))
    vectors = iter(bench.vectors.queries(n + 3).tolist())
    model = bench.embedder.info.id
    times = alternate(
        {
            "embedded": lambda _: client.store(next(fresh)),
            "vector given": lambda _: client.store(next(fresh), vector=next(vectors), model_id=model),
            "one embedding": lambda _: bench.embedder.embed_passages([next(fresh)]),
        },
        range(n),
    )
    last = next(_fresh_texts(bench, 1, 1))
    stored = client.store(last).memory.id
    found = client.search(last, k=50, ranking=SHOW_ALL, record_retrieval=False)
    if stored not in {hit.memory.id for hit in found.hits}:
        raise RuntimeError("a memory that was acknowledged is not found by the next search")
    rows += [Measurement.of(NAME, "Store", size, variant, samples, "ms") for variant, samples in times.items()]
    alone = times["one embedding"].p50 * 1e3
    return [
        Budget(
            NAME, "Store, durable, embedded and visible, p50", size, times["embedded"].p50 * 1e3, alone + STORE, "ms",
            judged=bench.judged(size), note=f"budget = one embedding of this run ({alone:.2f} ms) + {STORE:g} ms",
        )
    ]  # fmt: skip


def _fresh_texts(bench: Bench, n: int, part: int = 0) -> Iterator[str]:
    """``n`` texts that the store does not hold; other ones for another ``part``."""
    texts = bench.source.texts(min(n, bench.source.limit or n))
    many = list(texts)
    return (f"{many[at % len(many)]} ({part}-{at})" for at in range(n))


def _import_with_vectors(bench: Bench, served: Served, client: Client, rows: list[Measurement]) -> list[Budget]:
    size, n = bench.main, bench.samples(20_000, 500)
    vectors = bench.vectors.queries(2 * n)
    texts = list(_fresh_texts(bench, 2 * n, 2))
    bare = _bare_rate(bench, size, vectors[:n])
    model = bench.embedder.info.id
    with importing(served, model, texts[:n], vectors[:n]) as running:
        told = running.result()
    rate = told["count"] / told["seconds"]
    settled = _until_settled(client)
    with importing(served, model, texts[n:], vectors[n:]) as running:
        beside, slowed = _searches_beside(bench, client, running)
    rows += [
        Measurement.one(
            NAME, "import, vectors given", size, "memxd, acknowledged", rate, "1/s", longest_gap_ms=told["gap"] * 1e3
        ),
        Measurement.one(NAME, "import, vectors given", size, "memxd, with a searcher", slowed, "1/s"),
        Measurement.one(NAME, "import, vectors given", size, "bare USearch, 2 threads", bare, "1/s"),
        Measurement.one(NAME, "from the last answer until the graph has them", size, "memxd", settled, "s"),
        Measurement.of(NAME, "cached search beside an import, vectors given", size, "memxd", beside, "ms"),
    ]  # fmt: skip
    judged = bench.judged(size)
    return [
        Budget(
            NAME, "import, vectors given", size, rate, SHARE * bare, "1/s", at_least=True,
            peer="bare USearch, 2 threads", peer_figure=bare, judged=judged,
        ),
        Budget(
            NAME, "search beside an import, vectors given, p99", size, rows[-1].p99, BESIDE_P99, "ms", judged=judged
        ),
    ]  # fmt: skip


def _bare_rate(bench: Bench, size: int, vectors: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> float:
    """Vectors a second that bare USearch adds to a graph of ``size``."""
    index = empty_index(vectors.shape[1])
    index.load(str(bare_graph(bench, size).path))
    return len(vectors) / add_all(index, vectors, size)


def _import_without_vectors(bench: Bench, served: Served, client: Client, rows: list[Measurement]) -> list[Budget]:
    size, n = bench.main, bench.samples(3_000, 100)
    texts = list(_fresh_texts(bench, 2 * n, 3))
    began = time.perf_counter()
    bench.embedder.embed_passages(texts[:n])
    alone = n / (time.perf_counter() - began)
    with importing(served, bench.embedder.info.id, texts[n:]) as running:
        rate = n / running.result()["seconds"]
    with importing(served, bench.embedder.info.id, list(_fresh_texts(bench, n, 4))) as running:
        beside, slowed = _searches_beside(bench, client, running)
    rows += [
        Measurement.one(NAME, "import, embedded here", size, "memxd", rate, "1/s"),
        Measurement.one(NAME, "import, embedded here", size, "the embedder alone", alone, "1/s"),
        Measurement.one(NAME, "import, embedded here", size, "memxd, with a searcher", slowed, "1/s"),
        Measurement.of(NAME, "cached search beside an import, embedded here", size, "memxd", beside, "ms"),
    ]
    judged = bench.judged(size)
    return [
        Budget(
            NAME, "import, embedded here", size, rate, SHARE * alone, "1/s", at_least=True,
            peer="the embedder alone", peer_figure=alone, judged=judged,
        ),
        Budget(
            NAME, "search beside an import, embedded here, p99", size, rows[-1].p99, BESIDE_P99, "ms", judged=judged
        ),
    ]  # fmt: skip


def _searches_beside(bench: Bench, client: Client, running: Importing) -> tuple[Seconds, float]:
    """Seconds of each cached search, one every few milliseconds while the import runs; and the import's rate."""
    questions = bench.questions(64, min(bench.main, 50_000))
    for text in questions:
        client.search(text, ranking=SHOW_ALL, record_retrieval=False)
    times: list[float] = []
    while running.running or not times:
        text, began = questions[len(times) % len(questions)], time.perf_counter()
        client.search(text, ranking=SHOW_ALL, record_retrieval=False)
        times.append(time.perf_counter() - began)
        time.sleep(_PAUSE)
    told = running.result()
    return np.array(times), told["count"] / told["seconds"]


def _until_settled(client: Client) -> float:
    """Seconds until no more vectors are outside the graph than the index leaves there."""
    began = time.monotonic()
    while time.monotonic() - began < _SETTLE_SECONDS:
        (vector,) = (i for i in client.status(max_scopes=0).engine.indexes if i.kind is IndexKind.VECTOR)
        if graph_settled(vector):
            return time.monotonic() - began
        time.sleep(0.2)
    raise RuntimeError(f"the vector index did not settle within {_SETTLE_SECONDS:g} s")
