"""The vector index against a naive one: any sequence of changes, flushes, crashes, renewals and rebuilds."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vector_world import PLAIN, Naive, everything, features, only, stored, unit, wait_until

from memxd._fast import dot_py
from memxd.errors import DeadlineExceededError, IndexUnavailableError, StorageFullError
from memxd.index.vector import VectorIndex, VectorTuning
from memxd.model import Change, Deadline, IndexState

D = 20
RIDS = 12
#: Rows die quickly and generations follow one another; no graph, so no child process.
RESTLESS = VectorTuning(graph_min=10**9, dead_min=3, dead_share=0.2, settle_seconds=0.0)


def open_index(
    folder: Path, tuning: VectorTuning = PLAIN, *, model_id: str = "m", dimension: int = D, database_id: str = ""
) -> VectorIndex:
    return VectorIndex.open(
        folder, model_id=model_id, dimension=dimension, database_id=database_id, dot=dot_py, tuning=tuning
    )


def some_vectors(seed: int, number: int) -> np.ndarray:
    """Few different values, so that ties happen."""
    return unit(np.random.default_rng(seed).integers(-1, 2, (number, D)) + 0.25)


steps = st.lists(
    st.tuples(st.just("put"), st.integers(0, RIDS), st.integers(0, 30), st.integers(0, 3))
    | st.tuples(st.just("many"), st.integers(0, RIDS - 3), st.integers(0, 30), st.integers(0, 2))
    | st.tuples(st.just("delete"), st.integers(0, RIDS))
    | st.tuples(st.just("drop"), st.integers(0, RIDS), st.integers(0, 2))
    | st.tuples(st.just("touch"), st.integers(0, RIDS))
    | st.sampled_from([("flush",), ("reopen",), ("crash",), ("rest",), ("rebuild",), ("again",), ("check",)]),
    max_size=40,
)


class World:
    """An index, its model, and the log the store would replay."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.copies = count()
        self.index = open_index(folder, RESTLESS)
        self.naive = Naive()
        self.log: list[Change] = []

    def apply(self, change: Change) -> None:
        self.log.append(change)
        self.naive.apply(change)
        self.index.apply(change)

    def step(self, name: str, *args: int) -> None:
        revision = len(self.log) + 1
        if name == "put":
            rid, seed, number = args
            self.apply(stored(revision, rid, some_vectors(seed, number)))
        elif name == "many":
            rid, seed, number = args
            changes = [stored(revision + n, rid + n, some_vectors(seed + n, number + n % 2)) for n in range(4)]
            self.log += changes
            for change in changes:
                self.naive.apply(change)
            self.index.apply_all(changes)
        elif name == "delete":
            self.apply(Change(revision, args[0], None))
        elif name == "drop":
            chunks = self.naive.rows.get(args[0], ())
            if len(chunks) > args[1]:
                self.apply(Change(revision, args[0], features(args[0]), dead_vids=(chunks[args[1]].vid,)))
        elif name == "touch":
            if args[0] in self.naive.rows:
                self.apply(Change(revision, args[0], features(args[0])))
        else:
            getattr(self, name)()

    def flush(self) -> None:
        self.index.flush()
        assert self.index.durable_watermark == self.index.watermark == len(self.log)

    def reopen(self) -> None:
        self.index.close()
        self.index = open_index(self.folder, RESTLESS)
        assert self.index.watermark == len(self.log)

    def crash(self) -> None:
        """What lies on the disk now, opened elsewhere, brought up from the log as the engine does it."""
        copy = self.folder.with_name(f"{self.folder.name}-{next(self.copies)}")
        with self.index._holder.saving:  # a real crash sees one moment of the directory, copytree does not
            shutil.copytree(self.folder, copy)
        self.index.close()
        self.folder = copy
        self.index = open_index(copy, RESTLESS)
        assert not self.index.status().message
        for change in self.log[self.index.watermark :]:
            self.index.apply(change)

    def rest(self) -> None:
        wait_until(lambda: not self.index._renewal.due())

    def rebuild(self) -> None:
        rows = [Change(1, rid, features(rid), chunks=chunks) for rid, chunks in self.naive.rows.items()]
        self.index.rebuild(iter(rows), len(rows), revision=len(self.log))
        assert self.index.durable_watermark == len(self.log)

    def again(self) -> None:
        """Replay of what is known already."""
        for change in self.log[-5:]:
            self.index.apply(change)

    def check(self) -> None:
        for seed, k in ((0, 3), (1, 50)):
            query = some_vectors(seed, 1)[0]
            self.naive.check(self.index, query, everything(RIDS + 5), k)
            self.naive.check(self.index, query, only({0, 3, 4, RIDS}, RIDS + 1), k)
        cosines, chunks = self.index.cosines(query, np.arange(-1, RIDS + 30, dtype=np.int32))
        expected = {rid: (c, n) for rid, c, n in self.naive.search(query, range(RIDS + 1), 99)}
        got = zip(range(-1, RIDS + 30), cosines.tolist(), chunks.tolist(), strict=True)
        assert {rid: (c, n) for rid, c, n in got if n >= 0} == expected
        assert int(np.isnan(cosines).sum()) == len(cosines) - len(expected)


