"""The vector leg alone: memxd's index beside the graph it is made of, beside hnswlib, and beside no index at all.

All answer the same queries over the same vectors, in turn, on one thread: memxd's leg (its graph, its own cosines, its
mask of what is alive), bare USearch with the same parameters (one view), hnswlib, and a float32 product in numpy, which
is also the truth that recall is counted against. Then what deleting costs: a fifth is deleted, and the index must get
rid of it by itself. The leg is opened as the engine opens it, on a copy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memxd.bench.bare import bare_graph, empty_index, hnswlib_graph
from memxd.bench.measure import Budget, Measurement, Result, alternate
from memxd.bench.stores import SCOPE, TOPIC_SHARES
from memxd.bench.truth import Stored, nearest
from memxd.bench.vectors import TOPICS
from memxd.engine.engine import Engine
from memxd.engine.ids import system_clock, uuid7_factory
from memxd.engine.indexes import Indexes
from memxd.model import Filter, IndexKind, IndexStatus, Mode, Profile, Ranking, SearchQuery, View
from memxd.store import Store

if TYPE_CHECKING:
    from memxd.bench.context import Bench

NAME = "vector"
#: As many as recall is counted over, and as many as a search of ten hits asks the leg for.
DEPTH, ASKED = 30, 100
P50, RECALL = 1.5, 0.99
#: Beam widths of the graphs of others, for recall against time.
BEAMS = (16, 32, 64, 128, 256)
#: Building a peer's graph beyond this takes longer than the rest of the bench.
LARGEST_PEER = 250_000
_DELETED = "topic-20"
_PATIENCE = 1_200.0

Float32 = NDArray[np.float32]
Ask = Callable[[Float32], Any]


def run(bench: Bench) -> Result:
    """Ask at every size; peers up to the main one."""
    rows: list[Measurement] = []
    budgets: list[Budget] = []
    skipped: set[str] = set()
    curve: dict[str, list[list[Any]]] = {}
    for size in bench.sizes:
        stored = Stored.of(bench, size)
        queries = bench.query_vectors(bench.samples(500, 20))
        truth = nearest(stored.vectors, queries, DEPTH)
        with bench.copy(size) as copy, _leg(bench, copy.folder) as leg:
            found = _timed(bench, leg, stored, queries, truth, rows, skipped)
        if size == bench.main:
            budgets += _budgets(bench, size, found)
            curve = _recall_against_time(bench, stored, queries, truth, found)
    more, kept = _deleting(bench)
    rows, budgets = rows + more, budgets + kept
    return Result(tuple(rows), tuple(budgets), skipped=tuple(sorted(skipped)), curves={"recall": curve})


@contextmanager
def _leg(bench: Bench, folder: Any) -> Iterator[Callable[[Float32, int], tuple[NDArray[np.int64], Float32]]]:
    """memxd's vector leg over the whole scope: (query, k) -> (positions, cosines), best first."""
    store = Store.open(folder, clock=system_clock, ids=uuid7_factory())
    info = bench.embedder.info
    try:
        indexes = Indexes.open(
            folder / "index", store, clock=system_clock, kernels=bench.kernels, model=(info.id, info.dimension),
            k1=1.2, b=0.75,
        )  # fmt: skip
        try:
            with store.read() as read:
                scope_no = read.scope_no(SCOPE)
            selection = indexes.columns.select(scope_no, View(Filter(), system_clock()))
            rids = selection.rids.astype(np.int64)

            def ask(query: Float32, k: int) -> tuple[NDArray[np.int64], Float32]:
                hits = indexes.vector.search(query, selection, k)
                return np.searchsorted(rids, hits.rids), hits.cosines.astype(np.float32)

            yield ask
        finally:
            indexes.stop()
            store.close()
            indexes.close()
    except BaseException:
        store.close()
        raise


