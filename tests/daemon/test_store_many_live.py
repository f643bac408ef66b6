"""Items packed into messages against the real daemon: order, refusals, and an end in the middle."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from memxd.client import NO_RETRY, Client, Item
from memxd.errors import MemxdError
from memxd.model import StoreAnswer
from memxd.v1 import memory_service_pb2 as pb


def item(content: str, *more: pb.StoreManyRequest, **fields: Any) -> pb.StoreManyRequest:
    return pb.StoreManyRequest(memory=pb.NewMemory(content=content, **fields), more=more)


def test_packed_and_single_items_are_stored_in_the_order_sent(daemon: Any) -> None:
    sent = [item("one"), item("two", item(""), item("three", item("lost")), item("four")), item("five")]
    sent += [item("six", *(item(f"number {n}") for n in range(256)))]
    sent += [item("seven", *(item(f"fact {n}") for n in range(255)))]
    answers = [one for answer in daemon.memory.StoreMany(iter(sent), timeout=60) for one in (answer, *answer.more)]
    told = [one.stored.memory.content or one.error.field for one in answers]
    assert told[:6] == ["one", "two", "memory.content", "more[1].more", "four", "five"]
    assert told[6:263] == ["more"] * 257
    assert told[263:] == ["seven"] + [f"fact {n}" for n in range(255)]
    assert [one.index for one in answers] == list(range(len(answers)))
    revisions = [one.stored.revision for one in answers if one.HasField("stored")]
    assert revisions == sorted(set(revisions))
    assert daemon.memory.Count(pb.CountRequest()).count == 4 + 256


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_after_an_end_in_the_middle_the_same_items_are_stored_once(
    daemon: Any, start_daemon: Any, number: signal.Signals
) -> None:
    items = [Item(f"line {n} of a long letter") for n in range(4_000)]
    kept: list[str] = []

    def import_until_it_ends(client: Client) -> None:
        for outcome in client.store_many(items, timeout=60):
            assert isinstance(outcome, StoreAnswer)
            kept.append(outcome.memory.id)
            if len(kept) == 700:
                daemon.signal(number)

    with Client(daemon.socket, retry=NO_RETRY) as client, pytest.raises(MemxdError) as caught:
        import_until_it_ends(client)
    assert caught.value.retryable
    assert 700 <= len(kept) < 4_000
    daemon.wait()
    start_daemon()
    with Client(daemon.socket) as client:
        assert len(kept) <= client.count() < 4_000
        again = list(client.store_many(items, timeout=120))
        assert all(isinstance(outcome, StoreAnswer) for outcome in again)
        assert [o.memory.id for o in again[: len(kept)] if isinstance(o, StoreAnswer)] == kept
        assert client.count() == 4_000
