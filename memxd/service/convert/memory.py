"""Memories: what a caller stores, changes and selects, and how one is answered.

Owns the reading of NewMemory, MemoryPatch with its mask, and Filter, and the filling of Memory. Limits on texts, tags
and sizes are the engine's to check. Called by the servicers and by ``store_many.py``.
"""

from __future__ import annotations

import difflib
from typing import Any

from google.protobuf import field_mask_pb2

from memxd.errors import InvalidArgumentError
from memxd.model import NO_FILTER, Filter, Memory, MemoryType, NewMemory, Patch, State, TimeRange
from memxd.model.quick import quick
from memxd.service.convert import values
from memxd.v1 import memory_pb2, memory_service_pb2

_new_memory = quick(NewMemory)
#: What an Update may change.
MUTABLE = (
    "content", "type", "tags", "metadata", "importance", "event_at", "valid_until", "private", "source", "state",
)  # fmt: skip


def new_memory(message: memory_service_pb2.NewMemory) -> NewMemory:
    """What Store stores. An absent message is an empty one: its blank content is then refused by the engine."""
    return _new_memory(
        content=message.content,
        type=values.enum_or_none(MemoryType, message.type, "memory.type"),
        tags=tuple(tags) if (tags := message.tags) else (),  # running through an empty one raises inside
        metadata=values.json_object(message.metadata, "memory.metadata") if message.HasField("metadata") else {},
        importance=values.optional_number(message, "importance", "memory.importance"),
        event_at=values.optional_instant(message, "event_at", "memory.event_at"),
        valid_until=values.optional_instant(message, "valid_until", "memory.valid_until"),
        private=message.private,
        source=message.source,
        supersedes=tuple(replaced) if (replaced := message.supersedes) else (),
        allow_duplicate=message.allow_duplicate,
        vector=values.vector_or_none(message.vector, "memory.vector"),
        model_id=message.model_id,
    )


def patch(message: memory_service_pb2.MemoryPatch, mask: field_mask_pb2.FieldMask) -> Patch:
    """What Update changes. Fields the mask does not name are not read, so nothing in them can be refused."""
    names = _mask(mask)

    def masked(name: str) -> str:
        return f"memory.{name}"

    return Patch(
        mask=names,
        content=message.content if "content" in names else "",
        type=values.enum_or_none(MemoryType, message.type, masked("type")) if "type" in names else None,
        tags=tuple(message.tags) if "tags" in names else (),
        metadata=values.json_object(message.metadata, masked("metadata")) if "metadata" in names else {},
        importance=values.optional_number(message, "importance", masked("importance"))
        if "importance" in names
        else None,
        event_at=values.optional_instant(message, "event_at", masked("event_at")) if "event_at" in names else None,
        valid_until=(
            values.optional_instant(message, "valid_until", masked("valid_until")) if "valid_until" in names else None
        ),
        private=message.private if "private" in names else False,
        source=message.source if "source" in names else "",
        state=values.enum_or_none(State, message.state, masked("state")) if "state" in names else None,
    )


def _mask(mask: field_mask_pb2.FieldMask) -> frozenset[str]:
    if not mask.paths:
        raise InvalidArgumentError.field("update_mask", f"required: name at least one of {', '.join(MUTABLE)}")
    for position, path in enumerate(mask.paths):
        if path not in MUTABLE:
            near = difflib.get_close_matches(path[:64], MUTABLE, n=1)
            hint = f"did you mean {near[0]}?" if near else f"these can: {', '.join(MUTABLE)}"
            raise InvalidArgumentError.field(f"update_mask.paths[{position}]", f"cannot be changed; {hint}")
    return frozenset(mask.paths)


def filter_(request: Any, field: str = "filter") -> Filter:
    """The ``filter`` of a request; absent = no condition."""
    if not request.HasField("filter"):
        return NO_FILTER
    message: memory_pb2.Filter = request.filter
    return Filter(
        types=values.enum_set(MemoryType, message.types, f"{field}.types"),
        tags_any=frozenset(message.tags_any),
        tags_all=frozenset(message.tags_all),
        tags_none=frozenset(message.tags_none),
        created=_range(message.created, f"{field}.created") if message.HasField("created") else None,
        event=_range(message.event, f"{field}.event") if message.HasField("event") else None,
        importance_min=values.optional_number(message, "importance_min", f"{field}.importance_min"),
        metadata=values.json_object(message.metadata, f"{field}.metadata"),
        states=values.enum_set(State, message.states, f"{field}.states"),
        ids=frozenset(message.ids),
        importance_below=values.optional_number(message, "importance_below", f"{field}.importance_below"),
        unused_since=values.optional_instant(message, "unused_since", f"{field}.unused_since"),
        valid_until=_range(message.valid_until, f"{field}.valid_until") if message.HasField("valid_until") else None,
    )


def _range(message: memory_pb2.TimeRange, field: str) -> TimeRange:
    return TimeRange(
        start=values.optional_instant(message, "start", f"{field}.start"),
        end=values.optional_instant(message, "end", f"{field}.end"),
    )


def fill_memory(message: memory_pb2.Memory, memory: Memory) -> None:
    """Write a memory into an empty message. What is false, zero or empty is so already."""
    # Straight on without helpers: an answer has up to 200 of them.
    message.id = memory.id
    scope, part = memory.scope, message.scope
    part.agent_id, part.user_id = scope.agent_id, scope.user_id
    message.content = memory.content
    message.type = memory.type._value_  # type: ignore[assignment]  # ``values.wire``
    if memory.tags:
        message.tags.extend(memory.tags)
    if memory.metadata:
        values.fill_struct(message.metadata, memory.metadata)
    message.importance = memory.importance
    message.state = memory.state._value_  # type: ignore[assignment]
    message.revision = memory.revision
    values.fill_instant(message.created_at, memory.created_at)
    values.fill_instant(message.updated_at, memory.updated_at)
    if memory.event_at is not None:
        values.fill_instant(message.event_at, memory.event_at)
    if memory.valid_until is not None:
        values.fill_instant(message.valid_until, memory.valid_until)
    if memory.private:
        message.private = True
    if memory.source:
        message.source = memory.source
    if memory.superseded_by:
        message.superseded_by = memory.superseded_by
    if memory.vector_pending:
        message.vector_pending = True
    if memory.content_truncated:
        message.content_truncated = True
    _fill_counts(message, memory)


def _fill_counts(message: memory_pb2.Memory, memory: Memory) -> None:
    if memory.access_count:
        message.access_count = memory.access_count
    if memory.retrieval_count:
        message.retrieval_count = memory.retrieval_count
    if memory.last_accessed_at is not None:
        values.fill_instant(message.last_accessed_at, memory.last_accessed_at)
    if memory.last_retrieved_at is not None:
        values.fill_instant(message.last_retrieved_at, memory.last_retrieved_at)
