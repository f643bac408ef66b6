"""Memories, questions, links and answers on their way in and out."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import field_mask_pb2, timestamp_pb2

from memxd.errors import InvalidArgumentError
from memxd.model import (
    Degradation,
    DegradedCause,
    Explanation,
    Factor,
    Hit,
    Link,
    LinkType,
    Memory,
    MemoryType,
    Mode,
    Profile,
    RejectReason,
    Scope,
    SearchAnswer,
    State,
    TermMatch,
    TimeRange,
)
from memxd.service.convert import link, memory, search
from memxd.v1 import memory_pb2, search_pb2
from memxd.v1 import memory_service_pb2 as pb

FULL = Memory(
    id="0198c5f2-7c1e-7b3a-9d7e-2f1c3a4b5d6e",
    scope=Scope("agent", "user"),
    content="咖啡 🦊",
    type=MemoryType.EPISODIC,
    tags=("a", "b"),
    metadata={"n": 1, "deep": {"list": [None, True, "x"]}},
    importance=0.25,
    created_at=1,
    updated_at=2,
    event_at=0,
    valid_until=-5,
    state=State.SUPERSEDED,
    private=True,
    source="file",
    revision=9,
    access_count=3,
    last_accessed_at=4,
    retrieval_count=5,
    last_retrieved_at=6,
    vector_pending=True,
    superseded_by="0198c5f2-7c1e-7b3a-9d7e-2f1c3a4b5d6f",
    content_truncated=True,
)


def field_of(call: Any) -> str:
    with pytest.raises(InvalidArgumentError) as caught:
        call()
    return caught.value.violations[0].field


def test_every_field_of_a_memory_is_written() -> None:
    message = memory_pb2.Memory()
    memory.fill_memory(message, FULL)
    assert {field.name for field, _ in message.ListFields()} == {f.name for f in memory_pb2.Memory.DESCRIPTOR.fields}
    assert message.event_at == timestamp_pb2.Timestamp()
    assert message.valid_until == timestamp_pb2.Timestamp(seconds=-1, nanos=999_995_000)
    assert message.metadata["deep"]["list"][1] is True  # type: ignore[index]


def test_every_field_of_a_new_memory_is_read() -> None:
    message = pb.NewMemory(
        content="c",
        type=memory_pb2.MEMORY_TYPE_EMOTIONAL,
        tags=["b", "a"],
        importance=0,
        event_at=timestamp_pb2.Timestamp(seconds=1),
        valid_until=timestamp_pb2.Timestamp(seconds=2),
        private=True,
        source="s",
        supersedes=["x"],
        allow_duplicate=True,
        vector=[0.5, 1],
        model_id="m",
    )
    message.metadata.update({"k": 1})
    new = memory.new_memory(message)
    assert (new.content, new.type, new.tags, new.metadata) == ("c", MemoryType.EMOTIONAL, ("b", "a"), {"k": 1})
    assert (new.importance, new.event_at, new.valid_until) == (0.0, 1_000_000, 2_000_000)
    assert (new.private, new.source, new.supersedes, new.allow_duplicate) == (True, "s", ("x",), True)
    assert (new.vector.tolist() if isinstance(new.vector, memoryview) else None, new.model_id) == ([0.5, 1.0], "m")


def test_what_is_absent_is_none_not_zero() -> None:
    new = memory.new_memory(pb.NewMemory(content="c"))
    assert (new.type, new.importance, new.event_at, new.valid_until, new.vector) == (None,) * 5


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"type": 99}, "memory.type"),
        ({"importance": float("nan")}, "memory.importance"),
        ({"event_at": timestamp_pb2.Timestamp(nanos=-1)}, "memory.event_at"),
        ({"valid_until": timestamp_pb2.Timestamp(seconds=2**60)}, "memory.valid_until"),
        ({"vector": [float("inf")]}, "memory.vector[0]"),
    ],
)
def test_a_new_memory_is_refused_naming_the_field(changes: dict[str, Any], field: str) -> None:
    assert field_of(lambda: memory.new_memory(pb.NewMemory(content="c", **changes))) == field


# -- Update --------------------------------------------------------------------------------------------------------


def test_a_patch_reads_only_what_the_mask_names() -> None:
    message = pb.MemoryPatch(content="new", importance=float("nan"), type=99)  # type: ignore[arg-type]
    patch = memory.patch(message, field_mask_pb2.FieldMask(paths=["content", "content"]))
    assert (patch.mask, patch.content, patch.importance, patch.type) == (frozenset({"content"}), "new", None, None)


@pytest.mark.parametrize("path", ["id", "created_at", "*", "", "memory.content", "Content", "metadata.a"])
def test_a_path_that_cannot_change_is_refused(path: str) -> None:
    mask = field_mask_pb2.FieldMask(paths=["tags", path])
    assert field_of(lambda: memory.patch(pb.MemoryPatch(), mask)) == "update_mask.paths[1]"


def test_a_mask_is_required() -> None:
    assert field_of(lambda: memory.patch(pb.MemoryPatch(content="x"), field_mask_pb2.FieldMask())) == "update_mask"


def test_every_mutable_field_of_the_contract_is_known() -> None:
    assert set(memory.MUTABLE) == {f.name for f in pb.MemoryPatch.DESCRIPTOR.fields}
    for name in memory.MUTABLE:
        assert memory.patch(pb.MemoryPatch(), field_mask_pb2.FieldMask(paths=[name])).mask == {name}


# -- Filter and Search ---------------------------------------------------------------------------------------------


def test_every_condition_of_a_filter_is_read() -> None:
    message = memory_pb2.Filter(
        types=[memory_pb2.MEMORY_TYPE_SEMANTIC],
        tags_any=["a"],
        tags_all=["b"],
        tags_none=["c"],
        created=memory_pb2.TimeRange(start=timestamp_pb2.Timestamp(seconds=1)),
        event=memory_pb2.TimeRange(end=timestamp_pb2.Timestamp(seconds=2)),
        importance_min=0,
        states=[memory_pb2.MEMORY_STATE_ARCHIVED],
        ids=["x"],
        importance_below=1,
        unused_since=timestamp_pb2.Timestamp(seconds=3),
        valid_until=memory_pb2.TimeRange(end=timestamp_pb2.Timestamp(seconds=4)),
    )
    message.metadata.update({"k": "v"})
    read = memory.filter_(pb.CountRequest(filter=message))
    assert read.types == {MemoryType.SEMANTIC}
    assert (read.tags_any, read.tags_all, read.tags_none) == ({"a"}, {"b"}, {"c"})
    assert (read.created, read.event) == (TimeRange(start=1_000_000), TimeRange(end=2_000_000))
    assert (read.importance_below, read.unused_since, read.valid_until) == (1.0, 3_000_000, TimeRange(end=4_000_000))
    assert (read.importance_min, read.metadata, read.states, read.ids) == (0.0, {"k": "v"}, {State.ARCHIVED}, {"x"})


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (memory_pb2.Filter(types=[0]), "filter.types[0]"),  # type: ignore[list-item]
        (memory_pb2.Filter(states=[1, 9]), "filter.states[1]"),  # type: ignore[list-item]
        (memory_pb2.Filter(importance_min=float("nan")), "filter.importance_min"),
        (memory_pb2.Filter(importance_below=float("nan")), "filter.importance_below"),
        (memory_pb2.Filter(unused_since=timestamp_pb2.Timestamp(nanos=-1)), "filter.unused_since"),
        (
            memory_pb2.Filter(created=memory_pb2.TimeRange(start=timestamp_pb2.Timestamp(nanos=-1))),
            "filter.created.start",
        ),
    ],
)
def test_a_filter_is_refused_naming_the_field(message: memory_pb2.Filter, field: str) -> None:
    assert field_of(lambda: memory.filter_(pb.CountRequest(filter=message))) == field


def test_a_bare_question_leaves_every_choice_to_the_engine() -> None:
    query = search.search_query(pb.SearchRequest(query="q"))
    assert (query.k, query.mode, query.min_relevance, query.vector, query.record_retrieval) == (None,) * 4 + (True,)
    assert query.ranking == type(query.ranking)()


def test_every_choice_of_a_question_is_read() -> None:
    ranking = search_pb2.Ranking(
        profile=search_pb2.RANKING_PROFILE_MEMX,
        weights=search_pb2.FactorWeights(semantic=1, recency=0),
        rrf_k=7,
        reject=False,
        tau=-1,
    )
    ranking.half_life.FromSeconds(60)
    request = pb.SearchRequest(
        query="q", k=3, mode=search_pb2.SEARCH_MODE_VECTOR, ranking=ranking, record_retrieval=False, expand_links=2
    )
    query = search.search_query(request)
    assert (query.k, query.mode, query.record_retrieval, query.expand_links) == (3, Mode.VECTOR, False, 2)
    assert (query.ranking.profile, query.ranking.semantic, query.ranking.recency) == (Profile.MEMX, 1.0, 0.0)
    assert (query.ranking.frequency, query.ranking.half_life, query.ranking.rrf_k) == (None, 60_000_000, 7)
    assert (query.ranking.reject, query.ranking.tau) == (False, -1.0)


@pytest.mark.parametrize(
    ("ranking", "field"),
    [
        (search_pb2.Ranking(profile=9), "ranking.profile"),  # type: ignore[arg-type]
        (search_pb2.Ranking(dedup=9), "ranking.dedup"),  # type: ignore[arg-type]
        (search_pb2.Ranking(alpha=float("inf")), "ranking.alpha"),
        (search_pb2.Ranking(weights=search_pb2.FactorWeights(recency=float("nan"))), "ranking.weights.recency"),
    ],
)
def test_a_ranking_is_refused_naming_the_field(ranking: search_pb2.Ranking, field: str) -> None:
    assert field_of(lambda: search.search_query(pb.SearchRequest(query="q", ranking=ranking))) == field


def test_every_field_of_an_answer_is_written() -> None:
    factor = Factor(0.5, 0.4)
    explanation = Explanation(
        semantic=factor,
        recency=factor,
        frequency=factor,
        importance=Factor(0, 0),
        raw_score=1,
        z_score=2,
        rrf=0.1,
        cosine=0.0,
        vector_rank=1,
        keyword_score=0.0,
        keyword_rank=2,
        terms=(TermMatch("tea", 1.5, 2, 3.0),),
        chunk=0,
        notes=("n",),
        folded=1,
        folded_ids=("x",),
    )
    answer = SearchAnswer(
        hits=(Hit(FULL, 1, 0.9, 0.8, explanation, True, "y"),),
        revision=3,
        rejected=True,
        reject_reason=RejectReason.NO_MATCH,
        best_relevance=0.7,
        candidates=4,
        folded=5,
        below_min_relevance=6,
        degraded=(Degradation(DegradedCause.VECTORS_PENDING, "m"),),
        timings=(("embed", 12),),
        plan="p",
    )
    message = pb.SearchResponse()
    search.fill_answer(message, answer)
    for written, descriptor in (
        (message, pb.SearchResponse.DESCRIPTOR),
        (message.hits[0], search_pb2.Hit.DESCRIPTOR),
        (message.hits[0].explanation, search_pb2.Explanation.DESCRIPTOR),
    ):
        assert {f.name for f, _ in written.ListFields()} == {f.name for f in descriptor.fields}  # type: ignore[attr-defined]
    assert message.hits[0].explanation.semantic.contribution == pytest.approx(0.2)


def test_every_field_of_a_link_is_written() -> None:
    message = memory_pb2.Link()
    link.fill_link(message, Link("i", Scope(), "s", "t", LinkType.CAUSED_BY, 0.7, True, {"k": 1}, 5))
    assert {f.name for f, _ in message.ListFields()} == {f.name for f in memory_pb2.Link.DESCRIPTOR.fields}


def test_link_types_refuse_unspecified_and_unknown() -> None:
    assert link.link_types([1, 5]) == {LinkType.SIMILAR, LinkType.SUPERSEDES}
    assert field_of(lambda: link.link_types([0])) == "types[0]"
    assert field_of(lambda: link.link_types([1, 8])) == "types[1]"
