"""Conversion of the small values every resource is made of: enums, instants, spans, numbers, Structs, scopes.

Owns the refusals of what Python's types could not express, each naming the field as the proto spells it. Knows no
resource. Called by its sibling modules.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from google.protobuf import duration_pb2, struct_pb2, timestamp_pb2

from memxd.errors import InvalidArgumentError
from memxd.model import SECOND, Json, Limits, Micros, Scope
from memxd.v1 import memory_pb2

E = TypeVar("E", bound=IntEnum)

_MIN_SECONDS = Limits.TIME_MIN // SECOND
_MAX_SECONDS = Limits.TIME_MAX // SECOND
#: Whole numbers up to here are exact in a double, so they may become int: JSON then reads 1, not 1.0.
_EXACT = 2**53


# -- enums ---------------------------------------------------------------------------------------------------------


def enum_or_none(kind: type[E], number: int, field: str) -> E | None:
    """The member, None for UNSPECIFIED (0). Raises InvalidArgumentError for a number this version does not know."""
    if number == 0:
        return None
    try:
        return kind(number)
    except ValueError:
        known = ", ".join(f"{m.value} ({m.name})" for m in kind)
        raise InvalidArgumentError.field(field, f"unknown value {number}; known are {known}") from None


def enum_set(kind: type[E], numbers: Iterable[int], field: str) -> frozenset[E]:
    """The members of a list in which UNSPECIFIED has no meaning and is refused."""
    members = set()
    for position, number in enumerate(numbers):
        path = f"{field}[{position}]"
        member = enum_or_none(kind, number, path)
        if member is None:
            raise InvalidArgumentError.field(path, "must not be UNSPECIFIED; leave the list empty for all")
        members.add(member)
    return frozenset(members)


def wire(member: IntEnum) -> Any:
    """The number of a member for an enum field; the generated types want a class that exists in stubs only."""
    return member._value_  # ``value`` asks the class first


# -- time ----------------------------------------------------------------------------------------------------------


def instant(message: timestamp_pb2.Timestamp, field: str) -> Micros:
    """Microseconds since 1970; finer parts are cut off. Refuses years outside 1..9999 and bad nanos."""
    if not _MIN_SECONDS <= message.seconds <= _MAX_SECONDS:
        raise InvalidArgumentError.field(field, "seconds must lie within 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z")
    if not 0 <= message.nanos <= 999_999_999:
        raise InvalidArgumentError.field(field, "nanos must be 0..999,999,999")
    return message.seconds * SECOND + message.nanos // 1_000


def fill_instant(message: timestamp_pb2.Timestamp, at: Micros) -> None:
    """Write an instant; also when it is the epoch itself, the field is then present."""
    message.seconds = at // SECOND
    message.nanos = at % SECOND * 1_000
    if not at:
        message.SetInParent()


def span(message: duration_pb2.Duration, field: str) -> Micros:
    """Microseconds of a Duration. Refuses more than 10,000 years, and seconds and nanos of different sign."""
    seconds, nanos = message.seconds, message.nanos
    if abs(seconds) > 315_576_000_000 or abs(nanos) > 999_999_999 or seconds * nanos < 0:
        raise InvalidArgumentError.field(
            field, "not a valid Duration: seconds within +-315,576,000,000, nanos within +-999,999,999, of one sign"
        )
    return seconds * SECOND + int(nanos / 1_000)


def fill_span(message: duration_pb2.Duration, length: Micros) -> None:
    """Write a span that is not negative."""
    message.seconds, micros = divmod(length, SECOND)
    message.nanos = micros * 1_000


# -- numbers -------------------------------------------------------------------------------------------------------


def finite(value: float, field: str) -> float:
    """The number itself; NaN and infinities are refused."""
    if not math.isfinite(value):
        raise InvalidArgumentError.field(field, f"must be a finite number, not {value}")
    return value


def vector_or_none(values: Sequence[float], field: str) -> memoryview | None:
    """The caller's vector as the memory of a float32 array; None when the list is empty."""
    if not values:
        return None
    vector = np.array(values, np.float32)
    # A third of the price of looking at each number, and a short sum keeps the interpreter's lock, as a dot does not.
    with np.errstate(over="ignore", invalid="ignore"):  # else a caller's numbers write a line of the log
        total = np.add.reduce(vector)
    if not math.isfinite(total):
        sound = np.isfinite(vector)
        if not sound.all():
            raise InvalidArgumentError.field(f"{field}[{sound.argmin()}]", "must be a finite number")
    return vector.data


