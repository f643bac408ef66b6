"""Answers as JSON: what ``--json`` prints.

Owns the shape, which is stable: the fields of the protobuf messages by their proto names, always all of them (null
where there is none), enums as the lower-case words that the flags take, instants as RFC 3339 in UTC, durations in the
unit their name says. Verbs call ``plain`` on the dataclasses that the client answers.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

_INSTANTS = frozenset(
    {"created_at", "updated_at", "event_at", "valid_until", "last_accessed_at", "last_retrieved_at", "started_at", "at"}
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(micros: int) -> str:
    """An instant in UTC, with microseconds only where there are any."""
    return (_EPOCH + timedelta(microseconds=micros)).isoformat().replace("+00:00", "Z")


def plain(value: Any, field: str = "") -> Any:
    """Dataclasses, enums and instants as what ``json.dumps`` takes; without the fields that do not count when two are
    compared, which are for the log."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        shown = {f.name: plain(getattr(value, f.name), f.name) for f in dataclasses.fields(value) if f.compare}
        if "weight" in shown and "value" in shown:
            shown["contribution"] = getattr(value, "contribution", None)
        return shown
    if isinstance(value, Enum):
        return value.name.lower()
    if field in _INSTANTS and isinstance(value, int):
        return rfc3339(value)
    if field == "timings":
        return [{"stage": stage, "micros": micros} for stage, micros in value]
    if field == "scopes":
        return [{"scope": plain(scope), "total": total, "active": active} for scope, total, active in value]
    if field == "metadata":
        return _sorted(value)  # the caller's own JSON, nothing in it is ours to read
    if isinstance(value, Mapping):
        return {key: plain(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _sorted(value: Any) -> Any:
    """JSON with its keys in order: protobuf's maps come in another one each time."""
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list | tuple) else value


def dumps(value: Any, *, one_line: bool = False) -> str:
    """JSON text; non-ASCII stays readable."""
    return json.dumps(plain(value), ensure_ascii=False, indent=None if one_line else 2)
