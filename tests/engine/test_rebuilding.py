"""An index that breaks while running is told of, passed by, and comes back."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from memxd.engine import Engine
from memxd.errors import CancelledError, IndexUnavailableError, StorageFailedError, StorageFullError
from memxd.model import Change, Deadline, DegradedCause, IndexKind, IndexState, Mode, NewMemory, Scope, SearchQuery

A = Scope("a", "u")


def _break(engine: Engine, index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next change fail in one index, as a fault of its own would."""

    def fail(change: Change) -> None:
        raise OSError("the disk is on fire")

    monkeypatch.setattr(getattr(engine._indexes, index), "apply_all", fail)
    engine.store(A, NewMemory("The vet is called Marlow", allow_duplicate=True))
    monkeypatch.undo()


def _state(engine: Engine, kind: IndexKind) -> IndexState:
    return next(s.state for s in engine.status().indexes if s.kind is kind)


@pytest.mark.parametrize(
    ("index", "kind", "cause"),
    [
        ("lexical", IndexKind.KEYWORD, DegradedCause.KEYWORD_INDEX_UNAVAILABLE),
        ("vector", IndexKind.VECTOR, DegradedCause.VECTOR_INDEX_UNAVAILABLE),
    ],
)
def test_the_other_leg_answers_and_says_so_until_the_rebuild(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, index: str, kind: IndexKind, cause: DegradedCause
) -> None:
    _break(engine, index, monkeypatch)
    assert _state(engine, kind) is IndexState.FAILED
    answer = engine.search(SearchQuery(A, "vet Marlow"))
    assert [h.memory.content for h in answer.hits] == ["The vet is called Marlow"]
    assert [d.cause for d in answer.degraded] == [cause]
    last = list(engine.rebuild(kind))[-1]
    assert last.finished
    assert _state(engine, kind) is IndexState.READY
    for mode in (Mode.VECTOR, Mode.KEYWORD):
        healed = engine.search(SearchQuery(A, "vet Marlow", mode=mode))
        assert (len(healed.hits), healed.degraded) == (1, ())


def test_both_legs_down_is_an_error_not_an_empty_answer(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.store(A, NewMemory("Something known"))
    _break(engine, "lexical", monkeypatch)
    _break(engine, "vector", monkeypatch)
    engine.store(A, NewMemory("Something else"))
    with pytest.raises(IndexUnavailableError):
        engine.search(SearchQuery(A, "vet Marlow"))


def test_columns_down_is_an_error_until_rebuilt(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    _break(engine, "columns", monkeypatch)
    with pytest.raises(IndexUnavailableError):
        engine.search(SearchQuery(A, "vet Marlow"))
    list(engine.rebuild(IndexKind.COLUMNS))
    assert len(engine.search(SearchQuery(A, "vet Marlow")).hits) == 1


def test_what_commits_while_an_index_is_rebuilt_is_in_it(open_engine: Callable[[], Engine]) -> None:
    engine = open_engine()
    list(engine.store_many((A, NewMemory(f"memory number {n}"), "") for n in range(300)))
    progress = engine.rebuild(None)
    for n, _ in enumerate(progress):
        engine.store(A, NewMemory(f"latecomer {n}"))
        if n > 20:
            break
    list(progress)
    for mode in (Mode.VECTOR, Mode.KEYWORD):
        for n in range(3):
            found = engine.search(SearchQuery(A, f"latecomer {n}", mode=mode))
            assert found.hits[0].memory.content == f"latecomer {n}"


def test_space_that_comes_back_heals_every_index(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.store(A, NewMemory("A first memory"))
    engine.flush()

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        patch.setattr("memxd.index.columns.columns.write_snapshot", full)
        engine.store(A, NewMemory("The vet is called Marlow"))
        assert _state(engine, IndexKind.VECTOR) is IndexState.REBUILDING
        with pytest.raises(StorageFullError):
            engine.flush()
    assert engine.flush() == engine.status().revision
    assert {index.state for index in engine.status().indexes} == {IndexState.READY}
    found = engine.search(SearchQuery(A, "vet Marlow", mode=Mode.VECTOR))
    assert found.hits[0].memory.content == "The vet is called Marlow"


def test_nothing_is_written_beside_a_database_that_was_exchanged(
    open_engine: Callable[[], Engine], tmp_path: Path
) -> None:
    engine = open_engine()
    engine.store(A, NewMemory("The vet is called Marlow"))
    path = tmp_path / "data" / "memxd.db"
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)
    with pytest.raises(StorageFailedError, match="removed or replaced"):
        engine.flush()
    with pytest.raises(StorageFailedError, match="removed or replaced"):
        list(engine.rebuild(IndexKind.KEYWORD))


def test_a_rebuild_that_is_broken_off_gives_its_snapshot_back(open_engine: Callable[[], Engine]) -> None:
    engine = open_engine()
    list(engine.store_many((A, NewMemory(f"memory number {n}"), "") for n in range(1_200)))
    gone = threading.Event()
    progress = engine.rebuild(IndexKind.KEYWORD, Deadline(is_cancelled=gone.is_set))
    next(progress)
    gone.set()
    with pytest.raises(CancelledError) as kept:  # and its traceback with it, as whoever logs it does
        list(progress)
    closing = threading.Thread(target=engine.close, daemon=True)
    closing.start()
    closing.join(20)
    assert not closing.is_alive()
    assert kept.value.__traceback__ is not None
