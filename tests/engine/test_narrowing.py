"""Rows by metadata: what is remembered and corrected equals what SQLite answers anew."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from memxd.engine import Engine
from memxd.engine import narrowing as module
from memxd.engine.narrowing import Narrowing
from memxd.model import Filter, NewMemory, Patch, Scope

HERE, THERE = Scope("here", "u"), Scope("there", "u")
FILTERS = [Filter(metadata=m) for m in ({"a": 1}, {"a": 1, "b": "x"}, {"b": "y"}, {"c": None})]


def check(engine: Engine, known: Narrowing) -> None:
    with engine._store.read() as read:
        for scope in (HERE, THERE, Scope("nobody", "u")):
            for wanted in FILTERS:
                rids = known.rids(read, scope, wanted)
                assert rids is not None
                assert rids.tolist() == read.rids_matching(scope, metadata=wanted.metadata)


def test_remembered_rows_follow_every_change(open_engine: Callable[[], Engine]) -> None:
    engine, known, rng = open_engine(), Narrowing(), random.Random(4)
    ids: list[tuple[Scope, str]] = []

    def metadata() -> dict[str, object]:
        return {"a": rng.randrange(3), "b": rng.choice("xy")} | ({"c": None} if rng.random() < 0.3 else {})

    for n in range(120):
        scope = rng.choice([HERE, HERE, THERE])
        kind = rng.random() if len(ids) > 10 else 0
        if kind < 0.6:
            ids.append((scope, engine.store(scope, NewMemory(f"text {n}", metadata=metadata())).memory.id))
        elif kind < 0.8:
            scope, id = rng.choice(ids)
            engine.update(scope, id, Patch(frozenset({"metadata"}), metadata=metadata()))
        else:
            engine.delete(*ids.pop(rng.randrange(len(ids))))
        if rng.random() < 0.4:
            check(engine, known)
    check(engine, known)


def test_too_many_changes_and_too_many_answers_are_asked_anew(
    open_engine: Callable[[], Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CHANGES", 30)
    engine, known = open_engine(), Narrowing()
    check(engine, known)
    for n in range(41):
        engine.store(HERE, NewMemory(f"text {n}", metadata={"a": 1, "n": n}))
    check(engine, known)
    with engine._store.read() as read:
        for n in range(3 * module._ANSWERS):
            rids = known.rids(read, HERE, Filter(metadata={"n": n}))
            assert rids is not None
            assert len(rids) == 1
    assert len(known._known) <= module._ANSWERS


def test_ids_are_looked_up_and_nothing_narrows_nothing(open_engine: Callable[[], Engine]) -> None:
    engine, known = open_engine(), Narrowing()
    stored = engine.store(HERE, NewMemory("text", metadata={"a": 1})).memory
    with engine._store.read() as read:
        assert known.rids(read, HERE, Filter()) is None
        for metadata, expected in (({}, 1), ({"a": 1}, 1), ({"a": 2}, 0)):
            rids = known.rids(read, HERE, Filter(ids=frozenset({stored.id, "no"}), metadata=metadata))
            assert rids is not None
            assert len(rids) == expected
