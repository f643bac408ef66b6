"""One running call: reading its request, keeping its permit, error mapping.

Owns what happens around a behaviour on the thread that runs it. A caller may keep a call waiting for ever, by sending
no request or by reading no answer: the pool is told when that is so (``Visit``). Nobody's exception text reaches a
client: a MemxdError becomes its status, anything else INTERNAL with a log id. What is counted and logged of a call is
``calls.py``'s. ``interceptors.py`` wraps every handler with a ``Wrap``.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from memxd.errors import CancelledError, InternalError, InvalidArgumentError, MemxdError
from memxd.model import Deadline
from memxd.service import status
from memxd.service.calls import REQUEST_ID, CallLog, Ended, running
from memxd.service.guard import Guard
from memxd.service.pool import Pool
from memxd.service.visits import Visit

log = logging.getLogger("memxd.rpc")

#: gRPC gives calls without a deadline one in the far future.
_NEVER_SECONDS = 10 * 365 * 86_400.0


class Undecodable:
    """Stands in for request bytes that are no message of the expected type."""


def tolerant(deserializer: Callable[[bytes], Any] | None) -> Callable[[bytes], Any]:
    """Without this, gRPC answers bytes that do not decode with INTERNAL and no details."""

    def decode(raw: bytes) -> Any:
        try:
            return raw if deserializer is None else deserializer(raw)
        except DecodeError:
            return Undecodable()

    return decode


def undecodable() -> InvalidArgumentError:
    """The refusal of request bytes that are no message of the expected type."""
    return InvalidArgumentError("the request is not a valid message of this RPC's type; compare with proto/memxd/v1")


class Call:
    """One running call: measures, maps whatever is raised, has it counted and logged. A context manager.

    ``came`` is told of the request. After it, ``error`` is what to end the call with, or None; ``id`` is the call's,
    for the log and the caller.
    """

    def __init__(self, name: str, calls: CallLog, context: grpc.ServicerContext) -> None:
        self.id = calls.request_id(context)
        self._calls = calls
        self._ended = Ended(self.id, name, None)
        self._began = time.monotonic()
        context.set_trailing_metadata(((REQUEST_ID, self.id),))

    @property
    def error(self) -> MemxdError | None:
        """What to end the call with."""
        return self._ended.error

    def __enter__(self) -> Call:
        running(self._ended)
        return self

    def came(self, request: Any) -> Any:
        """Told of the request; hands it through."""
        self._ended.request = request
        return request

    def only(self, answer: Any) -> Any:
        """Told of the one answer; hands it through."""
        self._ended.answer = answer
        return answer

    def one_of_many(self, answer: Any) -> None:
        """Told of each answer of a stream."""
        if log.isEnabledFor(logging.DEBUG):
            self._ended.sent += answer.ByteSize()

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> bool:
        running(None)
        ended = self._ended
        if isinstance(raised, MemxdError):
            ended.error = raised
        elif isinstance(raised, grpc.RpcError):
            ended.error = CancelledError("the caller went away")
        elif isinstance(raised, Exception):
            ended.error = self._internal(raised)
        ended.cancelled = isinstance(raised, GeneratorExit)
        ended.seconds = time.monotonic() - self._began
        self._calls.ended(ended)
        return ended.error is not None

    def _internal(self, raised: Exception) -> InternalError:
        """Frames and types only: the text of an exception may quote what was to be stored."""
        where = "".join(traceback.format_tb(raised.__traceback__))
        kind = type(raised).__name__
        fields = {"log_id": self.id, "rpc": self._ended.method, "type": kind, "traceback": where}
        log.error("internal error", extra={"fields": fields})
        return InternalError(
            f"internal error, log id {self.id}; the daemon's log has the details", metadata={"log_id": self.id}
        )

    def abort(self, context: grpc.ServicerContext) -> Any:
        """End the call with its error; raises, as gRPC's abort does."""
        return status.abort(context, self.error or InternalError("internal error"), ((REQUEST_ID, self.id),))


