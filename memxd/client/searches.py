"""The calls that ask questions, and the two builders that a question's filter and ranking are made with.

Owns the Python signature and documentation of ``search`` and ``search_many`` (see ``call.py`` for how both clients
take them), of ``where`` (a Filter) and of ``rank`` (a Ranking).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from memxd import model
from memxd.client import convert, values
from memxd.client.call import MEMORY_SERVICE, Bound, Call
from memxd.client.values import When
from memxd.errors import MemxdError
from memxd.model import Dedup, Filter, MemoryType, Mode, Profile, Ranking, State, TimeRange
from memxd.model.quick import quick
from memxd.v1 import memory_service_pb2 as pb

#: (start, end), half-open; None on either side = open.
Span: TypeAlias = tuple[When | None, When | None]


@dataclass(frozen=True, slots=True)
class Question:
    """A question for ``search_many``; the same fields as the arguments of ``search``.

    ``agent_id`` and ``user_id`` override the client's scope.
    """

    query: str
    k: int | None = None
    filter: Filter | None = None
    mode: Mode | str | None = None
    profile: Profile | str | None = None
    ranking: Ranking | None = None
    min_relevance: float | None = None
    explain: bool = False
    record_retrieval: bool = True
    asked_at: When | None = None
    as_of: When | None = None
    time_zone: str = ""
    include_superseded: bool = False
    exact: bool = False
    vector: Iterable[float] = ()
    model_id: str = ""
    expand_links: int = 0
    timings: bool = False
    agent_id: str | None = None
    user_id: str | None = None


_question = quick(Question)


def where(
    *,
    types: Iterable[MemoryType | str] = (),
    tags_any: Iterable[str] = (),
    tags_all: Iterable[str] = (),
    tags_none: Iterable[str] = (),
    created: Span | None = None,
    event: Span | None = None,
    importance_min: float | None = None,
    metadata: Mapping[str, Any] | None = None,
    states: Iterable[State | str] = (),
    ids: Iterable[str] = (),
    importance_below: float | None = None,
    unused_since: When | None = None,
    valid_until: Span | None = None,
) -> Filter:
    """A filter; every condition given must hold.

    ``created``, ``event`` and ``valid_until`` are half-open (start, end) of aware datetimes or microseconds;
    ``unused_since``: neither stored, read nor found since. ``states`` overrides the default (active and unexpired).
    Raises InvalidArgumentError for a time without a zone or an unknown word.
    """
    return Filter(
        types=frozenset(values.choice(f"filter.types[{i}]", MemoryType, t) for i, t in enumerate(types)),
        tags_any=frozenset(values.texts("filter.tags_any", tags_any)),
        tags_all=frozenset(values.texts("filter.tags_all", tags_all)),
        tags_none=frozenset(values.texts("filter.tags_none", tags_none)),
        created=_span("filter.created", created),
        event=_span("filter.event", event),
        importance_min=importance_min,
        metadata=dict(metadata or {}),
        states=frozenset(values.choice(f"filter.states[{i}]", State, s) for i, s in enumerate(states)),
        ids=frozenset(values.texts("filter.ids", ids)),
        importance_below=importance_below,
        unused_since=None if unused_since is None else values.to_micros("filter.unused_since", unused_since),
        valid_until=_span("filter.valid_until", valid_until),
    )


def _span(field: str, span: Span | None) -> TimeRange | None:
    if span is None:
        return None
    start, end = span
    return TimeRange(
        start=None if start is None else values.to_micros(f"{field}.start", start),
        end=None if end is None else values.to_micros(f"{field}.end", end),
    )


def rank(
    profile: Profile | str | None = None,
    *,
    semantic: float | None = None,
    recency: float | None = None,
    frequency: float | None = None,
    importance: float | None = None,
    alpha: float | None = None,
    half_life: timedelta | None = None,
    rrf_k: int | None = None,
    vector_weight: float | None = None,
    keyword_weight: float | None = None,
    dedup: Dedup | str | None = None,
    reject: bool | None = None,
    tau: float | None = None,
) -> Ranking:
    """A ranking: a profile ("balanced", "memx", "memex") and what differs from it; None = the profile's own choice."""
    return Ranking(
        profile=None if profile is None else values.choice("ranking.profile", Profile, profile),
        semantic=semantic,
        recency=recency,
        frequency=frequency,
        importance=importance,
        alpha=alpha,
        half_life=None if half_life is None else half_life // timedelta(microseconds=1),
        rrf_k=rrf_k,
        vector_weight=vector_weight,
        keyword_weight=keyword_weight,
        dedup=None if dedup is None else values.choice("ranking.dedup", Dedup, dedup),
        reject=reject,
        tau=tau,
    )


