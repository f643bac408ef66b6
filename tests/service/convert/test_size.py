"""Answers stay below the limit, and what goes first is what can be fetched again."""

from __future__ import annotations

import pytest

from memxd.model import Limits
from memxd.service.convert import size
from memxd.v1 import memory_service_pb2 as pb


def response(contents: list[str], metadata: int = 0) -> pb.SearchResponse:
    message = pb.SearchResponse()
    for rank, content in enumerate(contents, 1):
        hit = message.hits.add(rank=rank, score=1 / rank)
        hit.memory.id = f"{rank:036}"
        hit.memory.type = 2  # type: ignore[assignment]
        hit.memory.content = content
        if metadata:
            hit.memory.metadata["blob"] = "m" * metadata
        hit.explanation.rrf = 0.5
        hit.explanation.terms.add(term="t" * 50)
    return message


def test_an_answer_that_fits_is_left_alone() -> None:
    message = response(["x" * 1_000] * 3)
    before = message.SerializeToString()
    size.shrink_search(message, [message])
    assert message.SerializeToString() == before


def test_only_the_longest_contents_are_cut_and_say_so() -> None:
    message = response(["短" * 60_000] * 40 + ["short"] * 160)
    size.shrink_search(message, [message])
    assert message.ByteSize() <= Limits.ANSWER_BYTES
    assert len(message.hits) == 200
    cut = [hit.memory for hit in message.hits[:40]]
    assert all(memory.content_truncated and set(memory.content) == {"短"} for memory in cut)
    assert len({len(memory.content) for memory in cut}) == 1
    assert all(hit.memory.content == "short" and not hit.memory.content_truncated for hit in message.hits[40:])
    assert message.ByteSize() > 0.95 * Limits.ANSWER_BYTES, "no more is cut than must be"


@pytest.mark.parametrize("limit", [400_000, 60_000, 20_000])
def test_ids_ranks_and_scores_always_stay(limit: int) -> None:
    message = response(["x" * 10_000] * 100, metadata=5_000)
    size.shrink_search(message, [message], limit)
    assert message.ByteSize() <= limit
    assert [hit.memory.id for hit in message.hits] == [f"{rank:036}" for rank in range(1, 101)]
    assert [hit.score for hit in message.hits] == [1 / rank for rank in range(1, 101)]
    assert all(hit.memory.content_truncated for hit in message.hits)


def test_many_answers_share_one_limit() -> None:
    many = pb.SearchManyResponse()
    for _ in range(32):
        many.results.add().response.CopyFrom(response(["x" * 60_000] * 10))
    size.shrink_search(many, [result.response for result in many.results])
    assert many.ByteSize() <= Limits.ANSWER_BYTES
    assert all(len(result.response.hits) == 10 for result in many.results)


def test_a_walk_loses_text_before_links() -> None:
    message = pb.TraverseResponse()
    for number in range(100):
        message.memories.add(depth=1).memory.content = "x" * 60_000
        message.links.add(id=str(number)).metadata["m"] = "y" * 1_000
    size.shrink_traversal(message)
    assert message.ByteSize() <= Limits.ANSWER_BYTES
    assert len(message.links) == 100
    assert not message.truncated
    size.shrink_traversal(message, 20_000)
    assert message.ByteSize() <= 20_000
    assert len(message.memories) == 100


def test_the_longest_prefix_holds_at_least_one() -> None:
    messages = list(response(["x" * 1_000] * 5).hits)
    assert size.longest_prefix(messages, 10) == 1
    assert size.longest_prefix(messages, 2_500) == 2
    assert size.longest_prefix(messages, 10**6) == 5
