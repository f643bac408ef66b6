"""Search through the graph: recall under every filter, the tail, chunks, renewal, damage, many threads."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from vector_world import everything, features, only, stored, unit, wait_until

from memxd._fast.dot_py import Effort
from memxd.index.durable import block_sums
from memxd.index.selection import Selection
from memxd.index.vector import VectorIndex, VectorTuning, probe, upkeep
from memxd.model import Change, IndexState

D = 48
ROWS = 6_000
#: Every selection of more than 20 rows may go through the graph, however costly.
EAGER = VectorTuning(
    small_limit=20,
    exact_limit=20,
    kept_cost=0,
    graph_min=400,
    tail_min=150,
    tail_share=0.02,
    dead_min=150,
    settle_seconds=0.0,
)


def open_index(folder: Path, tuning: VectorTuning = EAGER) -> VectorIndex:
    dot = importlib.import_module("memxd._fast._dot")
    return VectorIndex.open(folder, model_id="m", dimension=D, dot=dot, tuning=tuning)


def structured(seed: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """(vectors, topic of each): topics and sub-topics around a common mean, as sentence embeddings have them."""
    world, rng = np.random.default_rng(7), np.random.default_rng(seed)
    mean = world.standard_normal(D) * 1.2
    topics = world.standard_normal((20, D))
    parts = world.standard_normal((20, 8, D)) * 0.6
    topic, part = rng.integers(0, 20, rows), rng.integers(0, 8, rows)
    return unit(mean + topics[topic] + parts[topic, part] + 0.5 * rng.standard_normal((rows, D))), topic


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[VectorIndex, np.ndarray, np.ndarray]]:
    vectors, topic = structured(0, ROWS)
    index = open_index(tmp_path_factory.mktemp("graph"), replace(EAGER, settle_seconds=0.5))
    for rid, vector in enumerate(vectors):
        index.apply(stored(rid + 1, rid, vector[None]))
    wait_until(lambda: not index._renewal.due())
    assert index.status().tail_entries <= 150
    yield index, vectors, topic
    index.close()


class Probes:
    """Counts the walks through graphs."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.asked: list[Effort] = []
        effort = probe._effort

        def counting(*asked: object) -> Effort | None:
            made = effort(*asked)  # type: ignore[arg-type]
            self.asked += [made] if made is not None else []
            return made

        patch.setattr(probe, "_effort", counting)


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch) -> Probes:
    return Probes(monkeypatch)


FILTERS: dict[str, Callable[[np.random.Generator, np.ndarray], np.ndarray]] = {
    "all": lambda rng, topic: np.ones(ROWS, bool),
    "half": lambda rng, topic: rng.random(ROWS) < 0.5,
    "a twentieth": lambda rng, topic: rng.random(ROWS) < 0.05,
    "a two-hundredth": lambda rng, topic: rng.random(ROWS) < 0.005,
    "five": lambda rng, topic: np.isin(np.arange(ROWS), rng.choice(ROWS, 5, replace=False)),
    "half of the topics": lambda rng, topic: np.isin(topic, rng.choice(20, 10, replace=False)),
    "one topic": lambda rng, topic: topic == rng.integers(20),
}


@pytest.mark.parametrize("name", FILTERS)
def test_recall_is_at_least_99_percent_under_every_filter(
    built: tuple[VectorIndex, np.ndarray, np.ndarray], probes: Probes, name: str
) -> None:
    index, _, topic = built
    queries, _ = structured(99, 60)
    rng = np.random.default_rng(3)
    found = wanted = 0
    for query in queries:
        selection = Selection(np.flatnonzero(FILTERS[name](rng, topic)).astype(np.int32), ROWS)
        exact = index.search(query, selection, 30, exact=True)
        approximate = index.search(query, selection, 30)
        assert len(approximate) == len(exact) == min(30, len(selection))
        found += len(np.intersect1d(approximate.rids, exact.rids))
        wanted += len(exact)
        best = dict(zip(exact.rids.tolist(), exact.cosines.tolist(), strict=True))
        for rid, cosine in zip(approximate.rids.tolist(), approximate.cosines.tolist(), strict=True):
            assert cosine == best.get(rid, cosine)  # the same kernel, the same bits
        pairs = list(zip(-approximate.cosines, approximate.rids, strict=True))
        assert pairs == sorted(pairs)
    assert found / wanted >= 0.99
    assert bool(probes.asked) == (name != "five")


@pytest.mark.parametrize("name", ["all", "half"])
def test_recall_is_at_least_99_percent_where_nothing_is_near(
    built: tuple[VectorIndex, np.ndarray, np.ndarray], probes: Probes, name: str
) -> None:
    index, _, topic = built
    rng = np.random.default_rng(4)
    found = 0
    for query in unit(rng.standard_normal((60, D))):
        selection = Selection(np.flatnonzero(FILTERS[name](rng, topic)).astype(np.int32), ROWS)
        exact, approximate = index.search(query, selection, 30, exact=True), index.search(query, selection, 30)
        found += len(np.intersect1d(approximate.rids, exact.rids))
    assert found >= 0.99 * 30 * 60
    assert len(probes.asked) == 60


