"""Python values as the pieces of a request.

Owns the way from datetime, dict, str and enum to protobuf, and the few checks that only the caller's side can make:
a time without a zone, text that is not text, JSON that does not survive the wire. Every other rule is the daemon's,
so that all clients obey the same one. Called by the call tables of this package.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any, TypeAlias, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import ListValue, NullValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from memxd import model
from memxd.errors import InvalidArgumentError
from memxd.model import Filter, Limits, Micros, Ranking, TimeRange
from memxd.v1 import memory_pb2, search_pb2

#: An instant: a datetime with a zone, or microseconds since the epoch as answers carry them.
When: TypeAlias = datetime | Micros
E = TypeVar("E", bound=IntEnum)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Whole numbers up to here are exact in the wire's doubles.
EXACT_INT = 2**53
_INT32 = 2**31 - 1


def to_micros(field: str, when: When) -> Micros:
    """An instant as microseconds since the epoch; a datetime without a zone is refused."""
    if isinstance(when, datetime):
        if when.utcoffset() is None:
            raise InvalidArgumentError.field(
                field, "has no time zone; pass an aware datetime, such as datetime.now(UTC)"
            )
        return (when - _EPOCH) // timedelta(microseconds=1)
    if isinstance(when, bool) or not isinstance(when, int):
        raise InvalidArgumentError.field(field, f"is a {type(when).__name__}; pass an aware datetime or microseconds")
    return when


def as_datetime(when: Micros) -> datetime:
    """Microseconds since the epoch as an aware datetime in UTC."""
    return _EPOCH + timedelta(microseconds=when)


def timestamp(field: str, when: When) -> Timestamp:
    """An instant for the wire."""
    value = to_micros(field, when)
    if not Limits.TIME_MIN <= value <= Limits.TIME_MAX:
        raise InvalidArgumentError.field(field, "is outside the years 0001..9999")
    seconds, rest = divmod(value, model.SECOND)
    return Timestamp(seconds=seconds, nanos=rest * 1000)


def maybe_timestamp(field: str, when: When | None) -> Timestamp | None:
    return None if when is None else timestamp(field, when)


def text(field: str, value: str) -> str:
    """A string that can be sent; lone surrogates (from undecodable bytes) are refused."""
    if not isinstance(value, str):
        raise InvalidArgumentError.field(field, f"is a {type(value).__name__}, not text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError.field(field, "holds a byte or half character that is not valid Unicode") from None
    return value


def texts(field: str, values: Iterable[str]) -> list[str]:
    """Several strings; one bare string is refused, since it would count as a list of characters."""
    if isinstance(values, str):
        raise InvalidArgumentError.field(field, "is one text; pass a list of them")
    return [text(f"{field}[{i}]", value) for i, value in enumerate(values)]


def whole(field: str, value: int | None) -> int | None:
    """A number that fits the wire's int32."""
    if value is not None and not -_INT32 <= value <= _INT32:
        raise InvalidArgumentError.field(field, f"{value} is out of range")
    return value


def choice(field: str, cls: type[E], value: E | str) -> E:
    """An enum member from itself or its name in any case: ``"semantic"``, ``"caused-by"``."""
    if isinstance(value, cls):
        return value
    try:
        return cls[str(value).strip().upper().replace("-", "_")]
    except KeyError:
        names = ", ".join(m.name.lower() for m in cls)
        raise InvalidArgumentError.field(field, f"{value!r} is none of {names}") from None


def number(field: str, cls: type[E], value: E | str | None) -> Any:
    """An enum member's number for the wire; None = 0 (unspecified).

    Typed Any: the generated stubs want their own name of the same numbers.
    """
    return 0 if value is None else int(choice(field, cls, value))


def _numbers(members: Iterable[IntEnum]) -> Any:
    return sorted(int(m) for m in members)


