"""The stored form of answers, for request ids.

Owns turning the few dataclasses that a write answers with into JSON and back, exactly. Called by idempotency.py only;
the wire has its own conversion in service/.
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring
from typing import Any, TypeAlias

from memxd.engine.quickjson import QuickJson
from memxd.model import Link, LinkType, Memory, MemoryType, Scope, State, StoreAnswer

#: What a write may answer: a memory or link with its revision, a revision, or a count with a revision.
Answer: TypeAlias = "StoreAnswer | tuple[Link, int] | tuple[int, int] | int"

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_QUICK = QuickJson(_ENCODER.encode, ascii=False)
_text, _value = encode_basestring, _QUICK.value


def dump(answer: Answer) -> str:
    """Answer -> JSON text."""
    if isinstance(answer, StoreAnswer):
        flag = "true" if answer.deduplicated else "false"
        return f'["memory",{_memory_out(answer.memory)},{answer.revision},{flag}]'
    if isinstance(answer, int):
        body: list[Any] = ["revision", answer]
    elif isinstance(answer[0], Link):
        body = ["link", _link_out(answer[0]), answer[1]]
    else:
        body = ["count", answer[0], answer[1]]
    return _ENCODER.encode(body)


def load(text: str) -> Answer:
    """JSON text -> the answer it was made from."""
    kind, *rest = json.loads(text)
    if kind == "memory":
        return StoreAnswer(_memory_in(rest[0]), rest[1], rest[2])
    if kind == "link":
        return _link_in(rest[0]), int(rest[1])
    if kind == "count":
        return int(rest[0]), int(rest[1])
    return int(rest[0])


def _memory_out(m: Memory) -> str:
    """All fields by name, spelled out: an import makes one of these for every memory."""
    scope = m.scope
    return (
        f'{{"id":{_text(m.id)},"scope":[{_text(scope.agent_id)},{_text(scope.user_id)}],"content":{_text(m.content)},'
        f'"type":{m.type._value_},"tags":{_value(m.tags)},"metadata":{_value(m.metadata)},'
        f'"importance":{_value(m.importance)},"created_at":{m.created_at},"updated_at":{m.updated_at},'
        f'"event_at":{_maybe(m.event_at)},"valid_until":{_maybe(m.valid_until)},"state":{m.state._value_},'
        f'"private":{_flag(m.private)},"source":{_text(m.source)},"revision":{m.revision},'
        f'"access_count":{m.access_count},"last_accessed_at":{_maybe(m.last_accessed_at)},'
        f'"retrieval_count":{m.retrieval_count},"last_retrieved_at":{_maybe(m.last_retrieved_at)},'
        f'"vector_pending":{_flag(m.vector_pending)},"superseded_by":{_text(m.superseded_by)},'
        f'"content_truncated":{_flag(m.content_truncated)}}}'
    )


def _maybe(number: int | None) -> str:
    return "null" if number is None else str(number)


def _flag(flag: bool) -> str:
    return "true" if flag else "false"


def _memory_in(fields: dict[str, Any]) -> Memory:
    fields["scope"] = Scope(*fields["scope"])
    fields["type"] = MemoryType(fields["type"])
    fields["state"] = State(fields["state"])
    fields["tags"] = tuple(fields["tags"])
    return Memory(**fields)


def _link_out(link: Link) -> dict[str, Any]:
    fields = {name: getattr(link, name) for name in Link.__slots__}
    fields["scope"] = [link.scope.agent_id, link.scope.user_id]
    return fields


def _link_in(fields: dict[str, Any]) -> Link:
    fields["scope"] = Scope(*fields["scope"])
    fields["type"] = LinkType(fields["type"])
    return Link(**fields)
