"""The one table from error class to gRPC status, and the google.rpc details of every refusal.

Owns ``CODES`` and the building of ``google.rpc.Status`` (ErrorInfo of domain "memxd", BadRequest, RetryInfo) and of
``ItemError``. Knows no RPC. Called by the interceptor, which ends a failed call with it, and by the servicers for
single items. A new error class needs a line here or a mapped base class; a test compares.

Everything is cut to a size that fits a trailer: gRPC drops answers whose trailing metadata pass 8 KiB.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import grpc
from google.protobuf import duration_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from memxd import errors
from memxd.errors import DOMAIN, MemxdError
from memxd.v1 import memory_service_pb2

#: The wire code of a class and of its subclasses without a line of their own.
CODES: Mapping[type[MemxdError], grpc.StatusCode] = {
    errors.MemxdError: grpc.StatusCode.INTERNAL,
    errors.InvalidArgumentError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.RequestIdReusedError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.MemoryNotFoundError: grpc.StatusCode.NOT_FOUND,
    errors.LinkNotFoundError: grpc.StatusCode.NOT_FOUND,
    errors.DuplicateMemoryError: grpc.StatusCode.ALREADY_EXISTS,
    errors.DuplicateLinkError: grpc.StatusCode.ALREADY_EXISTS,
    errors.RevisionMismatchError: grpc.StatusCode.ABORTED,
    errors.LinkCycleError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.StateConflictError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.ModelMismatchError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.UnauthenticatedError: grpc.StatusCode.UNAUTHENTICATED,
    errors.PermissionDeniedError: grpc.StatusCode.PERMISSION_DENIED,
    errors.OverloadedError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.StorageFullError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.StorageReadOnlyError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.StorageFailedError: grpc.StatusCode.UNAVAILABLE,
    errors.EmbedderUnavailableError: grpc.StatusCode.UNAVAILABLE,
    errors.IndexUnavailableError: grpc.StatusCode.UNAVAILABLE,
    errors.NotReadyError: grpc.StatusCode.UNAVAILABLE,
    errors.ShuttingDownError: grpc.StatusCode.UNAVAILABLE,
    errors.StreamIdleError: grpc.StatusCode.ABORTED,
    errors.BackupInvalidError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.StoreExistsError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.DaemonUnreachableError: grpc.StatusCode.UNAVAILABLE,
    errors.DeadlineExceededError: grpc.StatusCode.DEADLINE_EXCEEDED,
    errors.CancelledError: grpc.StatusCode.CANCELLED,
    errors.InternalError: grpc.StatusCode.INTERNAL,
    errors.StartupError: grpc.StatusCode.INTERNAL,
}

_NUMBERS: Mapping[grpc.StatusCode, int] = {code: code_pb2.Code.Value(code.name) for code in grpc.StatusCode}

#: Bytes of UTF-8. The message travels twice, percent-encoded (up to 3 for 1) and in base64 (4 for 3).
_MESSAGE_BYTES = 600
_TEXT_BYTES = 160
_VIOLATIONS = 4
_METADATA = 6


def code_of(error: MemxdError) -> grpc.StatusCode:
    """The wire code of an error, by the nearest class that the table names."""
    return next(CODES[cls] for cls in type(error).__mro__ if cls in CODES)


def status_of(error: MemxdError) -> status_pb2.Status:
    """The google.rpc.Status of an error with all its details."""
    status = status_pb2.Status(code=_NUMBERS[code_of(error)], message=_cut(error.message, _MESSAGE_BYTES))
    status.details.add().Pack(
        error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=_metadata(error))
    )
    if error.violations:
        bad = error_details_pb2.BadRequest()
        for violation in error.violations[:_VIOLATIONS]:
            bad.field_violations.add(
                field=_cut(violation.field, _TEXT_BYTES), description=_cut(violation.description, _TEXT_BYTES)
            )
        status.details.add().Pack(bad)
    retry_after = error.metadata.get("retry_after_ms", "")
    if retry_after.isdecimal():
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(int(retry_after))
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    return status


def answer_of(error: MemxdError) -> grpc.Status:
    """What ends a call with this error, in gRPC's own shape; may be used for many calls."""
    answer: grpc.Status = rpc_status.to_status(status_of(error))
    return answer


def abort(context: grpc.ServicerContext, error: MemxdError, trailing: tuple[tuple[str, str], ...] = ()) -> NoReturn:
    """End the call with this error, by the bare Exception gRPC wants: call it outside of any ``except Exception``.

    ``trailing``: metadata that goes along.
    """
    answer: Any = answer_of(error)
    context.abort_with_status(answer._replace(trailing_metadata=(*answer.trailing_metadata, *trailing)))
    raise AssertionError("abort_with_status returned")  # for the type checker; it always raises


def fill_item_error(message: memory_service_pb2.ItemError, error: MemxdError) -> None:
    """Write why one item was refused: the same facts as a failed call's status."""
    message.code = _NUMBERS[code_of(error)]
    message.reason = error.reason
    message.message = _cut(error.message, _MESSAGE_BYTES)
    message.field = _cut(error.violations[0].field, _TEXT_BYTES) if error.violations else ""
    message.retryable = error.retryable
    message.metadata.update(_metadata(error))


def _metadata(error: MemxdError) -> dict[str, str]:
    return {key: _cut(value, _TEXT_BYTES) for key, value in list(error.metadata.items())[:_METADATA]}


def _cut(text: str, size: int) -> str:
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= size else raw[: size - 3].decode("utf-8", "ignore") + "..."
