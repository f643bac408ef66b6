"""Questions, their ranking, and answers with explanations.

Owns the reading of SearchRequest and Ranking (absent = None, the profile decides) and the filling of SearchResponse
and of the results of SearchMany. Called by ``memory_servicer.py``.
"""

from __future__ import annotations

from memxd.errors import MemxdError
from memxd.model import (
    AS_THE_PROFILE,
    NO_FILTER,
    Dedup,
    Explanation,
    Factor,
    Hit,
    Mode,
    Profile,
    Ranking,
    SearchAnswer,
    SearchQuery,
)
from memxd.model.quick import quick
from memxd.service.convert import values
from memxd.service.convert.memory import fill_memory, filter_
from memxd.service.status import fill_item_error
from memxd.v1 import memory_service_pb2, search_pb2

_query = quick(SearchQuery)
_ranking = quick(Ranking)


def search_query(request: memory_service_pb2.SearchRequest) -> SearchQuery:
    """The question as the engine takes it; what is absent becomes None, the engine knows the defaults."""
    present = request.HasField
    return _query(
        scope=values.scope(request),
        query=request.query,
        k=request.k if present("k") else None,
        filter=filter_(request) if present("filter") else NO_FILTER,
        mode=values.enum_or_none(Mode, request.mode, "mode"),
        ranking=ranking(request.ranking) if present("ranking") else AS_THE_PROFILE,
        min_relevance=values.finite(request.min_relevance, "min_relevance") if present("min_relevance") else None,
        explain=request.explain,
        record_retrieval=request.record_retrieval if present("record_retrieval") else True,
        asked_at=values.instant(request.asked_at, "asked_at") if present("asked_at") else None,
        as_of=values.instant(request.as_of, "as_of") if present("as_of") else None,
        time_zone=request.time_zone,
        include_superseded=request.include_superseded,
        exact=request.exact,
        vector=values.vector_or_none(request.vector, "vector"),
        model_id=request.model_id,
        expand_links=request.expand_links,
        timings=request.timings,
    )


def ranking(message: search_pb2.Ranking) -> Ranking:
    """How candidates are to be ranked; None = the profile's own choice."""
    present = message.HasField

    def number(name: str) -> float | None:
        return values.finite(getattr(message, name), f"ranking.{name}") if present(name) else None

    semantic, recency, frequency, importance = _weights(message) if present("weights") else (None,) * 4
    return _ranking(
        profile=values.enum_or_none(Profile, message.profile, "ranking.profile"),
        semantic=semantic,
        recency=recency,
        frequency=frequency,
        importance=importance,
        alpha=number("alpha"),
        half_life=values.span(message.half_life, "ranking.half_life") if present("half_life") else None,
        rrf_k=message.rrf_k if present("rrf_k") else None,
        vector_weight=number("vector_weight"),
        keyword_weight=number("keyword_weight"),
        dedup=values.enum_or_none(Dedup, message.dedup, "ranking.dedup"),
        reject=message.reject if present("reject") else None,
        tau=number("tau"),
    )


def _weights(message: search_pb2.Ranking) -> list[float | None]:
    return [
        values.optional_number(message.weights, name, f"ranking.weights.{name}")
        for name in ("semantic", "recency", "frequency", "importance")
    ]


def fill_answer(message: memory_service_pb2.SearchResponse, answer: SearchAnswer) -> None:
    """Write an answer into an empty message."""
    for hit in answer.hits:
        _fill_hit(message.hits.add(), hit)
    if answer.rejected:
        message.rejected = True
    if answer.reject_reason is not None:
        message.reject_reason = values.wire(answer.reject_reason)
    message.best_relevance = answer.best_relevance
    message.candidates = answer.candidates
    if answer.folded:
        message.folded = answer.folded
    if answer.below_min_relevance:
        message.below_min_relevance = answer.below_min_relevance
    for degradation in answer.degraded:
        message.degraded.add(cause=values.wire(degradation.cause), message=degradation.message)
    message.revision = answer.revision
    for stage, micros in answer.timings:
        message.timings.add(stage=stage, micros=micros)
    if answer.plan:
        message.plan = answer.plan


def _fill_hit(message: search_pb2.Hit, hit: Hit) -> None:
    fill_memory(message.memory, hit.memory)
    message.rank = hit.rank
    message.score = hit.score
    message.relevance = hit.relevance
    if hit.explanation is not None:
        _fill_explanation(message.explanation, hit.explanation)
    if hit.expanded:
        message.expanded = True
        message.expanded_from = hit.expanded_from


def _fill_explanation(message: search_pb2.Explanation, explanation: Explanation) -> None:
    for name in ("cosine", "vector_rank", "keyword_score", "keyword_rank", "chunk"):
        value = getattr(explanation, name)
        if value is not None:
            setattr(message, name, value)
    message.rrf = explanation.rrf
    _fill_factor(message.semantic, explanation.semantic)
    _fill_factor(message.recency, explanation.recency)
    _fill_factor(message.frequency, explanation.frequency)
    _fill_factor(message.importance, explanation.importance)
    message.raw_score = explanation.raw_score
    message.z_score = explanation.z_score
    for term in explanation.terms:
        message.terms.add(term=term.term, idf=term.idf, frequency=term.frequency, score=term.score)
    message.notes.extend(explanation.notes)
    message.folded = explanation.folded
    message.folded_ids.extend(explanation.folded_ids)


def _fill_factor(message: search_pb2.Factor, factor: Factor) -> None:
    message.value = factor.value
    message.weight = factor.weight
    message.contribution = factor.contribution
    message.SetInParent()


def fill_result(message: memory_service_pb2.SearchManyResult, result: SearchAnswer | MemxdError) -> None:
    """Write one answer of a SearchMany, or why that one was refused."""
    if isinstance(result, MemxdError):
        fill_item_error(message.error, result)
    else:
        message.response.SetInParent()
        fill_answer(message.response, result)
