"""Answers of the wire as the plain dataclasses of ``memxd.model``.

Owns the way from a protobuf message to a frozen dataclass, field by field. Does not build requests (``values.py``) and
does not judge answers, but an enum number of a newer daemon is an
error, never a guess. Called by the call tables of this package. The daemon has its own
conversions in ``service/``; the two never import each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from memxd import model
from memxd.client.failures import build
from memxd.client.values import EXACT_INT
from memxd.errors import MemxdError
from memxd.model import Micros
from memxd.model.quick import quick

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from memxd.v1 import memory_pb2, memory_service_pb2, search_pb2

E = TypeVar("E", bound=IntEnum)


_memory = quick(model.Memory)
_hit = quick(model.Hit)


def micros(when: Timestamp) -> Micros:
    """A timestamp as whole microseconds since the epoch."""
    return when.seconds * model.SECOND + when.nanos // 1000


def member(cls: type[E], number: int) -> E:
    """The enum member of a number; a number of a newer daemon is refused with the way out."""
    known = cls._value2member_map_.get(number)
    if known is None:
        raise build(
            "UNKNOWN_ENUM_VALUE",
            f"the daemon answered {cls.__name__} {number}, which this client does not know; upgrade the client",
        )
    return cast("E", known)


def maybe_member(cls: type[E], number: int) -> E | None:
    """Like ``member``; None for 0 (unspecified)."""
    return member(cls, number) if number else None


def json_value(value: Value) -> Any:
    """One JSON value; whole numbers as int."""
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return json_object(value.struct_value)
    if kind == "list_value":
        return [json_value(item) for item in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() and abs(number) <= EXACT_INT else number
    return None if kind in {"null_value", None} else getattr(value, kind)


def json_object(struct: Struct) -> dict[str, Any]:
    """A JSON object, keys sorted."""
    return {key: json_value(struct.fields[key]) for key in sorted(struct.fields)}


def scope(message: memory_pb2.Scope) -> model.Scope:
    """A scope, both parts filled in."""
    return _scope(message.agent_id, message.user_id)


@lru_cache(maxsize=64)  # all hits of an answer are of one scope
def _scope(agent_id: str, user_id: str) -> model.Scope:
    return model.Scope(agent_id or "default", user_id or "default")


_TYPES: Mapping[int, model.MemoryType] = {m.value: m for m in model.MemoryType}
_STATES: Mapping[int, model.State] = {m.value: m for m in model.State}


def memory(message: memory_pb2.Memory) -> model.Memory:
    """A memory; absent times are None."""
    present = message.HasField
    whose, created, updated = message.scope, message.created_at, message.updated_at
    return _memory(
        message.id,
        _scope(whose.agent_id, whose.user_id),
        message.content,
        _TYPES.get(message.type) or member(model.MemoryType, message.type),
        tuple(tags) if (tags := message.tags) else (),  # running through an empty one raises inside
        json_object(message.metadata) if present("metadata") else {},
        message.importance,
        created.seconds * model.SECOND + created.nanos // 1000,  # ``micros``, without the call: twice a hit
        updated.seconds * model.SECOND + updated.nanos // 1000,
        micros(message.event_at) if present("event_at") else None,
        micros(message.valid_until) if present("valid_until") else None,
        _STATES.get(message.state) or member(model.State, message.state),
        message.private,
        message.source,
        message.revision,
        message.access_count,
        micros(message.last_accessed_at) if present("last_accessed_at") else None,
        message.retrieval_count,
        micros(message.last_retrieved_at) if present("last_retrieved_at") else None,
        message.vector_pending,
        message.superseded_by,
        message.content_truncated,
    )


def memories(messages: Iterable[memory_pb2.Memory]) -> tuple[model.Memory, ...]:
    """Memories in their order."""
    return tuple(memory(m) for m in messages)


def link(message: memory_pb2.Link) -> model.Link:
    """A link."""
    return model.Link(
        id=message.id,
        scope=scope(message.scope),
        source_id=message.source_id,
        target_id=message.target_id,
        type=member(model.LinkType, message.type),
        strength=message.strength,
        bidirectional=message.bidirectional,
        metadata=json_object(message.metadata),
        created_at=micros(message.created_at),
    )


def stored(message: memory_service_pb2.StoreResponse) -> model.StoreAnswer:
    """The answer of Store."""
    return model.StoreAnswer(memory(message.memory), message.revision, message.deduplicated)


def updated(message: memory_service_pb2.UpdateResponse) -> model.StoreAnswer:
    """The answer of Update; never deduplicated."""
    return model.StoreAnswer(memory(message.memory), message.revision)


def page(message: memory_service_pb2.ListResponse) -> model.Page:
    """One page of a List."""
    return model.Page(memories(message.memories), message.next_page_token, message.revision)


def item_error(message: memory_service_pb2.ItemError) -> MemxdError:
    """The refusal of one item of a larger call, as the error a call of its own would have raised."""
    violations = ((message.field, message.message),) if message.field else ()
    error = build(message.reason, message.message, violations=violations, metadata=dict(message.metadata))
    vars(error)["retryable"] = message.retryable
    return error


def link_page(message: memory_service_pb2.ListLinksResponse) -> model.LinkPage:
    """One page of a ListLinks."""
    links = tuple(link(item) for item in message.links)
    return model.LinkPage(links, message.next_page_token, message.total_count, message.revision)


def traversal(message: memory_service_pb2.TraverseResponse) -> model.Traversal:
    """What a walk reached."""
    reached = tuple(
        model.Traversed(memory(m.memory), m.depth, m.path_strength, tuple(m.link_ids)) for m in message.memories
    )
    return model.Traversal(reached, tuple(link(item) for item in message.links), message.truncated, message.revision)


def factor(message: search_pb2.Factor) -> model.Factor:
    """A factor; its contribution is derived."""
    return model.Factor(message.value, message.weight)


def _optional(message: Message, field: str) -> Any:
    return getattr(message, field) if message.HasField(field) else None


def terms(messages: Iterable[search_pb2.TermMatch]) -> tuple[model.TermMatch, ...]:
    """Query terms in their order."""
    return tuple(model.TermMatch(t.term, t.idf, t.frequency, t.score) for t in messages)


def explanation(message: search_pb2.Explanation) -> model.Explanation:
    """An explanation; what a leg did not see is None, not 0."""
    return model.Explanation(
        semantic=factor(message.semantic),
        recency=factor(message.recency),
        frequency=factor(message.frequency),
        importance=factor(message.importance),
        raw_score=message.raw_score,
        z_score=message.z_score,
        rrf=message.rrf,
        cosine=_optional(message, "cosine"),
        vector_rank=_optional(message, "vector_rank"),
        keyword_score=_optional(message, "keyword_score"),
        keyword_rank=_optional(message, "keyword_rank"),
        terms=terms(message.terms),
        chunk=_optional(message, "chunk"),
        notes=tuple(message.notes),
        folded=message.folded,
        folded_ids=tuple(message.folded_ids),
    )


def hit(message: search_pb2.Hit) -> model.Hit:
    """A hit; its explanation is None unless asked for."""
    return _hit(
        memory(message.memory),
        message.rank,
        message.score,
        message.relevance,
        explanation(message.explanation) if message.HasField("explanation") else None,
        message.expanded,
        message.expanded_from,
    )


def search_answer(message: memory_service_pb2.SearchResponse) -> model.SearchAnswer:
    """The answer to one question."""
    return model.SearchAnswer(
        hits=tuple(hit(h) for h in message.hits),
        revision=message.revision,
        rejected=message.rejected,
        reject_reason=maybe_member(model.RejectReason, message.reject_reason),
        best_relevance=message.best_relevance,
        candidates=message.candidates,
        folded=message.folded,
        below_min_relevance=message.below_min_relevance,
        degraded=tuple(model.Degradation(member(model.DegradedCause, d.cause), d.message) for d in message.degraded),
        timings=tuple((t.stage, t.micros) for t in message.timings),
        plan=message.plan,
    )


def search_answers(
    results: Sequence[memory_service_pb2.SearchManyResult],
) -> list[model.SearchAnswer | MemxdError]:
    """The answers of a SearchMany, a refused question as its error."""
    return [item_error(r.error) if r.WhichOneof("result") == "error" else search_answer(r.response) for r in results]
