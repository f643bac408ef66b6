"""StoreMany with several items in one message: only for a daemon that says so, never at the price of a late item."""

from __future__ import annotations

import array
import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from memxd.client import AsyncClient, Client, Item
from memxd.errors import MemxdError
from memxd.model import StoreAnswer
from memxd.v1 import memory_pb2
from memxd.v1 import memory_service_pb2 as pb

Requests = Iterator[pb.StoreManyRequest]


class Echo:
    """Stores everything; ``packed`` is how many items each message held. An ``older`` one knows nothing of ``more``."""

    def __init__(self, *, older: bool = False) -> None:
        self.older = older
        self.packed: list[int] = []
        self.bytes: list[int] = []

    def __call__(self, requests: Requests, _: grpc.ServicerContext) -> Iterator[pb.StoreManyResponse]:
        index = 0
        for request in requests:
            self.packed.append(1 + len(request.more))
            self.bytes.append(request.ByteSize())
            answers = []
            for item in [request] if self.older else (request, *request.more):
                stored = memory_pb2.Memory(id=item.request_id, content=item.memory.content, type=2, state=1)
                answers.append(pb.StoreManyResponse(index=index, stored=pb.StoreResponse(memory=stored)))
                index += 1
            answers[0].more.extend(answers[1:])
            answers[0].takes_more = not self.older and answers[0].index == 0
            yield answers[0]


def named(outcomes: Iterable[Any]) -> list[str]:
    return [o.memory.content if isinstance(o, StoreAnswer) else o.reason for o in outcomes]


def names(count: int) -> list[str]:
    return [str(i) for i in range(count)]


def test_a_list_goes_several_items_in_a_message_in_order(server: Any, client: Any) -> None:
    echo = Echo()
    server.on("StoreMany", echo)
    assert named(client.store_many(names(3_000))) == names(3_000)
    assert echo.packed[0] == 1, "the first item alone: what the daemon is, is not known yet"
    assert max(echo.packed) == 32
    assert len(echo.packed) < 1_500


def test_an_older_daemon_gets_one_item_in_a_message(server: Any, client: Any) -> None:
    echo = Echo(older=True)
    server.on("StoreMany", echo)
    assert named(client.store_many(names(700))) == names(700)
    assert set(echo.packed) == {1}


def test_what_one_stream_has_learnt_is_not_taken_for_granted_by_the_next(server: Any, client: Any) -> None:
    server.on("StoreMany", Echo())
    assert len(list(client.store_many(names(700)))) == 700
    older = Echo(older=True)
    server.on("StoreMany", older)
    assert named(client.store_many(names(700))) == names(700)
    assert set(older.packed) == {1}


def test_items_that_cannot_be_sent_are_told_in_their_place_within_a_message(server: Any, client: Any) -> None:
    server.on("StoreMany", Echo())
    naive = Item("naive", event_at=datetime(2026, 1, 1))
    items = [naive if i % 7 == 3 else str(i) for i in range(1_000)]
    wanted = ["INVALID_ARGUMENT" if i % 7 == 3 else str(i) for i in range(1_000)]
    assert named(client.store_many(items)) == wanted


def test_a_message_stays_small(server: Any, client: Any) -> None:
    echo = Echo()
    server.on("StoreMany", echo)
    items = [Item(str(i) + "x" * 30_000) for i in range(400)]
    assert len(list(client.store_many(items, window=64))) == 400
    assert 1 < max(echo.packed) < 10
    assert max(echo.bytes) < 256 * 1024 + 100


@pytest.mark.parametrize("window", [1, 2, 8])
def test_a_small_window_is_kept(server: Any, client: Any, window: int) -> None:
    echo = Echo()
    server.on("StoreMany", echo)
    assert named(client.store_many(names(200), window=window)) == names(200)
    assert max(echo.packed) <= window


def test_a_pouring_iterator_is_packed_too(server: Any, socket: Path) -> None:
    echo = Echo()
    server.on("StoreMany", echo)
    with Client(socket) as client:
        assert named(client.store_many(iter(names(5_000)))) == names(5_000)
    assert max(echo.packed) > 1


