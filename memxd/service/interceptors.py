"""What happens around every call: admission, decoding, deadline, error mapping, one log line.

Owns the wrapping of handlers. ``intercept_service`` runs on gRPC's one polling thread, so it only looks at counters;
the wrapped behaviour runs on the pool it is routed to. Nobody's exception text reaches a client: a MemxdError becomes
its status, anything else INTERNAL with a log id. What is counted and logged of a call is ``calls.py``'s. Health and
reflection are routed to threads of their own and otherwise left alone.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeAlias

import grpc
from google.protobuf.message import DecodeError

from memxd.errors import CancelledError, InternalError, InvalidArgumentError, MemxdError
from memxd.model import Deadline
from memxd.service import status
from memxd.service.calls import REQUEST_ID, CallLog, Ended, running
from memxd.service.gate import Gate
from memxd.service.pool import AtOnce, Pool

log = logging.getLogger("memxd.rpc")

_OURS = "/memxd.v1."
_HEALTH = "/grpc.health.v1."
#: Calls that may wait for disks and child processes.
_UPKEEP = frozenset({"Flush", "Rebuild", "Backup", "Verify", "Compact"})
#: gRPC gives calls without a deadline one in the far future.
_NEVER_SECONDS = 10 * 365 * 86_400.0

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class Undecodable:
    """Stands in for request bytes that are no message of the expected type."""


class Routed:
    """A behaviour that gRPC runs on a pool of our choice (it looks for these attributes on the callable)."""

    def __init__(self, behavior: Callable[..., Any], pool: Pool | AtOnce) -> None:
        self._behavior = behavior
        self.experimental_thread_pool = pool

    def __call__(self, *args: Any) -> Any:
        return self._behavior(*args)


class GateInterceptor(grpc.ServerInterceptor):
    """Routes, admits, refuses and wraps; one per server. Handlers are made once for each method and refusal."""

    def __init__(self, gate: Gate, calls: CallLog) -> None:
        self._gate = gate
        self._calls = calls
        self._known: dict[str, tuple[Handler, Pool]] = {}
        self._refusals: dict[tuple[str, Pool], Handler] = {}
        self._refused = 0
        self._quiet_until = 0.0

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Handler | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """The handler to run for this call; None (no such method) stays gRPC's to answer."""
        method = handler_call_details.method
        known = self._known.get(method)
        if known is None:
            found = continuation(handler_call_details)
            if found is None:
                return None
            known = self._known[method] = self._prepared(found, method)
        handler, pool = known
        try:
            if method.startswith(_OURS):
                self._gate.check(pool)
            elif pool.full:
                raise self._gate.overloaded(pool)
        except MemxdError as error:
            self._note_refusal(method.rpartition("/")[2], error)
            return self._refusal(error, pool)
        return handler

    def _prepared(self, handler: Handler, method: str) -> tuple[Handler, Pool]:
        """The handler as it is to run, and whose threads carry the call."""
        gate, name = self._gate, method.rpartition("/")[2]
        streaming = handler.request_streaming or handler.response_streaming
        if method.startswith(_OURS):
            pool = gate.upkeep if name in _UPKEEP else gate.streams if streaming else gate.calls
            return _wrapped(handler, name, pool, self._calls), pool
        pool = gate.reflection
        if method.startswith(_HEALTH):
            pool = gate.watches if handler.response_streaming else gate.swift
        return _rebuilt(handler, lambda behavior: Routed(behavior, pool)), pool

    def _note_refusal(self, name: str, error: MemxdError) -> None:
        """At most one warning a second, however many calls are refused. Only the polling thread comes here."""
        self._refused += 1
        self._calls.count(name, status.code_of(error).name)
        now = time.monotonic()
        if now < self._quiet_until:
            return
        fields = {"rpc": name, "reason": error.reason, "calls": self._refused}
        log.warning("calls refused", extra={"fields": fields})
        self._refused, self._quiet_until = 0, now + 1.0

    def _refusal(self, error: MemxdError, pool: Pool) -> Handler:
        """A handler that refuses at once: declared as a stream, it does not wait for the request message either."""
        known = self._refusals.get((error.reason, pool))
        if known is None:
            answer = status.answer_of(error)

            def refuse(_: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
                context.abort_with_status(answer)
                raise AssertionError("abort_with_status returned")  # for the type checker; it always raises

            known = grpc.stream_stream_rpc_method_handler(Routed(refuse, self._gate.at_once))
            self._refusals[error.reason, pool] = known
        return known


def _wrapped(handler: Handler, name: str, pool: Pool, calls: CallLog) -> Handler:
    wrap = _wrap_stream if handler.response_streaming else _wrap_unary
    return _rebuilt(
        handler, lambda behavior: Routed(wrap(behavior, name, calls), pool), _tolerant(handler.request_deserializer)
    )


def _rebuilt(
    handler: Handler,
    change: Callable[[Callable[..., Any]], Callable[..., Any]],
    deserializer: Callable[[bytes], Any] | None = None,
) -> Handler:
    """The same handler with another behaviour."""
    kind = ("stream" if handler.request_streaming else "unary") + (
        "_stream" if handler.response_streaming else "_unary"
    )
    make = getattr(grpc, f"{kind}_rpc_method_handler")
    rebuilt: Handler = make(
        change(getattr(handler, kind)),
        request_deserializer=deserializer or handler.request_deserializer,
        response_serializer=handler.response_serializer,
    )
    return rebuilt


def _tolerant(deserializer: Callable[[bytes], Any] | None) -> Callable[[bytes], Any]:
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

    After it, ``error`` is what to end the call with, or None; ``id`` is the call's, for the log and the caller.
    """

    def __init__(self, name: str, request: Any, calls: CallLog, context: grpc.ServicerContext) -> None:
        self.id = calls.request_id(context)
        self._calls = calls
        self._ended = Ended(self.id, name, request)
        self._began = time.monotonic()
        context.set_trailing_metadata(((REQUEST_ID, self.id),))

    @property
    def error(self) -> MemxdError | None:
        """What to end the call with."""
        return self._ended.error

    def __enter__(self) -> Call:
        running(self._ended)
        return self

    def sent(self, answer: Any) -> Any:
        """Told of each answer; hands it through."""
        if log.isEnabledFor(logging.INFO):
            self._ended.sent += answer.ByteSize()
        return answer

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


def _wrap_unary(behavior: Callable[..., Any], name: str, calls: CallLog) -> Callable[..., Any]:
    def run(request: Any, context: grpc.ServicerContext) -> Any:
        call = Call(name, request, calls, context)
        with call:
            if isinstance(request, Undecodable):
                raise undecodable()
            return call.sent(behavior(request, context))
        return status.abort(context, call.error or InternalError("internal error"), ((REQUEST_ID, call.id),))

    return run


def _wrap_stream(behavior: Callable[..., Any], name: str, calls: CallLog) -> Callable[..., Any]:
    def run(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        call = Call(name, request, calls, context)
        with call:
            if isinstance(request, Undecodable):
                raise undecodable()
            for answer in behavior(request, context):
                yield call.sent(answer)
        if call.error is not None:
            status.abort(context, call.error, ((REQUEST_ID, call.id),))

    return run


def deadline_of(context: grpc.ServicerContext) -> Deadline:
    """The call's deadline and whether its caller is still there, in the engine's terms."""
    left = context.time_remaining()
    at = time.monotonic() + left if left is not None and left < _NEVER_SECONDS else None
    return Deadline(at=at, is_cancelled=lambda: not context.is_active())
