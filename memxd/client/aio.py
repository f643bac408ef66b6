"""The asyncio client.

Owns ``AsyncClient``: the same verbs as ``Client``, awaitable, over ``grpc.aio``. The channel belongs to the event loop
that makes the first call. Everything that is not waiting is shared with ``sync.py`` through the call tables.
"""

from __future__ import annotations

import asyncio
import functools
import math
import os
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from os import PathLike
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

import grpc
import grpc.aio

from memxd.client import admin, links, memories, searches, streams, transfer
from memxd.client.access import Tls, find_access
from memxd.client.call import Bound, Call
from memxd.client.connection import DEFAULT_TIMEOUT, WINDOW, Settings
from memxd.client.failures import FailedCall, from_call
from memxd.client.memories import Item
from memxd.client.pouring import poured
from memxd.client.retry import Attempts, Retry
from memxd.client.transfer import Telling
from memxd.client.values import When
from memxd.errors import DaemonUnreachableError, MemxdError
from memxd.model import (
    Filter,
    IndexKind,
    Memory,
    Order,
    Progress,
    StoreAnswer,
)
from memxd.v1 import admin_service_pb2, memory_service_pb2

P = ParamSpec("P")
T = TypeVar("T")


def _verb(build: Callable[Concatenate[Bound, P], Call[T]]) -> Callable[Concatenate[AsyncClient, P], Awaitable[T]]:
    """A method that makes the call of a table and carries it out."""

    @functools.wraps(build)
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._link.run(build(self._bound, *args, **kwargs))

    return method


def _telling(
    build: Callable[Concatenate[Bound, P], Telling[T]],
) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]:
    """A method that yields what the daemon tells of something that takes long."""

    @functools.wraps(build)
    def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        return transfer.follow_async(self._link, build(self._bound, *args, **kwargs))

    return method


