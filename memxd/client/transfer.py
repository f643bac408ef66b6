"""The streams that keep, check and move memories: backup, verify, compact, export, import.

Owns their Python signatures, the requests and the reading of what the daemon tells, and how such a stream is carried
over a channel, for both clients (``sync.py``, ``aio.py``), which take them from here.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Any, Generic, Protocol, TypeVar

import grpc

from memxd.client import admin, convert, values
from memxd.client.call import ADMIN_SERVICE, MEMORY_SERVICE, Bound
from memxd.errors import MemxdError
from memxd.model import BackupStep, Conflict, ExportStep, ImportStep, Limits, LineRefusal, Problem, Progress, VerifyStep
from memxd.v1 import admin_service_pb2 as admin_pb
from memxd.v1 import memory_service_pb2 as memory_pb

T = TypeVar("T")
#: Lines are sent together until they are so many bytes.
_BATCH_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Telling(Generic[T]):
    """A call that answers with a stream: where it goes, what is sent (a message, or an iterator of messages of type
    ``sent``), and what is made of each answer. ``failure`` is what the caller's own iterator raised, if it did."""

    method: str
    request: Any
    response: Any
    decode: Callable[[Any], T]
    timeout: float | None = None
    sent: Any = None
    failure: Callable[[], BaseException | None] = lambda: None


class Link(Protocol):
    """A client's channel, and what its failures mean."""

    @property
    def channel(self) -> Any: ...
    @property
    def metadata(self) -> tuple[tuple[str, str], ...]: ...
    def error(self, failed: grpc.RpcError) -> MemxdError: ...


def follow(link: Link, telling: Telling[T]) -> Iterator[T]:
    """What the daemon tells, as it comes; leaving early cancels the call."""
    call = _begin(link, telling)
    try:
        for message in call:
            yield telling.decode(message)
        _check(telling)
    except grpc.RpcError as failed:
        raise link.error(failed) from None
    finally:
        call.cancel()


async def follow_async(link: Link, telling: Telling[T]) -> AsyncIterator[T]:
    """As ``follow``, over grpc.aio."""
    call = _begin(link, telling)
    try:
        async for message in call:
            yield telling.decode(message)
        _check(telling)
    except grpc.RpcError as failed:
        raise link.error(failed) from None
    finally:
        call.cancel()


def _begin(link: Link, telling: Telling[Any]) -> Any:
    many = telling.sent is not None
    send = (link.channel.stream_stream if many else link.channel.unary_stream)(
        telling.method,
        request_serializer=(telling.sent if many else type(telling.request)).SerializeToString,
        response_deserializer=telling.response.FromString,
    )
    return send(telling.request, timeout=telling.timeout, metadata=link.metadata)


def _check(telling: Telling[Any]) -> None:
    """Raise what the caller's iterator raised, after everything before it was told of."""
    failure = telling.failure()
    if failure is not None:
        raise failure


def backup(bound: Bound, directory: str | PathLike[str], *, timeout: float | None = None) -> Telling[BackupStep]:
    """Copy everything into ``directory``, empty or to be made, on the daemon's machine; yields progress.

    A relative path is taken from this process's folder. ``timeout`` None = no deadline.
    """
    path = values.text("directory", os.path.abspath(os.fspath(directory)))
    request = admin_pb.BackupRequest(directory=path)
    return Telling(ADMIN_SERVICE + "Backup", request, admin_pb.BackupResponse, _step, timeout)


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


def verify(bound: Bound, *, timeout: float | None = None) -> Telling[VerifyStep]:
    """Look for what should not be; yields progress, the last step with what was found. None = no deadline."""
    return Telling(ADMIN_SERVICE + "Verify", admin_pb.VerifyRequest(), admin_pb.VerifyResponse, _verified, timeout)


def compact(bound: Bound, *, timeout: float | None = None) -> Telling[Progress]:
    """Write files anew without what was erased; yields progress, index by index. None = no deadline."""
    request = admin_pb.CompactRequest()
    return Telling(ADMIN_SERVICE + "Compact", request, admin_pb.CompactResponse, admin.progress, timeout)


def _verified(message: admin_pb.VerifyResponse) -> VerifyStep:
    problems = (
        Problem(p.part, p.message, convert.scope(p.scope) if p.HasField("scope") else None, p.id)
        for p in message.problems
    )
    return VerifyStep(message.done, message.total, message.finished, tuple(problems))


def export(
    bound: Bound, *, include_private: bool = False, vectors: bool = False, timeout: float | None = None
) -> Telling[ExportStep]:
    """The whole scope as lines (docs/FORMAT.md), part by part; private memories only on request."""
    request = memory_pb.ExportRequest(scope=bound.message(), include_private=include_private, vectors=vectors)
    return Telling(MEMORY_SERVICE + "Export", request, memory_pb.ExportResponse, _part, timeout)


def _part(message: memory_pb.ExportResponse) -> ExportStep:
    return ExportStep(message.lines, message.done, message.total, message.finished, message.private_left_out)


def import_lines(
    bound: Bound,
    lines: Iterable[bytes],
    *,
    on_conflict: Conflict | str | None = None,
    first_line: int = 1,
    timeout: float | None = None,
) -> Telling[ImportStep]:
    """Take over lines of an export into the scope; yields how far they are, with the lines that were refused.

    ``on_conflict`` ("refuse", "keep", "replace"): what to do with an id that is taken by something else. The same
    lines may come again, so after a break send them anew, or those after the last step's ``lines``.
    """
    failures: list[BaseException] = []
    head = memory_pb.ImportRequest(
        scope=bound.message(),
        on_conflict=values.number("on_conflict", Conflict, on_conflict),
        first_line=values.whole("first_line", first_line),
    )

    def messages() -> Iterator[memory_pb.ImportRequest]:
        yield head
        batch = bytearray()
        try:
            for line in lines:
                # Of one that is too long as much as the daemon needs to refuse it, in its place.
                batch += line.removesuffix(b"\n")[: Limits.LINE_BYTES + 1] + b"\n"
                if len(batch) >= _BATCH_BYTES:
                    yield memory_pb.ImportRequest(lines=bytes(batch))
                    batch.clear()
        except Exception as failure:  # told to the caller, on its own thread
            failures.append(failure)
        if batch:
            yield memory_pb.ImportRequest(lines=bytes(batch))

    return Telling(
        MEMORY_SERVICE + "Import",
        messages(),
        memory_pb.ImportResponse,
        _progress,
        timeout,
        memory_pb.ImportRequest,
        lambda: failures[0] if failures else None,
    )


def _progress(message: memory_pb.ImportResponse) -> ImportStep:
    return ImportStep(
        message.lines,
        message.added,
        message.unchanged,
        message.replaced,
        message.kept,
        message.refused,
        tuple(LineRefusal(r.line, r.kind, r.id, r.reason, r.message) for r in message.refusals),
        message.revision,
    )
