"""A question under way: validated, resolved to a plan, embedded, and the rows that may answer it.

Owns the first three steps of a search and the state that the later ones share. Does not look for answers. Called by
search.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from memxd.engine import validate
from memxd.engine.embedding import own_vector
from memxd.engine.indexes import Indexes
from memxd.engine.narrowing import Narrowing
from memxd.engine.profiles import Plan, RankingDefaults, resolve
from memxd.engine.vectors import Space, Vectors
from memxd.errors import EmbedderUnavailableError, IndexUnavailableError
from memxd.index.selection import Selection
from memxd.model import Clock, Deadline, Degradation, DegradedCause, IndexKind, Limits, Mode, SearchQuery, View
from memxd.store import Store


class Watch:
    """Microseconds by stage."""

    def __init__(self) -> None:
        self._started = self._last = time.perf_counter()
        self._stages: list[tuple[str, int]] = []

    def lap(self, stage: str) -> None:
        """The stage that is over now."""
        now = time.perf_counter()
        self._stages.append((stage, round((now - self._last) * 1e6)))
        self._last = now

    def report(self) -> tuple[tuple[str, int], ...]:
        """What each stage took, and the total."""
        return (*self._stages, ("total", round((time.perf_counter() - self._started) * 1e6)))


@dataclass(slots=True)
class Question:
    """One search under way. ``asked_at`` in microseconds; ``degraded`` grows as steps must do without something.
    ``scope_no`` is known once the rows are selected. ``space``: of the question's vector and the stored ones."""

    query: SearchQuery
    plan: Plan
    view: View
    asked_at: int
    min_relevance: float
    watch: Watch
    space: Space
    degraded: list[Degradation] = field(default_factory=list)
    scope_no: int | None = None


class Asking:
    """The steps before the legs. One per engine; holds no state of a search."""

    def __init__(
        self,
        store: Store,
        indexes: Indexes,
        vectors: Vectors,
        clock: Clock,
        defaults: RankingDefaults,
        pending_in: Callable[[int], bool],
    ) -> None:
        self._store = store
        self._indexes = indexes
        self._vectors = vectors
        self._clock = clock
        self._defaults = defaults
        self._pending_in = pending_in
        self._narrowing = Narrowing()

    def prepare(self, query: SearchQuery) -> Question:
        """Check every field of the request and settle how it will be ranked."""
        scope, text = validate.scope(query.scope), validate.query(query.query)
        filter_, zone = validate.filter_(query.filter), validate.time_zone(query.time_zone)
        clean = query
        if not (scope == query.scope and text == query.query and filter_ is query.filter):
            clean = replace(query, scope=scope, query=text, filter=filter_, time_zone=zone)
        validate.instant("asked_at", query.asked_at)
        validate.instant("as_of", query.as_of)
        if query.as_of is not None and query.filter.states:
            raise validate.fail("as_of", "does not go together with filter.states")
        validate.integer("expand_links", query.expand_links, 0, 0, Limits.EXPAND_LINKS)
        k = validate.integer("k", query.k, Limits.K_DEFAULT, 1, Limits.K)
        space = self._vectors.current
        plan = resolve(
            query.ranking,
            mode=query.mode,
            k=k,
            exact=query.exact,
            model_tau=space.embedder.info.tau,
            defaults=self._defaults,
        )
        now = self._clock()
        return Question(
            clean,
            plan,
            View(clean.filter, now, query.as_of, query.include_superseded),
            now if query.asked_at is None else query.asked_at,
            validate.ratio("min_relevance", query.min_relevance, 0.0),
            Watch(),
            space,
        )

    def embed(self, state: Question, deadline: Deadline) -> NDArray[np.float32] | None:
        """The question's vector; None when it is not wanted or cannot be had (told in ``degraded``)."""
        query = state.query
        if query.vector is not None:
            return own_vector(state.space, "vector", query.vector, query.model_id)
        if query.model_id:
            raise validate.fail("model_id", "names the model of vector, which is absent")
        if state.plan.mode is Mode.KEYWORD or state.plan.whole_scope:
            return None
        if not state.space.matched:
            if state.plan.mode is Mode.VECTOR:
                raise IndexUnavailableError(f"{state.space.difference}; mode keyword still answers")
            state.degraded.append(state.space.mismatch())
            return None
        try:
            return state.space.embedder.embed_query(query.query, deadline)
        except EmbedderUnavailableError as error:
            if state.plan.mode is Mode.VECTOR:
                raise
            state.degraded.append(
                Degradation(DegradedCause.EMBEDDER_UNAVAILABLE, f"{error.message}; answered by words alone")
            )
            return None

    def select(self, state: Question, deadline: Deadline) -> tuple[Selection, int]:
        """The rows that may answer, and a revision that they reflect at least."""
        wanted = state.query.filter
        self._indexes.require(IndexKind.COLUMNS)
        revision = self._store.revision
        scope_no = state.scope_no = self._store.scope_no(state.query.scope, deadline)
        if scope_no is not None and state.plan.mode is not Mode.KEYWORD and self._pending_in(scope_no):
            state.degraded.append(
                Degradation(
                    DegradedCause.VECTORS_PENDING,
                    "some memories still wait for their vector and can only be found by their words",
                )
            )
        restrict = None
        if wanted.needs_store:
            with self._store.read(deadline) as read:
                restrict = self._narrowing.rids(read, state.query.scope, wanted)
        return self._indexes.columns.select(scope_no, state.view, restrict), revision
