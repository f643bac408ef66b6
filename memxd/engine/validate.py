"""The contract's rules for every request, checked once, before any work.

Turns what the doors hand over into clean values (NFC, trimmed, defaults filled in) or raises InvalidArgumentError
with the field's path as the proto spells it and the limit it broke. Does not look at the store. Called at the head of
every verb; below it nobody checks again.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
import zoneinfo
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from memxd.engine.content import is_blank, trim
from memxd.errors import InvalidArgumentError
from memxd.model import (
    NO_FILTER,
    Filter,
    Json,
    Limits,
    MemoryType,
    Micros,
    NewMemory,
    Patch,
    Scope,
    State,
    TimeRange,
)
from memxd.model.quick import quick

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

_new_memory = quick(NewMemory)

MUTABLE = frozenset(
    ("content", "type", "tags", "metadata", "importance", "event_at", "valid_until", "private", "source", "state")
)


def fail(field: str, description: str, **metadata: str) -> InvalidArgumentError:
    """Short for ``raise fail(...)`` below."""
    return InvalidArgumentError.field(field, description, **metadata)


def scope(value: Scope) -> Scope:
    """The scope in NFC and trimmed; refuses blank, long and unprintable parts. Short ones are remembered."""
    short = len(value.agent_id) + len(value.user_id) <= 2 * Limits.SCOPE_PART
    return _scope(value) if short else _scope.__wrapped__(value)


@lru_cache(maxsize=1_024)
def _scope(value: Scope) -> Scope:
    return Scope(_scope_part("scope.agent_id", value.agent_id), _scope_part("scope.user_id", value.user_id))


def _scope_part(field: str, text: str) -> str:
    part = trim(text) if len(text) <= 16 * Limits.SCOPE_PART else text  # more would take a second to look at
    if len(part) > Limits.SCOPE_PART:
        raise fail(field, f"at most {Limits.SCOPE_PART} characters, this has {len(part)}")
    if is_blank(part):
        raise fail(field, 'must not be blank; leave it out to mean "default"')
    # Before trimming: two names that differ in a control character must not become one.
    if any(unicodedata.category(c) in ("Cc", "Cs") and not c.isspace() for c in text):
        raise fail(field, "must not hold control characters")
    if any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in part):
        raise fail(field, "must not hold control characters")
    return part


def identifier(field: str, text: str) -> str:
    """A UUID in lower case."""
    value = text.strip().lower()
    if not _UUID.fullmatch(value):
        raise fail(field, "must be a UUID such as 0198c5f2-7c1e-7b3a-9d7e-2f1c3a4b5d6e")
    return value


def request_id(text: str) -> str:
    """A retry key: empty, or 1..64 printable characters."""
    if not text:
        return ""
    if len(text) > Limits.REQUEST_ID:
        raise fail("request_id", f"at most {Limits.REQUEST_ID} characters, this has {len(text)}")
    if is_blank(text) or not text.isprintable():
        raise fail("request_id", "must be printable characters")
    return text


def content(field: str, text: str) -> str:
    """Text to remember: 1..65,536 characters after trimming, without NUL. Other controls stay: logs hold them."""
    clean = trim(text)
    if is_blank(clean):
        raise fail(field, "must not be blank or invisible")
    if "\0" in clean:
        raise fail(field, f"must not hold a NUL character (there is one at position {clean.index(chr(0)):,})")
    if len(clean) > Limits.CONTENT:
        raise fail(
            field,
            f"at most {Limits.CONTENT:,} characters, this has {len(clean):,}; store it in parts",
            limit=str(Limits.CONTENT),
        )
    return clean


def query(text: str) -> str:
    """A question: 1..2,000 characters after trimming."""
    clean = trim(text)
    if is_blank(clean):
        raise fail("query", "must not be blank or invisible")
    if len(clean) > Limits.QUERY:
        raise fail("query", f"at most {Limits.QUERY:,} characters, this has {len(clean):,}")
    return clean


def tags(field: str, values: Collection[str], limit: int = Limits.TAGS) -> tuple[str, ...]:
    """Labels, trimmed, without repeats, sorted. A set has no positions, so then the error names the field alone."""
    seen: set[str] = set()
    ordered = isinstance(values, Sequence)
    for n, value in enumerate(values if ordered else sorted(values)):
        path = f"{field}[{n}]" if ordered else field
        tag = trim(value)
        if is_blank(tag):
            raise fail(path, "must not be blank")
        if len(tag) > Limits.TAG:
            raise fail(path, f"at most {Limits.TAG} characters, this has {len(tag)}")
        if any(unicodedata.category(c) == "Cc" for c in tag):
            raise fail(path, "must not hold control characters")
        seen.add(tag)
    if len(seen) > limit:
        raise fail(field, f"at most {limit} tags, there are {len(seen)}")
    return tuple(sorted(seen))


def metadata(field: str, value: Json) -> dict[str, Any]:
    """A JSON object of at most 16 KiB and 32 levels, with finite numbers."""
    if type(value) is dict and not value:
        return {}
    _json_depth(field, value, 1)
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError) as error:
        raise fail(field, "must be a JSON object with finite numbers") from error
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > Limits.METADATA_BYTES:
        raise fail(field, f"at most {Limits.METADATA_BYTES:,} bytes as JSON, this has {size:,}")
    return dict(value)


def _json_depth(field: str, value: Any, depth: int) -> None:
    """Objects and lists are levels, the plain values in the innermost one are not."""
    if not isinstance(value, dict | list | tuple):
        return
    if depth > Limits.METADATA_DEPTH:
        raise fail(field, f"at most {Limits.METADATA_DEPTH} levels deep")
    for item in value.values() if isinstance(value, dict) else value:
        _json_depth(field, item, depth + 1)


def ratio(field: str, value: float | None, default: float) -> float:
    """A number in 0..1."""
    if value is None:
        return default
    return number(field, value, 0.0, 1.0)


def number(field: str, value: float, low: float, high: float) -> float:
    """A finite number in low..high."""
    if not math.isfinite(value) or not low <= value <= high:
        raise fail(field, f"must be within {low:g}..{high:g}")
    return float(value)


def integer(field: str, value: int | None, default: int, low: int, high: int) -> int:
    """A whole number in low..high."""
    if value is None:
        return default
    if not low <= value <= high:
        raise fail(field, f"must be within {low}..{high}")
    return value


def instant(field: str, value: Micros | None) -> Micros | None:
    """A moment in the years 0001..9999."""
    if value is not None and not Limits.TIME_MIN <= value <= Limits.TIME_MAX:
        raise fail(field, "must be within the years 0001..9999")
    return value


def validity(prefix: str, event_at: Micros | None, valid_until: Micros | None) -> None:
    """valid_until must lie after event_at."""
    instant(f"{prefix}.event_at", event_at)
    instant(f"{prefix}.valid_until", valid_until)
    if event_at is not None and valid_until is not None and valid_until <= event_at:
        raise fail(f"{prefix}.valid_until", "must be later than event_at")


def source(field: str, text: str) -> str:
    """Where a memory came from, 0..256 characters."""
    if not text:
        return ""
    clean = trim(text)
    if len(clean) > Limits.SOURCE:
        raise fail(field, f"at most {Limits.SOURCE} characters, this has {len(clean)}")
    if any(unicodedata.category(c) == "Cc" for c in clean):
        raise fail(field, "must not hold control characters")
    return clean


def time_zone(name: str) -> str:
    """An IANA zone name, or empty."""
    if not name:
        return ""
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise fail("time_zone", 'must be an IANA name such as "Europe/Berlin"') from error
    return name


def _range(field: str, value: TimeRange | None) -> TimeRange | None:
    if value is None or (value.start is None and value.end is None):
        return None
    instant(f"{field}.start", value.start)
    instant(f"{field}.end", value.end)
    if value.start is not None and value.end is not None and value.end <= value.start:
        raise fail(f"{field}.end", "must be later than start")
    return value


def filter_(value: Filter) -> Filter:
    """A filter with clean tags, ids and ranges."""
    if value is NO_FILTER:
        return value
    if len(value.ids) > Limits.FILTER_IDS:
        raise fail("filter.ids", f"at most {Limits.FILTER_IDS:,} ids")
    if len(value.metadata) > Limits.FILTER_METADATA_KEYS:
        raise fail("filter.metadata", f"at most {Limits.FILTER_METADATA_KEYS} keys")
    minimum, below = value.importance_min, value.importance_below
    instant("filter.unused_since", value.unused_since)
    return replace(
        value,
        tags_any=frozenset(tags("filter.tags_any", value.tags_any, Limits.FILTER_TAGS)),
        tags_all=frozenset(tags("filter.tags_all", value.tags_all, Limits.FILTER_TAGS)),
        tags_none=frozenset(tags("filter.tags_none", value.tags_none, Limits.FILTER_TAGS)),
        created=_range("filter.created", value.created),
        event=_range("filter.event", value.event),
        importance_min=None if minimum is None else ratio("filter.importance_min", minimum, 0.0),
        metadata=metadata("filter.metadata", value.metadata),
        ids=frozenset(identifier("filter.ids", i) for i in value.ids),
        importance_below=None if below is None else ratio("filter.importance_below", below, 1.0),
        valid_until=_range("filter.valid_until", value.valid_until),
    )


def new_memory(value: NewMemory) -> NewMemory:
    """A memory to be stored, with type, importance and clean text filled in."""
    validity("memory", value.event_at, value.valid_until)
    if len(value.supersedes) > Limits.SUPERSEDES:
        raise fail("memory.supersedes", f"at most {Limits.SUPERSEDES} ids")
    replaced = [identifier(f"memory.supersedes[{n}]", i) for n, i in enumerate(value.supersedes)]
    return _new_memory(
        content("memory.content", value.content), value.type or MemoryType.SEMANTIC,
        tags("memory.tags", value.tags) if value.tags else (), metadata("memory.metadata", value.metadata),
        ratio("memory.importance", value.importance, 0.5), value.event_at, value.valid_until, value.private,
        source("memory.source", value.source), tuple(dict.fromkeys(replaced)), value.allow_duplicate, value.vector,
        value.model_id,
    )  # fmt: skip


def patch(value: Patch) -> Patch:
    """New values for the masked fields; fields outside the mask are not looked at."""
    if not value.mask:
        raise fail("update_mask", "must name at least one field")
    if value.mask - MUTABLE:
        raise fail("update_mask", f"names a field that cannot be changed; these can: {', '.join(sorted(MUTABLE))}")
    mask = value.mask
    clean: dict[str, Any] = {}
    if "content" in mask:
        clean["content"] = content("memory.content", value.content)
    if "tags" in mask:
        clean["tags"] = tags("memory.tags", value.tags)
    if "metadata" in mask:
        clean["metadata"] = metadata("memory.metadata", value.metadata)
    if "source" in mask:
        clean["source"] = source("memory.source", value.source)
    if "type" in mask:
        clean["type"] = value.type or MemoryType.SEMANTIC
    if "importance" in mask:
        clean["importance"] = ratio("memory.importance", value.importance, 0.5)
    if "state" in mask and value.state not in (State.ACTIVE, State.ARCHIVED):
        raise fail("memory.state", "must be ACTIVE or ARCHIVED")
    instant("memory.event_at", value.event_at if "event_at" in mask else None)
    instant("memory.valid_until", value.valid_until if "valid_until" in mask else None)
    return replace(value, **clean)
