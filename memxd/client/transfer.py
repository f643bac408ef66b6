"""The streams that move memories: backup.

Owns the requests and the reading of what the daemon tells, and how such a stream is carried over a channel, for both
clients. ``sync.py`` and ``aio.py`` have the methods.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Any, Generic, Protocol, TypeVar

import grpc

from memxd.client import values
from memxd.client.call import ADMIN_SERVICE
from memxd.errors import MemxdError
from memxd.model import BackupStep
from memxd.v1 import admin_service_pb2 as admin_pb

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Telling(Generic[T]):
    """A call that answers with a stream: where it goes, what is sent, and what is made of each answer."""

    method: str
    request: Any
    response: Any
    decode: Callable[[Any], T]


class Link(Protocol):
    """A client's channel, and what its failures mean."""

    @property
    def channel(self) -> Any: ...
    def error(self, failed: grpc.RpcError) -> MemxdError: ...


def follow(link: Link, telling: Telling[T], timeout: float | None) -> Iterator[T]:
    """What the daemon tells, as it comes; leaving early cancels the call."""
    call = _begin(link, telling, timeout)
    try:
        for message in call:
            yield telling.decode(message)
    except grpc.RpcError as failed:
        raise link.error(failed) from None
    finally:
        call.cancel()


async def follow_async(link: Link, telling: Telling[T], timeout: float | None) -> AsyncIterator[T]:
    """As ``follow``, over grpc.aio."""
    call = _begin(link, telling, timeout)
    try:
        async for message in call:
            yield telling.decode(message)
    except grpc.RpcError as failed:
        raise link.error(failed) from None
    finally:
        call.cancel()


def _begin(link: Link, telling: Telling[Any], timeout: float | None) -> Any:
    send = link.channel.unary_stream(
        telling.method,
        request_serializer=type(telling.request).SerializeToString,
        response_deserializer=telling.response.FromString,
    )
    return send(telling.request, timeout=timeout)


def backup(directory: str | PathLike[str]) -> Telling[BackupStep]:
    """A copy of the store in ``directory``; a relative path is taken from this process's folder."""
    path = values.text("directory", os.path.abspath(os.fspath(directory)))
    return Telling(ADMIN_SERVICE + "Backup", admin_pb.BackupRequest(directory=path), admin_pb.BackupResponse, _step)


def _step(message: admin_pb.BackupResponse) -> BackupStep:
    return BackupStep(
        message.done,
        message.total,
        message.finished,
        message.revision,
        message.memories,
        message.links,
        message.sha256,
    )
