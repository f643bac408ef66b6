"""Reading the lines of an export (docs/FORMAT.md): from bytes to memories, versions and links, or a refusal.

Owns the checks of form: JSON, known kinds and fields, types, times; what a value may be is ``validate.py``'s. A field
that is not known is refused, so that nothing is lost without a word. Looks at no store. Called by import.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from memxd.engine import validate
from memxd.engine.lines import FORMAT, FORMAT_VERSION
from memxd.engine.validate import fail
from memxd.errors import InvalidArgumentError
from memxd.model import Limits, Link, LinkType, Memory, MemoryType, Micros, Scope, State, from_rfc3339
from memxd.store import NewChunk, Version

_COUNT = (1 << 53) - 1
E = TypeVar("E", MemoryType, LinkType, State)


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """A memory with the vectors that came along, and of which model they are."""

    memory: Memory
    chunks: tuple[NewChunk, ...] = ()
    model_id: str = ""


@dataclass(frozen=True, slots=True)
class VersionLine:
    """An earlier version of a memory."""

    memory_id: str
    number: int
    version: Version


Line = MemoryLine | VersionLine | Link


class _Fields:
    """The fields of a line; each is taken once, what is left in the end is not known."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def take(self, name: str, kinds: type | tuple[type, ...], default: Any = ...) -> Any:
        value = self._values.pop(name, default)
        if value is ...:
            raise fail(name, "is missing")
        if value is default:
            return value
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise fail(name, "is not of the right type; see docs/FORMAT.md")
        return value

    def anything(self, name: str) -> Any:
        """Whatever is there; None = nothing."""
        return self._values.pop(name, None)

    def word(self, name: str, kind: type[E], default: E) -> E:
        text = self.take(name, str, default.name.lower())
        try:
            return kind[text.upper()]
        except KeyError:
            raise fail(name, f"must be one of {', '.join(m.name.lower() for m in kind)}") from None

    def time(self, name: str, default: Any = ...) -> Any:
        text = self.take(name, str, default)
        if text is None:
            return None
        try:
            return validate.instant(name, from_rfc3339(text))
        except ValueError:
            raise fail(name, 'must be a time with a zone such as "2026-03-01T09:30:00Z"') from None

    def count(self, name: str, default: Any = 0, low: int = 0) -> int:
        value = self.take(name, int, default)
        if not low <= value <= _COUNT:
            raise fail(name, f"must be within {low}..{_COUNT}")
        return int(value)

    def done(self) -> None:
        if self._values:
            raise fail(next(iter(self._values)), "is no field that this version of memxd knows")


def read_line(raw: bytes, scope: Scope) -> Line | None:
    """What a line holds, for ``scope``; None for a blank line and a header. Raises InvalidArgumentError."""
    if not raw.strip():
        return None
    fields = _Fields(_object(raw))
    kind = fields.take("kind", str)
    if kind == "header":
        _check_header(fields)
        return None
    reader = _READERS.get(kind)
    if reader is None:
        raise fail("kind", "must be header, memory, version or link")
    line: Line = reader(fields, scope)
    fields.done()
    return line


def named(raw: bytes) -> tuple[str, str]:
    """Kind and id of a line that was refused, as far as they can be read."""
    try:
        fields = _object(raw)
    except InvalidArgumentError:
        return "", ""
    kind, id = fields.get("kind"), fields.get("id", fields.get("memory_id"))
    return (kind if isinstance(kind, str) else "")[:16], (id if isinstance(id, str) else "")[:64]


def _object(raw: bytes) -> dict[str, Any]:
    if len(raw) > Limits.LINE_BYTES:
        raise fail("line", f"has more than {Limits.LINE_BYTES:,} bytes")
    try:
        value = json.loads(raw.decode("utf-8-sig"))
        json.dumps(value, ensure_ascii=False).encode() if b"\\u" in raw else b""  # half a character is no text
    except (ValueError, RecursionError):
        raise fail("line", "is not JSON in UTF-8") from None
    if not isinstance(value, dict):
        raise fail("line", "is not a JSON object")
    return value


