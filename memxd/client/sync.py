"""The blocking client.

Owns ``Client``: the verbs of the call tables carried out over one channel, with deadlines and safe retries. Agents,
the command line, the demo and the benchmarks call it. Thread-safe; one Client serves a whole process (fork before you
make one: gRPC channels do not survive a fork).
"""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

import grpc

from memxd.client import admin, links, memories, searches, streams, transfer
from memxd.client.access import Tls, find_access
from memxd.client.call import Bound, Call
from memxd.client.connection import DEFAULT_TIMEOUT, WINDOW, Settings
from memxd.client.failures import FailedCall, from_call
from memxd.client.memories import Item
from memxd.client.pouring import Pouring
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


def _verb(build: Callable[Concatenate[Bound, P], Call[T]]) -> Callable[Concatenate[Client, P], T]:
    """A method that makes the call of a table and carries it out."""

    @functools.wraps(build)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._link.run(build(self._bound, *args, **kwargs))

    return method


def _telling(build: Callable[Concatenate[Bound, P], Telling[T]]) -> Callable[Concatenate[Client, P], Iterator[T]]:
    """A method that yields what the daemon tells of something that takes long."""

    @functools.wraps(build)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return transfer.follow(self._link, build(self._bound, *args, **kwargs))

    return method


class _Link:
    """One channel and how calls go over it; shared by a client and its scoped views."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metadata = settings.access.metadata
        self.channel: grpc.Channel = settings.access.channel(grpc)
        self._methods: dict[str, Callable[..., Any]] = {}

    def run(self, call: Call[T]) -> T:
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
                return call.decode(send(call.request, timeout=attempts.remaining(), metadata=self.metadata))
            except grpc.RpcError as failed:
                error = self.error(failed, call.request.ByteSize())
            time.sleep(attempts.pause_after(error))

    def error(self, failed: grpc.RpcError, request_bytes: int = 0) -> MemxdError:
        return from_call(cast(FailedCall, failed), socket=self.settings.access.shown, request_bytes=request_bytes)


class Client:
    """memxd's client, bound to a scope.

    ``socket``: path of the daemon's socket (absent: by the rule of docs/SOCKET.md); or ``address``, such as
    ``tls://host:7077``, with its certificates ``tls``. ``token``: what a daemon that asks for one gets. Those that are
    absent are looked for in MEMX_ADDRESS, MEMX_TLS_CA, MEMX_TLS_CERT, MEMX_TLS_KEY, MEMX_TOKEN, MEMX_TOKEN_FILE;
    without ``agent_id`` and ``user_id`` a scope token means its own scope. ``agent_id`` and ``user_id``: whose
    memory it is; None = "default". ``timeout``: seconds for each call that names none. ``retry``: how failed calls are
    sent again; only reads, and writes with a request id (each write gets one by default), are.

    Raises subclasses of ``memxd.errors.MemxdError``; ``DaemonUnreachableError`` when nobody listens. Use it as a
    context manager or call ``close``.
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

    def close(self) -> None:
        """Close the channel; calls under way are cancelled. Twice is fine."""
        if self._owner:
            self._link.channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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

    def iter_list(
        self,
        *,
        filter: Filter | None = None,
        order: Order | str | None = None,
        page_size: int | None = None,
        as_of: When | None = None,
        include_superseded: bool = False,
        timeout: float | None = None,
    ) -> Iterator[Memory]:
        """Every memory of a list, page after page; arguments as in ``list``, ``timeout`` for each page."""
        token = ""
        while True:
            page = self.list(
                filter=filter,
                order=order,
                page_size=page_size,
                page_token=token,
                as_of=as_of,
                include_superseded=include_superseded,
                timeout=timeout,
            )
            yield from page.memories
            token = page.next_page_token
            if not token:
                return

    def store_many(
        self, items: Iterable[Item | str], *, window: int = WINDOW, timeout: float | None = None
    ) -> Iterator[StoreAnswer | MemxdError]:
        """Store many over one stream; yields for each item, in order, its answer or the error that refused it.

        ``items`` are read as answers come, at most ``window`` ahead, on another thread; each is sent as soon as it is
        there, several in one message when they are. Nothing is sent before the first ``next``. A broken stream raises;
        sending the same Items again cannot store one twice. ``timeout`` in seconds for the whole stream; None = no
        deadline.
        """
        ledger = streams.Ledger(self._bound)
        pouring = Pouring(ledger, items, window)
        send: grpc.StreamStreamMultiCallable[bytes, memory_service_pb2.StoreManyResponse]
        send = self._link.channel.stream_stream(
            streams.METHOD, response_deserializer=memory_service_pb2.StoreManyResponse.FromString
        )
        call = send(pouring.messages(), timeout=timeout, metadata=self._link.metadata)
        try:
            for response in call:
                pouring.answered(ledger.answers(response))
                yield from ledger.outcomes(response)
            yield from ledger.rest()
        except grpc.RpcError as failed:
            raise self._link.error(failed) from None
        finally:
            pouring.close()
            call.cancel()

    def rebuild(self, kind: IndexKind | str | None = None, *, timeout: float | None = None) -> Iterator[Progress]:
        """Build an index ("vector", "keyword", "columns"; absent: each) anew; yields progress. None = no deadline."""
        send = self._link.channel.unary_stream(
            admin.REBUILD,
            request_serializer=admin_service_pb2.RebuildRequest.SerializeToString,
            response_deserializer=admin_service_pb2.RebuildResponse.FromString,
        )
        call = send(admin.rebuild_request(kind), timeout=timeout, metadata=self._link.metadata)
        try:
            for message in call:
                yield admin.progress(message)
        except grpc.RpcError as failed:
            raise self._link.error(failed) from None
        finally:
            call.cancel()

    def wait_ready(self, timeout: float = DEFAULT_TIMEOUT, *, poll: float = 0.05) -> None:
        """Return as soon as the daemon is ready to serve; raises DaemonUnreachableError after ``timeout`` seconds."""
        patience = Attempts(Retry(attempts=1), timeout, repeatable=False)
        while True:
            left = patience.remaining()
            last: MemxdError = DaemonUnreachableError(f"the memxd daemon on {self.socket} is not ready yet")
            try:
                if self._link.run(admin.health(min(1.0, math.inf if left is None else left))):
                    return
            except MemxdError as error:
                last = error
            if left is not None and left <= poll:
                raise last
            time.sleep(poll)
