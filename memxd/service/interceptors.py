"""What happens before every call: who may call, admission, and whose threads carry it.

Owns the wrapping of handlers. ``intercept_service`` runs on gRPC's one polling thread, so it only looks at counters and
at a token; the wrapped behaviour (``running.py``) runs on the pool it is routed to. Every method passes here, also one
that is added one day: what the guard does not know, it opens to the admin token alone. Health and reflection are
routed to threads of their own and otherwise left alone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import grpc

from memxd.errors import MemxdError
from memxd.service import status
from memxd.service.ahead import Ahead
from memxd.service.calls import CallLog
from memxd.service.gate import Gate
from memxd.service.guard import Guard
from memxd.service.pool import AtOnce, Pool
from memxd.service.running import Wrap, tolerant, wrap_foreign

log = logging.getLogger("memxd.rpc")

_OURS = "/memxd.v1."
_HEALTH = "/grpc.health.v1."
#: Calls that only ask: imports step aside for them.
_ASKING = frozenset({"Search", "SearchMany", "Get", "List", "Count", "ListLinks", "Traverse"})
#: Calls that may wait for disks and child processes.
_UPKEEP = frozenset({"Flush", "Rebuild", "Backup", "Verify", "Compact"})

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class Routed:
    """A behaviour that gRPC runs on a pool of our choice (it looks for these attributes on the callable)."""

    def __init__(self, behavior: Callable[..., Any], pool: Pool | AtOnce | Ahead) -> None:
        self._behavior = behavior
        self.experimental_thread_pool = pool

    def __call__(self, *args: Any) -> Any:
        return self._behavior(*args)


class GateInterceptor(grpc.ServerInterceptor):
    """Admits, routes, refuses and wraps; one per server. Handlers are made once for each method and refusal."""

    def __init__(self, gate: Gate, guard: Guard, calls: CallLog) -> None:
        self._gate, self._guard, self._calls = gate, guard, calls
        self._known: dict[str, tuple[Handler, Pool]] = {}
        self._refusals: dict[tuple[str, str, Pool | None], Handler] = {}
        self._refused = 0
        self._quiet_until = 0.0

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Handler | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """The handler to run for this call; None (no such method) stays gRPC's to answer."""
        method = handler_call_details.method
        pool = None
        try:
            if self._guard.asks:  # before anything else, and before a byte of the request is waited for
                self._guard.admit(method, handler_call_details.invocation_metadata)
            known = self._known.get(method)
            if known is None:
                found = continuation(handler_call_details)
                if found is None:
                    return None
                known = self._known[method] = self._prepared(found, method)
            handler, pool = known
            if method.startswith(_OURS):
                self._gate.check(pool)
            elif not pool.takes():
                raise self._gate.overloaded(pool)
        except MemxdError as error:
            self._note_refusal(method.rpartition("/")[2], error)
            return self._refusal(error, pool)
        return handler

    def _prepared(self, handler: Handler, method: str) -> tuple[Handler, Pool]:
        """The handler as it is to run, and whose threads carry the call."""
        gate, name = self._gate, method.rpartition("/")[2]
        many_requests, many_answers = handler.request_streaming, handler.response_streaming
        behavior = getattr(handler, f"{_word(many_requests)}_{_word(many_answers)}")
        if method.startswith(_OURS):
            streaming = many_requests or many_answers
            pool = gate.upkeep if name in _UPKEEP else gate.streams if streaming else gate.calls
            wrap = Wrap(method, pool, self._guard, self._calls)
            run = wrap.stream(behavior, many_requests=many_requests) if many_answers else wrap.unary(behavior)
            routed = Routed(run, gate.asking if name in _ASKING else pool)
            return _rebuilt(handler, routed, tolerant(handler.request_deserializer)), pool
        pool = gate.reflection
        if method.startswith(_HEALTH):
            pool = gate.watches if many_answers else gate.swift
        run = wrap_foreign(behavior, pool, streams=(many_requests, many_answers))
        return _rebuilt(handler, Routed(run, pool), handler.request_deserializer), pool

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

    def _refusal(self, error: MemxdError, pool: Pool | None) -> Handler:
        """A handler that refuses at once: declared as a stream, it does not wait for the request message either."""
        known = self._refusals.get((error.reason, error.message, pool))
        if known is None:
            answer = status.answer_of(error)

            def refuse(_: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
                context.abort_with_status(answer)
                raise AssertionError("abort_with_status returned")  # for the type checker; it always raises

            known = grpc.stream_stream_rpc_method_handler(Routed(refuse, self._gate.at_once))
            self._refusals[error.reason, error.message, pool] = known
        return known


def _word(streaming: bool) -> str:
    return "stream" if streaming else "unary"


def _rebuilt(handler: Handler, behavior: Routed, deserializer: Callable[[bytes], Any] | None) -> Handler:
    """The same handler with another behaviour, which takes a stream whatever the method takes: for a single request
    gRPC would hold one of the pool's threads, for as long as it does not come, where nobody can interrupt it."""
    make = getattr(grpc, f"stream_{_word(handler.response_streaming)}_rpc_method_handler")
    rebuilt: Handler = make(
        behavior, request_deserializer=deserializer, response_serializer=handler.response_serializer
    )
    return rebuilt