class _Link:
    """One channel and how calls go over it; shared by a client and its scoped views."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metadata = settings.access.metadata
        self._channel: grpc.aio.Channel | None = None
        self._methods: dict[str, Callable[..., Any]] = {}

    @property
    def channel(self) -> grpc.aio.Channel:
        """Made on first use, because it binds itself to the running event loop."""
        if self._channel is None:
            self._channel = self.settings.access.channel(grpc.aio)
        return self._channel

    async def close(self) -> None:
        channel, self._channel = self._channel, None
        self._methods.clear()
        if channel is not None:
            await channel.close()

    async def run(self, call: Call[T]) -> T:
        send = self._methods.get(call.method)
        if send is None:
            send = self.channel.unary_unary(
                call.method,
                request_serializer=type(call.request).SerializeToString,
                response_deserializer=call.response.FromString,
            )
            self._methods[call.method] = send
        attempts = self.settings.attempts(call)
        while True:
            try:
                return call.decode(await send(call.request, timeout=attempts.remaining(), metadata=self.metadata))
            except grpc.RpcError as failed:
                error = self.error(failed, call.request.ByteSize())
            await asyncio.sleep(attempts.pause_after(error))

    def error(self, failed: grpc.RpcError, request_bytes: int = 0) -> MemxdError:
        return from_call(cast(FailedCall, failed), socket=self.settings.access.shown, request_bytes=request_bytes)


class AsyncClient:
    """memxd's client for asyncio, bound to a scope. Arguments, verbs and errors as in ``Client``; each call is awaited.

    Use it as an asynchronous context manager or await ``close``.
    """

    def __init__(
        self,
        socket: str | PathLike[str] | None = None,
        *,
        address: str | None = None,
        token: str | None = None,
        tls: Tls | None = None,
        agent_id: str | None = None,
        user_id: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        retry: Retry | None = None,
    ) -> None:
        access = find_access(socket, address, token, tls, os.environ)
        self._link = _Link(Settings(access, timeout, retry or Retry()))
        self._bound = Bound(agent_id, user_id)
        self._owner = True

    @property
    def socket(self) -> str:
        """The path (or address) it connects to."""
        return self._link.settings.access.shown

    def scope(self, *, agent_id: str | None = None, user_id: str | None = None) -> Self:
        """A view bound to another scope, on the same channel; a part that is None stays. Closing it closes nothing."""
        view = object.__new__(type(self))
        view._link, view._bound, view._owner = self._link, self._bound.override(agent_id, user_id), False
        return view

    async def close(self) -> None:
        """Close the channel; calls under way are cancelled. Twice is fine."""
        if self._owner:
            await self._link.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    store = _verb(memories.store)
    get = _verb(memories.get)
    update = _verb(memories.update)
    delete = _verb(memories.delete)
    delete_many = _verb(memories.delete_many)
    count = _verb(memories.count)
    search = _verb(searches.search)
    search_many = _verb(searches.search_many)
    create_link = _verb(links.create_link)
    delete_link = _verb(links.delete_link)
    list_links = _verb(links.list_links)
    traverse = _verb(links.traverse)
    status = _verb(admin.status)
    flush = _verb(admin.flush)
    backup = _telling(transfer.backup)
    verify = _telling(transfer.verify)
    compact = _telling(transfer.compact)
    export = _telling(transfer.export)
    import_lines = _telling(transfer.import_lines)
    list = _verb(memories.list_page)

    async def iter_list(
        self,
        *,
        filter: Filter | None = None,
        order: Order | str | None = None,
        page_size: int | None = None,
        as_of: When | None = None,
        include_superseded: bool = False,
        timeout: float | None = None,
    ) -> AsyncIterator[Memory]:
        """Every memory of a list, page after page; arguments as in ``list``, ``timeout`` for each page."""
        token = ""
        while True:
            page = await self.list(
                filter=filter,
                order=order,
                page_size=page_size,
                page_token=token,
                as_of=as_of,
                include_superseded=include_superseded,
                timeout=timeout,
            )
            for memory in page.memories:
                yield memory
            token = page.next_page_token
            if not token:
                return

    async def store_many(
        self,
        items: Iterable[Item | str] | AsyncIterable[Item | str],
        *,
        window: int = WINDOW,
        timeout: float | None = None,
    ) -> AsyncIterator[StoreAnswer | MemxdError]:
        """Store many over one stream; yields for each item, in order, its answer or the error that refused it.

        As ``Client.store_many``; ``items`` may be asynchronous and are read in a task of gRPC's, at most ``window``
        ahead of the answers. Several go in one message when they are a list or tuple.
        """
        ledger = streams.Ledger(self._bound)
        slots = asyncio.Semaphore(window)

        send: grpc.aio.StreamStreamMultiCallable[bytes, memory_service_pb2.StoreManyResponse]
        send = self._link.channel.stream_stream(
            streams.METHOD, response_deserializer=memory_service_pb2.StoreManyResponse.FromString
        )
        call = send(poured(ledger, items, slots), timeout=timeout, metadata=self._link.metadata)
        try:
            async for response in call:
                for _ in range(ledger.answers(response)):
                    slots.release()
                for outcome in ledger.outcomes(response):
                    yield outcome
            for outcome in ledger.rest():
                yield outcome
        except grpc.RpcError as failed:
            raise self._link.error(failed) from None
        finally:
            call.cancel()

    async def rebuild(
        self, kind: IndexKind | str | None = None, *, timeout: float | None = None
    ) -> AsyncIterator[Progress]:
        """Build an index ("vector", "keyword", "columns"; absent: each) anew; yields progress. None = no deadline."""
        send = self._link.channel.unary_stream(
            admin.REBUILD,
            request_serializer=admin_service_pb2.RebuildRequest.SerializeToString,
            response_deserializer=admin_service_pb2.RebuildResponse.FromString,
        )
        call = send(admin.rebuild_request(kind), timeout=timeout, metadata=self._link.metadata)
        try:
            async for message in call:
                yield admin.progress(message)
        except grpc.RpcError as failed:
            raise self._link.error(failed) from None
        finally:
            call.cancel()

    async def wait_ready(self, timeout: float = DEFAULT_TIMEOUT, *, poll: float = 0.05) -> None:
        """Return as soon as the daemon is ready to serve; raises DaemonUnreachableError after ``timeout`` seconds."""
        patience = Attempts(Retry(attempts=1), timeout, repeatable=False)
        while True:
            left = patience.remaining()
            last: MemxdError = DaemonUnreachableError(f"the memxd daemon on {self.socket} is not ready yet")
            try:
                if await self._link.run(admin.health(min(1.0, math.inf if left is None else left))):
                    return
            except MemxdError as error:
                last = error
            if left is not None and left <= poll:
                raise last
            await asyncio.sleep(poll)
