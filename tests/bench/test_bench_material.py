"""Texts, vectors and rows that stores are made of: seeded, natural, the same at every size."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from memxd._fast import rank_py
from memxd._fast.protocols import LEG_VALUES, SCOPE_VALUES
from memxd.bench import rerank
from memxd.bench.numpy_rank import rrf
from memxd.bench.stores import FEW, SHARES, TOPIC_SHARES, Recipe, records
from memxd.bench.texts import Source
from memxd.bench.vectors import TOPICS, Vectors
from memxd.bench.words import word
from memxd.errors import InvalidArgumentError

SOURCE = Source.open(None, 7)


def test_texts_are_the_same_whatever_the_size_and_differ_by_seed() -> None:
    few, many = list(SOURCE.texts(50)), list(SOURCE.texts(10_050))
    assert many[:50] == few
    assert list(SOURCE.texts(10_050, start=10_000)) == many[10_000:]
    assert list(Source.open(None, 8).texts(50)) != few


def test_texts_have_a_natural_vocabulary() -> None:
    texts = [text for text in SOURCE.texts(10_000) if text.isascii()]
    words = [text.split() for text in texts]
    assert all(8 <= len(w) <= 16 for w in words)
    counts = Counter(w for text in words for w in text)
    ranked = [n for _, n in counts.most_common()]
    assert counts.most_common(1)[0][0] == "the"
    assert ranked[0] > 3 * ranked[20] > 9 * ranked[300]
    half = len({w for text in words[: len(words) // 2] for w in text})
    assert half < len(counts) < 2 * half  # it grows, more and more slowly
    assert 0.08 < 1 - len(texts) / 10_000 < 0.12  # a tenth is Chinese


def test_words_hardly_ever_repeat() -> None:
    assert len({word(rank) for rank in range(100_000)}) > 99_000


def test_questions_are_short_and_come_from_texts() -> None:
    questions = SOURCE.questions(200, 3_000)
    assert len(set(questions)) == 200
    spaced = [q.split() for q in questions if q.isascii()]
    assert all(4 <= len(q) <= 9 for q in spaced)
    vocabulary = {w for text in SOURCE.texts(3_000) for w in text.split()}
    assert all(len(vocabulary.intersection(q)) >= 2 for q in spaced)


def test_a_set_gives_its_own_texts_and_questions(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "corpus.jsonl.gz", "wt") as stream:
        stream.writelines(json.dumps({"content": f"text number {n} of the set"}) + "\n" for n in range(20))
    with gzip.open(tmp_path / "queries.jsonl.gz", "wt") as stream:
        stream.write(json.dumps({"query": "which number"}) + "\n")
    source = Source.open(tmp_path, 7)
    assert (source.limit, list(source.texts(2))) == (20, ["text number 0 of the set", "text number 1 of the set"])
    questions = source.questions(5, 20)
    assert questions[0] == "which number"
    assert len(questions) == 5
    with pytest.raises(InvalidArgumentError, match="20 texts"):
        next(source.texts(21))


def test_a_folder_without_a_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"corpus\.jsonl\.gz"):
        Source.open(tmp_path, 7)


def test_vectors_are_structured_unit_vectors_and_rows_keep_their_place() -> None:
    vectors = Vectors(96)
    rows, topics = vectors.rows(9_990, 10_010)
    again, _ = vectors.rows(10_000, 10_005)
    assert np.array_equal(rows[10:15], again)
    assert np.array_equal(vectors.topics(10_010)[9_990:], topics)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    rows, topics = vectors.rows(0, 3_000)
    cosines = rows @ rows.T
    same = topics[:, None] == topics[None, :]
    np.fill_diagonal(same, val=False)
    assert cosines[same].mean() > np.median(cosines) + 0.1
    assert 0.5 < np.median(cosines) < 0.75
    assert vectors.queries(5).shape == (5, 96)


def test_tags_fall_on_the_shares_that_filters_need() -> None:
    recipe = Recipe(4_000, SOURCE, Vectors(16), "model")
    counts = Counter(tag for _, memory, _ in records(recipe) for tag in memory.tags)
    for tag, share in SHARES.items():
        assert counts[tag] / 4_000 == pytest.approx(share, rel=0.4)
    assert counts[FEW] == 5
    topics = recipe.vectors.topics(4_000)
    for tag, share in TOPIC_SHARES.items():
        assert counts[tag] == int((topics < max(1, round(share * TOPICS))).sum())


def test_records_are_the_same_at_every_size() -> None:
    small, large = (Recipe(size, SOURCE, Vectors(16), "model") for size in (300, 900))
    assert list(records(small)) == list(islice(records(large), 300))
    assert small.name != large.name


@pytest.mark.parametrize("n", [40, 400, 3_000])
def test_numpy_ranks_as_the_plain_kernel_does(n: int) -> None:
    rows = rerank.make_rows(np.random.default_rng(3), n)
    best, z, score = rerank.numpy_scope(rows)
    plain = rerank.whole_scope(rank_py, rows)
    kept = plain.kept[:30]
    assert best.tolist() == plain.ids[0][kept].tolist()
    assert np.allclose(z, plain.values[SCOPE_VALUES.index("z")][kept])
    assert np.allclose(score, plain.values[SCOPE_VALUES.index("score")][kept])
    legs = rerank.make_legs(np.random.default_rng(4), rows, min(n, 200))
    best, score, relevance = rerank.numpy_legs(rows, legs)
    candidates = rerank.both_legs(rank_py, rows, legs)
    assert best.tolist() == candidates.ids[0][candidates.kept].tolist()
    assert np.allclose(score, candidates.values[LEG_VALUES.index("score")][candidates.kept])
    assert np.allclose(relevance, candidates.values[LEG_VALUES.index("relevance")][candidates.kept])


def test_numpy_fuses_ranks_as_the_formula_says() -> None:
    fused = rrf(np.array([2, 0], np.int32), np.array([0], np.int32), 3, 60)
    assert fused.tolist() == pytest.approx([1 / 62 + 1 / 61, 0.0, 1 / 61])
