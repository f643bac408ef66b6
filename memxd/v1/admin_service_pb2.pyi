import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from memxd.v1 import memory_pb2 as _memory_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class IndexKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INDEX_KIND_UNSPECIFIED: _ClassVar[IndexKind]
    INDEX_KIND_VECTOR: _ClassVar[IndexKind]
    INDEX_KIND_KEYWORD: _ClassVar[IndexKind]
    INDEX_KIND_COLUMNS: _ClassVar[IndexKind]

class IndexState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INDEX_STATE_UNSPECIFIED: _ClassVar[IndexState]
    INDEX_STATE_READY: _ClassVar[IndexState]
    INDEX_STATE_REBUILDING: _ClassVar[IndexState]
    INDEX_STATE_FAILED: _ClassVar[IndexState]
    INDEX_STATE_MISMATCHED: _ClassVar[IndexState]

class ModelChangePhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MODEL_CHANGE_PHASE_UNSPECIFIED: _ClassVar[ModelChangePhase]
    MODEL_CHANGE_PHASE_EMBEDDING: _ClassVar[ModelChangePhase]
    MODEL_CHANGE_PHASE_INDEXING: _ClassVar[ModelChangePhase]
INDEX_KIND_UNSPECIFIED: IndexKind
INDEX_KIND_VECTOR: IndexKind
INDEX_KIND_KEYWORD: IndexKind
INDEX_KIND_COLUMNS: IndexKind
INDEX_STATE_UNSPECIFIED: IndexState
INDEX_STATE_READY: IndexState
INDEX_STATE_REBUILDING: IndexState
INDEX_STATE_FAILED: IndexState
INDEX_STATE_MISMATCHED: IndexState
MODEL_CHANGE_PHASE_UNSPECIFIED: ModelChangePhase
MODEL_CHANGE_PHASE_EMBEDDING: ModelChangePhase
MODEL_CHANGE_PHASE_INDEXING: ModelChangePhase

class StatusRequest(_message.Message):
    __slots__ = ("max_scopes",)
    MAX_SCOPES_FIELD_NUMBER: _ClassVar[int]
    max_scopes: int
    def __init__(self, max_scopes: _Optional[int] = ...) -> None: ...

