"""Random puts, updates, deletions, flushes and reopenings against a naive oracle."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest

from memxd.index.lexical.analyzer import document_terms, query_terms

WORDS = ["tea", "coffee", "咖啡", "JIRA-4711", "running", "café", "the", "a", "🦊", "notice period", "v2.3", "끝말잇기"]
K1, B = 1.2, 0.75


def naive(texts: dict[int, str], chosen: set[int], query: str) -> dict[int, float]:
    """BM25 by its definition, of the chosen ones among a scope's texts."""
    documents = {rid: document_terms(text) for rid, text in texts.items()}
    average = sum(length for _, length in documents.values()) / len(documents) if documents else 0.0
    scores: Counter[int] = Counter()
    terms = query_terms(query)
    for term, weight in zip(terms.terms, terms.weights, strict=True):
        df = sum(term in counts for counts, _ in documents.values())
        idf = math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
        for rid, (counts, length) in documents.items():
            tf = counts.get(term, 0)
            if tf and rid in chosen:
                scores[rid] += weight * idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length / average))
    return dict(scores)


@pytest.mark.parametrize("seed", range(4))
def test_random_histories(bench: Any, seed: int) -> None:
    rng = random.Random(seed)
    texts: dict[int, dict[int, str]] = {1: {}, 2: {}, 7: {}}
    bench.reopen(fold_rows=rng.choice([3, 10, 1000]), fold_seconds=rng.choice([0.02, 3600.0]))
    for step in range(250):
        action, rid, scope = rng.random(), rng.randrange(60), rng.choice(list(texts))
        if action < 0.75:
            for held in texts.values():
                held.pop(rid, None)
            if action < 0.6:
                texts[scope][rid] = " ".join(rng.choices(WORDS, k=rng.randint(0, 8)))
                bench.put(rid, texts[scope][rid], scope)
            else:
                bench.remove(rid)
        elif action < 0.78:
            bench.index.flush()
        elif action < 0.79:
            bench.reopen()
        elif rid in texts[scope] and action < 0.82:
            bench.put(rid, None, scope)
        scope = rng.choice(list(texts))
        chosen = {rid for rid in rng.sample(range(60), rng.randint(0, 60)) if rid in texts[scope]}
        query = " ".join(rng.choices(WORDS, k=rng.randint(1, 4)))
        hits = bench.hits(query, rids=chosen, k=60, scope=scope)
        expected = naive(texts[scope], chosen, query)
        got = dict(zip(hits.rids.tolist(), hits.scores.tolist(), strict=True))
        assert got == pytest.approx(expected, rel=1e-9), (seed, step)
        assert hits.rows == len(texts[scope])
    status = bench.index.status()
    assert status.entries == sum(map(len, texts.values()))
    assert status.message == ""
