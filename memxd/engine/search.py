"""Search: from a question in plain words to ranked, explained memories, or to "nothing known".

Owns the order of the steps: validate, embed, select, both legs, fuse, four factors, reject, fold, fetch, explain. Each
step's rules live in a module of their own (profiles, candidates, ranking, relevance, links). Touches SQLite twice: to
narrow by ids or metadata when asked to, and to fetch the survivors, which is also what keeps a stale index from ever
inventing a hit. Called by the engine's face.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from memxd._fast import Kernels
from memxd.engine import validate
from memxd.engine.candidates import Candidates, Legs
from memxd.engine.embedding import own_vector
from memxd.engine.explain import FOLDED_IDS, Explainer, folded_positions
from memxd.engine.indexes import Indexes
from memxd.engine.links import walk
from memxd.engine.profiles import Plan, RankingDefaults, resolve
from memxd.engine.ranking import Ranked, Ranker
from memxd.engine.relevance import rejection
from memxd.engine.vectors import Vectors
from memxd.errors import EmbedderUnavailableError, MemxdError
from memxd.index.selection import Selection
from memxd.model import (
    NO_DEADLINE,
    Clock,
    Deadline,
    Degradation,
    DegradedCause,
    Direction,
    Hit,
    Limits,
    Memory,
    Mode,
    RejectReason,
    SearchAnswer,
    SearchQuery,
    View,
)
from memxd.store import ReadTxn, Row, Store


@dataclass(slots=True)
class _Watch:
    """Microseconds by stage."""

    started: float = field(default_factory=time.perf_counter)
    last: float = field(default_factory=time.perf_counter)
    stages: list[tuple[str, int]] = field(default_factory=list)

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.stages.append((stage, round((now - self.last) * 1e6)))
        self.last = now

    def report(self) -> tuple[tuple[str, int], ...]:
        return (*self.stages, ("total", round((time.perf_counter() - self.started) * 1e6)))


@dataclass(slots=True)
class _Search:
    """One search under way."""

    query: SearchQuery
    plan: Plan
    view: View
    asked_at: int
    min_relevance: float
    watch: _Watch
    degraded: list[Degradation] = field(default_factory=list)


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
        self._vectors = vectors
        self._pending_in = pending_in
        self._clock = clock
        self._defaults = defaults
        self._legs = Legs(indexes)
        self._ranker = Ranker(indexes, kernels, vectors.embedder.info)
        self._explainer = Explainer(indexes)

    def search(self, query: SearchQuery, deadline: Deadline = NO_DEADLINE) -> SearchAnswer:
        """Answer one question. Errors as the contract names them."""
        state = self._prepare(query)
        vector = self._embed(state, deadline)
        state.watch.lap("embed")
        selection, revision = self._select(state, deadline)
        state.watch.lap("filter")
        if not len(selection):
            return self._nothing(state, RejectReason.EMPTY, revision)
        if state.plan.whole_scope:
            ranked = self._ranker.rank_scope(state.plan, selection, state.asked_at)
            found = None
        else:
            found = self._legs.gather(state.plan, state.query.query, vector, selection, deadline, state.watch.lap)
            state.degraded.extend(found.degraded)
            ranked = self._ranker.rank(state.plan, found, selection, state.asked_at)
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

    def _prepare(self, query: SearchQuery) -> _Search:
        clean = replace(
            query,
            scope=validate.scope(query.scope),
            query=validate.query(query.query),
            filter=validate.filter_(query.filter),
            time_zone=validate.time_zone(query.time_zone),
        )
        validate.instant("asked_at", query.asked_at)
        validate.instant("as_of", query.as_of)
        if query.as_of is not None and query.filter.states:
            raise validate.fail("as_of", "does not go together with filter.states")
        validate.integer("expand_links", query.expand_links, 0, 0, Limits.EXPAND_LINKS)
        k = validate.integer("k", query.k, Limits.K_DEFAULT, 1, Limits.K)
        plan = resolve(
            query.ranking,
            mode=query.mode,
            k=k,
            exact=query.exact,
            model_tau=self._vectors.embedder.info.tau,
            defaults=self._defaults,
        )
        now = self._clock()
        return _Search(
            clean,
            plan,
            View(clean.filter, now, query.as_of, query.include_superseded),
            now if query.asked_at is None else query.asked_at,
            validate.ratio("min_relevance", query.min_relevance, 0.0),
            _Watch(),
        )

    def _embed(self, state: _Search, deadline: Deadline) -> NDArray[np.float32] | None:
        """The question's vector; None when it is not wanted or cannot be had (told in ``degraded``)."""
        query = state.query
        if query.vector is not None:
            return own_vector(self._vectors, "vector", query.vector, query.model_id)
        if query.model_id:
            raise validate.fail("model_id", "names the model of vector, which is absent")
        if state.plan.mode is Mode.KEYWORD or state.plan.whole_scope:
            return None
        if not self._vectors.matched:
            state.degraded.append(self._vectors.mismatch())
            return None
        try:
            return self._vectors.embedder.embed_query(query.query, deadline)
        except EmbedderUnavailableError as error:
            if state.plan.mode is Mode.VECTOR:
                raise
            state.degraded.append(
                Degradation(DegradedCause.EMBEDDER_UNAVAILABLE, f"{error.message}; answered by words alone")
            )
            return None

    def _select(self, state: _Search, deadline: Deadline) -> tuple[Selection, int]:
        wanted = state.query.filter
        with self._store.read(deadline) as read:
            revision = read.revision()
            scope_no = read.scope_no(state.query.scope)
            if scope_no is not None and state.plan.mode is not Mode.KEYWORD and self._pending_in(scope_no):
                state.degraded.append(
                    Degradation(
                        DegradedCause.VECTORS_PENDING,
                        "some memories still wait for their vector and can only be found by their words",
                    )
                )
            restrict = None
            if wanted.ids or wanted.metadata:
                rids = read.rids_matching(state.query.scope, ids=wanted.ids or None, metadata=wanted.metadata or None)
                restrict = np.array(rids, np.int32)
        return self._indexes.columns.select(scope_no, state.view, restrict), revision

    def _reject(self, state: _Search, found: Candidates | None, ranked: Ranked) -> RejectReason | None:
        if found is None:
            return None
        cosines = found.cosines[~np.isnan(found.cosines)]
        plan = state.plan
        if plan.mode is Mode.HYBRID and not found.vector_asked:
            plan = replace(plan, mode=Mode.KEYWORD)  # the vector leg could not be asked: judge by words
        return rejection(
            plan,
            best_cosine=float(cosines.max()) if cosines.size else -1.0,
            keyword_hits=int(found.keyword_rids.size),
            candidates=len(ranked.order),
            best_relevance=ranked.best_relevance,
        )

    def _nothing(
        self, state: _Search, reason: RejectReason, revision: int, ranked: Ranked | None = None
    ) -> SearchAnswer:
        return SearchAnswer(
            hits=(),
            revision=revision,
            rejected=True,
            reject_reason=reason,
            best_relevance=ranked.best_relevance if ranked else 0.0,
            candidates=len(ranked.order) if ranked else 0,
            degraded=tuple(state.degraded),
            timings=state.watch.report() if state.query.timings else (),
            plan=str(state.plan) if state.query.explain else "",
        )

    def _answer(
        self,
        state: _Search,
        found: Candidates | None,
        ranked: Ranked,
        selection: Selection,
        deadline: Deadline,
    ) -> SearchAnswer:
        kept = ranked.kept
        likely = kept[ranked.relevance[kept] >= state.min_relevance] if state.min_relevance else kept
        below = len(kept) - len(likely)
        with self._store.read(deadline) as read:
            rows = self._fetch(read, state, ranked, likely)
            folded = self._folded_ids(read, state, ranked, rows)
            expanded = self._expand(read, state, [row for _, row in rows], deadline)
            revision = read.revision()
        state.watch.lap("fetch")
        hits = self._hits(state, found, ranked, selection, rows, folded)
        hits.extend(expanded_hits(expanded, len(hits)))
        if state.query.record_retrieval and rows:
            self._store.count_retrievals([row.rid for _, row in rows])
        return SearchAnswer(
            hits=tuple(hits),
            revision=revision,
            best_relevance=ranked.best_relevance,
            candidates=len(ranked.order),
            folded=ranked.folded_count,
            below_min_relevance=below,
            degraded=tuple(state.degraded),
            timings=state.watch.report() if state.query.timings else (),
            plan=str(state.plan) if state.query.explain else "",
        )

    def _fetch(self, read: ReadTxn, state: _Search, ranked: Ranked, likely: NDArray[np.int32]) -> list[tuple[int, Row]]:
        """The best k as (candidate position, row). A row that is gone meanwhile is replaced by the next best."""
        rows: list[tuple[int, Row]] = []
        at = 0
        while len(rows) < state.plan.k and at < len(likely):
            wanted = likely[at : at + state.plan.k - len(rows)]
            at += len(wanted)
            by_rid = {row.rid: row for row in read.fetch(state.query.scope, ranked.rids[wanted].tolist())}
            rows.extend((int(p), by_rid[int(ranked.rids[p])]) for p in wanted if int(ranked.rids[p]) in by_rid)
        return rows

    def _folded_ids(self, read: ReadTxn, state: _Search, ranked: Ranked, rows: list[tuple[int, Row]]) -> dict[int, str]:
        """Ids by rid of what was folded into the hits, as far as explanations will name them."""
        if not state.query.explain or not ranked.folded_count:
            return {}
        groups = folded_positions(ranked)
        named = [p for at, _ in rows for p in groups[at][:FOLDED_IDS]]
        rids = [int(ranked.rids[p]) for p in named]
        return {row.rid: row.memory.id for row in read.fetch(state.query.scope, rids)}

    def _hits(
        self,
        state: _Search,
        found: Candidates | None,
        ranked: Ranked,
        selection: Selection,
        rows: list[tuple[int, Row]],
        folded: dict[int, str],
    ) -> list[Hit]:
        explanations = (
            self._explainer.explain(state.plan, found, ranked, selection, rows, folded)
            if state.query.explain
            else [None] * len(rows)
        )
        return [
            Hit(
                memory=row.memory,
                rank=n + 1,
                score=float(ranked.score[position]),
                relevance=float(ranked.relevance[position]),
                explanation=explanations[n],
            )
            for n, (position, row) in enumerate(rows)
        ]

    def _expand(
        self, read: ReadTxn, state: _Search, rows: list[Row], deadline: Deadline
    ) -> list[tuple[Memory, str, float]]:
        """What the hits' links reach, as (memory, id of the hit, strength of the path); at most k."""
        depth = state.query.expand_links
        if not depth or not rows:
            return []
        reached, _, _ = walk(read, [r.rid for r in rows], depth, state.plan.k, (), Direction.BOTH, 0.0, deadline)
        seen = self._indexes.columns.select(rows[0].scope_no, replace(state.view, filter=validate.NO_FILTER))
        visible = seen.contains(np.array([n.rid for n in reached], np.int32)).tolist()
        shown = [n for n, ok in zip(reached, visible, strict=True) if ok]
        memories = {r.rid: r.memory for r in read.fetch(state.query.scope, [n.rid for n in shown])}
        ids = {r.rid: r.memory.id for r in rows}
        return [(memories[n.rid], ids[n.origin], n.strength) for n in shown if n.rid in memories]


def expanded_hits(expanded: list[tuple[Memory, str, float]], after: int) -> list[Hit]:
    """Hits for what links reached, behind the ``after`` ranked ones; they have no relevance of their own."""
    return [
        Hit(memory, after + n + 1, 0.0, 0.0, expanded=True, expanded_from=origin)
        for n, (memory, origin, _) in enumerate(expanded)
    ]
