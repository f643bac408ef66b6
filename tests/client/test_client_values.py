"""Python values become requests; what cannot survive the wire is refused with its field."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memxd import model
from memxd.client import as_datetime, convert, rank, values, where
from memxd.errors import InvalidArgumentError
from memxd.v1 import search_pb2

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)


def refused(call: Any, *arguments: Any) -> InvalidArgumentError:
    with pytest.raises(InvalidArgumentError) as caught:
        call(*arguments)
    return caught.value


@settings(suppress_health_check=[HealthCheck.too_slow])  # a busy machine generates slowly
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), JSON, max_size=5))
def test_metadata_comes_back_equal(value: dict[str, Any]) -> None:
    sent = values.json_object("metadata", value)
    assert convert.json_object(type(sent).FromString(sent.SerializeToString())) == value


@given(st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45))])))
def test_instants_keep_their_microsecond(moment: datetime) -> None:
    micros = values.to_micros("event_at", moment)
    assert as_datetime(micros) == moment
    if model.Limits.TIME_MIN <= micros <= model.Limits.TIME_MAX:
        assert convert.micros(values.timestamp("event_at", moment)) == micros


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"x": float("nan")}, "metadata.x"),
        ({"x": [1, {"y": float("inf")}]}, "metadata.x[1].y"),
        ({"big": 2**53 + 1}, "metadata.big"),
        ({"huge": 10**400}, "metadata.huge"),
        ({"raw": b"bytes"}, "metadata.raw"),
        ({"set": {1}}, "metadata.set"),
        ({"half": "\ud800"}, "metadata.half"),
        ({1: "x"}, "metadata"),
        ("text", "metadata"),
    ],
)
def test_metadata_that_would_change_on_the_way_is_refused(value: Any, path: str) -> None:
    assert refused(values.json_object, "metadata", value).violations[0].field == path


def test_metadata_without_bottom_is_refused() -> None:
    deep: dict[str, Any] = {}
    deep["self"] = deep
    assert "nested deeper" in str(refused(values.json_object, "metadata", deep))


def test_a_time_without_a_zone_is_refused_with_the_way_out() -> None:
    error = refused(values.timestamp, "memory.event_at", datetime(2026, 1, 1))
    assert error.violations[0].field == "memory.event_at"
    assert "datetime.now(UTC)" in str(error)


@pytest.mark.parametrize("value", ["2026-01-01", 1.5, True])
def test_what_is_no_time_is_refused(value: Any) -> None:
    refused(values.timestamp, "as_of", value)


def test_a_time_beyond_rfc_3339_is_refused() -> None:
    assert "0001..9999" in str(refused(values.timestamp, "as_of", 10**18))


def test_half_a_character_is_refused() -> None:
    assert refused(values.text, "memory.content", "a\udcff").violations[0].field == "memory.content"


def test_one_text_where_a_list_belongs_is_refused() -> None:
    assert "list" in str(refused(values.texts, "memory.tags", "work"))


@pytest.mark.parametrize("word", ["caused_by", "CAUSED_BY", "caused-by", model.LinkType.CAUSED_BY])
def test_enums_are_named_in_any_case(word: Any) -> None:
    assert values.number("type", model.LinkType, word) == 6


def test_an_unknown_word_names_the_known_ones() -> None:
    assert "episodic, semantic" in str(refused(values.number, "memory.type", model.MemoryType, "dream"))


def test_numbers_beyond_the_wire_are_refused() -> None:
    assert refused(values.whole, "k", 2**40).violations[0].field == "k"


def test_equal_filters_are_equal_bytes() -> None:
    one = where(tags_any=["b", "a", "c"], types=["semantic", "episodic"], ids=["2", "1"])
    two = where(tags_any=["c", "b", "a"], types=["episodic", "semantic"], ids=["1", "2"])
    first, second = values.filter_message(one), values.filter_message(two)
    assert first is not None
    assert first == second
    assert first.tags_any == ["a", "b", "c"]


def test_filter_carries_ranges_and_metadata() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    sent = values.filter_message(
        where(
            created=(start, None), event=(None, start), metadata={"a": 1}, importance_min=0.0,
            importance_below=0.0, unused_since=start, valid_until=(None, start),
        )
    )  # fmt: skip
    assert sent is not None
    assert sent.created.start.ToDatetime(UTC) == start
    assert not sent.created.HasField("end")
    assert not sent.event.HasField("start")
    assert sent.HasField("importance_min")
    assert sent.HasField("importance_below")
    assert sent.unused_since.ToDatetime(UTC) == sent.valid_until.end.ToDatetime(UTC) == start
    assert convert.json_object(sent.metadata) == {"a": 1}


def test_ranking_sends_only_what_was_chosen() -> None:
    sent = values.ranking_message(rank("memx", recency=0.0, half_life=timedelta(days=1), reject=False))
    assert sent is not None
    assert sent.profile == search_pb2.RANKING_PROFILE_MEMX
    assert sent.weights.HasField("recency")
    assert not sent.weights.HasField("semantic")
    assert sent.half_life.seconds == 86400
    assert sent.HasField("reject")
    assert not sent.HasField("alpha")
    plain = values.ranking_message(rank())
    assert plain is not None
    assert plain.ByteSize() == 0
