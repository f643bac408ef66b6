"""What the tests of the vector index share: changes from vectors, and a naive index to compare with."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import numpy as np

from memxd._fast import dot_py
from memxd.index.selection import Selection
from memxd.index.vector import VectorIndex, VectorTuning
from memxd.model import Change, Chunk, RowFeatures

#: Scan only: no graph, no renewal.
PLAIN = VectorTuning(graph_min=10**9, dead_min=10**9)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows scaled to length one, float32."""
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def features(rid: int) -> RowFeatures:
    """A row that exists; the vector index looks at nothing else."""
    return RowFeatures(rid, 1, str(rid), 2, 1, 0.5, 0, None, None, 0, 0, None, rid, rid, (), False)


def chunks_of(first_vid: int, vectors: np.ndarray) -> tuple[Chunk, ...]:
    """One chunk for each row of ``vectors``."""
    return tuple(Chunk(first_vid + i, i, i, i + 1, v.astype(np.float16).tobytes()) for i, v in enumerate(vectors))


def stored(revision: int, rid: int, vectors: np.ndarray, first_vid: int | None = None) -> Change:
    """The change that gives a row these chunks."""
    vid = revision * 100 if first_vid is None else first_vid
    return Change(revision, rid, features(rid), chunks=chunks_of(vid, vectors))


def everything(capacity: int) -> Selection:
    """All rids below ``capacity``."""
    return Selection(np.arange(capacity, dtype=np.int32), capacity)


def only(rids: Iterable[int], capacity: int) -> Selection:
    """These rids."""
    return Selection(np.array(sorted(rids), np.int32), capacity)


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for the upkeep thread; fails the test when it takes too long."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the index did not come to rest"
        time.sleep(0.01)


class Naive:
    """A dict of chunks and a loop: slow, plain, right."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[Chunk, ...]] = {}

    def apply(self, change: Change) -> None:
        if change.features is None:
            self.rows.pop(change.rid, None)
        elif change.chunks is not None:
            self.rows[change.rid] = change.chunks
        else:
            kept = tuple(c for c in self.rows.get(change.rid, ()) if c.vid not in change.dead_vids)
            self.rows[change.rid] = kept

    def search(self, query: np.ndarray, allowed: Iterable[int], k: int) -> list[tuple[int, float, int]]:
        hits = []
        for rid in allowed:
            best: tuple[float, int] | None = None
            for chunk in self.rows.get(rid, ()):
                row = np.frombuffer(chunk.vector, np.float16).reshape(1, -1)
                cosine = float(dot_py.dot_rows(query, row, np.zeros(1, np.int32))[0])
                if best is None or cosine > best[0]:
                    best = (cosine, chunk.number)
            if best is not None:
                hits.append((rid, *best))
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:k]

    def check(self, index: VectorIndex, query: np.ndarray, selection: Selection, k: int, *, exact: bool = True) -> None:
        hits = index.search(query, selection, k, exact=exact)
        found = list(zip(hits.rids.tolist(), hits.cosines.tolist(), hits.chunks.tolist(), strict=True))
        assert found == self.search(query, selection.rids.tolist(), k)
        assert index.status().entries == sum(map(len, self.rows.values()))
