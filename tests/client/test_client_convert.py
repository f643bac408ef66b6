"""Answers become dataclasses, field by field, and absent fields stay absent."""

from __future__ import annotations

import dataclasses

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from memxd import model
from memxd.client import convert
from memxd.errors import MemxdError
from memxd.v1 import memory_pb2, memory_service_pb2, search_pb2

FULL = memory_pb2.Memory(
    id="m",
    scope=memory_pb2.Scope(agent_id="a", user_id="u"),
    content="text",
    type=1,
    tags=["x", "y"],
    metadata={"n": 1, "f": 1.5, "t": True, "z": None, "l": [1, "a"]},
    importance=0.25,
    created_at=Timestamp(seconds=1, nanos=1000),
    updated_at=Timestamp(seconds=2),
    event_at=Timestamp(seconds=-1, nanos=999_999_000),
    valid_until=Timestamp(seconds=4),
    state=2,
    private=True,
    source="s",
    revision=5,
    access_count=6,
    last_accessed_at=Timestamp(seconds=7),
    retrieval_count=8,
    last_retrieved_at=Timestamp(seconds=9),
    vector_pending=True,
    superseded_by="n",
    content_truncated=True,
)


def test_every_field_of_a_memory_arrives() -> None:
    found = convert.memory(FULL)
    assert found == model.Memory(
        id="m",
        scope=model.Scope("a", "u"),
        content="text",
        type=model.MemoryType.EPISODIC,
        tags=("x", "y"),
        metadata={"n": 1, "f": 1.5, "t": True, "z": None, "l": [1, "a"]},
        importance=0.25,
        created_at=1_000_001,
        updated_at=2_000_000,
        event_at=-1,
        valid_until=4_000_000,
        state=model.State.SUPERSEDED,
        private=True,
        source="s",
        revision=5,
        access_count=6,
        last_accessed_at=7_000_000,
        retrieval_count=8,
        last_retrieved_at=9_000_000,
        vector_pending=True,
        superseded_by="n",
        content_truncated=True,
    )
    assert {f.name for f in dataclasses.fields(found)} == set(FULL.DESCRIPTOR.fields_by_name)


def test_absent_times_are_none() -> None:
    found = convert.memory(memory_pb2.Memory(id="m", type=1, state=1))
    assert (found.event_at, found.valid_until, found.last_accessed_at, found.last_retrieved_at) == (None,) * 4


def test_a_type_of_a_newer_daemon_is_an_error_that_says_so() -> None:
    with pytest.raises(MemxdError, match="upgrade the client") as caught:
        convert.memory(memory_pb2.Memory(id="m", type=99, state=1))
    assert caught.value.reason == "UNKNOWN_ENUM_VALUE"


def test_an_explanation_tells_absent_from_zero() -> None:
    found = convert.explanation(search_pb2.Explanation(cosine=0.0, keyword_rank=1, folded_ids=["a"], notes=["n"]))
    assert (found.cosine, found.vector_rank, found.keyword_score, found.keyword_rank) == (0.0, None, None, 1)
    assert (found.folded_ids, found.notes) == (("a",), ("n",))


def test_search_answers_name_every_field_of_the_proto() -> None:
    names = set(memory_service_pb2.SearchResponse.DESCRIPTOR.fields_by_name)
    # The stages' times are for the daemon's log; on the wire they stand in the timings.
    assert {f.name for f in dataclasses.fields(model.SearchAnswer)} - {"stages"} == names
    for message, cls in (
        (search_pb2.Hit, model.Hit),
        (search_pb2.Explanation, model.Explanation),
        (memory_pb2.Link, model.Link),
        (search_pb2.TermMatch, model.TermMatch),
    ):
        assert {f.name for f in dataclasses.fields(cls)} == set(message.DESCRIPTOR.fields_by_name)


def test_a_refused_item_is_the_error_its_own_call_would_raise() -> None:
    error = convert.item_error(
        memory_service_pb2.ItemError(reason="OVERLOADED", message="later", retryable=True, metadata={"a": "b"})
    )
    assert type(error).__name__ == "OverloadedError"
    assert error.metadata == {"a": "b"}
    newer = convert.item_error(memory_service_pb2.ItemError(reason="BRAND_NEW", message="x", field="f", retryable=True))
    assert (newer.reason, newer.retryable, newer.violations[0].field) == ("BRAND_NEW", True, "f")
