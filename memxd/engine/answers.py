"""The stored form of answers, for request ids.

Owns turning the few dataclasses that a write answers with into JSON and back, exactly. Called by idempotency.py only;
the wire has its own conversion in service/.
"""

from __future__ import annotations

import json
from operator import attrgetter
from typing import Any, TypeAlias

from memxd.engine.quickjson import QuickJson
from memxd.model import Link, LinkType, Memory, MemoryType, Scope, State, StoreAnswer

#: What a write may answer: a memory or link with its revision, a revision, or a count with a revision.
Answer: TypeAlias = "StoreAnswer | tuple[Link, int] | tuple[int, int] | int"

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_QUICK = QuickJson(_ENCODER.encode, ascii=False)
_VALUES, _BEGINS = attrgetter(*Memory.__slots__), _QUICK.names(Memory.__slots__)


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
    return _QUICK.record(_BEGINS, _VALUES(m))


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