folders = count()


@given(steps)
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_history_answers_like_a_naive_index(tmp_path: Path, script: list[tuple[object, ...]]) -> None:
    world = World(tmp_path / str(next(folders)))
    try:
        for step in script:
            world.step(*step)  # type: ignore[arg-type]
        world.check()
        world.reopen()
        world.check()
    finally:
        world.index.close()


@pytest.fixture
def index(tmp_path: Path) -> Iterator[VectorIndex]:
    opened = open_index(tmp_path)
    yield opened
    opened.close()


def fill(index: VectorIndex, rows: int) -> np.ndarray:
    vectors = unit(np.random.default_rng(5).standard_normal((rows, D)))
    for rid in range(rows):
        index.apply(stored(rid + 1, rid, vectors[rid : rid + 1]))
    return vectors


def test_a_stored_memory_is_found_at_once_and_an_updated_one_only_by_its_new_vector(index: VectorIndex) -> None:
    old, new = np.eye(D, dtype=np.float32)[:2]
    index.apply(stored(1, 7, old[None]))
    assert index.search(old, everything(8), 5).cosines.tolist() == [1.0]
    index.apply(stored(2, 7, new[None]))
    assert index.search(old, everything(8), 5).cosines.tolist() == [0.0]
    assert index.search(new, everything(8), 5).cosines.tolist() == [1.0]


def test_a_few_rows_among_many_nearer_ones_of_another_scope_are_all_found(index: VectorIndex) -> None:
    query = np.eye(D, dtype=np.float32)[0]
    near = unit(query + 0.01 * np.random.default_rng(0).standard_normal((1000, D)))
    for rid in range(1000):
        index.apply(stored(rid + 1, rid, near[rid : rid + 1]))
    for rid in range(1000, 1005):
        index.apply(stored(rid + 1, rid, -near[rid - 1000 : rid - 999]))
    assert index.search(query, only(range(1000, 1005), 1005), 5).rids.tolist() != []
    assert sorted(index.search(query, only(range(1000, 1005), 1005), 5).rids.tolist()) == list(range(1000, 1005))


def test_the_last_chunk_of_a_long_memory_finds_it(index: VectorIndex) -> None:
    query = np.eye(D, dtype=np.float32)[3]
    index.apply(stored(1, 0, np.concatenate([unit(np.ones((30, D))), query[None]])))
    index.apply(stored(2, 1, unit(query + 0.5)[None]))
    hits = index.search(query, everything(2), 2)
    assert (hits.rids.tolist(), hits.chunks.tolist()) == ([0, 1], [30, 0])


def test_nothing_is_found_where_nothing_is(index: VectorIndex) -> None:
    query = np.eye(D, dtype=np.float32)[0]
    assert len(index.search(query, everything(9), 5)) == 0
    fill(index, 5)
    assert len(index.search(query, only([], 9), 5)) == 0
    assert len(index.search(query, only([70, 90], 99), 5)) == 0
    assert len(index.search(query, everything(9), 0)) == 0
    assert len(index.search(query, everything(500), 200)) == 5
    with pytest.raises(ValueError, match="shape"):
        index.search(query[:3], everything(9), 5)


def test_a_deadline_that_passed_stops_the_search(index: VectorIndex) -> None:
    vectors = fill(index, 5)
    with pytest.raises(DeadlineExceededError):
        index.search(vectors[0], everything(5), 1, deadline=Deadline(at=1.0, monotonic=lambda: 2.0))


