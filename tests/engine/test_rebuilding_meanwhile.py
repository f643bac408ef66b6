"""A rebuild reads the store in many short snapshots; what changes between two of them is in the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from memxd.engine import Engine
from memxd.model import Change, IndexKind, NewMemory, Patch, Scope
from memxd.store import changes

A = Scope("a", "u")
TEXT = "The lighthouse keeper number {} counts ships"


def said(content: str) -> Patch:
    return Patch(frozenset({"content"}), content=content)


@pytest.mark.parametrize("kind", list(IndexKind))
def test_rows_that_change_between_two_pages_are_as_they_are_now(
    open_engine: Callable[[], Engine], monkeypatch: pytest.MonkeyPatch, kind: IndexKind
) -> None:
    monkeypatch.setattr(changes, "_BATCH", 5)
    engine = open_engine()
    ids = [engine.store(A, NewMemory(TEXT.format(n))).memory.id for n in range(40)]
    rows = engine._indexes._rebuilding._rows

    def meddling(kind: IndexKind) -> Iterator[Change]:
        """Before some rows are handed over: one behind and one before the place is changed or erased, others come."""
        for n, change in enumerate(rows(kind)):
            if n % 7 == 3 and n < 35:
                engine.update(A, ids[n - 2], said(f"An old smith named {n} mends clocks"))
                engine.update(A, ids[n + 4], said(f"A young weaver named {n} spins wool"))
                engine.update(A, ids[n + 5], Patch(frozenset({"tags"}), tags=("seen",)))
                engine.delete(A, ids[n - 3])
                engine.delete(A, ids[n + 3])
                made = engine.store(A, NewMemory(f"A short lived guest named {n}"))
                engine.store(A, NewMemory(f"A passing baker named {n} sells bread"))
                engine.delete(A, made.memory.id)
            yield change

    monkeypatch.setattr(engine._indexes._rebuilding, "_rows", meddling)
    assert list(engine.rebuild(kind))[-1].finished
    assert list(engine.verify())[-1].problems == ()
    engine.close()
    again = open_engine()  # and what was written to disk says the same
    assert list(again.verify())[-1].problems == ()


def test_a_rebuild_keeps_no_snapshot_open(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log can be emptied at any moment of it: a long reader would be in the way."""
    monkeypatch.setattr(changes, "_BATCH", 5)
    for n in range(12):
        engine.store(A, NewMemory(TEXT.format(n)))
    rows = engine._indexes._rebuilding._rows

    def emptying(kind: IndexKind) -> Iterator[Change]:
        for change in rows(kind):
            engine._store.empty_log()  # raises when somebody reads
            assert engine._store.sizes()[1] == 0
            yield change

    monkeypatch.setattr(engine._indexes._rebuilding, "_rows", emptying)
    for kind in IndexKind:
        assert list(engine.rebuild(kind))[-1].finished