def test_an_item_of_a_slow_iterator_is_sent_at_once(server: Any, socket: Path) -> None:
    server.on("StoreMany", Echo())
    given: queue.Queue[str | None] = queue.Queue()
    with Client(socket) as client:
        outcomes = client.store_many(iter(given.get, None), timeout=20)
        for name in names(5):
            given.put(name)  # and nothing more until it is answered
            assert named([next(outcomes)]) == [name]
        given.put(None)
        assert list(outcomes) == []


def test_an_item_of_a_slow_asynchronous_iterator_is_sent_at_once(server: Any, socket: Path) -> None:
    server.on("StoreMany", Echo())

    async def main() -> list[str]:
        answered = asyncio.Event()

        async def items() -> AsyncIterator[str]:
            for name in names(5):
                yield name
                await answered.wait()
                answered.clear()

        seen = []
        async with AsyncClient(socket) as client:
            async for outcome in client.store_many(items(), timeout=20):
                seen += named([outcome])
                answered.set()
        return seen

    assert asyncio.run(main()) == names(5)


def test_leaving_early_ends_the_threads_of_the_stream(server: Any, socket: Path) -> None:
    server.on("StoreMany", Echo())
    given: queue.Queue[str | None] = queue.Queue()
    with Client(socket) as client:
        given.put("a")
        outcomes: Any = client.store_many(iter(given.get, None))
        next(outcomes)
        outcomes.close()
        given.put("b")  # the caller's own iterator goes on: nobody waits for it any more
        eventually(lambda: not any(t.name == "memxd-store-many" for t in threading.enumerate()))


def test_an_iterator_that_fails_is_told_after_the_answers_to_what_was_packed(server: Any, client: Any) -> None:
    server.on("StoreMany", Echo())

    def items() -> Iterator[str]:
        yield from names(1_000)
        raise RuntimeError("the file ended")

    with pytest.raises(RuntimeError, match="the file ended"):
        list(client.store_many(items()))
    unsendable: Any = [*names(1_000), 5]
    with pytest.raises(AttributeError):
        list(client.store_many(unsendable))


def test_a_daemon_that_loses_an_item_is_noticed(server: Any, client: Any) -> None:
    def forgetful(requests: Requests, context: grpc.ServicerContext) -> Iterator[pb.StoreManyResponse]:
        for answer in Echo()(requests, context):
            del answer.more[-1:]  # how many come together depends on how busy the machine is
            yield answer

    server.on("StoreMany", forgetful)
    with pytest.raises(MemxdError):
        list(client.store_many(names(1_000), window=2_000, timeout=5))


@pytest.mark.parametrize(
    "kind",
    [
        list,
        tuple,
        iter,
        lambda numbers: np.array(numbers, np.float32),
        lambda numbers: np.array(numbers, np.float64),
        lambda numbers: np.array(numbers, np.float32).repeat(2)[::2],
        lambda numbers: np.array(numbers, ">f4"),
        lambda numbers: array.array("f", numbers),
        lambda numbers: array.array("d", numbers),
    ],
)
def test_a_vector_may_be_any_array(server: Any, client: Any, kind: Callable[[list[float]], Any]) -> None:
    numbers = [0.1, -2.5, 1e-30, 3.0] * 96
    seen: list[pb.NewMemory] = []

    def script(request: pb.StoreRequest, _: grpc.ServicerContext) -> pb.StoreResponse:
        seen.append(request.memory)
        return pb.StoreResponse(memory=memory_pb2.Memory(id="1", type=2, state=1))

    server.on("Store", script)
    client.store("x", vector=kind(numbers), model_id="m")
    assert list(seen[0].vector) == np.array(numbers, np.float32).tolist()
    assert (seen[0].content, seen[0].model_id) == ("x", "m")


def eventually(check: Callable[[], bool], seconds: float = 5.0) -> None:
    waited = threading.Event()
    for _ in range(int(seconds / 0.01)):
        if check():
            return
        waited.wait(0.01)
    raise AssertionError("it never came true")
