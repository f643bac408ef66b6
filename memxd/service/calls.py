"""What is known of calls afterwards: one log line each, counters by method and code, the last failure.

Owns request ids, the keyed hash that stands for a scope in the log, the threshold of slow calls and the counting. A
line names method, code, time and sizes, never what was stored or asked. ``interceptors.py`` begins and ends each call;
``admin_servicer.py`` reads the counters; ``daemon.py`` gives the key and the threshold.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import re
import secrets
import threading
from collections.abc import Callable
from typing import Any

import grpc

from memxd import logs
from memxd.errors import MemxdError
from memxd.model import CallCount
from memxd.service import status

log = logging.getLogger("memxd.rpc")

#: The metadata key of the caller's id for a call, and of the answer's.
REQUEST_ID = "x-request-id"
_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,64}")
#: Refusals that say nothing about the daemon; a careless client must not fill the log with them.
_CALLERS_FAULT = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
    }
)
#: Codes that say something is wrong with the daemon or its surroundings.
_FAILURES = frozenset(
    {
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.DATA_LOSS,
    }
)


class CallLog:
    """One per server. ``key``: hashes scopes, the data directory's own; ``slow_ms``: from so many milliseconds on a
    call is told at level info, 0 = none is."""

    def __init__(self, key: bytes = b"", slow_ms: float = 1_000.0) -> None:
        self._key = key or secrets.token_bytes(32)
        self.slow_ms = slow_ms
        self._prefix = secrets.token_hex(4)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, str], list[float]] = {}

    def request_id(self, context: grpc.ServicerContext) -> str:
        """The caller's ``x-request-id``, when it is up to 64 letters, digits and ``._:/+=-``, else one of our own."""
        for name, value in context.invocation_metadata():
            if name == REQUEST_ID and isinstance(value, str) and _ID.fullmatch(value):
                return value
        return self.new_id()

    def new_id(self) -> str:
        """An id that no other call has, of this process or another."""
        return f"{self._prefix}-{next(self._numbers):x}"

    def scope_hash(self, request: Any) -> str:
        """16 hex digits for the request's scope; empty for requests without one."""
        if "scope" not in getattr(type(request), "DESCRIPTOR", _NONE).fields_by_name:
            return ""
        scope = request.scope
        named = f"{scope.agent_id or 'default'}\0{scope.user_id or 'default'}".encode()
        return hashlib.blake2b(named, key=self._key, digest_size=8).hexdigest()

    def count(self, method: str, code: str, seconds: float = 0.0) -> None:
        """One more call that is over."""
        with self._lock:
            found = self._counts.get((method, code))
            if found is None:
                found = self._counts[method, code] = [0, 0.0]
            found[0] += 1
            found[1] += seconds

    def counts(self) -> tuple[CallCount, ...]:
        """Every method and code so far, in order of their names."""
        with self._lock:
            return tuple(CallCount(*key, int(n), seconds) for key, (n, seconds) in sorted(self._counts.items()))

    def ended(self, call: Ended) -> None:
        """Count a call and write its line: at debug; at info when it was slow or failed by no fault of its caller."""
        error = call.error
        code = status.code_of(error) if error is not None else None
        name = "CANCELLED" if call.cancelled else code.name if code is not None else "OK"
        self.count(call.method, name, call.seconds)
        ours = error is not None and code not in _CALLERS_FAULT
        if error is not None and code in _FAILURES:
            logs.remember(call.method, f"{error.reason} ({name}), call {call.id}")
        slow = 0 < self.slow_ms <= call.seconds * 1e3
        level = logging.INFO if ours or slow else logging.DEBUG
        if not log.isEnabledFor(level):
            return
        fields = {"id": call.id, "rpc": call.method, "scope": self.scope_hash(call.request), "code": name}
        size = call.sent or _size(call.answer)
        fields |= {"ms": round(call.seconds * 1e3, 2), "in": _size(call.request), "out": size} | call.facts()
        if error is not None:
            fields["reason"] = error.reason
        log.log(level, "slow call" if slow else "call", extra={"fields": fields})


class Ended:
    """A call that is over; what ``CallLog.ended`` is told.

    ``answer``: the one it had, or ``sent``, the bytes of those of a stream, counted at level debug only.
    """

    __slots__ = ("answer", "cancelled", "error", "facts", "id", "method", "request", "seconds", "sent")

    def __init__(self, id: str, method: str, request: Any) -> None:
        self.id, self.method, self.request = id, method, request
        self.error: MemxdError | None = None
        self.cancelled = False
        self.seconds = 0.0
        self.answer: Any = None
        self.sent = 0
        #: Numbers and names that belong on the line, if one is written: stages of a search, how many hits.
        self.facts: Callable[[], dict[str, Any]] = dict


class _None:
    fields_by_name: dict[str, Any] = {}  # noqa: RUF012


_NONE = _None()


def _size(message: Any) -> int:
    """Bytes of a message; 0 for a stream."""
    size = getattr(message, "ByteSize", None)
    return int(size()) if size is not None else 0


_running = threading.local()


def note(facts: Callable[[], dict[str, Any]]) -> None:
    """Facts for the line of the call that this thread is at: numbers and names, never content. Asked for only when the
    line is written."""
    call: Ended | None = getattr(_running, "call", None)
    if call is not None:
        call.facts = facts


def running(call: Ended | None) -> None:
    """This thread is at ``call``; None = at none."""
    _running.call = call
