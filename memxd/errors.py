"""Every refusal memxd can give, as classes with a stable ``reason``.

Owns the classes, their reasons and whether a retry may help; those of a start are kept in ``start_errors.py``, the base
in ``error_base.py``, and all are found here. Knows nothing of gRPC or HTTP: one table in ``service/status.py`` maps a
class to a wire code, and ``client/`` maps a reason back to the class. Everybody raises these; nobody else's exception
reaches a user.
"""

from __future__ import annotations

from memxd.error_base import DOMAIN as DOMAIN
from memxd.error_base import FieldViolation as FieldViolation
from memxd.error_base import MemxdError as MemxdError
from memxd.start_errors import AlreadyRunningError as AlreadyRunningError
from memxd.start_errors import ConfigError as ConfigError
from memxd.start_errors import DatabaseDamagedError as DatabaseDamagedError
from memxd.start_errors import DataInUseError as DataInUseError
from memxd.start_errors import MigrationFailedError as MigrationFailedError
from memxd.start_errors import ModelFileError as ModelFileError
from memxd.start_errors import SchemaTooNewError as SchemaTooNewError
from memxd.start_errors import ServiceManagerError as ServiceManagerError
from memxd.start_errors import SocketPathError as SocketPathError
from memxd.start_errors import StartupError as StartupError

# -- the request itself -------------------------------------------------------------------------------------------


class InvalidArgumentError(MemxdError):
    """One or more fields break a rule of the contract. Carries at least one violation."""

    reason = "INVALID_ARGUMENT"

    def __init__(
        self,
        message: str,
        *,
        violations: tuple[FieldViolation, ...] = (),
        metadata: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message, metadata=metadata)
        self.violations = violations

    @classmethod
    def field(cls, field: str, description: str, **metadata: str) -> InvalidArgumentError:
        """The usual case: one field, one sentence."""
        return cls(
            f"{field}: {description}",
            violations=(FieldViolation(field, description),),
            metadata={"field": field, **metadata},
        )


class RequestIdReusedError(InvalidArgumentError):
    """A ``request_id`` came again with another body."""

    reason = "REQUEST_ID_REUSED"


class MemoryNotFoundError(MemxdError):
    """No memory of this id in this scope (it may exist in another one: nobody is told)."""

    reason = "MEMORY_NOT_FOUND"


class LinkNotFoundError(MemxdError):
    """No link of this id in this scope."""

    reason = "LINK_NOT_FOUND"


class DuplicateMemoryError(MemxdError):
    """An update would make this memory equal to another active one; ``metadata["id"]`` names it."""

    reason = "MEMORY_ALREADY_EXISTS"


class DuplicateLinkError(MemxdError):
    """The link exists already; ``metadata["id"]`` names it."""

    reason = "LINK_ALREADY_EXISTS"


class RevisionMismatchError(MemxdError):
    """``expected_revision`` is not the record's; ``metadata["revision"]`` is."""

    reason = "REVISION_MISMATCH"


class LinkCycleError(MemxdError):
    """A supersedes link would close a circle."""

    reason = "SUPERSEDES_CYCLE"


class StateConflictError(MemxdError):
    """The record's state does not allow this change (for example archiving a superseded memory)."""

    reason = "STATE_CONFLICT"


class ModelMismatchError(MemxdError):
    """A caller's vector is of another model or dimension than the daemon's."""

    reason = "MODEL_MISMATCH"


class UnauthenticatedError(MemxdError):
    """This daemon asks for a token, and none came, or one that is not known, has expired or was revoked."""

    reason = "UNAUTHENTICATED"


class PermissionDeniedError(MemxdError):
    """The token does not open this: another scope than its own (whether anything is there, nobody is told), or a call
    for operators, which needs an admin token.
    """

    reason = "PERMISSION_DENIED"


# -- the daemon's condition ---------------------------------------------------------------------------------------


class OverloadedError(MemxdError):
    """Too many calls at once. Retry after ``metadata["retry_after_ms"]``."""

    reason = "OVERLOADED"
    retryable = True


class StorageFullError(MemxdError):
    """The disk is full; nothing was stored, nothing acknowledged was lost."""

    reason = "STORAGE_FULL"
    retryable = True


class StorageReadOnlyError(MemxdError):
    """The data directory cannot be written."""

    reason = "STORAGE_READ_ONLY"


class StorageFailedError(MemxdError):
    """The disk or database reported an error; nothing was stored."""

    reason = "STORAGE_FAILED"
    retryable = True


class EmbedderUnavailableError(MemxdError):
    """The embedding model does not answer and this call cannot do without it."""

    reason = "EMBEDDER_UNAVAILABLE"
    retryable = True


class IndexUnavailableError(MemxdError):
    """No index that could answer is available."""

    reason = "INDEX_UNAVAILABLE"
    retryable = True


class NotReadyError(MemxdError):
    """The daemon has just started and is still opening its store and indexes."""

    reason = "NOT_READY"
    retryable = True


class ShuttingDownError(MemxdError):
    """The daemon is stopping."""

    reason = "SHUTTING_DOWN"
    retryable = True


class StreamIdleError(MemxdError):
    """No item came on the stream for so long that its place is given to others. Everything that came was answered."""

    reason = "STREAM_IDLE"


class DeadlineExceededError(MemxdError):
    """The caller's deadline passed before the work was done."""

    reason = "DEADLINE_EXCEEDED"
    retryable = True


class CancelledError(MemxdError):
    """The caller went away."""

    reason = "CANCELLED"


class InternalError(MemxdError):
    """A fault of memxd; ``metadata["log_id"]`` finds it in the log."""

    reason = "INTERNAL"


# -- on the client's side -----------------------------------------------------------------------------------------


class DaemonUnreachableError(MemxdError):
    """No daemon answers on the socket."""

    reason = "DAEMON_UNREACHABLE"
    retryable = True


# -- at start or at a restore, for the operator only --------------------------------------------------------------


class BackupInvalidError(MemxdError):
    """The folder is no backup of memxd, or it is not what its manifest says."""

    reason = "BACKUP_INVALID"


class StoreExistsError(MemxdError):
    """A restore would put a backup in the place of a store that is there; ``--move-aside`` keeps that beside."""

    reason = "STORE_EXISTS"


def _subclasses(cls: type[MemxdError]) -> list[type[MemxdError]]:
    return [cls, *(s for c in cls.__subclasses__() for s in _subclasses(c))]


#: Every class by its reason; the client's way back from the wire.
BY_REASON: dict[str, type[MemxdError]] = {c.__dict__["reason"]: c for c in _subclasses(MemxdError)[1:]}
