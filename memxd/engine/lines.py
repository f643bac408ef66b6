"""The lines of an export: memories, their versions and links as JSON, one a line (docs/FORMAT.md).

Owns the writing: which fields a line has, in which order, and what is left out because it is the default; the same
memory is always the same bytes. Reading is in ``reading_lines.py``. Called by export.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from memxd.model import Link, Memory, Micros, Scope, State, to_rfc3339
from memxd.store import NewChunk, Version

#: What the header says it is, and of which version.
FORMAT = "memxd-export"
FORMAT_VERSION = 1
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def header_line(scope: Scope) -> bytes:
    """The first line of a scope's export."""
    return _line(
        {
            "kind": "header",
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "agent_id": scope.agent_id,
            "user_id": scope.user_id,
        }
    )


def memory_line(memory: Memory, chunks: Sequence[NewChunk] = (), model_id: str = "") -> bytes:
    """A memory as its callers made it (``store.Whole``), with its vectors when there are ``chunks``."""
    fields = {"kind": "memory", "id": memory.id, "content": memory.content, **_attributes(memory)}
    fields["created_at"] = to_rfc3339(memory.created_at)
    fields["updated_at"] = to_rfc3339(memory.updated_at)
    if memory.state is not State.ACTIVE:
        fields["state"] = memory.state.name.lower()
    if memory.access_count:
        fields["access_count"] = memory.access_count
    _put_time(fields, "last_accessed_at", memory.last_accessed_at)
    if memory.retrieval_count:
        fields["retrieval_count"] = memory.retrieval_count
    _put_time(fields, "last_retrieved_at", memory.last_retrieved_at)
    if chunks:
        fields["model_id"] = model_id
        fields["chunks"] = [
            {"start": start, "end": end, "vector": b64encode(vector).decode("ascii")} for start, end, vector in chunks
        ]
    return _line(fields)


def version_line(memory_id: str, number: int, version: Version) -> bytes:
    """An earlier version of the memory whose line came before; number 1 is the oldest."""
    fields = {"kind": "version", "memory_id": memory_id, "number": number, "content": version.content}
    fields |= _attributes(version)
    fields["updated_at"] = to_rfc3339(version.updated_at)
    fields["replaced_at"] = to_rfc3339(version.replaced_at)
    return _line(fields)


def link_line(link: Link) -> bytes:
    """A link between memories whose lines came before."""
    fields: dict[str, Any] = {
        "kind": "link",
        "id": link.id,
        "source_id": link.source_id,
        "target_id": link.target_id,
        "type": link.type.name.lower(),
        "strength": link.strength,
    }
    if link.bidirectional:
        fields["bidirectional"] = True
    if link.metadata:
        fields["metadata"] = _sorted(link.metadata)
    fields["created_at"] = to_rfc3339(link.created_at)
    return _line(fields)


def _attributes(of: Memory | Version) -> dict[str, Any]:
    """What a memory and an earlier version of it have in common."""
    fields: dict[str, Any] = {"type": of.type.name.lower()}
    if of.tags:
        fields["tags"] = list(of.tags)
    if of.metadata:
        fields["metadata"] = _sorted(of.metadata)
    fields["importance"] = of.importance
    _put_time(fields, "event_at", of.event_at)
    _put_time(fields, "valid_until", of.valid_until)
    if of.private:
        fields["private"] = True
    if of.source:
        fields["source"] = of.source
    return fields


def _put_time(fields: dict[str, Any], name: str, at: Micros | None) -> None:
    if at is not None:
        fields[name] = to_rfc3339(at)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _line(fields: dict[str, Any]) -> bytes:
    return (_ENCODER.encode(fields) + "\n").encode()