def test_rounds_of_adding_and_deleting_stay_bounded_and_complete(tmp_path: Path) -> None:
    index = open_index(tmp_path, VectorTuning(graph_min=10**9, settle_seconds=0.0))
    vectors = unit(np.random.default_rng(1).standard_normal((1500, D)))
    rid = revision = 0
    sizes = []
    for _ in range(4):
        first = rid
        for vector in vectors:
            rid, revision = rid + 1, revision + 1
            index.apply(stored(revision, rid, vector[None]))
        for at in range(0, 1500, 150):
            hits = index.search(vectors[at], everything(rid + 1), 1)
            assert hits.rids.tolist() == [first + 1 + at]
        assert len(index.search(vectors[0], everything(rid + 1), 5000)) == 1500
        for gone in range(first + 1, rid + 1):
            revision += 1
            index.apply(Change(revision, gone, None))
        wait_until(lambda: not index._renewal.due())
        index.flush()
        assert index.status().dead_entries <= 1024
        sizes.append(index.status().size_bytes)
    assert max(sizes) <= 2 * 1500 * D * 2 + 40 * 1500 + 65_536
    assert len(list(tmp_path.iterdir())) <= 3
    index.close()


# -- other models, damage, disks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "foreign", [{"model_id": "other"}, {"dimension": D + 1}, {"database_id": "another"}], ids=lambda f: next(iter(f))
)
def test_files_of_another_model_or_database_are_stale(tmp_path: Path, foreign: dict[str, Any]) -> None:
    index = open_index(tmp_path)
    fill(index, 30)
    index.close()
    other = open_index(tmp_path, **foreign)
    assert (other.available, other.watermark, other.durable_watermark, other.status().entries) == (True, 0, 0, 0)
    assert "another database" in other.status().message or "model" in other.status().message
    dimension = foreign.get("dimension", D)
    other.apply(stored(31, 31, np.eye(dimension, dtype=np.float32)[:1]))
    assert other.search(np.eye(dimension, dtype=np.float32)[0], everything(40), 3).rids.tolist() == [31]
    other.close()
    again = open_index(tmp_path, **foreign)
    assert (again.watermark, again.status().entries, again.status().message) == (31, 1, "")
    again.close()
    assert open_index(tmp_path).watermark == 0


def test_a_rebuild_replaces_the_vectors_of_another_model(tmp_path: Path) -> None:
    index = open_index(tmp_path)
    fill(index, 30)
    index.close()
    other = open_index(tmp_path, dimension=8)
    other.rebuild(iter([stored(40, 2, np.eye(8, dtype=np.float32)[:1])]), revision=44)
    assert (other.available, other.watermark, other.durable_watermark) == (True, 44, 44)
    assert other.search(np.eye(8, dtype=np.float32)[0], everything(9), 3).rids.tolist() == [2]
    other.close()
    again = open_index(tmp_path, dimension=8)
    assert again.status().entries == 1
    again.close()