def json_value(field: str, value: Any, depth: int = 0) -> Value:
    """One JSON value for the wire.

    Numbers travel as doubles: NaN, infinities and whole numbers beyond 2**53 would not come back as they went.
    """
    if depth > Limits.METADATA_DEPTH:
        raise InvalidArgumentError.field(field, f"is nested deeper than {Limits.METADATA_DEPTH} levels")
    if value is None:
        return Value(null_value=NullValue.NULL_VALUE)
    if isinstance(value, bool):
        return Value(bool_value=value)
    if isinstance(value, str):
        return Value(string_value=text(field, value))
    if isinstance(value, int | float):
        if abs(value) > EXACT_INT if isinstance(value, int) else not math.isfinite(value):
            raise InvalidArgumentError.field(field, f"the number {value} cannot be kept exactly; pass it as text")
        return Value(number_value=value)
    if isinstance(value, Mapping):
        return Value(struct_value=json_object(field, value, depth + 1))
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        items = [json_value(f"{field}[{i}]", item, depth + 1) for i, item in enumerate(value)]
        return Value(list_value=ListValue(values=items))
    raise InvalidArgumentError.field(field, f"a {type(value).__name__} is not a JSON value")


def json_object(field: str, value: Mapping[str, Any], depth: int = 0) -> Struct:
    """A JSON object for the wire."""
    if not isinstance(value, Mapping):
        raise InvalidArgumentError.field(field, f"is a {type(value).__name__}, not a mapping")
    struct = Struct()
    for key, item in value.items():
        name = text(field, key)
        struct.fields[name].CopyFrom(json_value(f"{field}.{name}", item, depth))
    return struct


def scope(agent_id: str | None, user_id: str | None) -> memory_pb2.Scope:
    """A scope; a part that is None stays absent, which the daemon reads as "default"."""
    return memory_pb2.Scope(
        agent_id=None if agent_id is None else text("scope.agent_id", agent_id),
        user_id=None if user_id is None else text("scope.user_id", user_id),
    )


def _time_range(field: str, span: TimeRange | None) -> memory_pb2.TimeRange | None:
    if span is None:
        return None
    return memory_pb2.TimeRange(
        start=maybe_timestamp(f"{field}.start", span.start), end=maybe_timestamp(f"{field}.end", span.end)
    )


def filter_message(value: Filter | None, field: str = "filter") -> memory_pb2.Filter | None:
    """A filter for the wire; sets in a fixed order, so that equal calls are equal bytes."""
    if value is None:
        return None
    return memory_pb2.Filter(
        types=_numbers(value.types),
        tags_any=sorted(texts(f"{field}.tags_any", value.tags_any)),
        tags_all=sorted(texts(f"{field}.tags_all", value.tags_all)),
        tags_none=sorted(texts(f"{field}.tags_none", value.tags_none)),
        created=_time_range(f"{field}.created", value.created),
        event=_time_range(f"{field}.event", value.event),
        importance_min=value.importance_min,
        metadata=json_object(f"{field}.metadata", value.metadata) if value.metadata else None,
        states=_numbers(value.states),
        ids=sorted(texts(f"{field}.ids", value.ids)),
        importance_below=value.importance_below,
        unused_since=maybe_timestamp(f"{field}.unused_since", value.unused_since),
        valid_until=_time_range(f"{field}.valid_until", value.valid_until),
    )


def ranking_message(value: Ranking | None) -> search_pb2.Ranking | None:
    """A ranking for the wire."""
    if value is None:
        return None
    parts = (value.semantic, value.recency, value.frequency, value.importance)
    weights = None
    if parts != (None, None, None, None):
        weights = search_pb2.FactorWeights(semantic=parts[0], recency=parts[1], frequency=parts[2], importance=parts[3])
    half_life = None
    if value.half_life is not None:
        seconds, rest = divmod(value.half_life, model.SECOND)
        half_life = Duration(seconds=seconds, nanos=rest * 1000)
    return search_pb2.Ranking(
        profile=number("ranking.profile", model.Profile, value.profile),
        weights=weights,
        alpha=value.alpha,
        half_life=half_life,
        rrf_k=whole("ranking.rrf_k", value.rrf_k),
        vector_weight=value.vector_weight,
        keyword_weight=value.keyword_weight,
        dedup=number("ranking.dedup", model.Dedup, value.dedup),
        reject=value.reject,
        tau=value.tau,
    )