def request(scope: Bound, question: Question) -> pb.SearchRequest:
    """The question for the wire."""
    ranking = question.ranking
    if ranking is None and question.profile is not None:
        ranking = rank(question.profile)
    return pb.SearchRequest(
        scope=scope.override(question.agent_id, question.user_id).message(),
        query=values.text("query", question.query),
        k=values.whole("k", question.k),
        filter=values.filter_message(question.filter),
        mode=values.number("mode", Mode, question.mode),
        ranking=values.ranking_message(ranking),
        min_relevance=question.min_relevance,
        explain=question.explain,
        record_retrieval=None if question.record_retrieval else False,
        asked_at=values.maybe_timestamp("asked_at", question.asked_at),
        as_of=values.maybe_timestamp("as_of", question.as_of),
        time_zone=values.text("time_zone", question.time_zone),
        include_superseded=question.include_superseded,
        exact=question.exact,
        vector=question.vector,
        model_id=values.text("model_id", question.model_id),
        expand_links=values.whole("expand_links", question.expand_links),
        timings=question.timings,
    )


def search(
    scope: Bound,
    query: str,
    *,
    k: int | None = None,
    filter: Filter | None = None,
    mode: Mode | str | None = None,
    profile: Profile | str | None = None,
    ranking: Ranking | None = None,
    min_relevance: float | None = None,
    explain: bool = False,
    record_retrieval: bool = True,
    asked_at: When | None = None,
    as_of: When | None = None,
    time_zone: str = "",
    include_superseded: bool = False,
    exact: bool = False,
    vector: Iterable[float] = (),
    model_id: str = "",
    expand_links: int = 0,
    timings: bool = False,
    timeout: float | None = None,
) -> Call[model.SearchAnswer]:
    """Find the memories that answer a question in plain words, best first, or learn that nothing is known.

    ``query`` 1..2,000 characters; ``k`` 1..200 (absent: 10); ``filter`` by ``where``; ``mode`` "hybrid", "vector" or
    "keyword"; ``profile`` by name, or ``ranking`` by ``rank`` for more (``ranking`` wins). An answer with ``rejected``
    has no hits and says why. ``explain`` fills ``Hit.explanation``; ``record_retrieval=False`` leaves no trace.
    """
    question = _question(
        query, k, filter, mode, profile, ranking, min_relevance, explain, record_retrieval, asked_at, as_of,
        time_zone, include_superseded, exact, vector, model_id, expand_links, timings,
    )  # fmt: skip
    return Call(MEMORY_SERVICE + "Search", request(scope, question), pb.SearchResponse, convert.search_answer, timeout)


def search_many(
    scope: Bound, questions: Iterable[Question | str], *, timeout: float | None = None
) -> Call[list[model.SearchAnswer | MemxdError]]:
    """Ask up to 32 questions in one call; each gets, in order, its answer or the error that refused it."""
    searches = [request(scope, Question(q) if isinstance(q, str) else q) for q in questions]
    return Call(
        MEMORY_SERVICE + "SearchMany",
        pb.SearchManyRequest(searches=searches),
        pb.SearchManyResponse,
        lambda answer: convert.search_answers(answer.results),
        timeout,
    )
