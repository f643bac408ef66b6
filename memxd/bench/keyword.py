"""How long does the keyword leg take, beside tantivy, bm25s, SQLite FTS5 and Whoosh's own searcher?

Owns the comparison on the same texts and questions of 4 to 9 words, the check of the best 30 against the exact oracle
(``oracle``), and the first question after opening. The leg is measured as a search asks it: the question's
analysis and the index's answer. Peers: ``keyword_peers``. Asked by ``runner``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from memxd.bench.context import SCOPE, Bench
from memxd.bench.keyword_peers import CLOSE, PEERS, Ask
from memxd.bench.measure import IN_A_ROW, Budget, Measurement, Result, Seconds, Timed, alternate
from memxd.bench.oracle import Oracle
from memxd.bench.stores import BuiltStore
from memxd.engine.ids import system_clock, uuid7_factory
from memxd.index.columns import Columns
from memxd.index.lexical.analyzer import query_terms
from memxd.index.lexical.hits import LexicalHits
from memxd.index.lexical.index import LexicalIndex
from memxd.index.selection import Selection
from memxd.model import Filter, View
from memxd.store import Store

_K = 30
_NAME = "keyword"
#: A question's words are looked up, and cut, the first time they are met; every engine keeps what it found.
_NEW, _AGAIN = "question of 4-9 words, best 30, asked for the first time", "question of 4-9 words, best 30, asked again"
#: The oracle reads every text: larger stores add time, not certainty.
_ORACLE_LIMIT = 250_000


def run(bench: Bench) -> Result:
    """Every size; budgets at the main one."""
    measurements: list[Measurement] = []
    budgets: list[Budget] = []
    skipped: list[str] = []
    for size in bench.sizes:
        questions = short_questions(bench, size, bench.samples(500, 30))
        with open_leg(bench, bench.store(size)) as leg:
            peers = _peers(bench, size, skipped)
            times = _compare(leg, peers, questions, short_questions(bench, size, 30))
            for stage, variants in times.items():
                measurements += [Measurement.of(_NAME, stage, size, name, t, "ms") for name, t in variants.items()]
            if size <= _ORACLE_LIMIT:
                share, asked = _agreement(bench, leg, size)
                measurements.append(
                    Measurement.one(
                        _NAME, "same best 30 as the exact oracle", size, "memxd", share, "share", asked=asked
                    )
                )
        cold = _first(bench, size, questions)
        measurements.append(Measurement.of(_NAME, "first question after opening", size, "memxd", cold, "ms"))
        measurements += _on_disk(bench, size, list(peers))
        if size == bench.main:
            budgets = _budgets(bench, size, times, cold, share if size <= _ORACLE_LIMIT else None)
    note = "each engine analyses texts its own way: memxd stems and cuts Chinese into pairs, the others do not"
    return Result(tuple(measurements), tuple(budgets), (note,), tuple(dict.fromkeys(skipped)))


def short_questions(bench: Bench, size: int, n: int) -> list[str]:
    """About ``n`` questions of 4 to 9 words in scripts with spaces, which every peer cuts into words."""
    asked = bench.questions(2 * n, size)
    return [q for q in asked if 4 <= len(q.split()) <= 9 and q.isascii()][:n]


class Leg:
    """The keyword index of a built store, with the whole scope selected."""

    def __init__(self, index: LexicalIndex, selection: Selection) -> None:
        self._index = index
        self._selection = selection

    def ask(self, question: str) -> LexicalHits:
        """What a search asks of the leg."""
        return self._index.search(query_terms(question), self._selection, _K)

    def numbers(self, hits: LexicalHits) -> list[int]:
        """The texts' numbers of the hits: the n-th row of the scope holds text n."""
        return [int(n) for n in np.searchsorted(self._selection.rids, hits.rids)]


@contextmanager
def open_leg(bench: Bench, built: BuiltStore) -> Iterator[Leg]:
    """The leg of a store, opened as the engine does."""
    store = Store.open(built.folder, clock=system_clock, ids=uuid7_factory(), readers=1)
    try:
        with store.read() as read:
            scope_no = read.scope_no(SCOPE)
        columns = Columns.open(built.folder / "index" / "columns", database_id=store.identity)
        index = _open_index(bench, built.folder, store.identity)
        try:
            yield Leg(index, columns.select(scope_no, View(Filter(), system_clock())))
        finally:
            index.close()
            columns.close()
    finally:
        store.close()


def _open_index(bench: Bench, folder: Path, identity: str) -> LexicalIndex:
    return LexicalIndex.open(folder / "index" / "keyword", kernel=bench.kernels.bm25, database_id=identity)


