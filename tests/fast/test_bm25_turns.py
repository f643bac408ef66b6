"""BM25 by lists in turn and by windows: equal bits to the twin for questions of few and of many words, with lists of
every length, several segments, dead documents, other scopes, and selections from a few rows to all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bm25kit import bits, packed
from memxd._fast import Kernels, load_kernels

NONE = np.empty(0, np.int32)
KERNELS = ("c", "py")


class Made:
    """Random segments as both kernels' objects; scope 1 is asked."""

    def __init__(self, seed: int, terms: int, sizes: list[int]) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.kernels = [load_kernels(name) for name in KERNELS]
        self.parts: list[list[Any]] = [[], []]
        self.lists: list[list[Any]] = [[], []]
        self.rows = self.total = first = 0
        mine = []
        for number, size in enumerate(sizes):
            rids = np.sort(rng.choice(2 * size, size, replace=False)).astype(np.int32) + np.int32(first)
            first += 2 * size
            lengths = np.full(size, 7, np.int32) if seed % 3 == 0 else rng.integers(1, 30, size).astype(np.int32)
            if seed % 5 == 0:
                lengths[rng.integers(0, size, 3)] = 70_000
            own = self._segment(rids, lengths, number == 1)
            self.rows, self.total = self.rows + int(own.sum()), self.total + int(lengths[own].sum())
            mine.append(rids[own])
            for _ in range(terms):
                self._list(lengths, large=seed % 7 == 0)
        self.mine = np.concatenate(mine)

    def _segment(self, rids: Any, lengths: Any, is_tail: bool) -> Any:
        rng, size = self.rng, len(rids)
        died, dead = np.zeros(size, np.int32), np.zeros(size, np.int32)
        gone = rng.choice(size, int(rng.choice([0, 5, size // 10])), replace=False)
        dead[: len(gone)], died[gone] = gone, np.arange(1, len(gone) + 1)
        seen = int(rng.integers(0, len(gone) + 1))
        scopes = rng.choice([1, 1, 2], size).astype(np.int32) if is_tail else None
        low, high = (0, size) if is_tail or rng.random() < 0.5 else sorted(map(int, rng.integers(0, size + 1, 2)))
        for kernel, parts in zip(self.kernels, self.parts, strict=True):
            parts.append((kernel.bm25.Segment(rids, lengths, died, dead, scopes), seen, low, high))
        inside = np.zeros(size, np.bool_)
        inside[low:high] = True
        return inside & ((died == 0) | (died > seen)) & (True if scopes is None else scopes == 1)

    def _list(self, lengths: Any, *, large: bool) -> None:
        rng = self.rng
        has = rng.random(len(lengths)) < rng.choice([0.0, 0.0005, 0.004, 0.02, 0.1, 0.5, 1.0])
        if rng.random() < 0.3:  # all in one corner
            start = int(rng.integers(0, len(lengths)))
            has[:start] = has[start + len(lengths) // 5 :] = False
        docs = np.flatnonzero(has).astype(np.int32)
        tfs = rng.geometric(rng.choice([0.7, 1.0]), len(docs))
        if len(docs) and rng.random() < 0.2:
            tfs[rng.integers(0, len(docs))] = rng.choice([254, 255, 400, 70_000] if large else [254, 255, 400])
        words = packed(tfs.tolist(), lengths[docs].tolist())
        for kernel, lists in zip(self.kernels, self.lists, strict=True):
            lists.append(kernel.bm25.Postings(docs, *words, len(lengths)) if len(docs) else None)

    def ask(self, share: float, k: int, k1: float, b: float, weights: Any) -> list[Any]:
        """Both kernels' bits."""
        chosen = np.sort(self.mine[self.rng.random(len(self.mine)) < share]).astype(np.int32)
        mask = np.zeros(int(chosen.max(initial=0)) + 1, np.uint8)
        mask[chosen] = 1
        given = mask if self.rng.random() < 0.7 else None
        return [
            bits(
                kernel.bm25.score(
                    parts, lists, weights.tolist(), None, 0.0, 1, self.rows, self.total, chosen, given, None, NONE,
                    NONE, k1, b, k,
                )
            )
            for kernel, parts, lists in zip(self.kernels, self.parts, self.lists, strict=True)
        ]  # fmt: skip


@pytest.mark.parametrize("terms", [1, 2, 5, 9, 40])
@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_left_out(seed: int, terms: int) -> None:
    made = Made(100 * terms + seed, terms, [[30_000], [9_000, 300, 12_000], [20_000, 9_000], [5_000], [8_200]][seed])
    for share, k, k1, b in [
        (1.0, 30, 1.2, 0.75), (1.0, 1, 1.2, 0.75), (0.6, 200, 0.0, 0.75), (0.2, 30, 3.0, 1.0), (0.01, 30, 1.2, 0.0),
        (1.0, 5_000, 1.2, 0.75),
    ]:  # fmt: skip
        got, wanted = made.ask(share, k, k1, b, made.rng.choice([0.25, 1.0, 2.0], terms))
        assert got == wanted


def test_a_list_is_cut_out_of_its_words(kernels: Kernels) -> None:
    cut = kernels.bm25.Postings.cut
    words = np.array([0, 0, 1, 4, 1 << 16 | 7, 65_535 << 16 | 7, 1, 70_000], np.int64)
    words = words.astype(np.uint32).view(np.int32)
    found = cut(words, 2, 8, 24, 5)
    assert [found.frequency(doc) for doc in range(5)] == [0, 1, 0, 0, 70_000]
    for count, offset, size in [
        (2, 4, 24), (2, 10, 24), (2, 16, 24), (2, 8, 20), (4, 8, 24), (0, 8, 24), (-1, 8, 24), (2, -8, 24),
        (2, 8, -24), (2, 1 << 40, 24), (1 << 40, 8, 24),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match="outside"):
            cut(words, count, offset, size, 5)
    with pytest.raises(ValueError, match="impossible"):
        cut(words, 2, 8, 24, 4)