def test_exact_and_small_selections_never_ask_the_graph(
    built: tuple[VectorIndex, np.ndarray, np.ndarray], probes: Probes
) -> None:
    index, vectors, _ = built
    index.search(vectors[0], everything(ROWS), 30, exact=True)
    index.search(vectors[0], only(range(20), ROWS), 30)
    assert probes.asked == []


def test_one_round_of_candidates_and_then_a_scan(
    built: tuple[VectorIndex, np.ndarray, np.ndarray], probes: Probes
) -> None:
    index, vectors, topic = built
    far = topic[np.argsort(vectors @ vectors[0])[0]]  # a topic far from the question
    selection = Selection(np.flatnonzero(topic == far).astype(np.int32), ROWS)
    hits = index.search(vectors[0], selection, 30)
    assert len(probes.asked) == 1
    assert hits.rids.tolist() == index.search(vectors[0], selection, 30, exact=True).rids.tolist()


def test_many_more_than_there_are(built: tuple[VectorIndex, np.ndarray, np.ndarray]) -> None:
    index, vectors, _ = built
    assert len(index.search(vectors[0], everything(ROWS + 50), ROWS + 10)) == ROWS


def test_a_graph_reopens_with_equal_answers(built: tuple[VectorIndex, np.ndarray, np.ndarray], tmp_path: Path) -> None:
    vectors, _ = structured(1, 800)
    index = open_index(tmp_path)
    for rid, vector in enumerate(vectors):
        index.apply(stored(rid + 1, rid, vector[None]))
    wait_until(lambda: not index._renewal.due())
    before = [index.search(v, everything(800), 20) for v in vectors[:20]]
    index.close()
    again = open_index(tmp_path)
    assert again.status().tail_entries < 800
    for vector, old in zip(vectors[:20], before, strict=True):
        new = again.search(vector, everything(800), 20)
        assert (new.rids.tolist(), new.cosines.tolist()) == (old.rids.tolist(), old.cosines.tolist())
    again.close()


def test_changes_after_the_graph_count_at_once(tmp_path: Path, probes: Probes) -> None:
    vectors, _ = structured(2, 900)
    index = open_index(tmp_path)
    for rid, vector in enumerate(vectors):
        index.apply(stored(rid + 1, rid, vector[None]))
    wait_until(lambda: not index._renewal.due())
    index._renewal.tuning = replace(EAGER, tail_min=10**6, dead_min=10**6)  # from here on the graph stays as it is
    extra, _ = structured(4, 200)
    revision = 900
    for at in range(200):
        revision += 1
        kind = at % 4
        if kind == 0:  # updated: only the new vector counts
            change = stored(revision, at, extra[at : at + 1])
        elif kind == 1:
            change = Change(revision, at, None)
        elif kind == 2:  # new, with several chunks
            change = stored(revision, 900 + at, extra[at : at + 3])
        else:  # the vector is pending again
            change = Change(revision, at, features(at), chunks=())
        index.apply(change)
    selection = everything(1200)
    for query in (*extra[:30], *vectors[:30]):
        hits = index.search(query, selection, 10)
        expected = index.search(query, selection, 10, exact=True)
        assert len(np.intersect1d(hits.rids, expected.rids)) >= 9
        assert (hits.rids[0], hits.chunks[0]) == (expected.rids[0], expected.chunks[0])
        assert not set(hits.rids.tolist()) & {r for r in range(200) if r % 4 in (1, 3)}
    assert len(probes.asked) == 60
    index.close()


def test_over_fetching_allows_for_several_chunks_of_one_memory(tmp_path: Path) -> None:
    vectors, _ = structured(5, 300)
    index = open_index(tmp_path)
    for rid, vector in enumerate(vectors):
        near = unit(vector + 0.02 * np.random.default_rng(rid).standard_normal((6, D)))
        index.apply(stored(rid + 1, rid, near))
    wait_until(lambda: not index._renewal.due())
    for query in vectors[:25]:
        hits, exact = (index.search(query, everything(300), 20, exact=e) for e in (False, True))
        assert len(set(hits.rids.tolist())) == len(hits) == 20
        assert len(np.intersect1d(hits.rids, exact.rids)) >= 19
        assert (hits.rids[0], hits.chunks[0]) == (exact.rids[0], exact.chunks[0])
    index.close()


