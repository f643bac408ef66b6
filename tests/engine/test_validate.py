"""Each rule of the contract names the field it is about."""

import math

import pytest

from memxd.engine import validate
from memxd.errors import InvalidArgumentError
from memxd.model import Filter, Limits, MemoryType, NewMemory, Patch, Scope, State, TimeRange


def _field(error: pytest.ExceptionInfo[InvalidArgumentError]) -> str:
    return error.value.violations[0].field


@pytest.mark.parametrize(
    ("scope", "field"),
    [
        (Scope("", "u"), "scope.agent_id"),
        (Scope("a", "\u200b"), "scope.user_id"),
        (Scope("a" * 129, "u"), "scope.agent_id"),
        (Scope("a", "x\x07y"), "scope.user_id"),
    ],
)
def test_a_bad_scope_names_its_part(scope: Scope, field: str) -> None:
    with pytest.raises(InvalidArgumentError) as error:
        validate.scope(scope)
    assert _field(error) == field


def test_a_scope_is_normalised_but_keeps_its_case() -> None:
    assert validate.scope(Scope(" Cafe\u0301 ", "U")) == Scope("Café", "U")


@pytest.mark.parametrize(
    ("new", "field"),
    [
        (NewMemory("  "), "memory.content"),
        (NewMemory("left\0right"), "memory.content"),
        (NewMemory("x" * (Limits.CONTENT + 1)), "memory.content"),
        (NewMemory("x", importance=1.5), "memory.importance"),
        (NewMemory("x", importance=math.nan), "memory.importance"),
        (NewMemory("x", tags=("ok", "")), "memory.tags[1]"),
        (NewMemory("x", tags=tuple(str(n) for n in range(33))), "memory.tags"),
        (NewMemory("x", metadata={"a": math.inf}), "memory.metadata"),
        (NewMemory("x", metadata={"a": "x" * 17_000}), "memory.metadata"),
        (NewMemory("x", source="s" * 257), "memory.source"),
        (NewMemory("x", event_at=10, valid_until=10), "memory.valid_until"),
        (NewMemory("x", event_at=Limits.TIME_MAX + 1), "memory.event_at"),
        (NewMemory("x", supersedes=("nope",)), "memory.supersedes[0]"),
    ],
)
def test_a_bad_memory_names_the_field(new: NewMemory, field: str) -> None:
    with pytest.raises(InvalidArgumentError) as error:
        validate.new_memory(new)
    assert _field(error) == field


def test_content_at_the_limit_is_taken() -> None:
    assert len(validate.new_memory(NewMemory("é" * Limits.CONTENT)).content) == Limits.CONTENT


def test_defaults_are_filled_in_and_tags_sorted() -> None:
    new = validate.new_memory(NewMemory(" tea ", tags=("b", " a", "b")))
    assert (new.content, new.type, new.importance, new.tags) == ("tea", MemoryType.SEMANTIC, 0.5, ("a", "b"))


def test_deep_metadata_is_refused() -> None:
    value: dict[str, object] = {}
    for _ in range(40):
        value = {"a": value}
    with pytest.raises(InvalidArgumentError) as error:
        validate.metadata("memory.metadata", value)
    assert _field(error) == "memory.metadata"


@pytest.mark.parametrize("query", ["", "  ", "\u200b", "x" * 2001])
def test_a_bad_query_is_refused(query: str) -> None:
    with pytest.raises(InvalidArgumentError) as error:
        validate.query(query)
    assert _field(error) == "query"


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        (Patch(frozenset()), "update_mask"),
        (Patch(frozenset({"id"})), "update_mask"),
        (Patch(frozenset({"state"}), state=State.SUPERSEDED), "memory.state"),
        (Patch(frozenset({"content"}), content="\u200b"), "memory.content"),
        (Patch(frozenset({"importance"}), importance=-0.1), "memory.importance"),
    ],
)
def test_a_bad_patch_names_the_field(patch: Patch, field: str) -> None:
    with pytest.raises(InvalidArgumentError) as error:
        validate.patch(patch)
    assert _field(error) == field


def test_fields_outside_the_mask_are_not_looked_at() -> None:
    assert validate.patch(Patch(frozenset({"tags"}), content="", tags=("a",))).tags == ("a",)


def test_an_inverted_range_is_refused() -> None:
    with pytest.raises(InvalidArgumentError) as error:
        validate.filter_(Filter(created=TimeRange(5, 5)))
    assert _field(error) == "filter.created.end"


@pytest.mark.parametrize("name", ["Mars/Olympus", "../etc/passwd", "x" * 300, "\x00"])
def test_an_unknown_time_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgumentError) as error:
        validate.time_zone(name)
    assert _field(error) == "time_zone"