class Wrap:
    """What surrounds the behaviours of one of our methods, each as one that takes a stream: so it is ours to wait for
    the request. One for each method of a server."""

    def __init__(self, method: str, pool: Pool, guard: Guard, calls: CallLog) -> None:
        self._method, self._name = method, method.rpartition("/")[2]
        self._pool, self._guard, self._calls = pool, guard, calls

    def unary(self, behavior: Callable[..., Any]) -> Callable[..., Any]:
        """Around a behaviour of one request and one answer."""

        def run(requests: Iterator[Any], context: grpc.ServicerContext) -> Any:
            with self._pool.visit(context.cancel) as visit:
                call = Call(self._name, self._calls, context)
                with call:
                    request = call.came(_first(requests, visit))
                    if self._guard.asks:
                        self._guard.admit(self._method, context.invocation_metadata()).confine(request)
                    return call.only(behavior(request, context))
            return call.abort(context)

        return run

    def stream(self, behavior: Callable[..., Any], *, many_requests: bool) -> Callable[..., Any]:
        """Around a behaviour that answers with a stream, to one request or to many."""

        def run(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
            with self._pool.visit(context.cancel) as visit:
                call = Call(self._name, self._calls, context)
                with call:
                    if many_requests:
                        visit.working()  # what comes, and when, is ``arrivals.py``'s to watch
                        request: Any = requests
                    else:
                        request = call.came(_first(requests, visit))
                    answers = self._admitted(behavior, request, context, many_requests=many_requests)
                    yield from visit.told(answers, call.one_of_many)
                if call.error is not None:
                    call.abort(context)

        return run

    def _admitted(
        self, behavior: Callable[..., Any], request: Any, context: grpc.ServicerContext, *, many_requests: bool
    ) -> Iterable[Any]:
        """The answers of a streaming behaviour, within what the call's token opens, for as long as it does."""
        if not self._guard.asks:
            return behavior(request, context)  # type: ignore[no-any-return]
        permit = self._guard.admit(self._method, context.invocation_metadata())
        if many_requests:
            request = permit.incoming(request, Undecodable)
        else:
            permit.confine(request)
        return permit.outgoing(behavior(request, context))


def wrap_foreign(handler_behavior: Callable[..., Any], pool: Pool, *, streams: tuple[bool, bool]) -> Callable[..., Any]:
    """A behaviour that is not ours (health, reflection), as one that takes a stream; ``streams``: whether requests and
    answers are. Left alone but for the waiting."""
    many_requests, many_answers = streams

    def request(requests: Iterator[Any], visit: Visit, context: grpc.ServicerContext) -> Any:
        if many_requests:
            return visit.awaited(requests)
        found = next(requests, None)
        visit.working()
        if found is None:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the call ended without a request message")
        return found

    def run_unary(requests: Iterator[Any], context: grpc.ServicerContext) -> Any:
        with pool.visit(context.cancel) as visit:
            return handler_behavior(request(requests, visit, context), context)

    def run_stream(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        with pool.visit(context.cancel) as visit:
            yield from visit.told(handler_behavior(request(requests, visit, context), context))

    return run_stream if many_answers else run_unary


def _first(requests: Iterator[Any], visit: Visit) -> Any:
    """The one request of a call; the thread waits for it. Raises InvalidArgumentError when it is none."""
    request = next(requests, None)
    visit.working()
    if request is None:
        raise InvalidArgumentError("the call ended without a request message")
    if isinstance(request, Undecodable):
        raise undecodable()
    return request


def deadline_of(context: grpc.ServicerContext) -> Deadline:
    """The call's deadline and whether its caller is still there, in the engine's terms."""
    left = context.time_remaining()
    at = time.monotonic() + left if left is not None and left < _NEVER_SECONDS else None
    return Deadline(at=at, is_cancelled=lambda: not context.is_active())