@pytest.mark.parametrize("how", ["flip", "half", "gone"])
def test_a_damaged_graph_loses_nothing_and_is_built_again(tmp_path: Path, how: str) -> None:
    vectors, _ = structured(6, 600)
    index = open_index(tmp_path)
    for rid, vector in enumerate(vectors):
        index.apply(stored(rid + 1, rid, vector[None]))
    wait_until(lambda: not index._renewal.due())
    index.close()
    (path,) = tmp_path.glob("links*")
    raw = path.read_bytes()
    if how == "gone":
        path.unlink()
    elif how == "half":
        path.write_bytes(raw[: len(raw) // 2])
    else:
        path.write_bytes(raw[:-5000] + bytes([raw[-5000] ^ 1]) + raw[-4999:])
    again = open_index(tmp_path)
    assert (again.watermark, again.status().state, again.status().entries) == (600, IndexState.READY, 600)
    assert again.search(vectors[5], everything(600), 1).rids.tolist() == [5]
    wait_until(lambda: again.status().message == "" and again.status().tail_entries < 600)
    assert again.search(vectors[5], everything(600), 1).rids.tolist() == [5]
    again.close()


def test_a_building_process_that_fails_is_told_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit('no memory left')")
    vectors, _ = structured(8, 500)
    index = open_index(tmp_path / "index", replace(EAGER, retry_seconds=0.2))
    with monkeypatch.context() as patch:
        patch.setattr(upkeep, "_CHILD", broken)
        for rid, vector in enumerate(vectors):
            index.apply(stored(rid + 1, rid, vector[None]))
        wait_until(lambda: "no memory left" in index.status().message)
        assert index.search(vectors[5], everything(600), 1).rids.tolist() == [5]
    wait_until(lambda: index.status().message == "" and index.status().tail_entries < 500)
    index.close()


def test_sixty_four_threads_search_while_rows_come_and_go(tmp_path: Path) -> None:
    vectors, _ = structured(9, 750)
    index = open_index(tmp_path)
    for rid, vector in enumerate(vectors[:600]):
        index.apply(stored(rid + 1, rid, vector[None]))
    index.close()
    index = open_index(tmp_path)  # also right after a restart
    stop = threading.Event()

    def ask(worker: int) -> int:
        rng, done = np.random.default_rng(worker), 0
        while not stop.is_set() or done == 0:
            rid = int(rng.integers(0, 300))  # these stay
            hits = index.search(vectors[rid], everything(1300), 5, exact=bool(worker % 4 == 0))
            assert hits.rids[0] == rid
            assert len(set(hits.rids.tolist())) == 5
            assert index.cosines(vectors[rid], hits.rids)[0][0] == hits.cosines[0]
            done += 1
        return done

    with ThreadPoolExecutor(64) as pool:
        answers = [pool.submit(ask, worker) for worker in range(64)]
        revision = 600
        for rid in range(600, 750):
            revision += 2
            index.apply(stored(revision - 1, rid, vectors[rid : rid + 1]))
            index.apply(Change(revision, rid - 300, None))
            if rid % 50 == 0:
                index.flush()
        stop.set()
        assert sum(answer.result(timeout=60) for answer in answers) >= 64
    wait_until(lambda: not index._renewal.due())
    assert index.status().entries == 600
    index.close()


@pytest.mark.parametrize("harm", ["", "a flipped byte", "a file that cannot be read"])
def test_a_graph_is_extended_from_its_file_or_else_built_anew(tmp_path: Path, harm: str) -> None:
    vectors, _ = structured(11, 1_500)
    index = open_index(tmp_path, replace(EAGER, settle_seconds=0.3))
    for rid, vector in enumerate(vectors[:700]):
        index.apply(stored(rid + 1, rid, vector[None]))
    wait_until(lambda: not index._renewal.due())
    graph = index._holder.current.graph
    assert graph is not None
    base = tmp_path / graph.file.base
    raw = base.read_bytes()
    if harm == "a flipped byte":
        base.write_bytes(raw[:9000] + bytes([raw[9000] ^ 1]) + raw[9001:])
    elif harm:
        base.write_bytes(b"nothing of USearch's" * 8)  # with sums that match: the child fails
        graph.file = replace(graph.file, base_sums=sums_of(base))
    for rid in range(700, 1_500):
        index.apply(stored(rid + 1, rid, vectors[rid : rid + 1]))
    wait_until(lambda: not index._renewal.due())
    assert (index.status().tail_entries < 200, index.status().message) == (True, "")
    queries, _ = structured(12, 40)
    found = 0
    for query in queries:
        exact, walked = (index.search(query, everything(1_500), 20, exact=e) for e in (True, False))
        found += len(np.intersect1d(exact.rids, walked.rids))
    assert found >= 0.99 * 20 * len(queries)
    index.close()
    kinds = [path.name.split("-")[0] for path in sorted(tmp_path.iterdir())]
    assert kinds == ["graph", "links", "manifest.bin", "rows", "vectors"]
    again = open_index(tmp_path)
    assert again.status().tail_entries < 200
    again.close()


def sums_of(path: Path) -> tuple[int, int, int]:
    raw = np.fromfile(path, np.uint8)
    return (len(raw), *block_sums(raw))
