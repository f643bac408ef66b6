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
from memxd.model import Change, RowFeatures


class Rows:
    """A selection."""

    def __init__(self, rids: Iterable[int]) -> None:
        self.rids = np.array(sorted(rids), np.int32)
        self.mask = np.zeros(int(self.rids.max(initial=-1)) + 1, np.uint8)
        self.mask[self.rids] = 1

    def __len__(self) -> int:
        return self.rids.shape[0]


def put(revision: int, rid: int, text: str | None) -> Change:
    """A row with a new text, or (None) one of which something else changed."""
    features = RowFeatures(rid, 1, f"id-{rid}", 2, 1, 0.5, 0, None, None, 0, 0, None, 0, 0, (), False)
    return Change(revision, rid, features, text)


def gone(revision: int, rid: int) -> Change:
    """A deleted row."""
    return Change(revision, rid, None)


class Bench:
    """One folder, opened and opened again."""

    rows = Rows
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

    def put(self, rid: int, text: str | None) -> None:
        self.revision += 1
        self.index.apply(put(self.revision, rid, text))

    def remove(self, rid: int) -> None:
        self.revision += 1
        self.index.apply(gone(self.revision, rid))

    def hits(self, query: str, rids: Iterable[int] = range(64), k: int = 50) -> LexicalHits:
        return self.index.search(query_terms(query), Rows(rids), k)

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
