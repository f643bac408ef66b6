"""The shipped examples have the shape that examples/README.md and the contract promise."""

from __future__ import annotations

import json
import unicodedata
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memxd.model import Limits, MemoryType

EXAMPLES = Path(__file__).parents[2] / "examples"
SCOPES = {("atlas", "zoe"), ("forge", "tidewater")}
FIELDS = {
    "agent_id",
    "user_id",
    "content",
    "type",
    "tags",
    "metadata",
    "importance",
    "event_at",
    "valid_until",
    "private",
    "source",
    "supersedes",
}


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (EXAMPLES / name).read_text(encoding="utf-8").splitlines()]


MEMORIES = _lines("memories.jsonl")
QUESTIONS = _lines("questions.jsonl")
BY_KEY = {m["metadata"]["key"]: m for m in MEMORIES}


def _chinese(text: str) -> bool:
    return sum("\u4e00" <= c <= "\u9fff" for c in text) > 0.3 * len(text)


@pytest.mark.parametrize("memory", MEMORIES, ids=BY_KEY)
def test_memory_obeys_the_contract(memory: dict[str, Any]) -> None:
    assert set(memory) <= FIELDS
    assert (memory["agent_id"], memory["user_id"]) in SCOPES
    content = memory["content"]
    assert content == unicodedata.normalize("NFC", content).strip()
    assert 1 <= len(content) <= Limits.CONTENT
    assert memory["type"].upper() in MemoryType.__members__
    assert 1 <= len(set(memory["tags"])) == len(memory["tags"]) <= Limits.TAGS
    assert all(1 <= len(tag) <= Limits.TAG for tag in memory["tags"])
    assert 0.0 <= memory["importance"] <= 1.0
    assert len(memory.get("source", "")) <= Limits.SOURCE
    event_at = datetime.fromisoformat(memory["event_at"])
    assert event_at.tzinfo is not None
    if "valid_until" in memory:
        assert datetime.fromisoformat(memory["valid_until"]) > event_at
    assert memory["metadata"]["lang"] == ("zh" if _chinese(content) else "en")


def test_memories_are_many_and_varied() -> None:
    assert len(MEMORIES) >= 220
    assert len(BY_KEY) == len(MEMORIES)
    assert len({m["content"] for m in MEMORIES}) == len(MEMORIES)
    assert sum(_chinese(m["content"]) for m in MEMORIES) >= 80
    for agent, _ in SCOPES:
        assert {m["type"].upper() for m in MEMORIES if m["agent_id"] == agent} == set(MemoryType.__members__)
    dates = sorted(datetime.fromisoformat(m["event_at"]) for m in MEMORIES)
    assert (dates[-1] - dates[0]).days > 700
    assert sum(len(m["content"]) > 3_000 for m in MEMORIES) >= 2


def test_superseding_points_to_older_lines_of_the_same_scope() -> None:
    chains = [(m, BY_KEY[key]) for m in MEMORIES for key in m.get("supersedes", [])]
    assert len(chains) >= 5
    for newer, older in chains:
        assert (newer["agent_id"], newer["user_id"]) == (older["agent_id"], older["user_id"])
        assert MEMORIES.index(older) < MEMORIES.index(newer)
        assert older["event_at"] < newer["event_at"]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q["id"])
def test_question_names_memories_of_its_scope(question: dict[str, Any]) -> None:
    assert set(question) == {"id", "agent_id", "user_id", "query", "lang", "expect"}
    scope = (question["agent_id"], question["user_id"])
    assert scope in SCOPES
    assert 1 <= len(question["query"]) <= Limits.QUERY
    replaced = {key for m in MEMORIES for key in m.get("supersedes", [])}
    for key in question["expect"]:
        assert (BY_KEY[key]["agent_id"], BY_KEY[key]["user_id"]) == scope
        assert key not in replaced


def test_questions_are_many_and_varied() -> None:
    assert len({q["id"] for q in QUESTIONS}) == len(QUESTIONS) >= 40
    assert sum(not q["expect"] for q in QUESTIONS) >= 8
    crossing = [q for q in QUESTIONS if any(BY_KEY[key]["metadata"]["lang"] != q["lang"] for key in q["expect"])]
    assert len(crossing) >= 5
    assert sum(q["lang"] == "zh" for q in QUESTIONS) >= 15