def _check_header(fields: _Fields) -> None:
    """Scope names are for people: where the memories go is the request's to say."""
    if fields.anything("format") != FORMAT:
        raise fail("header.format", f"must be {FORMAT}; another system's file needs --from")
    version = fields.anything("version")
    if type(version) is not int or version != FORMAT_VERSION:
        raise fail("header.version", f"this memxd reads version {FORMAT_VERSION}; use the one that wrote it")


def _attributes(fields: _Fields) -> dict[str, Any]:
    content = validate.content("content", fields.take("content", str))
    event, end = fields.time("event_at", None), fields.time("valid_until", None)
    return {
        "content": content,
        "type": fields.word("type", MemoryType, MemoryType.SEMANTIC),
        "tags": validate.tags("tags", _texts("tags", fields.take("tags", list, []))),
        "metadata": validate.metadata("metadata", fields.take("metadata", dict, {})),
        "importance": validate.ratio("importance", fields.take("importance", (int, float), 0.5), 0.5),
        "event_at": event,
        "valid_until": end,
        "private": fields.take("private", bool, False),
        "source": validate.source("source", fields.take("source", str, "")),
    }


def _texts(name: str, values: list[Any]) -> list[str]:
    if not all(isinstance(value, str) for value in values):
        raise fail(name, "must be a list of texts")
    return values


def _memory(fields: _Fields, scope: Scope) -> MemoryLine:
    id = validate.identifier("id", fields.take("id", str))
    created = fields.time("created_at")
    memory = Memory(
        id=id,
        scope=scope,
        **_attributes(fields),
        created_at=created,
        updated_at=fields.time("updated_at", None) or created,
        state=fields.word("state", State, State.ACTIVE),
        revision=0,
        access_count=fields.count("access_count"),
        last_accessed_at=fields.time("last_accessed_at", None),
        retrieval_count=fields.count("retrieval_count"),
        last_retrieved_at=fields.time("last_retrieved_at", None),
    )
    if memory.state is State.SUPERSEDED:
        raise fail("state", "must be active or archived: that a memory is superseded follows from its links")
    chunks = tuple(_chunk(n, value, memory) for n, value in enumerate(fields.take("chunks", list, [])))
    return MemoryLine(memory, chunks, fields.take("model_id", str, ""))


def _chunk(n: int, value: Any, memory: Memory) -> NewChunk:
    name = f"chunks[{n}]"
    if not isinstance(value, dict):
        raise fail(name, "must be an object")
    fields = _Fields(value)
    start, end = fields.count("start", ...), fields.count("end", ...)
    text = fields.take("vector", str)
    fields.done()
    if not start < end <= len(memory.content):
        raise fail(name, "start and end must lie within the content")
    try:
        return start, end, b64decode(text, validate=True)
    except ValueError:
        raise fail(f"{name}.vector", "must be base64") from None


def _version(fields: _Fields, scope: Scope) -> VersionLine:
    memory_id = validate.identifier("memory_id", fields.take("memory_id", str))
    number = fields.count("number", ..., low=1)
    if number >= 1 << 40:
        raise fail("number", "is too large")
    version = Version(
        **_attributes(fields),
        revision=0,
        updated_at=fields.time("updated_at"),
        replaced_at=fields.time("replaced_at"),
    )
    return VersionLine(memory_id, number, version)


def _link(fields: _Fields, scope: Scope) -> Link:
    at: Micros = fields.time("created_at")
    return Link(
        id=validate.identifier("id", fields.take("id", str)),
        scope=scope,
        source_id=validate.identifier("source_id", fields.take("source_id", str)),
        target_id=validate.identifier("target_id", fields.take("target_id", str)),
        type=fields.word("type", LinkType, LinkType.RELATED),
        strength=validate.number("strength", fields.take("strength", (int, float), 0.7), 0.0, 1.0),
        bidirectional=fields.take("bidirectional", bool, False),
        metadata=validate.metadata("metadata", fields.take("metadata", dict, {})),
        created_at=at,
    )


_READERS: dict[str, Callable[[_Fields, Scope], Line]] = {"memory": _memory, "version": _version, "link": _link}