def _timed(
    bench: Bench,
    leg: Callable[[Float32, int], tuple[NDArray[np.int64], Float32]],
    stored: Stored,
    queries: Float32,
    truth: Float32,
    rows: list[Measurement],
    skipped: set[str],
) -> dict[str, tuple[float, float]]:
    """(median ms at the depth a search asks, recall@30) of memxd and of each peer."""
    size = stored.size
    calls: dict[str, Ask] = {"memxd": lambda q: leg(q, ASKED)}
    calls |= _peers(bench, stored, skipped) if size <= LARGEST_PEER else {}
    times = alternate(calls, list(queries), limits={"numpy, float32": bench.samples(50, 5)})
    shallow = alternate({"memxd": lambda q: leg(q, DEPTH)}, list(queries))["memxd"]
    found = {}
    for name, samples in times.items():
        answers = [leg(q, ASKED)[0] if name == "memxd" else calls[name](q) for q in queries]
        recall = _recall(stored, queries, truth, answers)
        rows.append(Measurement.of(NAME, f"{ASKED} nearest", size, name, samples, "ms", recall_at_30=recall))
        found[name] = (samples.p50 * 1e3, recall)
    rows.append(Measurement.of(NAME, f"{DEPTH} nearest", size, "memxd", shallow, "ms"))
    return found


def _peers(bench: Bench, stored: Stored, skipped: set[str]) -> dict[str, Ask]:
    """Each answers the positions of the nearest, best first."""
    graph = bare_graph(bench, stored.size).index
    wide = stored.vectors.astype(np.float32)

    def product(query: Float32) -> NDArray[np.int64]:
        scores = wide @ query
        near = np.argpartition(-scores, ASKED)[:ASKED]
        return near[np.argsort(-scores[near])]

    peers: dict[str, Ask] = {
        "USearch, one view": lambda q: graph.search(q, ASKED, threads=1).keys.astype(np.int64),
        "numpy, float32": product,
    }
    try:
        other = hnswlib_graph(bench, stored.size)
    except ImportError:
        skipped.add("hnswlib is not installed; pip install 'memxd[bench]'")
    else:
        other.set_ef(max(ASKED, 128))
        other.set_num_threads(1)
        peers["hnswlib"] = lambda q: other.knn_query(q, ASKED, num_threads=1)[0][0].astype(np.int64)
    return peers


def _recall(stored: Stored, queries: Float32, truth: Float32, answers: list[NDArray[np.int64]]) -> float:
    """The share of the first 30 that are no farther than the 30th nearest; the scores are computed here."""
    shares = []
    for query, best, positions in zip(queries, truth, answers, strict=True):
        scores = stored.vectors[positions[:DEPTH]].astype(np.float32) @ query
        shares.append(float(np.mean(scores >= best[-1] - 2e-6)))
    return float(np.mean(shares))


def _recall_against_time(
    bench: Bench, stored: Stored, queries: Float32, truth: Float32, found: dict[str, tuple[float, float]]
) -> dict[str, list[list[Any]]]:
    """For the plot: [recall, ms, label] by who, the graphs of others at several beam widths."""
    curve = {name: [[recall, ms, ""]] for name, (ms, recall) in found.items() if name in ("memxd", "numpy, float32")}
    if stored.size > LARGEST_PEER:
        return curve
    path = bare_graph(bench, stored.size).path
    lines: dict[str, Callable[[int], Ask]] = {"USearch, one view": lambda beam: _usearch(path, stored, beam)}
    if "hnswlib" in found:
        other = hnswlib_graph(bench, stored.size)
        lines["hnswlib"] = lambda beam: _hnswlib(other, beam)
    for name, made in lines.items():
        curve[name] = []
        for beam in BEAMS:
            ask = made(beam)
            samples = alternate({name: ask}, list(queries))[name]
            recall = _recall(stored, queries, truth, [ask(q) for q in queries])
            curve[name].append([recall, samples.p50 * 1e3, f"ef {beam}"])
    return curve


def _usearch(path: Any, stored: Stored, beam: int) -> Ask:
    index = empty_index(stored.vectors.shape[1], beam)
    index.view(str(path))
    return lambda q: index.search(q, DEPTH, threads=1).keys.astype(np.int64)


def _hnswlib(index: Any, beam: int) -> Ask:
    index.set_ef(max(beam, DEPTH))
    return lambda q: index.knn_query(q, DEPTH, num_threads=1)[0][0].astype(np.int64)