# -- Struct --------------------------------------------------------------------------------------------------------


def json_object(message: struct_pb2.Struct, field: str) -> dict[str, Any]:
    """A Struct as a Python dict; whole numbers become int. Depth is bounded, every value must have a kind."""
    return _object(message, field, 1)


def _object(message: struct_pb2.Struct, field: str, depth: int) -> dict[str, Any]:
    if depth > Limits.METADATA_DEPTH:
        raise InvalidArgumentError.field(field, f"nested deeper than {Limits.METADATA_DEPTH} levels")
    fields = message.fields
    # A protobuf map has no order; sorted, the same object is always stored and answered as the same text.
    return {key: _value(fields[key], field, depth) for key in sorted(fields)}


def _value(value: struct_pb2.Value, field: str, depth: int) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return value.string_value
    if kind == "number_value":
        number = finite(value.number_value, field)
        return int(number) if number.is_integer() and abs(number) <= _EXACT else number
    if kind == "bool_value":
        return value.bool_value
    if kind == "struct_value":
        return _object(value.struct_value, field, depth + 1)
    if kind == "list_value":
        if depth >= Limits.METADATA_DEPTH:
            raise InvalidArgumentError.field(field, f"nested deeper than {Limits.METADATA_DEPTH} levels")
        return [_value(item, field, depth + 1) for item in value.list_value.values]
    if kind == "null_value":
        return None
    raise InvalidArgumentError.field(
        field, "holds a value that is neither null, number, text, boolean, list nor object"
    )


def fill_struct(message: struct_pb2.Struct, data: Json) -> None:
    """Write a JSON object (dict, list, str, int, float, bool, None) into a Struct."""
    fields = message.fields
    for key, value in data.items():
        _fill_value(fields[key], value)


def _fill_value(message: struct_pb2.Value, value: Any) -> None:
    if isinstance(value, str):
        message.string_value = value
    elif value is None:
        message.null_value = struct_pb2.NULL_VALUE
    elif isinstance(value, bool):  # before int: a bool is one
        message.bool_value = value
    elif isinstance(value, int | float):
        message.number_value = value
    elif isinstance(value, Mapping):
        message.struct_value.SetInParent()
        fill_struct(message.struct_value, value)
    else:
        message.list_value.SetInParent()
        for item in value:
            _fill_value(message.list_value.values.add(), item)


# -- scope ---------------------------------------------------------------------------------------------------------


def scope(request: Any) -> Scope:
    """The scope of a request; absent, and an absent part, mean "default". The engine refuses blank parts."""
    if not request.HasField("scope"):
        return Scope()
    message: memory_pb2.Scope = request.scope
    present = message.HasField
    agent = message.agent_id if present("agent_id") else "default"
    user = message.user_id if present("user_id") else "default"
    # One that is too long is refused further down: nobody may fill memory with such.
    return _scope(agent, user) if len(agent) + len(user) <= 2 * Limits.SCOPE_PART else Scope(agent, user)


#: A daemon serves few scopes, again and again.
_scope = lru_cache(maxsize=256)(Scope)


def scope_spelled_out(request: Any) -> Scope:
    """The scope of a call that erases much: both parts must be there."""
    if not request.HasField("scope"):
        raise InvalidArgumentError.field("scope", "required here, with agent_id and user_id both spelled out")
    for part in ("agent_id", "user_id"):
        if not request.scope.HasField(part):
            raise InvalidArgumentError.field(
                f"scope.{part}", "must be spelled out here; it has no default in this call"
            )
    return scope(request)


def fill_scope(message: memory_pb2.Scope, value: Scope) -> None:
    """Write both parts."""
    message.agent_id, message.user_id = value.agent_id, value.user_id


def optional(message: Any, name: str) -> Any:
    """The value of an ``optional`` scalar, or None when it is absent."""
    return getattr(message, name) if message.HasField(name) else None


def optional_number(message: Any, name: str, field: str) -> float | None:
    """As ``optional``, for doubles: must be finite."""
    return finite(getattr(message, name), field) if message.HasField(name) else None


def optional_instant(message: Any, name: str, field: str) -> Micros | None:
    """As ``optional``, for timestamps."""
    return instant(getattr(message, name), field) if message.HasField(name) else None
