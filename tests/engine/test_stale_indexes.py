"""Index files that do not belong to the database they lie beside are never believed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memxd._fast import load_kernels
from memxd.embed import HashingEmbedder
from memxd.engine import Engine, uuid7_factory
from memxd.model import Clock, Filter, IndexKind, IndexState, Mode, NewMemory, Scope, SearchQuery

A = Scope("a", "u")
LEGS = (Mode.VECTOR, Mode.KEYWORD)
Opener = Callable[..., Engine]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def serve(data: Path, clock: Clock) -> Iterator[Opener]:
    """Opens an engine on ``data``; the one before is closed first."""
    engines: list[Engine] = []

    def open_(dimension: int = 384) -> Engine:
        for engine in engines:
            engine.close()
        embedder = HashingEmbedder(dimension)
        engines.append(Engine.open(data, embedder=embedder, kernels=load_kernels(), clock=clock, ids=uuid7_factory()))
        return engines[-1]

    yield open_
    for engine in engines:
        engine.close()


def store(engine: Engine, *texts: str) -> None:
    for text in texts:
        engine.store(A, NewMemory(text, allow_duplicate=True))


def find(engine: Engine, words: str, mode: Mode) -> list[str]:
    answer = engine.search(SearchQuery(A, words, mode=mode, k=100))
    assert answer.degraded == ()
    return sorted(text for hit in answer.hits if all(word in (text := hit.memory.content) for word in words.split()))


def states(engine: Engine) -> set[tuple[IndexState, int]]:
    return {(index.state, index.watermark) for index in engine.status().indexes}


def test_an_emptied_store_goes_on_with_another_model(serve: Opener) -> None:
    engine = serve(384)
    store(engine, "the cat sat on the mat")
    engine.delete_many(A, Filter(), False, None)
    engine = serve(64)
    store(engine, "a feline rested on a rug")
    for _ in range(2):
        assert states(engine) == {(IndexState.READY, engine.status().revision)}
        for mode in LEGS:
            assert find(engine, "feline rug", mode) == ["a feline rested on a rug"]
        engine = serve(64)


def test_an_older_database_put_back_rebuilds_what_is_ahead_of_it(serve: Opener, data: Path) -> None:
    engine = serve()
    store(engine, *(f"old {n} tea" for n in range(5)))
    engine.close()
    shutil.copy(data / "memxd.db", data.parent / "old.db")
    engine = serve()
    store(engine, *(f"new {n} milk" for n in range(30)))
    engine.close()
    shutil.copy(data.parent / "old.db", data / "memxd.db")
    engine = serve()
    assert states(engine) == {(IndexState.READY, 5)}
    fresh = [f"fresh {n} cocoa" for n in range(3)]
    store(engine, *fresh)
    for _ in range(2):
        for mode in LEGS:
            assert find(engine, "milk", mode) == []
            assert find(engine, "cocoa", mode) == fresh
        assert states(engine) == {(IndexState.READY, 8)}
        engine = serve()


def test_indexes_ahead_stay_foreign_when_their_rebuild_is_cut_off(serve: Opener, data: Path) -> None:
    """The database overtakes them before they are built anew: their number alone would make them look right."""
    engine = serve()
    store(engine, "old tea")
    engine.close()
    shutil.copytree(data, data.parent / "old")
    engine = serve()
    store(engine, "two milk")
    engine.close()
    shutil.copytree(data / "index", data.parent / "ahead")
    shutil.copy(data.parent / "old" / "memxd.db", data / "memxd.db")
    engine = serve()
    store(engine, "two cocoa", "three cocoa")
    engine.close()
    shutil.rmtree(data / "index")
    shutil.copytree(data.parent / "ahead", data / "index")
    engine = serve()
    for mode in LEGS:
        assert find(engine, "cocoa", mode) == ["three cocoa", "two cocoa"]
        assert find(engine, "milk", mode) == []


def test_indexes_of_another_database_are_built_anew(serve: Opener, data: Path) -> None:
    engine = serve()
    store(engine, "alpha milk", "beta milk")
    engine.close()
    data.rename(data.parent / "other")
    engine = serve()
    store(engine, "alpha cocoa", "beta cocoa")
    engine.close()
    shutil.rmtree(data / "index")
    shutil.copytree(data.parent / "other" / "index", data / "index")
    engine = serve()
    assert states(engine) == {(IndexState.READY, 2)}
    for mode in LEGS:
        assert find(engine, "cocoa", mode) == ["alpha cocoa", "beta cocoa"]
        assert find(engine, "milk", mode) == []
    assert next(i for i in engine.status().indexes if i.kind is IndexKind.COLUMNS).entries == 2