def damage(path: Path, how: str) -> None:
    raw = path.read_bytes()
    if how == "half":
        path.write_bytes(raw[: len(raw) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "flip":
        middle = len(raw) // 3
        path.write_bytes(raw[:middle] + bytes([raw[middle] ^ 4]) + raw[middle + 1 :])
    elif how == "foreign":
        path.write_bytes(b"#!/bin/sh\nexit 1\n" * 10)
    elif how == "gone":
        path.unlink()
    else:
        path.unlink()
        path.mkdir()


@pytest.mark.parametrize("how", ["half", "empty", "flip", "foreign", "gone", "folder"])
@pytest.mark.parametrize("file", ["manifest", "rows", "vectors"])
def test_a_damaged_file_opens_empty_says_so_and_is_rebuilt(tmp_path: Path, file: str, how: str) -> None:
    index = open_index(tmp_path)
    fill(index, 2000)
    index.close()
    (path,) = tmp_path.glob(f"{file}*")
    damage(path, how)
    again = open_index(tmp_path)
    assert (again.watermark, again.status().entries, again.status().state) == (0, 0, IndexState.READY)
    assert bool(again.status().message) == ((file, how) != ("manifest", "gone"))
    assert str(tmp_path) not in again.status().message
    if how == "folder":
        path.rmdir()
    query = np.eye(D, dtype=np.float32)[0]
    again.rebuild(iter([stored(9, 3, query[None])]), revision=2000)
    assert again.status().message == ""
    again.close()
    last = open_index(tmp_path)
    assert (last.watermark, last.search(query, everything(9), 3).rids.tolist()) == (2000, [3])
    last.close()


def test_what_a_full_disk_refuses_waits_until_it_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = open_index(tmp_path)
    vectors = fill(index, 10)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(StorageFullError):
            index.flush()
        assert index.available
        index.apply(stored(11, 11, vectors[:1]))
        index.apply(stored(12, 12, vectors[1:2]))
        assert (index.status().state, index.watermark) == (IndexState.REBUILDING, 10)
        assert "full" in index.status().message
        with pytest.raises(IndexUnavailableError, match="full"):
            index.search(vectors[0], everything(20), 3)
        with pytest.raises(StorageFullError):
            index.flush()
        index.retry()
        assert index.waits
    index.retry()
    assert (index.status().state, index.watermark, index.waits) == (IndexState.READY, 12, False)
    assert set(index.search(vectors[0], everything(20), 2).rids.tolist()) == {0, 11}
    index.flush()
    index.close()


def test_a_disk_that_fails_again_and_again_fails_the_index_until_it_is_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = open_index(tmp_path)
    vectors = fill(index, 10)

    def broken(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", broken)
        index.apply(stored(11, 11, vectors[:1]))
        for _ in range(10):
            index.retry()
    assert (index.status().state, index.watermark) == (IndexState.FAILED, 10)
    index.apply(stored(12, 12, vectors[:1]))
    assert index.watermark == 10
    with pytest.raises(IndexUnavailableError):
        index.search(vectors[0], everything(20), 3)
    index.rebuild(iter([stored(1, 1, vectors[1:2])]), revision=12)
    assert index.search(vectors[1], everything(20), 3).rids.tolist() == [1]
    index.close()


def test_what_is_applied_during_a_rebuild_is_in_the_result(tmp_path: Path) -> None:
    index = open_index(tmp_path)
    vectors = fill(index, 6)

    def rows() -> Iterator[Change]:
        yield stored(1, 0, vectors[:1], first_vid=100)
        index.apply(stored(7, 9, vectors[1:2]))
        index.apply(Change(8, 0, None))
        assert index.search(vectors[1], everything(20), 1).rids.tolist() == [1]  # the present one still answers
        assert index.status().state is IndexState.REBUILDING
        yield stored(2, 5, vectors[5:6])

    index.rebuild(rows(), 2, revision=6)
    assert sorted(index.search(vectors[1], everything(20), 9).rids.tolist()) == [5, 9]
    assert index.watermark == 8
    index.close()


def test_a_closed_index_does_not_answer_and_closes_twice(tmp_path: Path) -> None:
    index = open_index(tmp_path)
    vectors = fill(index, 3)
    index.close()
    index.close()
    with pytest.raises(IndexUnavailableError):
        index.search(vectors[0], everything(5), 1)
    again = open_index(tmp_path)
    assert again.watermark == 3
    again.close()


def test_dropping_the_only_vector_of_a_memory_leaves_it_without(index: VectorIndex) -> None:
    vectors = fill(index, 3)
    index.apply(Change(4, 1, features(1), dead_vids=(200,)))
    assert (index.watermark, index.status().entries) == (4, 2)
    assert sorted(index.search(vectors[1], everything(5), 5).rids.tolist()) == [0, 2]


def test_a_vector_of_another_dimension_fails_the_index(index: VectorIndex) -> None:
    fill(index, 3)
    index.apply(stored(4, 4, np.ones((1, D + 1), np.float32)))
    assert (index.status().state, index.watermark) == (IndexState.FAILED, 3)
    with pytest.raises(ValueError, match="dimension"):
        index.rebuild(iter([stored(4, 4, np.ones((1, D + 1), np.float32))]))
    index.rebuild(iter([stored(4, 4, np.ones((1, D), np.float32))]))
    assert index.available


def test_usearch_is_not_loaded_into_the_daemon_s_process() -> None:
    code = "import sys, memxd.engine.indexes, memxd.index.vector; sys.exit('usearch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
