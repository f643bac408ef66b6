"""Every refusal memxd can give, as classes with a stable ``reason``.

Owns the classes, their reasons and whether a retry may help. Knows nothing of gRPC or HTTP: one table in
``service/status.py`` maps a class to a wire code, and ``client.py`` maps a reason back to the class. Everybody
raises these; nobody else's exception reaches a user. Imports only the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

#: ``google.rpc.ErrorInfo.domain`` of every refusal.
DOMAIN = "memxd"


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One invalid field of a request. ``field`` is the path as the proto spells it, for example ``memory.content`` or
    ``filter.tags_any[3]``; ``description`` says what is wrong and names the limit.
    """

    field: str
    description: str


class MemxdError(Exception):
    """Base of every refusal.

    ``message`` is for people and says what to do next; it never holds stored text, another scope's data or a
    file-system path of the daemon (start-up errors excepted: they go to the operator only). ``metadata`` holds
    further facts as short strings.
    """

    reason: ClassVar[str] = "INTERNAL"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, metadata: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.metadata: dict[str, str] = dict(metadata or {})
        self.violations: tuple[FieldViolation, ...] = ()

    def __str__(self) -> str:
        return self.message


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


class StartupError(MemxdError):
    """The daemon cannot start. ``exit_code`` follows sysexits.h so that a service manager can tell causes apart."""

    reason = "STARTUP_FAILED"
    exit_code: ClassVar[int] = 70


class ConfigError(StartupError):
    """A setting is wrong; restarting does not help (EX_CONFIG)."""

    reason = "CONFIG_INVALID"
    exit_code = 78


class AlreadyRunningError(StartupError):
    """Another daemon holds the socket; ``metadata["pid"]`` names it (EX_TEMPFAIL)."""

    reason = "ALREADY_RUNNING"
    exit_code = 75


class DataInUseError(StartupError):
    """Another daemon, on another socket, holds the data directory; ``metadata["pid"]`` names it (EX_OSFILE)."""

    reason = "DATA_IN_USE"
    exit_code = 72


class SocketPathError(StartupError):
    """The socket path is too long, taken by something else, or open to others (EX_CANTCREAT)."""

    reason = "SOCKET_PATH"
    exit_code = 73


class SchemaTooNewError(StartupError):
    """The database was written by a newer memxd (EX_CONFIG: restarting does not help)."""

    reason = "SCHEMA_TOO_NEW"
    exit_code = 78


class ModelFileError(StartupError):
    """The embedding model's files are missing or damaged (EX_UNAVAILABLE)."""

    reason = "MODEL_FILE"
    exit_code = 69


class ServiceManagerError(StartupError):
    """systemd or launchd refused, or the machine has neither (EX_UNAVAILABLE)."""

    reason = "SERVICE_MANAGER"
    exit_code = 69


def _subclasses(cls: type[MemxdError]) -> list[type[MemxdError]]:
    return [cls, *(s for c in cls.__subclasses__() for s in _subclasses(c))]


#: Every class by its reason; the client's way back from the wire.
BY_REASON: dict[str, type[MemxdError]] = {c.__dict__["reason"]: c for c in _subclasses(MemxdError)[1:]}