class IndexStatus(_message.Message):
    __slots__ = ("kind", "state", "watermark", "durable_watermark", "entries", "tail_entries", "dead_entries", "size_bytes", "stamp", "message")
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_FIELD_NUMBER: _ClassVar[int]
    DURABLE_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    TAIL_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    DEAD_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    STAMP_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    kind: IndexKind
    state: IndexState
    watermark: int
    durable_watermark: int
    entries: int
    tail_entries: int
    dead_entries: int
    size_bytes: int
    stamp: str
    message: str
    def __init__(self, kind: _Optional[_Union[IndexKind, str]] = ..., state: _Optional[_Union[IndexState, str]] = ..., watermark: _Optional[int] = ..., durable_watermark: _Optional[int] = ..., entries: _Optional[int] = ..., tail_entries: _Optional[int] = ..., dead_entries: _Optional[int] = ..., size_bytes: _Optional[int] = ..., stamp: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class ModelChange(_message.Message):
    __slots__ = ("from_id", "to_id", "to_dimension", "phase", "done", "total", "former_serves", "message")
    FROM_ID_FIELD_NUMBER: _ClassVar[int]
    TO_ID_FIELD_NUMBER: _ClassVar[int]
    TO_DIMENSION_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    FORMER_SERVES_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    from_id: str
    to_id: str
    to_dimension: int
    phase: ModelChangePhase
    done: int
    total: int
    former_serves: bool
    message: str
    def __init__(self, from_id: _Optional[str] = ..., to_id: _Optional[str] = ..., to_dimension: _Optional[int] = ..., phase: _Optional[_Union[ModelChangePhase, str]] = ..., done: _Optional[int] = ..., total: _Optional[int] = ..., former_serves: _Optional[bool] = ..., message: _Optional[str] = ...) -> None: ...

class ModelStatus(_message.Message):
    __slots__ = ("id", "dimension", "window_tokens", "backend", "variant", "remote", "available", "message", "tau")
    ID_FIELD_NUMBER: _ClassVar[int]
    DIMENSION_FIELD_NUMBER: _ClassVar[int]
    WINDOW_TOKENS_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    REMOTE_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TAU_FIELD_NUMBER: _ClassVar[int]
    id: str
    dimension: int
    window_tokens: int
    backend: str
    variant: str
    remote: bool
    available: bool
    message: str
    tau: float
    def __init__(self, id: _Optional[str] = ..., dimension: _Optional[int] = ..., window_tokens: _Optional[int] = ..., backend: _Optional[str] = ..., variant: _Optional[str] = ..., remote: _Optional[bool] = ..., available: _Optional[bool] = ..., message: _Optional[str] = ..., tau: _Optional[float] = ...) -> None: ...

class ScopeCount(_message.Message):
    __slots__ = ("scope", "total", "active")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    scope: _memory_pb2.Scope
    total: int
    active: int
    def __init__(self, scope: _Optional[_Union[_memory_pb2.Scope, _Mapping]] = ..., total: _Optional[int] = ..., active: _Optional[int] = ...) -> None: ...

class StoreSizes(_message.Message):
    __slots__ = ("database_bytes", "wal_bytes", "index_bytes", "free_bytes")
    DATABASE_BYTES_FIELD_NUMBER: _ClassVar[int]
    WAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    INDEX_BYTES_FIELD_NUMBER: _ClassVar[int]
    FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    database_bytes: int
    wal_bytes: int
    index_bytes: int
    free_bytes: int
    def __init__(self, database_bytes: _Optional[int] = ..., wal_bytes: _Optional[int] = ..., index_bytes: _Optional[int] = ..., free_bytes: _Optional[int] = ...) -> None: ...

class ThreadStatus(_message.Message):
    __slots__ = ("name", "role", "alive", "working", "since", "cpu_seconds", "count", "message")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    WORKING_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    CPU_SECONDS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    name: str
    role: str
    alive: bool
    working: bool
    since: _duration_pb2.Duration
    cpu_seconds: float
    count: int
    message: str
    def __init__(self, name: _Optional[str] = ..., role: _Optional[str] = ..., alive: _Optional[bool] = ..., working: _Optional[bool] = ..., since: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., cpu_seconds: _Optional[float] = ..., count: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class QueueStatus(_message.Message):
    __slots__ = ("name", "depth", "limit")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    name: str
    depth: int
    limit: int
    def __init__(self, name: _Optional[str] = ..., depth: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class LastError(_message.Message):
    __slots__ = ("at", "where", "message")
    AT_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    at: _timestamp_pb2.Timestamp
    where: str
    message: str
    def __init__(self, at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., where: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class CallCount(_message.Message):
    __slots__ = ("method", "code", "count", "total")
    METHOD_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    method: str
    code: str
    count: int
    total: _duration_pb2.Duration
    def __init__(self, method: _Optional[str] = ..., code: _Optional[str] = ..., count: _Optional[int] = ..., total: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class StatusResponse(_message.Message):
    __slots__ = ("version", "pid", "uptime", "started_at", "revision", "memories", "links", "vectors_pending", "indexes", "model", "kernels", "scopes", "scope_count", "sizes", "socket_path", "data_dir", "schema_version", "libraries", "ranking", "time_zone", "model_change", "threads", "queues", "last_error", "calls")
    class LibrariesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class RankingEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    UPTIME_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    VECTORS_PENDING_FIELD_NUMBER: _ClassVar[int]
    INDEXES_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    KERNELS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    SCOPE_COUNT_FIELD_NUMBER: _ClassVar[int]
    SIZES_FIELD_NUMBER: _ClassVar[int]
    SOCKET_PATH_FIELD_NUMBER: _ClassVar[int]
    DATA_DIR_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    LIBRARIES_FIELD_NUMBER: _ClassVar[int]
    RANKING_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    MODEL_CHANGE_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    version: str
    pid: int
    uptime: _duration_pb2.Duration
    started_at: _timestamp_pb2.Timestamp
    revision: int
    memories: int
    links: int
    vectors_pending: int
    indexes: _containers.RepeatedCompositeFieldContainer[IndexStatus]
    model: ModelStatus
    kernels: str
    scopes: _containers.RepeatedCompositeFieldContainer[ScopeCount]
    scope_count: int
    sizes: StoreSizes
    socket_path: str
    data_dir: str
    schema_version: int
    libraries: _containers.ScalarMap[str, str]
    ranking: _containers.ScalarMap[str, float]
    time_zone: str
    model_change: ModelChange
    threads: _containers.RepeatedCompositeFieldContainer[ThreadStatus]
    queues: _containers.RepeatedCompositeFieldContainer[QueueStatus]
    last_error: LastError
    calls: _containers.RepeatedCompositeFieldContainer[CallCount]
    def __init__(self, version: _Optional[str] = ..., pid: _Optional[int] = ..., uptime: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., revision: _Optional[int] = ..., memories: _Optional[int] = ..., links: _Optional[int] = ..., vectors_pending: _Optional[int] = ..., indexes: _Optional[_Iterable[_Union[IndexStatus, _Mapping]]] = ..., model: _Optional[_Union[ModelStatus, _Mapping]] = ..., kernels: _Optional[str] = ..., scopes: _Optional[_Iterable[_Union[ScopeCount, _Mapping]]] = ..., scope_count: _Optional[int] = ..., sizes: _Optional[_Union[StoreSizes, _Mapping]] = ..., socket_path: _Optional[str] = ..., data_dir: _Optional[str] = ..., schema_version: _Optional[int] = ..., libraries: _Optional[_Mapping[str, str]] = ..., ranking: _Optional[_Mapping[str, float]] = ..., time_zone: _Optional[str] = ..., model_change: _Optional[_Union[ModelChange, _Mapping]] = ..., threads: _Optional[_Iterable[_Union[ThreadStatus, _Mapping]]] = ..., queues: _Optional[_Iterable[_Union[QueueStatus, _Mapping]]] = ..., last_error: _Optional[_Union[LastError, _Mapping]] = ..., calls: _Optional[_Iterable[_Union[CallCount, _Mapping]]] = ...) -> None: ...

class FlushRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FlushResponse(_message.Message):
    __slots__ = ("revision",)
    REVISION_FIELD_NUMBER: _ClassVar[int]
    revision: int
    def __init__(self, revision: _Optional[int] = ...) -> None: ...

class RebuildRequest(_message.Message):
    __slots__ = ("kind",)
    KIND_FIELD_NUMBER: _ClassVar[int]
    kind: IndexKind
    def __init__(self, kind: _Optional[_Union[IndexKind, str]] = ...) -> None: ...

class RebuildResponse(_message.Message):
    __slots__ = ("kind", "done", "total", "finished", "watermark")
    KIND_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_FIELD_NUMBER: _ClassVar[int]
    kind: IndexKind
    done: int
    total: int
    finished: bool
    watermark: int
    def __init__(self, kind: _Optional[_Union[IndexKind, str]] = ..., done: _Optional[int] = ..., total: _Optional[int] = ..., finished: _Optional[bool] = ..., watermark: _Optional[int] = ...) -> None: ...

class BackupRequest(_message.Message):
    __slots__ = ("directory",)
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    directory: str
    def __init__(self, directory: _Optional[str] = ...) -> None: ...

class BackupResponse(_message.Message):
    __slots__ = ("done", "total", "finished", "revision", "memories", "links", "sha256")
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    done: int
    total: int
    finished: bool
    revision: int
    memories: int
    links: int
    sha256: str
    def __init__(self, done: _Optional[int] = ..., total: _Optional[int] = ..., finished: _Optional[bool] = ..., revision: _Optional[int] = ..., memories: _Optional[int] = ..., links: _Optional[int] = ..., sha256: _Optional[str] = ...) -> None: ...

class VerifyRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class VerifyProblem(_message.Message):
    __slots__ = ("part", "message", "scope", "id")
    PART_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    part: str
    message: str
    scope: _memory_pb2.Scope
    id: str
    def __init__(self, part: _Optional[str] = ..., message: _Optional[str] = ..., scope: _Optional[_Union[_memory_pb2.Scope, _Mapping]] = ..., id: _Optional[str] = ...) -> None: ...

class VerifyResponse(_message.Message):
    __slots__ = ("done", "total", "finished", "problems")
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    done: int
    total: int
    finished: bool
    problems: _containers.RepeatedCompositeFieldContainer[VerifyProblem]
    def __init__(self, done: _Optional[int] = ..., total: _Optional[int] = ..., finished: _Optional[bool] = ..., problems: _Optional[_Iterable[_Union[VerifyProblem, _Mapping]]] = ...) -> None: ...

class CompactRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CompactResponse(_message.Message):
    __slots__ = ("kind", "done", "total", "finished", "watermark")
    KIND_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_FIELD_NUMBER: _ClassVar[int]
    kind: IndexKind
    done: int
    total: int
    finished: bool
    watermark: int
    def __init__(self, kind: _Optional[_Union[IndexKind, str]] = ..., done: _Optional[int] = ..., total: _Optional[int] = ..., finished: _Optional[bool] = ..., watermark: _Optional[int] = ...) -> None: ...
