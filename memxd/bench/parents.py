"""The two systems memxd descends from, rebuilt from their published formulas over the same texts and vectors.

``MemXLike`` is arXiv 2603.16171: vector candidates 3k with cosine > .3 (a USearch graph stands in for its DiskANN) and
FTS5 keyword candidates (all words, as its newer code), reciprocal rank fusion, four factors, z-score and sigmoid,
rejection, both dedups. ``MemexLike`` is the memex service: every cosine, min(3k, 150) candidates, alpha x cosine +
(1 - alpha) x recency. Both in one process, without a network, a queue or an embedding: less than the parents do. Peers
of the end-to-end row; called by ``socket``.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memxd.bench.bare import bare_graph
from memxd.native import Index

if TYPE_CHECKING:
    from memxd.bench.context import Bench

Float32 = NDArray[np.float32]

#: What the parents tell of themselves; not measured here. Milliseconds; the second at about 120 requests a second.
PUBLISHED = {
    "MemX, published": "below 90 ms end to end at 220,349 records, query vector cached",
    "memex, published": "p50 110 ms a search, 160 ms a write, 113 requests/s on four cores",
}
_RRF, _TAU, _FLOOR = 60, 0.50, 0.3
_WEIGHTS = (0.45, 0.25, 0.05, 0.10)
_HALF_LIFE_DAYS, _ALPHA = 30.0, 0.7
_DAY = 86_400.0
_SCHEMA = """
CREATE TABLE memories (
    id INTEGER PRIMARY KEY, content TEXT, type TEXT, tags TEXT, importance REAL, created_at REAL,
    last_retrieved_at REAL, retrieval_count INTEGER, access_count INTEGER);
CREATE VIRTUAL TABLE words USING fts5(content, content='memories', content_rowid='id');
"""


@dataclass(slots=True)
class _Candidate:
    """One row under way through the pipeline."""

    id: int
    fused: float
    content: str
    type: str
    tags: str
    importance: float
    age_days: float
    uses: int
    score: float = 0.0


class MemXLike:
    """The pipeline of MemX over a database of its own in ``folder``. One thread; close it after use."""

    def __init__(self, folder: Path, texts: Sequence[str], graph: Index) -> None:
        """``texts`` n; ``graph``: a cosine index of their vectors, key = position."""
        self._graph = graph
        self._db = sqlite3.connect(folder / "memx.db", isolation_level=None)
        self._db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;" + _SCHEMA)
        now = time.time()
        rows = ((i, text, "semantic", "[]", 0.5, now - i % 90 * _DAY, None, 0, 0) for i, text in enumerate(texts))
        self._db.execute("BEGIN")
        self._db.executemany("INSERT INTO memories VALUES (?,?,?,?,?,?,?,?,?)", rows)
        self._db.execute("INSERT INTO words(words) VALUES ('rebuild')")
        self._db.execute("COMMIT")

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    def search(self, text: str, vector: Float32, k: int = 10) -> list[int]:
        """Positions of the best k, best first; empty = rejected."""
        near, cosines = self._by_vector(vector, 3 * k)
        named = self._by_words(text, 3 * k)
        if not named and (not cosines or max(cosines) < _TAU):
            return []
        fused: dict[int, float] = {}
        for leg in (near, named):
            for rank, row in enumerate(leg, 1):
                fused[row] = fused.get(row, 0.0) + 1.0 / (_RRF + rank)
        candidates = self._features(fused)
        _score(candidates)
        candidates.sort(key=lambda c: (-c.score, c.id))
        return [c.id for c in _distinct(candidates)[:k]]

    def _by_vector(self, vector: Float32, n: int) -> tuple[list[int], list[float]]:
        found = self._graph.search(vector, n, threads=1)
        cosines = 1.0 - found.distances
        keep = cosines > _FLOOR
        return found.keys[keep].tolist(), cosines[keep].tolist()

    def _by_words(self, text: str, n: int) -> list[int]:
        words = [word.replace('"', "") for word in text.split()]
        match = " ".join(f'"{word}"' for word in words if word)
        rows = self._db.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?", (match, n))
        return [row for (row,) in rows]

    def _features(self, fused: dict[int, float]) -> list[_Candidate]:
        marks = ",".join("?" * len(fused))
        now = time.time()
        rows = self._db.execute(
            "SELECT id, content, type, tags, importance, coalesce(last_retrieved_at, created_at), retrieval_count,"
            f" access_count FROM memories WHERE id IN ({marks})",
            list(fused),
        )
        return [
            _Candidate(i, fused[i], content, kind, tags, importance, max(0.0, now - seen) / _DAY, hits or looks)
            for i, content, kind, tags, importance, seen, hits, looks in rows
        ]


def _score(candidates: list[_Candidate]) -> None:
    """Four factors, their weighted sum, z-score and sigmoid over the candidates."""
    semantic, recency, frequency, importance = _WEIGHTS
    best = 2.0 / (_RRF + 1)
    raw = [
        semantic * c.fused / best
        + recency * 2.0 ** (-c.age_days / _HALF_LIFE_DAYS)
        + frequency * min(1.0, math.log(c.uses + 1) / 10.0)
        + importance * c.importance
        for c in candidates
    ]
    mean = sum(raw) / len(raw)
    deviation = math.sqrt(sum((r - mean) ** 2 for r in raw) / len(raw))
    for candidate, value in zip(candidates, raw, strict=True):
        candidate.score = 1.0 / (1.0 + math.exp(-((value - mean) / deviation if deviation else 0.0)))


def _distinct(candidates: list[_Candidate]) -> list[_Candidate]:
    """Each content once, then each type with the same tags once (untagged ones stay)."""
    seen: set[object] = set()
    kept = []
    for c in candidates:
        keys = {c.content.strip()} | ({(c.type, c.tags)} if c.tags != "[]" else set())
        if not keys & seen:
            kept.append(c)
        seen |= keys
    return kept


class MemexLike:
    """The formula of memex: every cosine by one matrix product in float32, then recency mixed in."""

    def __init__(self, vectors: Float32) -> None:
        """``vectors`` float32[n, d] of unit length."""
        self._vectors = vectors
        self._created = time.time() - np.arange(len(vectors)) % 90 * _DAY

    def search(self, vector: Float32, k: int = 10) -> list[int]:
        """Positions of the best k, best first."""
        cosines = self._vectors @ vector
        n = min(3 * k, 150, len(cosines))
        near = np.argpartition(-cosines, n - 1)[:n]
        age = (time.time() - self._created[near]) / _DAY
        scores = _ALPHA * cosines[near] + (1 - _ALPHA) * np.exp(-math.log(2) / _HALF_LIFE_DAYS * age)
        order = np.lexsort((near, -scores))[:k]
        best: list[int] = near[order].tolist()
        return best


@contextmanager
def parents(bench: Bench, size: int) -> Iterator[tuple[MemXLike, MemexLike]]:
    """Both over the texts and vectors of a store of ``size`` records; gone with their files at the block's end."""
    vectors, _ = bench.vectors.rows(0, size)
    with bench.folder("parents-") as folder:
        memx = MemXLike(folder, list(bench.source.texts(size)), bare_graph(bench, size).index)
        try:
            yield memx, MemexLike(vectors)
        finally:
            memx.close()
