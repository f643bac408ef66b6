"""A keyword index on a temporary folder, changes and selections made easy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from memxd._fast import load_kernels
from memxd.index.lexical.analyzer import query_terms
from memxd.index.lexical.hits import LexicalHits
from memxd.index.lexical.index import LexicalIndex
from memxd.index.selection import Selection
from memxd.model import Change, RowFeatures


def selection(rids: Iterable[int], scope: int = 1) -> Selection:
    """Rows of a scope."""
    chosen = np.array(sorted(rids), np.int32)
    return Selection(chosen, int(chosen.max(initial=-1)) + 1, scope)


def put(revision: int, rid: int, text: str | None, scope: int = 1) -> Change:
    """A row with a new text, or (None) one of which something else changed."""
    features = RowFeatures(rid, scope, f"id-{rid}", 2, 1, 0.5, 0, None, None, 0, 0, None, 0, 0, (), False)
    return Change(revision, rid, features, text)


def gone(revision: int, rid: int) -> Change:
    """A deleted row."""
    return Change(revision, rid, None)


class Bench:
    """One folder, opened and opened again."""

    rows = staticmethod(selection)
    change = staticmethod(put)

    def __init__(self, directory: Path, kernel: Any) -> None:
        self.directory = directory
        self.kernel = kernel
        self.index = self.open()
        self.revision = 0

    def open(self, **settings: Any) -> LexicalIndex:
        self.index = LexicalIndex.open(self.directory, kernel=self.kernel, **settings)
        return self.index

    def reopen(self, **settings: Any) -> LexicalIndex:
        self.index.close()
        return self.open(**settings)

    def put(self, rid: int, text: str | None, scope: int = 1) -> None:
        self.revision += 1
        self.index.apply(put(self.revision, rid, text, scope))

    def remove(self, rid: int) -> None:
        self.revision += 1
        self.index.apply(gone(self.revision, rid))

    def hits(self, query: str, rids: Iterable[int] = range(64), k: int = 50, scope: int = 1) -> LexicalHits:
        return self.index.search(query_terms(query), selection(rids, scope), k)

    def find(self, query: str, rids: Iterable[int] = range(64), k: int = 50) -> list[int]:
        return self.hits(query, rids, k).rids.tolist()


@pytest.fixture(scope="session")
def kernel() -> ModuleType:
    return load_kernels("c").bm25  # type: ignore[return-value]


@pytest.fixture(scope="session")
def open_bench(kernel: Any) -> Callable[[Path], Bench]:
    return lambda directory: Bench(directory, kernel)


@pytest.fixture
def bench(tmp_path: Path, kernel: Any) -> Iterator[Bench]:
    made = Bench(tmp_path / "lexical", kernel)
    yield made
    made.index.close()
