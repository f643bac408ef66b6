"""Filters: whether the nearest memories are found under them, and what a search with one takes.

Filters let through 100 %, 50 %, 5 %, 0.5 % of the records or five of them, at random (tags that fall by chance) and
correlated with the topic of the vectors, where over-fetching from a graph alone starves. Recall@30 of the vector leg,
asked over the socket (profile memex with alpha 1 ranks by cosine alone), against two oracles: ``exact`` of memxd, and
float32 products in numpy over the same half-precision vectors, told by the score: a hit counts when no more than 29
records that pass are nearer. The latency is that of a whole hybrid search, k = 10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memxd.bench.client_process import SHOW_ALL
from memxd.bench.measure import Budget, Measurement, Result, alternate
from memxd.bench.served import serve
from memxd.bench.truth import Stored, nearest
from memxd.client import Client, rank, where
from memxd.model import Filter, SearchAnswer

if TYPE_CHECKING:
    from memxd.bench.context import Bench

NAME = "filters"
#: Tag by what the report calls it; "" = no filter. The first group falls at random, the second goes with the topic.
RANDOM = {"100 %": "", "50 %": "any-50", "5 %": "any-5", "0.5 %": "any-05", "5 records": "any-few"}
TOPIC = {"50 %": "topic-50", "20 %": "topic-20", "5 %": "topic-5", "0.5 %": "topic-05"}
DEPTH = 30
RECALL, RANDOM_P50, TOPIC_P50 = 0.99, 6.0, 25.0
#: A float32 product in another order than the kernel's differs by less.
_ROUNDING = 2e-6
_BY_COSINE = rank("memex", alpha=1.0)


@dataclass(frozen=True, slots=True)
class _Case:
    """One filter. ``tag`` "" = none; ``correlated``: goes with the topic."""

    label: str
    tag: str
    correlated: bool

    @property
    def filter(self) -> Filter | None:
        """For a request."""
        return where(tags_any=[self.tag]) if self.tag else None

    @property
    def name(self) -> str:
        """For the report."""
        return f"{self.label}, {'by topic' if self.correlated else 'at random'}" if self.tag else "no filter"


CASES = tuple(
    _Case(label, tag, correlated)
    for group, correlated in ((RANDOM, False), (TOPIC, True))
    for label, tag in group.items()
)


def run(bench: Bench) -> Result:
    """Ask at every size; the budgets are judged at the main one, recall everywhere."""
    rows: list[Measurement] = []
    budgets: list[Budget] = []
    for size in bench.sizes if not bench.quick else (bench.main,):
        stored = Stored.of(bench, size)
        with serve(bench, bench.store(size).folder) as served, served.client() as client:
            for case in (c for c in CASES if stored.passing(c.tag).any()):
                worst = _recall(bench, client, stored, case, rows)
                p50 = _latency(bench, client, size, case, rows)
                budgets += _budgets(bench, size, case, worst, p50)
    return Result(tuple(rows), tuple(budgets))


def _recall(bench: Bench, client: Client, stored: Stored, case: _Case, rows: list[Measurement]) -> float:
    """The lower of the recalls against both oracles. Raises RuntimeError for a hit that the filter forbids."""
    vectors = bench.query_vectors(bench.samples(200, 10))
    passing = stored.passing(case.tag)
    truth = nearest(stored.vectors, vectors, DEPTH, passing)
    by_numpy, by_exact = [], []
    for vector, scores in zip(vectors, truth, strict=True):
        found = _by_cosine(bench, client, case, vector, exact=False)
        exact = _by_cosine(bench, client, case, vector, exact=True)
        wanted = int(np.isfinite(scores).sum())
        least = scores[wanted - 1] - _ROUNDING
        by_numpy.append(sum(bool(hit.score >= least) for hit in found.hits) / wanted)
        ids = {hit.memory.id for hit in exact.hits}
        by_exact.append(len(ids & {hit.memory.id for hit in found.hits}) / wanted)
        if any(case.tag and case.tag not in hit.memory.tags for hit in found.hits):
            raise RuntimeError(f"a search under the filter {case.tag!r} answered a memory without this tag")
    for oracle, shares in (("numpy, float32", by_numpy), ("memxd exact", by_exact)):
        rows.append(
            Measurement.one(
                NAME, f"recall@{DEPTH} against {oracle}", stored.size, f"memxd, {case.name}", float(np.mean(shares)),
                "share", worst_query=min(shares), passing=int(passing.sum()),
            )
        )  # fmt: skip
    return min(float(np.mean(by_numpy)), float(np.mean(by_exact)))


def _by_cosine(bench: Bench, client: Client, case: _Case, vector: NDArray[np.float32], *, exact: bool) -> SearchAnswer:
    return client.search(
        "nearest",
        k=DEPTH,
        filter=case.filter,
        mode="vector",
        ranking=_BY_COSINE,
        exact=exact,
        vector=vector.tolist(),
        model_id=bench.embedder.info.id,
        record_retrieval=False,
    )


def _latency(bench: Bench, client: Client, size: int, case: _Case, rows: list[Measurement]) -> float:
    """Median milliseconds of a hybrid search."""
    n = bench.samples(300, 10)
    questions = bench.questions(n, min(size, 50_000))
    vectors = [tuple(v.tolist()) for v in bench.query_vectors(n)]
    model = bench.embedder.info.id

    def ask(at: int) -> None:
        client.search(
            questions[at], filter=case.filter, vector=vectors[at], model_id=model, ranking=SHOW_ALL,
            record_retrieval=False,
        )  # fmt: skip

    times = alternate({"search": ask}, range(n))["search"]
    rows.append(Measurement.of(NAME, "hybrid search over the socket", size, f"memxd, {case.name}", times, "ms"))
    return times.p50 * 1e3


def _budgets(bench: Bench, size: int, case: _Case, recall: float, p50: float) -> list[Budget]:
    recalled = Budget(
        NAME, f"vector recall@{DEPTH}, {case.name}", size, recall, RECALL, "share", at_least=True,
        judged=not bench.quick, note="the lower of both oracles",
    )  # fmt: skip
    if size != bench.main:
        return [recalled] if size > bench.main or recall < RECALL else []
    limit = TOPIC_P50 if case.correlated else RANDOM_P50
    timed = Budget(NAME, f"search, {case.name}, p50", size, p50, limit, "ms", judged=bench.judged(size))
    return [recalled, timed]
