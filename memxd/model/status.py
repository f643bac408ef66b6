"""How the engine and its indexes are.

Frozen shapes without logic; field meanings are the proto's. Made by ``engine/`` and ``index/``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memxd.model.base import Micros
from memxd.model.enums import ChangePhase, IndexKind, IndexState
from memxd.model.nouns import Scope


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """How one index is; field meanings as in the proto."""

    kind: IndexKind
    state: IndexState
    watermark: int
    durable_watermark: int
    entries: int
    tail_entries: int
    dead_entries: int
    size_bytes: int
    stamp: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """The embedding model in use."""

    id: str
    dimension: int
    window_tokens: int
    backend: str
    variant: str
    remote: bool
    available: bool
    message: str
    tau: float


@dataclass(frozen=True, slots=True)
class ModelChange:
    """A change of the embedding model under way; ``done`` of ``total`` memories have vectors of the next one.

    ``former_serves``: the former model is here still and answers meanwhile; else words do. ``message``: what holds it
    up, "" = nothing.
    """

    from_id: str
    to_id: str
    to_dimension: int
    phase: ChangePhase
    done: int
    total: int
    former_serves: bool
    message: str = ""


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """How the engine is; the service adds process facts."""

    revision: int
    memories: int
    links: int
    vectors_pending: int
    indexes: tuple[IndexStatus, ...]
    model: ModelStatus
    kernels: str
    scopes: tuple[tuple[Scope, int, int], ...]
    scope_count: int
    database_bytes: int
    wal_bytes: int
    index_bytes: int
    free_bytes: int
    schema_version: int
    ranking: Mapping[str, float]
    model_change: ModelChange | None = None


@dataclass(frozen=True, slots=True)
class ThreadStatus:
    """One thread, or ``count`` threads of one library by the same name.

    ``working``: at something, not waiting for it; ``age``: seconds since that began, None = not known. ``cpu``: seconds
    of processor time, None where the system does not tell. ``message``: how it died.
    """

    name: str
    role: str
    alive: bool = True
    working: bool = False
    age: float | None = None
    cpu: float | None = None
    count: int = 1
    message: str = ""


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """How many stand in a queue, running ones included where the queue knows of them; ``limit`` 0 = its users bound
    it."""

    name: str
    depth: int
    limit: int = 0


@dataclass(frozen=True, slots=True)
class LastError:
    """What went wrong last: when (microseconds since 1970), where (an RPC, or a part of the daemon), and what; never
    what was stored or asked."""

    at: Micros
    where: str
    message: str


@dataclass(frozen=True, slots=True)
class CallCount:
    """How many calls of a method ended with a code, and how many seconds they took together."""

    method: str
    code: str
    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """What the process is about, beside the engine."""

    threads: tuple[ThreadStatus, ...] = ()
    queues: tuple[QueueStatus, ...] = ()
    last_error: LastError | None = None
    calls: tuple[CallCount, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a rebuild."""

    kind: IndexKind
    done: int
    total: int
    finished: bool = False
    watermark: int = 0


@dataclass(frozen=True, slots=True)
class BackupStep:
    """Progress of a backup, in bytes; the facts of the copy come with ``finished``."""

    done: int
    total: int
    finished: bool = False
    revision: int = 0
    memories: int = 0
    links: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """What should not be. ``part``: "database", "vector", "keyword" or "columns"; ``id`` empty = all of it."""

    part: str
    message: str
    scope: Scope | None = None
    id: str = ""


@dataclass(frozen=True, slots=True)
class VerifyStep:
    """How far a verification is, in memories; what was found comes with ``finished``."""

    done: int
    total: int
    finished: bool = False
    problems: tuple[Problem, ...] = ()
