"""Another embedding model: the former one answers until all is embedded again, then the new one, and never both."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from memxd._fast import load_kernels
from memxd.embed import Embedder, HashingEmbedder, Matrix, ModelInfo, Span, Vector
from memxd.engine import Engine, uuid7_factory
from memxd.errors import EmbedderUnavailableError, IndexUnavailableError
from memxd.model import (
    NO_DEADLINE,
    SECOND,
    Change,
    ChangePhase,
    Deadline,
    DegradedCause,
    IndexKind,
    IndexState,
    Mode,
    NewMemory,
    Patch,
    Progress,
    Scope,
    SearchQuery,
)
from memxd.store import ReadTxn

A = Scope("a", "u")
_SECONDS = 20.0


class Gated:
    """A hashing embedder under another name, which embeds as many passages as a test lets it."""

    def __init__(self, dimension: int = 384, name: str = "", *, remote: bool = False) -> None:
        self._inner = HashingEmbedder(dimension)
        inner = self._inner.info
        values = {field: getattr(inner, field) for field in inner.__dataclass_fields__}
        self.info = ModelInfo(**{**values, "id": name or inner.id, "remote": remote})
        self.gate = threading.Event()
        self.gate.set()
        self.limit: int | None = None
        self.down = False
        self.closed = False
        self.seen: list[str] = []

    @property
    def available(self) -> bool:
        return not self.down

    @property
    def message(self) -> str:
        return ""

    def embed_query(self, text: str, deadline: Deadline = NO_DEADLINE) -> Vector:
        # As if it were another model: of the same texts other vectors.
        return self._turned(self._inner.embed_query(text)[None])[0]

    def embed_passages(self, texts: Sequence[str], deadline: Deadline = NO_DEADLINE) -> Matrix:
        while not self.gate.wait(0.01):
            deadline.check()
        if self.down:
            raise EmbedderUnavailableError("the endpoint is down")
        self.seen += texts
        return self._turned(self._inner.embed_passages(texts))

    def _turned(self, rows: Matrix) -> Matrix:
        return rows if self.info.id == self._inner.info.id else rows[:, ::-1].copy()

    def split(self, text: str) -> list[Span]:
        return self._inner.split(text)

    def close(self) -> None:
        self.closed = True


Open = Callable[..., Engine]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    engines: list[Engine] = []

    def open_(embedder: Embedder, former: Embedder | None = None) -> Engine:
        for engine in engines:
            engine.close()
        engine = Engine.open(
            tmp_path / "data",
            embedder=embedder,
            kernels=load_kernels(),
            clock=lambda: 1_760_000_000 * SECOND,
            ids=uuid7_factory(),
            former=lambda id: former if former is not None and former.info.id == id else None,
        )
        engines.append(engine)
        return engine

    yield open_
    for engine in engines:
        engine.close()


def _wait(done: Callable[[], bool]) -> None:
    until = time.monotonic() + _SECONDS
    while not done():
        assert time.monotonic() < until, "it takes too long"
        time.sleep(0.01)


def _changed(engine: Engine) -> None:
    _wait(lambda: engine.status().model_change is None)


def _filled(opened: Open, count: int = 200) -> None:
    engine = opened(Gated())
    for n in range(count):
        engine.store(A, NewMemory(f"memory number {n} about topic{n}"))


def _finds(engine: Engine, n: int, mode: Mode = Mode.VECTOR) -> bool:
    answer = engine.search(SearchQuery(A, f"memory number {n} about topic{n}", mode=mode, k=1))
    return bool(answer.hits) and answer.hits[0].memory.content.endswith(f"topic{n}")


def _verified(engine: Engine) -> None:
    assert list(engine.verify())[-1].problems == ()


@pytest.mark.parametrize(("dimension", "name"), [(768, ""), (384, "other-384")])
def test_the_former_model_answers_until_the_next_has_all(opened: Open, dimension: int, name: str) -> None:
    _filled(opened)
    former, target = Gated(), Gated(dimension, name)
    target.gate.clear()
    engine = opened(target, former)
    change = engine.status().model_change
    assert change is not None
    assert (change.from_id, change.to_id, change.to_dimension) == (former.info.id, target.info.id, dimension)
    assert (change.former_serves, change.total, change.phase) == (True, 200, ChangePhase.EMBEDDING)
    engine.store(A, NewMemory("memory number 900 about topic900"))
    assert all(_finds(engine, n) for n in (0, 57, 199, 900))
    target.gate.set()
    _changed(engine)
    assert engine.status().model.id == target.info.id
    assert all(_finds(engine, n) for n in (0, 57, 199, 900))
    assert engine.status().vectors_pending == 0
    _verified(engine)
    _wait(lambda: former.closed)


def test_without_the_former_model_words_answer_and_say_so(opened: Open) -> None:
    _filled(opened)
    target = Gated(768)
    target.gate.clear()
    engine = opened(target)
    answer = engine.search(SearchQuery(A, "topic57"))
    assert [h.memory.content for h in answer.hits][:1] == ["memory number 57 about topic57"]
    assert [d.cause for d in answer.degraded][:1] == [DegradedCause.MODEL_MISMATCH]
    with pytest.raises(IndexUnavailableError):
        engine.search(SearchQuery(A, "topic57", mode=Mode.VECTOR))
    stored = engine.store(A, NewMemory("memory number 900 about topic900"))
    assert stored.memory.vector_pending
    target.gate.set()
    _changed(engine)
    _wait(lambda: engine.status().vectors_pending == 0)
    assert engine.search(SearchQuery(A, "topic57")).degraded == ()
    assert all(_finds(engine, n) for n in (0, 57, 199, 900))
    _verified(engine)


def test_a_stop_in_the_middle_costs_nothing_that_was_made(opened: Open) -> None:
    _filled(opened, 300)
    first = Gated(768)
    engine = opened(first)
    _wait(lambda: len(first.seen) >= 64)
    first.gate.clear()
    engine.close()
    second = Gated(768)
    engine = opened(second)
    _changed(engine)
    seen = first.seen + second.seen
    assert len(set(seen)) == 300
    assert len(seen) <= 300 + 64
    _verified(engine)


def test_a_change_taken_back_keeps_the_vectors_and_the_way_there(opened: Open) -> None:
    _filled(opened, 300)
    there = Gated(768)
    engine = opened(there, Gated())
    _wait(lambda: len(there.seen) >= 128)
    there.gate.clear()
    engine.close()
    back = Gated()
    engine = opened(back)
    assert engine.status().model_change is None
    assert all(_finds(engine, n) for n in (0, 299))
    assert back.seen == []
    page = engine.search(SearchQuery(A, "topic5", k=1))
    changed = page.hits[0].memory
    engine.update(A, changed.id, Patch(frozenset({"content"}), content="memory number 77777 about topic77777"))
    again = Gated(768)
    engine = opened(again)
    _changed(engine)
    assert len(again.seen) <= 300 - 64 + 1
    assert "memory number 77777 about topic77777" in again.seen
    assert _finds(engine, 77777)
    _verified(engine)


def test_what_is_stored_changed_and_deleted_meanwhile_is_right_afterwards(opened: Open) -> None:
    _filled(opened)
    target = Gated(384, "other-384")
    engine = opened(target, Gated())
    stop = threading.Event()
    stored: list[int] = []

    def write() -> None:
        n = 1_000
        while not stop.is_set():
            engine.store(A, NewMemory(f"memory number {n} about topic{n}"))
            stored.append(n)
            n += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        [hit] = engine.search(SearchQuery(A, "memory number 3 about topic3", k=1)).hits
        engine.delete(A, hit.memory.id)
        _changed(engine)
    finally:
        stop.set()
        writer.join()
    _wait(lambda: engine.status().vectors_pending == 0)
    assert all(_finds(engine, n) for n in (0, 57, 199, *stored))
    assert not _finds(engine, 3)
    _verified(engine)


def test_private_memories_never_reach_a_remote_model(opened: Open) -> None:
    engine = opened(Gated())
    engine.store(A, NewMemory("the public plan is to paint the fence"))
    engine.store(A, NewMemory("the secret plan is to sell the house", private=True))
    target = Gated(768, "far-768", remote=True)
    engine = opened(target)
    _changed(engine)
    assert target.seen == ["the public plan is to paint the fence"]
    status = engine.status()
    assert (status.memories, status.vectors_pending) == (2, 1)
    answer = engine.search(SearchQuery(A, "secret plan house", explain=True))
    assert answer.hits[0].memory.private
    assert any("remote embedder" in note for note in answer.hits[0].explanation.notes)  # type: ignore[union-attr]
    home = Gated()
    engine = opened(home)
    _changed(engine)
    assert engine.status().vectors_pending == 0
    _verified(engine)


def test_an_outage_is_told_and_passes(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memxd.engine.reembedding.RETRY_SECONDS", 0.02)
    _filled(opened, 10)
    target = Gated(768)
    target.down = True
    engine = opened(target, Gated())
    _wait(lambda: (c := engine.status().model_change) is not None and "down" in c.message)
    assert _finds(engine, 3)
    target.down = False
    _changed(engine)
    assert _finds(engine, 3)


def test_after_the_change_a_start_finds_an_index_that_needs_no_rebuild(opened: Open) -> None:
    _filled(opened)
    engine = opened(Gated(768))
    _changed(engine)
    engine = opened(Gated(768))
    [vector] = [s for s in engine.status().indexes if s.kind is IndexKind.VECTOR]
    assert (vector.state, vector.message, vector.entries) == (IndexState.READY, "", 200)
    assert "768" in vector.stamp
    assert _finds(engine, 57)


def test_another_target_in_the_middle_begins_anew(opened: Open) -> None:
    _filled(opened)
    first = Gated(768)
    engine = opened(first)
    _wait(lambda: len(first.seen) >= 64)
    first.gate.clear()
    third = Gated(256)
    engine = opened(third)
    _changed(engine)
    assert len(set(third.seen)) == 200
    _verified(engine)


def test_compact_drops_what_was_made_for_a_model_that_is_not_chosen_any_more(opened: Open, tmp_path: Path) -> None:
    _filled(opened)
    there = Gated(768)
    engine = opened(there)
    _wait(lambda: len(there.seen) >= 64)
    there.gate.clear()
    engine = opened(Gated())
    with engine._store.read() as read:
        assert read.next_model() == there.info.id
    list(engine.compact())
    with engine._store.read() as read:
        assert read.next_model() is None
        assert not read.has_table("next_chunks")
    assert _finds(engine, 57)
    _verified(engine)


def test_one_commit_never_brings_vectors_of_the_former_model_to_the_next(opened: Open) -> None:
    """A group that ends with the exchange: what stood in it was embedded with the former model."""
    _filled(opened, 20)
    former, target = Gated(), Gated(384, "other-384")
    engine = opened(target, former)
    _changed(engine)
    with engine._store.read() as read:
        rows = [change for change in read.all_rows() if change.chunks]
    wanted = {change.text: target.embed_passages([change.text or ""])[0].astype("<f2").tobytes() for change in rows}
    assert len(rows) == 20
    assert all([c.vector for c in change.chunks or ()] == [wanted[change.text]] for change in rows)


@pytest.mark.parametrize(("dimension", "name"), [(768, ""), (384, "other-384")])
def test_a_rebuild_that_the_exchange_overtakes_is_done(opened: Open, dimension: int, name: str) -> None:
    _filled(opened)
    target = Gated(dimension, name)
    target.gate.clear()
    engine = opened(target, Gated())
    steps = engine.rebuild(IndexKind.VECTOR)
    reading, go_on = threading.Event(), threading.Event()
    rows_after = ReadTxn.rows_after

    def slow(self: ReadTxn, after_rid: int, *args: int, **how: bool) -> list[Change]:
        if threading.current_thread().name == "memxd-rebuild-vector":
            reading.set()
            assert go_on.wait(_SECONDS)
        return rows_after(self, after_rid, *args, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReadTxn, "rows_after", slow)
        answered: list[Progress] = []
        caller = threading.Thread(target=lambda: answered.extend(steps))
        caller.start()
        assert reading.wait(_SECONDS)
        target.gate.set()
        _changed(engine)
        go_on.set()
        caller.join(_SECONDS)
    assert answered
    assert answered[-1].finished
    assert {status.state for status in engine.status().indexes} == {IndexState.READY}
    assert all(_finds(engine, n) for n in (0, 7, 199))
    _verified(engine)
