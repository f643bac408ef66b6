"""Why a daemon cannot start, with the exit code that tells a service manager. See ``errors.py``, where all are found.

Owns the classes and their exit codes (sysexits.h); the operator alone reads these. Raised by whoever opens something,
turned into exit codes by ``daemon.py``. Imports only the standard library.
"""

from __future__ import annotations

from typing import ClassVar

from memxd.error_base import MemxdError


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


class DatabaseDamagedError(StartupError):
    """The database is damaged; it is left as it is (EX_DATAERR: restarting does not help)."""

    reason = "DATABASE_DAMAGED"
    exit_code = 65


class MigrationFailedError(StartupError):
    """The database could not be brought to this memxd's schema, and is as it was (EX_DATAERR)."""

    reason = "MIGRATION_FAILED"
    exit_code = 65


class ModelFileError(StartupError):
    """The embedding model's files are missing or damaged (EX_UNAVAILABLE)."""

    reason = "MODEL_FILE"
    exit_code = 69


class ServiceManagerError(StartupError):
    """systemd or launchd refused, or the machine has neither (EX_UNAVAILABLE)."""

    reason = "SERVICE_MANAGER"
    exit_code = 69
