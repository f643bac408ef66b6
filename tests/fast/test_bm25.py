"""BM25: shared vectors, a naive oracle over dictionaries, and equal bits by every path and every cut into segments."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memxd._fast import Kernels, load_kernels
from memxd._fast.bm25_py import Scored

VECTORS = Path(__file__).parents[1] / "vectors" / "bm25" / "score.json"
CASES = json.loads(VECTORS.read_text(encoding="utf-8"))["cases"]
NONE = np.empty(0, np.int32)


@dataclass
class Corpus:
    """Rows as {rid: {term: frequency}}, cut into segments; some segments in ascending order of rid."""

    rows: dict[int, dict[int, int]]
    lengths: dict[int, int]
    segments: list[list[int]]  # rids by document number
    ghosts: list[dict[int, int]]  # a dead document at the end of each segment: rid 0 with these frequencies
    terms: int

    def arrays(self) -> tuple[list[Any], list[list[Any]], np.ndarray[Any, Any]]:
        segments, postings = [], [[] for _ in range(self.terms)]
        for number, (rids, ghost) in enumerate(zip(self.segments, self.ghosts, strict=True)):
            documents = [self.rows[rid] for rid in rids] + [ghost]
            segments.append(
                (
                    np.array([*rids, 0], np.int32),
                    np.array([1] * len(rids) + [0], np.uint8),
                    False,
                )
            )
            for term in range(self.terms):
                docs = [doc for doc, counts in enumerate(documents) if counts.get(term)]
                if docs:
                    tfs = [documents[doc][term] for doc in docs]
                    postings[term].append((number, np.array(docs, np.int32), np.array(tfs, np.int32)))
        lengths = np.full(max(self.rows, default=0) + 1, -1, np.int32)
        for rid, length in self.lengths.items():
            lengths[rid] = length
        return segments, postings, lengths

    def sorted(self) -> Corpus:
        """The same in one segment in ascending order of rid."""
        return Corpus(self.rows, self.lengths, [sorted(self.rows)], [{}], self.terms)


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    terms = draw(st.integers(1, 4))
    counts = st.dictionaries(st.integers(0, terms - 1), st.one_of(st.integers(1, 5), st.just(65_536)), max_size=terms)
    rows = draw(st.dictionaries(st.integers(0, 40), counts, max_size=12))
    lengths = {rid: sum(counts.values()) + draw(st.integers(0, 3)) for rid, counts in rows.items()}
    order = draw(st.permutations(sorted(rows)))
    cuts = sorted(draw(st.lists(st.integers(0, len(order)), max_size=3)))
    parts = [list(order[a:b]) for a, b in zip([0, *cuts], [*cuts, len(order)], strict=True)]
    return Corpus(rows, lengths, parts, [draw(counts) for _ in parts], terms)


def oracle(
    corpus: Corpus, weights: Sequence[float], chosen: set[int], k1: float, b: float
) -> tuple[dict[int, float], list[int]]:
    """BM25 straight from its definition."""
    held = [rid for rid in corpus.rows if rid in chosen]
    total = sum(corpus.lengths[rid] for rid in held)
    average = total / len(held) if held else 0.0
    scores: dict[int, float] = {}
    df = [sum(1 for rid in held if corpus.rows[rid].get(term)) for term in range(corpus.terms)]
    for term, weight in enumerate(weights):
        idf = math.log(1 + (len(held) - df[term] + 0.5) / (df[term] + 0.5))
        for rid in held:
            tf = corpus.rows[rid].get(term, 0)
            if tf:
                norm = k1 * (1 - b + b * corpus.lengths[rid] / average)
                scores[rid] = scores.get(rid, 0.0) + weight * idf * tf * (k1 + 1) / (tf + norm)
    return scores, df


def ask(
    kernels: Kernels, corpus: Corpus, weights: Sequence[float], chosen: set[int], dense: bool, also: Any = NONE,
    ascending: bool = False, k: int = 100, k1: float = 1.2, b: float = 0.75,
) -> Scored:  # fmt: skip
    segments, postings, lengths = corpus.arrays()
    if ascending:  # the ghost must go: its rid would break the order
        segments = [(rids[:-1].copy(), alive[:-1].copy(), True) for rids, alive, _ in segments]
    rids = np.array(sorted(chosen), np.int32)
    mask = np.zeros(45, np.uint8)
    mask[rids] = 1
    return kernels.bm25.score(
        segments, postings, np.array(weights, np.float64), lengths, rids, mask if dense else None, k1, b, k, also
    )


def bits(scored: Scored) -> list[Any]:
    return [part.tobytes() if isinstance(part, np.ndarray) else part for part in scored]


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_shared_vector(kernels: Kernels, case: dict[str, Any], dense: bool) -> None:
    segments = [(np.array(rids, np.int32), np.array(alive, np.uint8), asc) for rids, alive, asc in case["segments"]]
    postings = [[(n, np.array(d, np.int32), np.array(f, np.int32)) for n, d, f in lists] for lists in case["postings"]]
    lengths, rids = np.array(case["lengths"], np.int32), np.array(case["rids"], np.int32)
    mask = np.zeros(lengths.shape[0], np.uint8)
    mask[rids[rids < lengths.shape[0]]] = 1
    got = kernels.bm25.score(
        segments, postings, np.array(case["weights"]), lengths, rids, mask if dense else None,
        case["k1"], case["b"], case["k"], np.array(case["also"], np.int32),
    )  # fmt: skip
    want = case["expect"]
    assert (got.rids.tolist(), got.df.tolist(), got.rows) == (want["rids"], want["df"], want["rows"])
    for name in ("scores", "also", "idf", "average"):
        np.testing.assert_allclose(getattr(got, name), want[name], rtol=1e-12)


@settings(max_examples=150, deadline=None)
@given(corpora(), st.data())
def test_every_path_and_cut_gives_the_bits_of_the_definition(corpus: Corpus, data: st.DataObject) -> None:
    c, py = load_kernels("c"), load_kernels("py")
    chosen = data.draw(st.sets(st.integers(0, 44)))
    weights = data.draw(st.lists(st.sampled_from([0.25, 1.0, 2.0]), min_size=corpus.terms, max_size=corpus.terms))
    k1, b = data.draw(st.sampled_from([(1.2, 0.75), (0.0, 0.0), (2.0, 1.0)]))
    also = np.array(data.draw(st.lists(st.integers(0, 60), max_size=5)), np.int32)
    variants = [
        ask(kernels, cut, weights, chosen, dense, also, ascending, k1=k1, b=b)
        for kernels in (c, py)
        for cut, ascending in ((corpus, False), (corpus.sorted(), True))
        for dense in (True, False)
    ]
    for other in variants[1:]:
        assert bits(other) == bits(variants[0])
    scores, df = oracle(corpus, weights, chosen, k1, b)
    got = variants[0]
    assert got.df.tolist() == df
    assert dict(zip(got.rids.tolist(), got.scores.tolist(), strict=True)) == pytest.approx(scores, rel=1e-9)
    assert got.also.tolist() == [
        dict(zip(got.rids.tolist(), got.scores.tolist(), strict=True)).get(rid, 0.0) for rid in also.tolist()
    ]
    order = list(zip((-got.scores).tolist(), got.rids.tolist(), strict=True))
    assert order == sorted(order)


@given(corpora(), st.integers(0, 12))
def test_the_k_best_are_the_head_of_all(corpus: Corpus, k: int) -> None:
    chosen = set(range(45))
    for kernels in (load_kernels("c"), load_kernels("py")):
        everything = ask(kernels, corpus, [1.0] * corpus.terms, chosen, True)
        best = ask(kernels, corpus, [1.0] * corpus.terms, chosen, True, k=k)
        assert best.rids.tolist() == everything.rids.tolist()[:k]


def test_nothing_lingers_between_calls(kernels: Kernels) -> None:
    corpus = Corpus({1: {0: 2}, 3: {0: 1}}, {1: 2, 3: 1}, [[1, 3]], [{}], 1)
    first = ask(kernels, corpus, [1.0], {1, 3}, True)
    ask(kernels, corpus, [1.0], {1, 3}, False)
    assert bits(ask(kernels, corpus, [1.0], {1, 3}, True)) == bits(first)


def test_a_negative_k_is_refused(kernels: Kernels) -> None:
    with pytest.raises(ValueError, match="negative"):
        kernels.bm25.score([], [], np.empty(0), NONE, NONE, None, 1.2, 0.75, -1, NONE)
