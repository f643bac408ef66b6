"""Stores are built through the engine once, and found again by their recipe."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import numpy as np

from memxd.bench.context import SCOPE, Bench, Options
from memxd.bench.keyword import open_leg
from memxd.bench.oracle import Oracle
from memxd.bench.progress import Progress
from memxd.model import Filter, SearchQuery


def options(tmp_path: Path, **more: object) -> Options:
    return Options(tmp_path / "work", tmp_path / "out", sizes=(300,), quick=True, hashing=True, **more)  # type: ignore[arg-type]


def test_a_store_is_built_once_and_answers(tmp_path: Path) -> None:
    stream = io.StringIO()
    with Bench.open(options(tmp_path), Progress(stream)) as bench:
        built = bench.store(300)
        assert bench.store(300) == built
        assert built.bytes > 100_000
        vector = tuple(bench.query_vectors(1)[0].tolist())
        with bench.engine(built.folder) as engine:
            assert engine.count(SCOPE, Filter())[0] == 300
            ask = SearchQuery(SCOPE, bench.questions(1, 300)[0], vector=vector, model_id=bench.embedder.info.id)
            assert engine.search(ask).candidates > 10
    assert stream.getvalue().count("kept for later runs") == 1


def test_a_store_of_another_seed_or_an_interrupted_one_is_not_taken(tmp_path: Path) -> None:
    with Bench.open(options(tmp_path), Progress(quiet=True)) as bench:
        built = bench.store(300)
        (built.folder / "bench.json").unlink()  # as an interrupted build leaves it
    with Bench.open(options(tmp_path), Progress(quiet=True)) as bench:
        again = bench.store(300)
        assert (again.folder / "bench.json").is_file()
    with Bench.open(options(tmp_path, seed=8), Progress(quiet=True)) as bench:
        assert bench.store(300).folder != built.folder
    with Bench.open(options(tmp_path, fresh=True), Progress(quiet=True)) as bench:
        before = (built.folder / "bench.json").stat().st_mtime_ns
        bench.store(300)
        once = (built.folder / "bench.json").stat().st_mtime_ns
        bench.store(300)
        assert before < once == (built.folder / "bench.json").stat().st_mtime_ns


def test_indexes_of_another_version_are_built_anew_before_anything_is_measured(tmp_path: Path) -> None:
    with Bench.open(options(tmp_path), Progress(quiet=True)) as bench:
        built = bench.store(300)
    shutil.rmtree(built.folder / "index")  # as good as unreadable
    with Bench.open(options(tmp_path), Progress(quiet=True)) as bench, open_leg(bench, bench.store(300)) as leg:
        assert len(leg.ask("the to of and a").rids)


def test_a_copy_may_be_written_to_and_goes_away(tmp_path: Path) -> None:
    with Bench.open(options(tmp_path), Progress(quiet=True)) as bench:
        with bench.copy(300) as copy:
            (copy.folder / "new").touch()
            assert copy.folder != bench.store(300).folder
        assert not copy.folder.exists()
        assert not (bench.store(300).folder / "new").exists()


def test_the_keyword_leg_finds_what_the_oracle_finds(tmp_path: Path) -> None:
    with Bench.open(options(tmp_path), Progress(quiet=True)) as bench:
        questions = bench.questions(30, 300)
        oracle = Oracle(bench.source.texts(300), questions, lambda _: None)
        with open_leg(bench, bench.store(300)) as leg:
            for question in questions:
                hits = leg.ask(question)
                numbers, scores = oracle.best(question, 30)
                assert leg.numbers(hits) == numbers.tolist(), question
                assert np.array_equal(hits.scores, scores), question
