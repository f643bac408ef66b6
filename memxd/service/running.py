"""One running call: reading its request, keeping its permit, error mapping, one log line.

Owns what happens around a behaviour on the thread that runs it. A caller may keep a call waiting for ever, by sending
no request or by reading no answer: the pool is told when that is so (``Visit``). Nobody's exception text reaches a
client: a MemxdError becomes its status, anything else INTERNAL with a log id. Log lines name RPC, code, duration and a
hash of the scope, never content. ``interceptors.py`` wraps every handler with ``wrap_unary`` or ``wrap_stream``.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
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
from memxd.service.guard import Guard
from memxd.service.pool import Pool
from memxd.service.visits import Visit

log = logging.getLogger("memxd.rpc")

#: Calls longer than this are logged at info even when they succeed.
_SLOW_SECONDS = 1.0
#: Refusals that say nothing about the daemon; a careless client must not fill the log with them.
_CALLERS_FAULT = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
    }
)
#: Keys the scope hashes of this process: lines can be compared with each other, not with guesses.
_SALT = secrets.token_bytes(16)
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
    """One running call: measures, maps whatever is raised, writes the log line. A context manager around the work.

    ``request`` is there once it has come. After it, ``error`` is what to end the call with, or None.
    """

    def __init__(self, name: str) -> None:
        self.error: MemxdError | None = None
        self.request: Any = None
        self._name = name
        self._began = time.monotonic()

    def __enter__(self) -> Call:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(raised, MemxdError):
            self.error = raised
        elif isinstance(raised, grpc.RpcError):
            self.error = CancelledError("the caller went away")
        elif isinstance(raised, Exception):
            self.error = self._internal(raised)
        self._log(cancelled=isinstance(raised, GeneratorExit))
        return self.error is not None

    def _internal(self, raised: Exception) -> InternalError:
        """Frames and types only: the text of an exception may quote what was to be stored."""
        log_id = secrets.token_hex(6)
        where = "".join(traceback.format_tb(raised.__traceback__))
        log.error(
            "internal error",
            extra={"fields": {"log_id": log_id, "rpc": self._name, "type": type(raised).__name__, "traceback": where}},
        )
        return InternalError(
            f"internal error, log id {log_id}; the daemon's log has the details", metadata={"log_id": log_id}
        )

    def _log(self, *, cancelled: bool) -> None:
        seconds = time.monotonic() - self._began
        ours = self.error is not None and status.code_of(self.error) not in _CALLERS_FAULT
        level = logging.INFO if ours or seconds > _SLOW_SECONDS else logging.DEBUG
        if not log.isEnabledFor(level):
            return
        code = "CANCELLED" if cancelled else status.code_of(self.error).name if self.error else "OK"
        fields = {"rpc": self._name, "code": code, "ms": round(seconds * 1e3, 2), "scope": _scope_hash(self.request)}
        if self.error is not None:
            fields["reason"] = self.error.reason
        log.log(level, "call", extra={"fields": fields})


def wrap_unary(behavior: Callable[..., Any], method: str, pool: Pool, guard: Guard) -> Callable[..., Any]:
    """A behaviour of one request and one answer, as one that takes a stream: so it is ours to wait for the request."""
    name = method.rpartition("/")[2]

    def run(requests: Iterator[Any], context: grpc.ServicerContext) -> Any:
        with pool.visit(context.cancel) as visit:
            call = Call(name)
            with call:
                call.request = request = _first(requests, visit)
                if guard.asks:
                    guard.admit(method, context.invocation_metadata()).confine(request)
                return behavior(request, context)
        return status.abort(context, call.error or InternalError("internal error"))

    return run


def wrap_stream(
    behavior: Callable[..., Any], method: str, pool: Pool, guard: Guard, *, many_requests: bool
) -> Callable[..., Any]:
    """A behaviour that answers with a stream, to one request or to many, as one that takes a stream."""
    name = method.rpartition("/")[2]

    def run(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        with pool.visit(context.cancel) as visit:
            call = Call(name)
            with call:
                request: Any = requests
                if many_requests:
                    visit.working()  # what comes, and when, is ``arrivals.py``'s to watch
                else:
                    call.request = request = _first(requests, visit)
                answers = _admitted(behavior, method, guard, request, context, many_requests=many_requests)
                yield from visit.told(answers)
            if call.error is not None:
                status.abort(context, call.error)

    return run


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


def _admitted(
    behavior: Callable[..., Any],
    method: str,
    guard: Guard,
    request: Any,
    context: grpc.ServicerContext,
    *,
    many_requests: bool,
) -> Iterable[Any]:
    """The answers of a streaming behaviour, within what the call's token opens, for as long as it does."""
    if not guard.asks:
        return behavior(request, context)  # type: ignore[no-any-return]
    permit = guard.admit(method, context.invocation_metadata())
    if many_requests:
        request = permit.incoming(request, Undecodable)
    else:
        permit.confine(request)
    return permit.outgoing(behavior(request, context))


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


def _scope_hash(request: Any) -> str:
    scope = getattr(request, "scope", None)
    if scope is None:
        return ""
    key = f"{scope.agent_id}\0{scope.user_id}".encode()
    return hashlib.blake2b(key, key=_SALT, digest_size=4).hexdigest()