def _peers(bench: Bench, size: int, skipped: list[str]) -> dict[str, Ask]:
    """The peers that are installed and asked at this size, built or found."""
    folder = bench.options.work / f"peers-{bench.recipe(size).name}"
    found: dict[str, Ask] = {}
    for name, (build, limit, _) in PEERS.items():
        if size > limit:
            continue
        try:
            with bench.progress.work(f"{name}: indexing {size:,} texts", size) as step:
                found[name] = build(bench.source.texts(size), folder / name.replace(" ", "-"), step)
        except ImportError as error:
            skipped.append(f"{name} is not installed ({error.name}); pip install 'memxd[bench]'")
    return found


def _compare(leg: Leg, peers: dict[str, Ask], questions: list[str], warming: list[str]) -> dict[str, dict[str, Timed]]:
    """Every question twice, once new, once known; ``warming`` wakes the engines and does not count.

    memxd and the close peer in turn, some questions in a row each, then the others in turn: these take so long that
    nothing of the processor's caches is left to whom they precede.
    """
    close: dict[str, Ask] = {"memxd": leg.ask} | {name: ask for name, ask in peers.items() if name == CLOSE}
    others = {name: ask for name, ask in peers.items() if name != CLOSE}
    limits = {name: most for name, (_, _, most) in PEERS.items() if most < len(questions)}
    fresh = [question for question in warming if question not in questions] or warming
    for ask in (close | others).values():
        ask(fresh[0])
    found: dict[str, dict[str, Timed]] = {_NEW: {}, _AGAIN: {}}
    for calls in filter(None, (close, others)):
        for times in found.values():
            times.update(alternate(calls, questions, warmup=0, limits=limits, run=IN_A_ROW))
    return found


def _agreement(bench: Bench, leg: Leg, size: int) -> tuple[float, int]:
    """(share of questions whose best 30 and their scores are the oracle's to the last bit, how many were asked)."""
    questions = bench.questions(bench.samples(300, 20), size)
    with bench.progress.work(f"oracle: reading {size:,} texts", size) as step:
        oracle = Oracle(bench.source.texts(size), questions, step)
    same = 0
    for question in questions:
        hits = leg.ask(question)
        numbers, scores = oracle.best(question, _K)
        same += leg.numbers(hits) == numbers.tolist() and hits.scores.tolist() == scores.tolist()
    return same / len(questions), len(questions)


def _first(bench: Bench, size: int, questions: list[str]) -> Seconds:
    """Seconds of the first question after opening, once for each of a few openings, each with another question."""
    taken = []
    for question in questions[: bench.samples(20, 3)]:
        with open_leg(bench, bench.store(size)) as leg:
            began = time.perf_counter()
            leg.ask(question)
            taken.append(time.perf_counter() - began)
    return np.array(taken)


def _on_disk(bench: Bench, size: int, peers: list[str]) -> list[Measurement]:
    """What each index weighs."""
    folders = {"memxd": bench.store(size).folder / "index" / "keyword"}
    root = bench.options.work / f"peers-{bench.recipe(size).name}"
    folders |= {name: at for name in peers if (at := root / name.replace(" ", "-")).is_dir()}
    weights = {name: sum(f.stat().st_size for f in at.rglob("*") if f.is_file()) for name, at in folders.items()}
    return [Measurement.one(_NAME, "index on disk", size, name, w / 1e6, "MB") for name, w in weights.items()]


def _budgets(
    bench: Bench, size: int, times: dict[str, dict[str, Timed]], cold: Seconds, share: float | None
) -> list[Budget]:
    judged = bench.judged(size)
    rows = []
    for peer, factor, part in (("tantivy", 4, "a quarter of tantivy's"), ("whoosh", 100, "a hundredth of Whoosh's")):
        for stage, when in ((_NEW, "new questions"), (_AGAIN, "known questions")):
            if peer in times[stage]:
                ours, theirs = (times[stage][name].p50 * 1e3 for name in ("memxd", peer))
                name = f"keyword leg p50, {part}, {when}"
                row = Budget(_NAME, name, size, ours, theirs / factor, "ms", judged=judged)
                rows.append(replace(row, peer=peer, peer_figure=theirs))
    first = float(np.percentile(cold, 90)) * 1e3
    name = "keyword leg, first question after opening, 90th percentile"
    rows.append(Budget(_NAME, name, size, first, 20.0, "ms", judged=judged))
    if share is not None:
        name = "keyword leg, same best 30 as the exact oracle"
        rows.append(Budget(_NAME, name, size, share, 1.0, "share", at_least=True))
    return rows
