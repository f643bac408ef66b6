"""FEATURES X1: the record of a memory, complete, with its limits refused instead of bent."""

from __future__ import annotations

import math
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memxd.client import Client
from memxd.errors import InvalidArgumentError
from memxd.model import MemoryType, State


def test_x1_a_full_record_comes_back_as_it_was_given(client: Client) -> None:
    """X1: content, type, tags, metadata, importance, times, source; created and updated by the server."""
    at = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    before = datetime.now(UTC)
    metadata = {"n": 1, "half": 0.5, "none": None, "yes": True, "list": [1, "two", {"deep": []}], "ключ": "值"}
    stored = client.store(
        "  Zoë said „ja“ – 好的。  ", type="emotional", tags=["b", " a ", "b"], metadata=metadata, importance=0.0,
        event_at=at, valid_until=at + timedelta(days=10_000), source="chat/7", private=True,
    ).memory  # fmt: skip
    memory = client.get(stored.id)
    assert memory.content == "Zoë said „ja“ – 好的。"
    assert memory.type is MemoryType.EMOTIONAL
    assert memory.tags == ("a", "b")
    assert memory.metadata == metadata
    assert memory.importance == 0.0
    assert memory.event_at == round(at.timestamp() * 1e6)
    assert memory.valid_until == round((at + timedelta(days=10_000)).timestamp() * 1e6)
    assert (memory.source, memory.private, memory.state) == ("chat/7", True, State.ACTIVE)
    assert memory.created_at == memory.updated_at
    assert 0 <= memory.created_at / 1e6 - before.timestamp() < 30
    assert (memory.access_count, memory.retrieval_count) == (0, 0)


def test_x1_the_defaults_are_semantic_and_one_half(client: Client) -> None:
    """X1: type semantic, importance 0.5, nothing else set."""
    memory = client.store("The kettle is in the left cupboard.").memory
    assert (memory.type, memory.importance) == (MemoryType.SEMANTIC, 0.5)
    assert (memory.tags, memory.metadata, memory.source, memory.private) == ((), {}, "", False)
    assert memory.event_at is memory.valid_until is None


@pytest.mark.parametrize("kind", ["episodic", "semantic", "procedural", "emotional", "reflective"])
def test_x1_all_five_types(client: Client, kind: str) -> None:
    """X1: the five types of knowledge are kept and found by a filter."""
    from memxd.client import where

    id = client.store("one fact", type=kind).memory.id
    assert [m.id for m in client.list(filter=where(types=[kind])).memories] == [id]


def test_x1_ids_are_uuid7_in_lower_case_and_in_order(client: Client) -> None:
    """X1: UUIDv7 made by the server, ascending with time."""
    memories = [client.store(f"number {n}").memory for n in range(20)]
    for memory in memories:
        parsed = uuid.UUID(memory.id)
        assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
        assert str(parsed) == memory.id
        assert abs((parsed.int >> 80) - memory.created_at // 1_000) <= 1
    assert sorted(m.id for m in memories) == [m.id for m in memories]


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("memory.content", {"content": ""}),
        ("memory.content", {"content": " \n\t "}),
        ("memory.content", {"content": "\u200b\u2060\ufeff"}),
        ("memory.content", {"content": "x" * 65_537}),
        ("memory.importance", {"importance": -0.01}),
        ("memory.importance", {"importance": 1.01}),
        ("memory.importance", {"importance": math.nan}),
        ("memory.importance", {"importance": math.inf}),
        ("memory.tags", {"tags": [str(n) for n in range(33)]}),
        ("memory.tags[0]", {"tags": ["t" * 65]}),
        ("memory.tags[1]", {"tags": ["good", "  "]}),
        ("memory.metadata", {"metadata": {"k": "x" * 16_384}}),
        ("memory.source", {"source": "s" * 257}),
    ],
)
def test_x1_what_breaks_a_limit_is_refused_by_name(client: Client, field: str, given: dict[str, Any]) -> None:
    """X1, better: empty and unbounded content is refused, importance is refused and not clamped; nothing is stored."""
    content = given.pop("content", "something")
    with pytest.raises(InvalidArgumentError) as caught:
        client.store(content, **given)
    assert [v.field for v in caught.value.violations] == [field]
    assert client.count() == 0


def test_x1_the_limits_themselves_are_allowed(client: Client) -> None:
    """X1: 65,536 characters, 32 tags of 64, source of 256, importance 0 and 1."""
    tags = [f"{n:02}" + "t" * 62 for n in range(32)]
    memory = client.store("界" * 65_536, tags=tags, source="s" * 256, importance=1).memory
    assert (len(memory.content), len(memory.tags), memory.importance) == (65_536, 32, 1.0)
    assert client.get(memory.id).content == "界" * 65_536
