"""Strict in, exact out: enums, instants, spans, numbers, Structs."""

from __future__ import annotations

import math
from typing import Any

import pytest
from google.protobuf import duration_pb2, struct_pb2, timestamp_pb2
from hypothesis import given
from hypothesis import strategies as st

from memxd.errors import InvalidArgumentError
from memxd.model import Limits, MemoryType, Scope
from memxd.service.convert import values
from memxd.v1 import memory_pb2
from memxd.v1 import memory_service_pb2 as pb

EXACT = 2**53
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-EXACT, EXACT)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=12,
)


def violated(error: InvalidArgumentError) -> str:
    return error.violations[0].field


@pytest.mark.parametrize("number", [6, 99, -1, 2**31 - 1])
def test_an_unknown_enum_number_is_refused_naming_the_field(number: int) -> None:
    with pytest.raises(InvalidArgumentError, match="SEMANTIC") as caught:
        values.enum_or_none(MemoryType, number, "memory.type")
    assert violated(caught.value) == "memory.type"


def test_unspecified_is_none_but_refused_in_a_list() -> None:
    assert values.enum_or_none(MemoryType, 0, "memory.type") is None
    with pytest.raises(InvalidArgumentError) as caught:
        values.enum_set(MemoryType, [2, 0], "filter.types")
    assert violated(caught.value) == "filter.types[1]"


@given(st.integers(Limits.TIME_MIN, Limits.TIME_MAX))
def test_every_instant_survives_the_way_out_and_back(at: int) -> None:
    message = memory_pb2.Memory()
    values.fill_instant(message.created_at, at)
    assert message.HasField("created_at")
    assert values.instant(message.created_at, "t") == at


def test_finer_than_a_microsecond_is_cut_off() -> None:
    assert values.instant(timestamp_pb2.Timestamp(seconds=-1, nanos=999_999_999), "t") == -1


@pytest.mark.parametrize(
    ("seconds", "nanos"),
    [(-62_135_596_801, 0), (253_402_300_800, 0), (2**63 - 1, 0), (-(2**63), 0), (0, -1), (0, 1_000_000_000)],
)
def test_an_instant_out_of_range_is_refused_naming_the_field(seconds: int, nanos: int) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        values.instant(timestamp_pb2.Timestamp(seconds=seconds, nanos=nanos), "memory.event_at")
    assert violated(caught.value) == "memory.event_at"


@pytest.mark.parametrize(
    ("seconds", "nanos"), [(1, -1), (-1, 1), (315_576_000_001, 0), (0, 1_000_000_000), (-(2**63), 0)]
)
def test_an_invalid_span_is_refused(seconds: int, nanos: int) -> None:
    with pytest.raises(InvalidArgumentError):
        values.span(duration_pb2.Duration(seconds=seconds, nanos=nanos), "ranking.half_life")


@given(st.integers(0, 10**15))
def test_every_span_survives_the_way_out_and_back(length: int) -> None:
    message = duration_pb2.Duration()
    values.fill_span(message, length)
    assert values.span(message, "d") == length


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused_everywhere(number: float) -> None:
    with pytest.raises(InvalidArgumentError):
        values.finite(number, "importance")
    with pytest.raises(InvalidArgumentError) as caught:
        values.vector_or_none([1.0, number], "vector")
    assert violated(caught.value) == "vector[1]"
    struct = struct_pb2.Struct()
    struct.fields["a"].list_value.values.add().number_value = number
    with pytest.raises(InvalidArgumentError) as caught:
        values.json_object(struct, "memory.metadata")
    assert violated(caught.value) == "memory.metadata"


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), JSON, max_size=5))
def test_every_json_object_survives_the_way_out_and_back(data: dict[str, Any]) -> None:
    struct = struct_pb2.Struct()
    values.fill_struct(struct, data)
    again = struct_pb2.Struct.FromString(struct.SerializeToString())
    assert values.json_object(again, "metadata") == data


def test_whole_numbers_come_back_as_int_while_they_are_exact() -> None:
    struct = struct_pb2.Struct()
    struct.update({"a": 1.0, "b": 1.5, "c": 1e300})
    assert [type(v) for v in values.json_object(struct, "m").values()] == [int, float, float]


def test_a_value_without_a_kind_is_refused() -> None:
    struct = struct_pb2.Struct()
    struct.fields["a"].SetInParent()
    with pytest.raises(InvalidArgumentError):
        values.json_object(struct, "memory.metadata")


@pytest.mark.parametrize("as_list", [False, True])
def test_depth_is_bounded(as_list: bool) -> None:
    def nested(levels: int) -> struct_pb2.Struct:
        struct = struct_pb2.Struct()
        value = struct.fields["a"]
        for _ in range(levels - 1):
            value = value.list_value.values.add() if as_list else value.struct_value.fields["a"]
        value.number_value = 1
        return struct

    values.json_object(nested(Limits.METADATA_DEPTH), "memory.metadata")
    with pytest.raises(InvalidArgumentError, match=str(Limits.METADATA_DEPTH)):
        values.json_object(nested(Limits.METADATA_DEPTH + 1), "memory.metadata")


def test_an_absent_scope_and_absent_parts_mean_default() -> None:
    assert values.scope(pb.GetRequest()) == Scope("default", "default")
    assert values.scope(pb.GetRequest(scope=memory_pb2.Scope(user_id="u"))) == Scope("default", "u")
    assert values.scope(pb.GetRequest(scope=memory_pb2.Scope(agent_id=""))) == Scope("", "default")


def test_a_vector_whose_sum_overflows_is_read_without_a_warning() -> None:
    large = [3e38, 3e38, -3e38]
    read = values.vector_or_none(large, "vector")
    assert read is not None
    assert len(read) == 3
    with pytest.raises(InvalidArgumentError, match=r"vector\[1\]"):
        values.vector_or_none([1.0, float("inf"), float("-inf")], "vector")
