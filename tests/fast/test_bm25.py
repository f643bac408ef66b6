"""BM25: shared vectors, a naive oracle over dictionaries, and equal bits by every path and every cut into segments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bm25kit import Asked, Corpus, Document, bits, naive, segment_of
from memxd._fast import Kernels, load_kernels

VECTORS = Path(__file__).parents[1] / "vectors" / "bm25" / "score.json"
CASES = json.loads(VECTORS.read_text(encoding="utf-8"))["cases"]
BY = ("mask", "rids", "places")


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    """Rows of two scopes in up to four segments, some sorted, with dead versions of which a search sees some."""
    terms = draw(st.integers(1, 4))
    tf = st.one_of(st.integers(1, 5), st.sampled_from([65_534, 65_535, 70_000, 1_200_000]))
    counts = st.dictionaries(st.integers(0, terms - 1), tf, max_size=terms)
    segments: list[list[Document]] = [[] for _ in range(draw(st.integers(1, 4)))]
    for rid in draw(st.sets(st.integers(0, 40), max_size=14)):
        scope = draw(st.integers(1, 2))
        for version in range(draw(st.integers(1, 2))):
            held = draw(counts)
            length = max(1, sum(held.values())) + draw(st.integers(0, 3))
            number = draw(st.integers(0, len(segments) - 1))
            segments[number].append(Document(rid, scope, held, length, int(version > 0)))
    sorted_ones = draw(st.sets(st.integers(0, len(segments) - 1)))
    for number, documents in enumerate(segments):
        if number in sorted_ones:
            documents.sort(key=lambda d: (d.scope, d.rid))
            if len({(d.scope, d.rid) for d in documents}) < len(documents):
                sorted_ones.discard(number)
    corpus = Corpus(segments, terms, sorted_ones)
    for documents in segments:
        dead = draw(st.permutations([d for d in documents if d.death]))
        for nth, document in enumerate(dead, 1):
            document.death = nth
        corpus.seen.append(len(dead))
    return corpus


def in_documents(case: dict[str, Any]) -> Corpus:
    segments = [
        [Document(rid, scope, {int(t): tf for t, tf in counts.items()}, length, death)
         for rid, scope, counts, length, death in segment["documents"]]
        for segment in case["segments"]
    ]  # fmt: skip
    sorted_ones = {n for n, segment in enumerate(case["segments"]) if segment["sorted"]}
    return Corpus(segments, len(case["weights"]), sorted_ones, [segment["seen"] for segment in case["segments"]])


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_shared_vector(kernels: Kernels, case: dict[str, Any], by: str) -> None:
    got = Asked(kernels, in_documents(case)).ask(
        case["weights"], 1, case["rids"], case["also"], by, case["k"], case["k1"], case["b"]
    )
    want = case["expect"]
    assert (got.rids.tolist(), got.df.tolist(), got.rows) == (want["rids"], want["df"], want["rows"])
    for name in ("scores", "also", "match", "also_match", "idf", "average"):
        np.testing.assert_allclose(getattr(got, name), want[name], rtol=1e-12)


@settings(max_examples=200, deadline=None)
@given(corpora(), st.data())
def test_every_path_and_cut_gives_the_bits_of_the_definition(corpus: Corpus, data: st.DataObject) -> None:
    chosen = data.draw(st.sets(st.integers(0, 44)))
    weights = data.draw(st.lists(st.sampled_from([0.25, 1.0, 2.0]), min_size=corpus.terms, max_size=corpus.terms))
    k1, b = data.draw(st.sampled_from([(1.2, 0.75), (0.0, 0.0), (2.0, 1.0), (1000.0, 1.0)]))
    also = data.draw(st.lists(st.integers(0, 60), max_size=5))
    k = data.draw(st.sampled_from([0, 1, 3, 100]))
    asked = [
        Asked(load_kernels(name), cut).ask(weights, 1, sorted(chosen), also, by, k, k1, b)
        for name in ("c", "py")
        for cut in (corpus, corpus.one_sorted())
        for by in BY
    ]
    for other in asked[1:]:
        assert bits(other) == bits(asked[0])
    scores, match, df = naive(corpus, weights, 1, chosen, k1, b)
    got = asked[0]
    assert got.df.tolist() == df
    best = sorted(scores, key=lambda rid: (-scores[rid], rid))[:k]
    assert got.scores.tolist() == pytest.approx([scores[rid] for rid in best], rel=1e-9)
    assert got.match.tolist() == pytest.approx([match[rid] for rid in got.rids.tolist()], rel=1e-9)
    assert got.also.tolist() == pytest.approx([scores.get(rid, 0.0) for rid in also], rel=1e-9)
    assert got.also_match.tolist() == pytest.approx([match.get(rid, 0.0) for rid in also], rel=1e-9)
    order = list(zip((-got.scores).tolist(), got.rids.tolist(), strict=True))
    assert order == sorted(order)


def large(seed: int, documents: int = 14_000, terms: int = 9, scopes: int = 2) -> Corpus:
    """Documents enough for several windows: frequent and rare terms, ties, one long text among short ones."""
    rng = np.random.default_rng(seed)
    shares = 0.7 / np.arange(1, terms + 1) ** 1.6
    has = rng.random((documents, terms)) < shares
    tfs = rng.geometric(0.8, (documents, terms))
    lengths = rng.integers(5, 25, documents) if seed % 2 else np.full(documents, 8)
    lengths[rng.integers(0, documents, 3)] = 200_000
    made = [
        Document(rid, int(scope), {t: int(tfs[rid, t]) for t in np.flatnonzero(has[rid]).tolist()}, int(lengths[rid]))
        for rid, scope in enumerate(rng.integers(1, scopes + 1, documents))
    ]
    if seed < 2:
        made[77].counts[terms - 1] = 90_000
    cut = documents * 4 // 5
    first = sorted(made[:cut], key=lambda d: (d.scope, d.rid))
    corpus = Corpus([first, [made[i] for i in (cut + rng.permutation(documents - cut)).tolist()]], terms, {0})
    for part in corpus.segments:
        dead = rng.choice(len(part), len(part) // 20, replace=False).tolist()
        for nth, at in enumerate(dead, 1):
            part[at].death = nth
        corpus.seen.append(len(dead) // 2)  # the others die after the search began
    return corpus


@pytest.mark.parametrize(("seed", "documents"), [(0, 14_000), (1, 14_000), (2, 14_000), (3, 44_000)])
def test_windows_and_bounds_leave_out_nothing(seed: int, documents: int) -> None:
    rng = np.random.default_rng(seed)
    corpus = large(seed, documents)
    both = [Asked(load_kernels(name), corpus) for name in ("c", "py")]
    for _ in range(12):
        share = rng.choice([1.0, 0.5, 0.02])
        chosen = np.flatnonzero(rng.random(documents) < share).tolist()
        weights = rng.choice([1e-6, 0.25, 1.0, 3.0], corpus.terms, p=[0.1, 0.2, 0.5, 0.2]).tolist()
        options = {"k": int(rng.choice([1, 30, 100, 5000])), "k1": float(rng.choice([0.0, 1.2, 3.0]))}
        scope, by = int(rng.integers(1, 3)), BY[int(rng.integers(0, 3))]
        corpus.seen = [int(rng.integers(0, max(d.death for d in part) + 1)) for part in corpus.segments]
        got, want = (a.ask(weights, scope, chosen, [77, 5, 13_999, 500], by, b=0.75, **options) for a in both)
        assert bits(got) == bits(want)
        assert got.rids.size


def test_the_k_best_are_the_head_of_all() -> None:
    asked = Asked(load_kernels("c"), large(1))
    chosen = range(14_000)
    everything = asked.ask([1.0] * 9, 1, chosen, k=14_000)
    for k in (1, 2, 30, 1000):
        best = asked.ask([1.0] * 9, 1, chosen, k=k)
        assert best.rids.tolist() == everything.rids.tolist()[:k]
        assert best.scores.tobytes() == everything.scores[:k].tobytes()


def test_a_list_may_be_older_than_its_segment(kernels: Kernels) -> None:
    few, many = large(3, 6_000, scopes=1).segments[0], large(3, 40_000, scopes=1).segments[0]
    later = [Document(d.rid + 6_000, 1, {}, d.length) for d in many]
    asked = Asked(kernels, Corpus([few], 9, {0}, [0]))
    wanted = asked.ask([1.0] * 9, 1, range(46_000), k=50)
    asked.corpus = Corpus([few + later], 9, {0}, [0])
    asked.handles = [segment_of(kernels, few + later, True)]
    got = asked.ask([1.0] * 9, 1, range(46_000), also=[few[0].rid, later[-1].rid], k=50)
    assert got.df.tolist() == wanted.df.tolist()
    assert len(got.rids) == 50
    assert got.rids.max() < 6_000


def test_nothing_lingers_between_calls(kernels: Kernels) -> None:
    asked = Asked(kernels, large(2, documents=900))
    first = asked.ask([1.0] * 9, 1, range(900), k=5)
    asked.ask([2.0] * 9, 2, range(400), k=50, k1=0.5)
    assert bits(asked.ask([1.0] * 9, 1, range(900), k=5)) == bits(first)


@pytest.mark.parametrize(
    "options",
    [
        {"k": -1}, {"k1": -0.1}, {"k1": float("nan")}, {"b": 1.5}, {"b": float("nan")}, {"weights": [0.0]},
        {"weights": [-1.0]}, {"weights": [float("nan")]}, {"weights": [float("inf")]}, {"priors": [-1.0]},
        {"priors": [float("nan")]}, {"weights": [1.0, 1.0]}, {"priors": [2000.0]},
    ],
    ids=str,
)  # fmt: skip
def test_impossible_parameters_are_refused(kernels: Kernels, options: dict[str, Any]) -> None:
    asked = Asked(kernels, Corpus([[Document(0, 1, {0: 1}, 1)]], 1, {0}, [0]))
    with pytest.raises(ValueError, match=r"."):
        asked.ask(**{"weights": [1.0], "scope": 1, "chosen": [0], **options})


def test_impossible_arrays_are_refused(kernels: Kernels) -> None:
    def ints(*values: int) -> Any:
        return np.array(values, np.int32)

    one = np.array([1 << 16 | 1, 1 << 16 | 1], np.uint32)
    large_one = np.array([1 << 16 | 1, 65_535 << 16 | 1], np.uint32)
    for docs, packed, more in [
        (ints(1, 1), one, ints()), (ints(2, 1), one, ints()), (ints(-1, 1), one, ints()), (ints(0, 5), one, ints()),
        (ints(0), one, ints()), (ints(0, 1), one * 0, ints()), (ints(0, 1), one, ints(0, 70_000)),
        (ints(0, 1), large_one, ints()), (ints(0, 1), large_one, ints(1, 9)), (ints(0, 1), large_one, ints(1)),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=r"."):
            kernels.bm25.Postings(docs, packed, more, 5)
    with pytest.raises(ValueError, match=r"."):
        kernels.bm25.Segment(ints(0), ints(1, 2), ints(0), ints(0))
    with pytest.raises(ValueError, match="negative"):
        kernels.bm25.Segment(ints(-1), ints(1), ints(0), ints(0))


def test_places_and_ranges_that_are_not_there_are_harmless(kernels: Kernels) -> None:
    asked = Asked(kernels, Corpus([[Document(4, 1, {0: 1}, 1)]], 1, {0}, [0]))
    also = np.array([4, 4, 4, 4], np.int32)
    places = np.array([0, 7, 0, 0, 0, 0, 9, -1], np.int32)
    rids, one = np.array([4], np.int32), np.ones(1)

    def ask(parts: Any, rows: int = 1) -> Any:
        return kernels.bm25.score(
            parts, asked.postings, one, one, 10.0, 1, rows, 1, rids, None, None, also, places, 1.2, 0.75, 5
        )

    assert (ask(asked.parts(1)).also > 0).tolist() == [True, False, False, False]
    for low, high, deaths in [(0, 2, 0), (-1, 1, 0), (0, 1, 2)]:
        with pytest.raises(ValueError, match="range"):
            ask([(asked.handles[0], deaths, low, high)])
    with pytest.raises(ValueError, match="fewer rows"):
        ask(asked.parts(1), rows=0)
