"""Questions, their ranking, and answers with explanations.

Owns the reading of SearchRequest and Ranking (absent = None, the profile decides) and the filling of SearchResponse
and of the results of SearchMany. Called by ``memory_servicer.py``.
"""

from __future__ import annotations

from memxd.errors import MemxdError
from memxd.model import (
    AS_THE_PROFILE,
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
from memxd.service.convert import values
from memxd.service.convert.memory import fill_memory, filter_
from memxd.service.status import fill_item_error
from memxd.v1 import memory_service_pb2, search_pb2


def search_query(request: memory_service_pb2.SearchRequest) -> SearchQuery:
    """The question as the engine takes it; what is absent becomes None, the engine knows the defaults."""
    return SearchQuery(
        scope=values.scope(request),
        query=request.query,
        k=values.optional(request, "k"),
        filter=filter_(request),
        mode=values.enum_or_none(Mode, request.mode, "mode"),
        ranking=ranking(request.ranking),
        min_relevance=values.optional_number(request, "min_relevance", "min_relevance"),
        explain=request.explain,
        record_retrieval=request.record_retrieval if request.HasField("record_retrieval") else True,
        asked_at=values.optional_instant(request, "asked_at", "asked_at"),
        as_of=values.optional_instant(request, "as_of", "as_of"),
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
    if not message.ByteSize():
        return AS_THE_PROFILE
    weights = message.weights

    def weight(name: str) -> float | None:
        return values.optional_number(weights, name, f"ranking.weights.{name}")

    def number(name: str) -> float | None:
        return values.optional_number(message, name, f"ranking.{name}")

    return Ranking(
        profile=values.enum_or_none(Profile, message.profile, "ranking.profile"),
        semantic=weight("semantic"),
        recency=weight("recency"),
        frequency=weight("frequency"),
        importance=weight("importance"),
        alpha=number("alpha"),
        half_life=values.span(message.half_life, "ranking.half_life") if message.HasField("half_life") else None,
        rrf_k=values.optional(message, "rrf_k"),
        vector_weight=number("vector_weight"),
        keyword_weight=number("keyword_weight"),
        dedup=values.enum_or_none(Dedup, message.dedup, "ranking.dedup"),
        reject=values.optional(message, "reject"),
        tau=number("tau"),
    )


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