def _budgets(bench: Bench, size: int, found: dict[str, tuple[float, float]]) -> list[Budget]:
    ms, recall = found["memxd"]
    peer = found["USearch, one view"][0] if size <= LARGEST_PEER else None
    return [
        Budget(
            NAME, "vector leg, unfiltered, p50", size, ms, P50, "ms", judged=bench.judged(size),
            peer="bare USearch, one view" if peer else "", peer_figure=peer, note=f"{ASKED} candidates",
        ),
        Budget(
            NAME, f"vector leg, recall@{DEPTH} against exact", size, recall, RECALL, "share", at_least=True,
            judged=not bench.quick,
        ),
    ]  # fmt: skip


def _deleting(bench: Bench) -> tuple[list[Measurement], list[Budget]]:
    """A fifth is deleted, whole topics: how long until the index has got rid of it, what it weighs then, its recall,
    and apart from that the recall of questions about what is gone, near which nothing is left."""
    size = bench.main
    stored = Stored.of(bench, size)
    queries = bench.query_vectors(bench.samples(100, 10))
    gone = bench.vectors.query_topics(len(queries)) < round(TOPIC_SHARES[_DELETED] * TOPICS)
    truth = nearest(stored.vectors, queries, DEPTH, ~stored.passing(_DELETED))
    with bench.copy(size) as copy, bench.engine(copy.folder) as engine:
        before = _status(engine)
        deleted, _ = engine.delete_many(SCOPE, Filter(tags_any=frozenset({_DELETED})))
        began = time.monotonic()
        dead = _status(engine).dead_entries
        while _status(engine).dead_entries > max(1_024, before.entries // 10):
            if time.monotonic() - began > _PATIENCE:
                raise RuntimeError(f"the vector index kept its dead entries for {_PATIENCE:g} s")
            time.sleep(0.1)
        seconds = time.monotonic() - began
        engine.flush()
        after = _at_rest(engine)
        shares = np.array([_share_found(bench, engine, *asked) for asked in zip(queries, truth, strict=True)])
    stage, recall = "a fifth deleted", float(np.mean(shares[~gone]))
    rows = [
        Measurement.one(NAME, f"{stage}: until reclaimed", size, "memxd", seconds, "s", deleted=deleted, dead=dead),
        Measurement.one(NAME, f"{stage}: bytes before", size, "memxd", before.size_bytes / 1e6, "MB"),
        Measurement.one(
            NAME, f"{stage}: bytes after", size, "memxd", after.size_bytes / 1e6, "MB", dead=after.dead_entries
        ),
        Measurement.one(
            NAME, f"{stage}: recall@{DEPTH}", size, "memxd", recall, "share", worst_query=float(shares[~gone].min()),
            about_what_is_gone=float(np.mean(shares[gone])) if gone.any() else None,
        ),
    ]  # fmt: skip
    judged = not bench.quick
    return rows, [
        Budget(NAME, f"{stage}: recall@{DEPTH}", size, recall, RECALL, "share", at_least=True, judged=judged),
        Budget(
            NAME, f"{stage}: dead entries left", size, after.dead_entries, before.entries / 10, "count", judged=judged
        ),
    ]


def _status(engine: Engine) -> IndexStatus:
    (status,) = (s for s in engine.status(0).indexes if s.kind is IndexKind.VECTOR)
    return status


def _at_rest(engine: Engine) -> IndexStatus:
    """The status once the size of the files stays as it is: the former generation goes after the new one is saved."""
    status, still = _status(engine), 0
    for _ in range(200):
        time.sleep(0.1)
        now = _status(engine)
        still = still + 1 if now.size_bytes == status.size_bytes else 0
        status = now
        if still == 10:
            break
    return status


def _share_found(bench: Bench, engine: Engine, query: Float32, best: Float32) -> float:
    asked = SearchQuery(
        SCOPE, "nearest", k=DEPTH, mode=Mode.VECTOR, ranking=Ranking(profile=Profile.MEMEX, alpha=1.0),
        vector=tuple(query.tolist()), model_id=bench.embedder.info.id, record_retrieval=False,
    )  # fmt: skip
    return sum(bool(hit.score >= best[-1] - 2e-6) for hit in engine.search(asked).hits) / DEPTH
