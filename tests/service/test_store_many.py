"""Several items in one message of a StoreMany stream: their order, their refusals, and who gets answers together."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import grpc
import pytest

from memxd.engine.stream import Grouped, groups
from memxd.errors import MemxdError
from memxd.model import Deadline, StoreAnswer
from memxd.v1 import memory_service_pb2 as pb

METHOD = "/memxd.v1.MemoryService/StoreMany"


def item(content: str, *more: pb.StoreManyRequest, **fields: Any) -> pb.StoreManyRequest:
    return pb.StoreManyRequest(memory=pb.NewMemory(content=content, **fields), more=more)


def flat(answers: Iterable[pb.StoreManyResponse]) -> list[pb.StoreManyResponse]:
    return [one for answer in answers for one in (answer, *answer.more)]


def told(answers: Iterable[pb.StoreManyResponse]) -> list[str]:
    return [one.stored.memory.content if one.HasField("stored") else one.error.field for one in answers]


def test_items_are_counted_and_answered_in_order_however_they_are_packed(running: Any) -> None:
    sent = [item("0"), item("1", item("2"), item("3")), item("4"), item("5", *(item(str(n)) for n in range(6, 200)))]
    answers = flat(running.memory.StoreMany(iter(sent), timeout=20))
    assert [answer.index for answer in answers] == list(range(200))
    assert told(answers) == [str(n) for n in range(200)]
    assert not any(inner.more for answer in answers for inner in answer.more)


def test_a_bad_item_within_a_message_spoils_nothing(running: Any) -> None:
    sent = [item("a", item("b", type=99), item("c"), item("d", importance=float("nan"))), item("e")]
    answers = flat(running.memory.StoreMany(iter(sent), timeout=20))
    assert told(answers) == ["a", "memory.type", "c", "memory.importance", "e"]
    assert [answer.index for answer in answers] == list(range(5))


def test_an_item_within_a_message_carries_no_further_ones(running: Any) -> None:
    sent = [item("a", item("b", item("lost")), item("c")), item("d")]
    answers = flat(running.memory.StoreMany(iter(sent), timeout=20))
    assert told(answers) == ["a", "more[0].more", "c", "d"]
    assert answers[1].error.reason == "INVALID_ARGUMENT"
    assert [answer.index for answer in answers] == list(range(4))


@pytest.mark.parametrize("count", [255, 256])
def test_a_message_holds_256_items_at_most_and_one_with_more_is_refused_whole(running: Any, count: int) -> None:
    sent = [item("x", *(item("x") for _ in range(count))), item("y")]
    answers = flat(running.memory.StoreMany(iter(sent), timeout=20))
    assert told(answers) == ["x" if count == 255 else "more"] * (count + 1) + ["y"]
    if count == 256:
        assert "256 items, at most 255" in answers[0].error.message
        assert answers[0].error.reason == "INVALID_ARGUMENT"


def test_only_the_first_answer_tells_that_several_items_are_taken(running: Any) -> None:
    answers = list(running.memory.StoreMany(iter([item("a"), item("b"), item("c")]), timeout=20))
    assert [answer.takes_more for answer in answers] == [True, False, False]


def test_who_sends_one_by_one_is_answered_one_by_one(running: Any) -> None:
    answers = list(running.memory.StoreMany((item(str(n)) for n in range(500)), timeout=20))
    assert [answer.index for answer in answers] == list(range(500))
    assert not any(answer.more for answer in answers)


def test_answers_that_are_ready_together_come_together(running: Any) -> None:
    sent = [item("x", *(item("x") for _ in range(255)))]
    answers = list(running.memory.StoreMany(iter(sent), timeout=20))
    assert [1 + len(answer.more) for answer in answers] == [64] * 4


def test_a_message_of_answers_stays_small(running: Any) -> None:
    large = "x" * 60_000
    sent = [item(large, *(item(large) for _ in range(30)))]
    answers = list(running.memory.StoreMany(iter(sent), timeout=20))
    assert len(flat(answers)) == 31
    assert len(answers) > 1
    assert max(answer.ByteSize() for answer in answers) < 512 * 1024 + 61_000


def test_no_answer_waits_for_an_item_that_is_not_sent(running: Any) -> None:
    to_send: queue.Queue[pb.StoreManyRequest | None] = queue.Queue()
    answers = running.memory.StoreMany(iter(to_send.get, None), timeout=20)
    for at in range(0, 12, 3):
        to_send.put(item(str(at), item(str(at + 1)), item(str(at + 2))))
        seen: list[pb.StoreManyResponse] = []
        while len(seen) < 3:
            seen += flat([next(answers)])
        assert [one.index for one in seen] == [at, at + 1, at + 2]
    to_send.put(None)
    assert list(answers) == []


def test_bytes_that_are_no_message_are_one_item(running: Any) -> None:
    raw = running.channel.stream_stream(METHOD, response_deserializer=pb.StoreManyResponse.FromString)
    sent = [item("a", item("b")).SerializeToString(), b"\xff\xff", item("c", item("d")).SerializeToString()]
    answers = flat(raw(iter(sent), timeout=20))
    assert told(answers) == ["a", "b", "", "c", "d"]
    assert [answer.index for answer in answers] == list(range(5))


def test_a_stopping_daemon_ends_the_stream_after_the_items_it_has_begun(running: Any) -> None:
    to_send: queue.Queue[pb.StoreManyRequest | None] = queue.Queue()
    begun, proceed = threading.Event(), threading.Event()

    def store_groups(items: Grouped[Any], deadline: Deadline) -> Iterator[list[StoreAnswer | MemxdError]]:
        for group in groups(items, 64):
            begun.set()
            assert proceed.wait(10)
            yield [MemxdError("stands for an answer")] * len(group)

    running.engine.store_groups = store_groups
    answers = running.memory.StoreMany(iter(to_send.get, None), timeout=20)
    to_send.put(item("x", *(item("x") for _ in range(199))))
    assert begun.wait(10)
    running.gate.drain()
    proceed.set()
    assert [one.index for one in flat([next(answers)])] == list(range(64))
    with pytest.raises(grpc.RpcError) as caught:
        next(answers)
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
    assert running.gate.wait_idle(5, lambda: False)
    to_send.put(None)


def test_who_pours_messages_of_many_items_without_reading_is_not_read_for_ever(running: Any) -> None:
    sent = 0

    def endless() -> Iterator[pb.StoreManyRequest]:
        nonlocal sent
        while sent < 20_000:
            sent += 1
            yield item("x" * 5_000, *(item("x" * 5_000) for _ in range(31)))

    answers = running.memory.StoreMany(endless(), timeout=60)
    next(answers)
    last = -1
    while last != sent:
        last = sent
        time.sleep(0.5)
    assert sent < 1_000
    answers.cancel()
