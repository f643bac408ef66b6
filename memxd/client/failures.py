"""Failed calls as the error classes of ``memxd.errors``.

Owns the way from a gRPC error to a class: by the stable reason in ``google.rpc.ErrorInfo`` when memxd refused, by the
status code when gRPC itself did (nobody listens, the deadline passed, a message was too large). Decides nothing about
retries (``retry.py``). Called by the sync and the asyncio client alike, for which reason it asks for a shape, not for
a class of grpc.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import grpc

from memxd.errors import (
    BY_REASON,
    DOMAIN,
    CancelledError,
    DaemonUnreachableError,
    DeadlineExceededError,
    FieldViolation,
    InvalidArgumentError,
    MemxdError,
    OverloadedError,
)
from memxd.model import Limits

_DETAILS = "grpc-status-details-bin"


class FailedCall(Protocol):
    """What ``grpc.RpcError`` of a call and ``grpc.aio.AioRpcError`` have in common."""

    def code(self) -> grpc.StatusCode: ...

    def details(self) -> str | None: ...

    def trailing_metadata(self) -> Iterable[tuple[str, str | bytes]] | None: ...


def build(
    reason: str,
    message: str,
    *,
    violations: Iterable[tuple[str, str]] = (),
    metadata: dict[str, str] | None = None,
    retryable: bool | None = None,
) -> MemxdError:
    """The error of a reason.

    A reason that this client does not know (the daemon is newer) gives a plain ``MemxdError`` that carries the reason
    on the instance. ``retryable`` overrides the class's.
    """
    fields = tuple(FieldViolation(field, description) for field, description in violations)
    cls = BY_REASON.get(reason, MemxdError)
    error: MemxdError
    if issubclass(cls, InvalidArgumentError):
        error = cls(message, violations=fields, metadata=metadata)
    else:
        error = cls(message, metadata=metadata)
        error.violations = fields
    if error.reason != reason:
        vars(error)["reason"] = reason
    if retryable is not None:
        vars(error)["retryable"] = retryable
    return error


def from_call(failed: FailedCall, *, socket: str, request_bytes: int = 0) -> MemxdError:
    """The error of a failed call.

    ``socket`` is where the daemon was expected, for the message. ``request_bytes`` tells a request that was too large
    from an answer that was.
    """
    return _refusal(failed) or _transport(failed, socket, request_bytes)


def _refusal(failed: FailedCall) -> MemxdError | None:
    """memxd's own refusal, or None when the status carries no ErrorInfo of ours."""
    packed = next((v for k, v in failed.trailing_metadata() or () if k == _DETAILS), None)
    if not isinstance(packed, bytes):
        return None
    # Only failures pay for these two imports (30 ms at start otherwise).
    from google.protobuf.message import DecodeError
    from google.rpc import error_details_pb2, status_pb2

    try:
        status = status_pb2.Status.FromString(packed)
        found: dict[str, Any] = {}
        for detail in status.details:
            for cls in (error_details_pb2.ErrorInfo, error_details_pb2.BadRequest, error_details_pb2.RetryInfo):
                if detail.Is(cls.DESCRIPTOR):
                    found[cls.__name__] = cls.FromString(detail.value)
    except DecodeError:
        return None  # not ours: the status code still tells
    info = found.get("ErrorInfo")
    if info is None or info.domain != DOMAIN:
        return None
    metadata = dict(info.metadata)
    retry = found.get("RetryInfo")
    if retry is not None:
        metadata.setdefault("retry_after_ms", str(retry.retry_delay.ToMilliseconds()))
    bad = found.get("BadRequest")
    violations = [(v.field, v.description) for v in bad.field_violations] if bad is not None else []
    unknown = info.reason not in BY_REASON
    return build(
        info.reason,
        status.message or failed.details() or info.reason,
        violations=violations,
        metadata=metadata,
        retryable=retry is not None if unknown else None,
    )


def _transport(failed: FailedCall, socket: str, request_bytes: int) -> MemxdError:
    """A failure that gRPC reports by itself."""
    code = failed.code()
    details = failed.details() or ""
    if code is grpc.StatusCode.UNAVAILABLE:
        what = "start one with `memxd serve`"
        if "://" in socket:
            what = "it does not run, or one of the two certificates is not what the other side believes"
        return DaemonUnreachableError(f"no memxd daemon answers on {socket}; {what}", metadata={"socket": socket})
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return DeadlineExceededError(
            "the deadline passed before the daemon answered; allow more time (timeout=, memx --timeout)"
        )
    if code is grpc.StatusCode.CANCELLED:
        return CancelledError("the call was cancelled")
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return _exhausted(details, request_bytes)
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return build("UNIMPLEMENTED", "the daemon does not know this call; it is older than this client: upgrade it")
    return build(code.name, f"the call failed with {code.name}; the daemon's log may tell more")


def _exhausted(details: str, request_bytes: int) -> MemxdError:
    limit = Limits.MESSAGE_BYTES
    if request_bytes > limit:
        return InvalidArgumentError(
            f"the request has {request_bytes:,} bytes, more than the limit of {limit:,}; send less at once",
            metadata={"limit": str(limit)},
        )
    if "larger than max" in details:  # gRPC's own words; nothing else tells this case from the next one
        return build("MESSAGE_TOO_LARGE", f"the answer is larger than {limit:,} bytes; ask for a smaller page or k")
    return OverloadedError("the daemon has too many calls at once; try again in a moment")
