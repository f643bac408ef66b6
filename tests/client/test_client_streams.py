"""StoreMany, paging and rebuild: order, flow control, and failures in the middle."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import grpc
import pytest
from scripted import refuse

from memxd.client import Client, Item
from memxd.errors import InvalidArgumentError, MemxdError, OverloadedError, ShuttingDownError
from memxd.model import StoreAnswer
from memxd.v1 import admin_service_pb2, memory_pb2, memory_service_pb2

pb = memory_service_pb2


def memory(content: str) -> memory_pb2.Memory:
    return memory_pb2.Memory(id=content, content=content, type=2, state=1)


def echo(requests: Iterator[Any], _: grpc.ServicerContext) -> Iterator[pb.StoreManyResponse]:
    """Stores each item but those that say "bad"."""
    for index, request in enumerate(requests):
        if request.memory.content == "bad":
            error = pb.ItemError(
                code=3, reason="INVALID_ARGUMENT", message="memory.content: is bad", field="memory.content"
            )
            yield pb.StoreManyResponse(index=index, error=error)
        else:
            stored = pb.StoreResponse(memory=memory(request.memory.content), revision=index)
            yield pb.StoreManyResponse(index=index, stored=stored)


def named(outcomes: Any) -> list[str]:
    return [o.memory.content if isinstance(o, StoreAnswer) else o.reason for o in outcomes]


def test_items_are_answered_in_order_and_a_bad_one_does_not_spoil_the_rest(server: Any, client: Any) -> None:
    server.on("StoreMany", echo)
    naive = Item("naive", event_at=datetime(2026, 1, 1))
    outcomes = list(client.store_many(["a", "bad", naive, Item("b", type="episodic"), naive]))
    assert named(outcomes) == ["a", "INVALID_ARGUMENT", "INVALID_ARGUMENT", "b", "INVALID_ARGUMENT"]
    assert isinstance(outcomes[1], InvalidArgumentError)
    assert outcomes[1].violations[0].field == "memory.content"
    assert "time zone" in str(outcomes[2])


def test_nothing_to_store_is_no_error(server: Any, client: Any) -> None:
    server.on("StoreMany", echo)
    assert list(client.store_many([])) == []


def test_a_few_thousand_items_pass(server: Any, client: Any) -> None:
    server.on("StoreMany", echo)
    names = [str(i) for i in range(3000)]
    assert named(client.store_many(iter(names), window=16)) == names


def test_an_iterator_that_fails_is_told_after_the_answers(server: Any, client: Any) -> None:
    server.on("StoreMany", echo)

    def items() -> Iterator[str]:
        yield "a"
        yield "b"
        raise RuntimeError("the file ended")

    seen: list[Any] = []
    with pytest.raises(RuntimeError, match="the file ended"):
        seen.extend(client.store_many(items()))


def test_answers_before_a_failing_iterator_are_seen(server: Any, socket: Path) -> None:
    server.on("StoreMany", echo)

    def items() -> Iterator[str]:
        yield "a"
        raise RuntimeError("the file ended")

    with Client(socket) as client:
        outcomes = client.store_many(items())
        assert named([next(outcomes)]) == ["a"]
        with pytest.raises(RuntimeError):
            next(outcomes)


def test_no_more_items_are_taken_than_the_window_allows(server: Any, socket: Path) -> None:
    release = threading.Event()

    def slow(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[pb.StoreManyResponse]:
        answers = echo(requests, context)
        yield next(answers)
        release.wait(10)
        yield from answers

    server.on("StoreMany", slow)
    taken = []

    def items() -> Iterator[str]:
        for i in range(100):
            taken.append(i)
            yield str(i)

    with Client(socket) as client:
        outcomes = client.store_many(items(), window=8)
        next(outcomes)
        time.sleep(0.2)
        assert len(taken) <= 10  # 8 under way, one answered, one held back
        release.set()
        assert len(list(outcomes)) == 99


def test_leaving_early_ends_the_stream(server: Any, socket: Path) -> None:
    ended = threading.Event()

    def script(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[pb.StoreManyResponse]:
        context.add_callback(ended.set)
        yield from echo(requests, context)

    server.on("StoreMany", script)

    def endless() -> Iterator[str]:
        while True:
            yield "x"

    with Client(socket) as client:
        for _ in client.store_many(endless(), window=4):
            break
        assert ended.wait(5)


def test_a_stream_that_breaks_is_an_error_of_its_class(server: Any, client: Any) -> None:
    def script(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[pb.StoreManyResponse]:
        yield next(echo(requests, context))
        refuse(context, grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN", "bye")

    server.on("StoreMany", script)
    with pytest.raises(ShuttingDownError):
        list(client.store_many(["a", "b"]))


def test_a_stream_that_ends_too_soon_is_noticed(server: Any, client: Any) -> None:
    server.on("StoreMany", lambda requests, context: iter([next(echo(requests, context))]))
    with pytest.raises(MemxdError, match="before it had answered every item"):
        list(client.store_many(["a", "b", "c"]))


def test_the_same_items_carry_the_same_request_ids(server: Any, client: Any) -> None:
    ids: list[str] = []

    def script(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[pb.StoreManyResponse]:
        for request in requests:
            ids.append(request.request_id)
            yield next(echo(iter([request]), context))

    server.on("StoreMany", script)
    items = [Item("a"), Item("b", agent_id="other")]
    list(client.store_many(items))
    list(client.store_many(items))
    assert ids[:2] == ids[2:]
    assert ids[0] != ids[1]


def test_a_list_is_read_page_after_page(server: Any, client: Any) -> None:
    def script(request: Any, _: grpc.ServicerContext) -> pb.ListResponse:
        start = int(request.page_token or 0)
        page = [memory(str(i)) for i in range(start, min(start + 2, 5))]
        return pb.ListResponse(memories=page, next_page_token=str(start + 2) if start + 2 < 5 else "")

    server.on("List", script)
    assert [m.content for m in client.iter_list(page_size=2)] == list("01234")
    assert [r.page_token for r in server.requests("List")] == ["", "2", "4"]


def test_progress_of_a_rebuild_is_streamed(server: Any, client: Any) -> None:
    def script(_: Any, __: grpc.ServicerContext) -> Iterator[admin_service_pb2.RebuildResponse]:
        yield admin_service_pb2.RebuildResponse(kind=1, done=1, total=2)
        yield admin_service_pb2.RebuildResponse(kind=1, done=2, total=2, finished=True, watermark=7)

    server.on("Rebuild", script)
    steps = list(client.rebuild("vector"))
    assert [(s.done, s.finished) for s in steps] == [(1, False), (2, True)]
    assert server.requests("Rebuild")[0].kind == 1


def test_a_refused_rebuild_raises(server: Any, client: Any) -> None:
    server.on("Rebuild", lambda r, c: refuse(c, grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED"))
    with pytest.raises(OverloadedError):
        list(client.rebuild())


def test_asynchronous_items_are_taken_too(server: Any, socket: Path) -> None:
    import asyncio
    from collections.abc import AsyncIterator

    from memxd.client import AsyncClient

    server.on("StoreMany", echo)

    async def items() -> AsyncIterator[str]:
        for name in "abc":
            await asyncio.sleep(0)
            yield name

    async def main() -> list[Any]:
        async with AsyncClient(socket) as client:
            return [outcome async for outcome in client.store_many(items())]

    assert named(asyncio.run(main())) == ["a", "b", "c"]


def test_many_calls_share_one_asyncio_client(server: Any, socket: Path) -> None:
    import asyncio

    from memxd.client import AsyncClient

    server.on("Count", lambda r, c: pb.CountResponse(count=3))

    async def main() -> list[int]:
        async with AsyncClient(socket) as client:
            return await asyncio.gather(*(client.count() for _ in range(50)))

    assert asyncio.run(main()) == [3] * 50


def test_threads_share_one_client(server: Any, socket: Path) -> None:
    server.on("Count", lambda r, c: pb.CountResponse(count=3))
    found: list[int] = []
    with Client(socket) as client:
        work: Callable[[], None] = lambda: found.extend(client.count() for _ in range(20))  # noqa: E731
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [3] * 160
