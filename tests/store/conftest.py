"""What the store's tests share: a clock that stands still, ids that count, a store on a real file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memxd.model import Change, MemoryType, Micros, Scope
from memxd.store import Row, Store

DEFAULT = Scope()
START: Micros = 1_700_000_000_000_000


class Clock:
    """Time that passes only when a test says so."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> Micros:
        return self.now

    def tick(self, micros: Micros = 1) -> Micros:
        self.now += micros
        return self.now


class Ids:
    """UUIDv7-shaped ids that grow."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, at: Micros) -> str:
        self.count += 1
        return f"{at // 1000:012x}"[:8] + f"-{at // 1000 & 0xFFFF:04x}-7000-8000-{self.count:012x}"


class Bench:
    """A store with its clock, its ids, what its listener was told, and short ways to fill it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clock = Clock()
        self.ids = Ids()
        self.changes: list[Change] = []
        self.counters: list[tuple[int, int, int, Micros | None]] = []
        self.store = self.opened()

    def opened(self) -> Store:
        self.store = Store.open(self.directory, clock=self.clock, ids=self.ids)
        self.store.on_commit = self.changes.extend
        self.store.on_counters = self.counters.extend
        return self.store

    def reopened(self) -> Store:
        self.store.close()
        return self.opened()

    def put(self, content: str = "a memory", scope: Scope = DEFAULT, **fields: Any) -> Row:
        self.clock.tick()
        values = {"type": MemoryType.SEMANTIC, "chunks": ((0, len(content), b"\0\x3c" * 4),), **fields}
        return self.store.write(lambda txn: txn.insert(scope, content=content, **values))

    def get(self, row: Row) -> Row | None:
        with self.store.read() as txn:
            return txn.get(row.memory.scope, row.memory.id)

    def again(self, row: Row) -> Row:
        found = self.get(row)
        assert found is not None
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "data")
    yield made
    made.store.close()


@pytest.fixture
def new_bench(tmp_path: Path) -> Iterator[Callable[[str], Bench]]:
    """Makes stores in folders of the given names; closes them all."""
    made: list[Bench] = []

    def make(name: str) -> Bench:
        made.append(Bench(tmp_path / name))
        return made[-1]

    yield make
    for one in made:
        one.store.close()
