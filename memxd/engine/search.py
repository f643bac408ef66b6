"""Search: from a question in plain words to ranked, explained memories, or to "nothing known".

Owns the order of the steps: validate, embed, select, both legs, fuse, four factors, reject, fold, fetch, explain. Each
step's rules live in a module of their own (question, profiles, candidates, ranking, relevance, links). Touches SQLite
twice: to narrow by ids or metadata when asked to, and to fetch the survivors, which is also what keeps a stale index
from ever inventing a hit. Called by the engine's face.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from memxd._fast import Kernels
from memxd.engine import validate
from memxd.engine.candidates import Candidates, Legs
from memxd.engine.explain import FOLDED_IDS, Explainer, folded_positions
from memxd.engine.indexes import Indexes
from memxd.engine.links import walk
from memxd.engine.profiles import RankingDefaults
from memxd.engine.question import Asking, Question
from memxd.engine.ranking import Ranked, Ranker
from memxd.engine.relevance import rejection
from memxd.engine.vectors import Vectors
from memxd.errors import MemxdError
from memxd.index.selection import Selection
from memxd.model import (
    NO_DEADLINE,
    NO_FILTER,
    Clock,
    Deadline,
    Direction,
    Hit,
    Limits,
    Memory,
    Mode,
    Profile,
    RejectReason,
    SearchAnswer,
    SearchQuery,
)
from memxd.model.quick import quick
from memxd.store import ReadTxn, Row, Store

_hit = quick(Hit)
#: Until another model has taken the place of the one that a search began with.
_GLANCE_SECONDS = 0.001
#: Rows with their position among the candidates, best first.
Placed: TypeAlias = list[tuple[int, Row]]


class Searching:
    """The verbs that ask."""

    def __init__(
        self,
        store: Store,
        indexes: Indexes,
        vectors: Vectors,
        kernels: Kernels,
        clock: Clock,
        defaults: RankingDefaults,
        pending_in: Callable[[int], bool],
    ) -> None:
        self._store = store
        self._indexes = indexes
        self._asking = Asking(store, indexes, vectors, clock, defaults, pending_in)
        self._legs = Legs(indexes)
        self._ranker = Ranker(indexes, kernels)
        self._explainer = Explainer(indexes, vectors)

    def search(self, query: SearchQuery, deadline: Deadline = NO_DEADLINE) -> SearchAnswer:
        """Answer one question. Errors as the contract names them."""
        while (answer := self._try(query, deadline)) is None:
            deadline.check()
            time.sleep(_GLANCE_SECONDS)
        return answer

    def _try(self, query: SearchQuery, deadline: Deadline) -> SearchAnswer | None:
        """None: the model changed meanwhile, so that question and vectors may be of two spaces."""
        state = self._asking.prepare(query)
        vector = self._asking.embed(state, deadline)
        state.watch.lap("embed")
        selection, revision = self._asking.select(state, deadline)
        state.watch.lap("filter")
        if not len(selection):
            return self._nothing(state, RejectReason.EMPTY, revision)
        if state.plan.whole_scope:
            ranked = self._ranker.rank_scope(state.space.embedder.info, state.plan, selection, state.asked_at)
            found = None
        else:
            try:
                found, ranked = self._gather(state, vector, selection, deadline)
            except Exception:
                if state.space.over:
                    return None
                raise
            if state.space.over:
                return None
            state.degraded.extend(found.degraded)
        state.watch.lap("rank")
        reason = self._reject(state, found, ranked)
        if reason is not None:
            return self._nothing(state, reason, revision, ranked)
        return self._answer(state, found, ranked, selection, deadline)

    def search_many(
        self, queries: list[SearchQuery], deadline: Deadline = NO_DEADLINE
    ) -> list[SearchAnswer | MemxdError]:
        """Answer up to 32 questions, each on its own; a refused one does not spoil the rest."""
        if not 1 <= len(queries) <= Limits.SEARCHES:
            raise validate.fail("searches", f"must be 1..{Limits.SEARCHES}, there are {len(queries)}")
        answers: list[SearchAnswer | MemxdError] = []
        for query in queries:
            deadline.check()
            try:
                answers.append(self.search(query, deadline))
            except MemxdError as error:
                answers.append(error)
        return answers

    # -- the steps -------------------------------------------------------------------------------------------------

    def _gather(
        self, state: Question, vector: NDArray[np.float32] | None, selection: Selection, deadline: Deadline
    ) -> tuple[Candidates, Ranked]:
        """Candidates of both legs, ranked.

        When folding repetitions leaves fewer than k although a leg has more to offer, it is asked for four times as
        many: a hundred copies of one text must not hide the rest. Not so in the profiles that restate another's
        formula, which fixes the number.
        """
        plan = state.plan
        while True:
            found = self._legs.gather(plan, state.query.query, vector, selection, deadline, state.watch.lap)
            ranked = self._ranker.rank(state.space.embedder.info, plan, found, state.asked_at)
            if ranked.kept.size >= plan.k or found.most < plan.candidates or plan.profile is not Profile.BALANCED:
                return found, ranked
            plan = replace(plan, candidates=4 * plan.candidates)

    def _reject(self, state: Question, found: Candidates | None, ranked: Ranked) -> RejectReason | None:
        if found is None:
            return None
        plan = state.plan
        if plan.mode is Mode.HYBRID and not found.vector_asked:
            plan = replace(plan, mode=Mode.KEYWORD)  # the vector leg could not be asked: judge by words
        return rejection(
            plan,
            best_cosine=ranked.best_cosine,
            keyword_hits=len(found.legs.keyword_rids),
            candidates=ranked.ranked,
            best_relevance=ranked.best_relevance,
        )

    def _nothing(
        self, state: Question, reason: RejectReason, revision: int, ranked: Ranked | None = None
    ) -> SearchAnswer:
        stages = state.watch.report()
        return SearchAnswer(
            hits=(),
            revision=revision,
            rejected=True,
            reject_reason=reason,
            best_relevance=ranked.best_relevance if ranked else 0.0,
            candidates=ranked.ranked if ranked else 0,
            degraded=tuple(state.degraded),
            timings=stages if state.query.timings else (),
            plan=str(state.plan) if state.query.explain else "",
            stages=stages,
        )

    def _answer(
        self,
        state: Question,
        found: Candidates | None,
        ranked: Ranked,
        selection: Selection,
        deadline: Deadline,
    ) -> SearchAnswer:
        kept = ranked.kept
        likely = kept[ranked.relevance[kept] >= state.min_relevance] if state.min_relevance else kept
        below = len(kept) - len(likely)
        rows, revision = self._fetch(state, ranked, likely, deadline)
        folded: dict[int, str] = {}
        expanded: list[tuple[Memory, str, float]] = []
        if rows and (state.query.explain or state.query.expand_links):
            with self._store.read(deadline) as read:
                folded = self._folded_ids(read, state, ranked, rows)
                expanded = self._expand(read, state, [row for _, row in rows], deadline)
        state.watch.lap("fetch")
        hits = self._hits(state, found, ranked, selection, rows, folded)
        hits.extend(expanded_hits(expanded, len(hits)))
        if state.query.record_retrieval and rows:
            self._store.count_retrievals([row.rid for _, row in rows])
        stages = state.watch.report()
        return SearchAnswer(
            hits=tuple(hits),
            revision=revision,
            best_relevance=ranked.best_relevance,
            candidates=ranked.ranked,
            folded=ranked.folded_count,
            below_min_relevance=below,
            degraded=tuple(state.degraded),
            timings=stages if state.query.timings else (),
            plan=str(state.plan) if state.query.explain else "",
            stages=stages,
        )

    def _fetch(
        self, state: Question, ranked: Ranked, likely: NDArray[np.int32], deadline: Deadline
    ) -> tuple[Placed, int]:
        """The best k as (candidate position, row), and the revision they are of. A row that is gone meanwhile is
        replaced by the next best."""
        rows: Placed = []
        revision = self._store.revision
        at = 0
        while len(rows) < state.plan.k and at < len(likely):
            wanted = likely[at : at + state.plan.k - len(rows)]
            at += len(wanted)
            rids = ranked.rids[wanted].tolist()
            found, revision = self._store.survivors(state.scope_no or 0, rids, deadline)
            rows.extend((p, found[rid]) for p, rid in zip(wanted.tolist(), rids, strict=True) if rid in found)
        return rows, revision

    def _folded_ids(self, read: ReadTxn, state: Question, ranked: Ranked, rows: Placed) -> dict[int, str]:
        """Ids by rid of what was folded into the hits, as far as explanations will name them."""
        if not state.query.explain or not ranked.folded_count:
            return {}
        groups = folded_positions(ranked)
        named = [p for at, _ in rows for p in groups[at][:FOLDED_IDS]]
        rids = [int(ranked.rids[p]) for p in named]
        return {row.rid: row.memory.id for row in read.fetch(state.query.scope, rids)}

    def _hits(
        self,
        state: Question,
        found: Candidates | None,
        ranked: Ranked,
        selection: Selection,
        rows: Placed,
        folded: dict[int, str],
    ) -> list[Hit]:
        explanations = (
            self._explainer.explain(state.plan, found, ranked, selection, rows, folded)
            if state.query.explain
            else [None] * len(rows)
        )
        score, relevance = ranked.score, ranked.relevance
        return [
            _hit(row.memory, n, float(score[position]), float(relevance[position]), explanation)
            for n, ((position, row), explanation) in enumerate(zip(rows, explanations, strict=True), 1)
        ]

    def _expand(
        self, read: ReadTxn, state: Question, rows: list[Row], deadline: Deadline
    ) -> list[tuple[Memory, str, float]]:
        """What the hits' links reach, as (memory, id of the hit, strength of the path); at most k."""
        depth = state.query.expand_links
        if not depth or not rows:
            return []
        # The walk passes through memories that this search may not show; those must not take the place of others.
        start = [r.rid for r in rows]
        reached, _, _ = walk(read, start, depth, Limits.TRAVERSE_NODES, (), Direction.BOTH, 0.0, deadline)
        seen = self._indexes.columns.select(rows[0].scope_no, replace(state.view, filter=NO_FILTER))
        visible = seen.contains(np.array([n.rid for n in reached], np.int32)).tolist()
        shown = [n for n, ok in zip(reached, visible, strict=True) if ok][: state.plan.k]
        memories = {r.rid: r.memory for r in read.fetch(state.query.scope, [n.rid for n in shown])}
        ids = {r.rid: r.memory.id for r in rows}
        return [(memories[n.rid], ids[n.origin], n.strength) for n in shown if n.rid in memories]


def expanded_hits(expanded: list[tuple[Memory, str, float]], after: int) -> list[Hit]:
    """Hits for what links reached, behind the ``after`` ranked ones; they have no relevance of their own."""
    return [
        Hit(memory, after + n + 1, 0.0, 0.0, expanded=True, expanded_from=origin)
        for n, (memory, origin, _) in enumerate(expanded)
    ]
