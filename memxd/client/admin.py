"""The calls that look at and maintain the daemon.

Owns the Python signature of ``status`` and ``flush``, the request of ``rebuild`` and of the health check, and
``DaemonStatus``: the engine's status with the facts of its process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf.duration_pb2 import Duration
from google.protobuf.wrappers_pb2 import Int32Value, StringValue

from memxd import model
from memxd.client import convert, values
from memxd.client.call import ADMIN_SERVICE, Bound, Call
from memxd.model import (
    CallCount,
    ChangePhase,
    EngineStatus,
    IndexKind,
    IndexState,
    IndexStatus,
    LastError,
    Micros,
    ModelChange,
    ModelStatus,
    ProcessStatus,
    QueueStatus,
    ThreadStatus,
)
from memxd.v1 import admin_service_pb2 as pb

REBUILD = ADMIN_SERVICE + "Rebuild"
_SERVING = 1


@dataclass(frozen=True, slots=True)
class DaemonStatus:
    """How the daemon is; field meanings as in ``StatusResponse`` of the proto. ``uptime`` in seconds."""

    version: str
    pid: int
    uptime: float
    started_at: Micros
    socket_path: str
    data_dir: str
    time_zone: str
    libraries: Mapping[str, str]
    engine: EngineStatus
    process: ProcessStatus


def status(scope: Bound, *, max_scopes: int | None = None, timeout: float | None = None) -> Call[DaemonStatus]:
    """How the daemon is: version, model, indexes, sizes and the largest ``max_scopes`` (absent: 100) scopes."""
    request = pb.StatusRequest(max_scopes=values.whole("max_scopes", max_scopes))
    return Call(ADMIN_SERVICE + "Status", request, pb.StatusResponse, _status, timeout)


def flush(scope: Bound, *, timeout: float | None = None) -> Call[int]:
    """Write counters and every index to disk; answers the revision that the files then reflect."""
    return Call(ADMIN_SERVICE + "Flush", pb.FlushRequest(), pb.FlushResponse, lambda a: int(a.revision), timeout)


def health(timeout: float) -> Call[bool]:
    """Whether the daemon is ready to serve (grpc.health.v1).

    Its two messages have the wire shape of the well-known wrappers (one string, one enum, both field 1), which spares
    the client a dependency.
    """
    return Call("/grpc.health.v1.Health/Check", StringValue(), Int32Value, lambda a: int(a.value) == _SERVING, timeout)


def rebuild_request(kind: IndexKind | str | None) -> pb.RebuildRequest:
    return pb.RebuildRequest(kind=values.number("kind", IndexKind, kind))


def progress(message: pb.RebuildResponse | pb.CompactResponse) -> model.Progress:
    kind = convert.member(IndexKind, message.kind)
    return model.Progress(kind, message.done, message.total, message.finished, message.watermark)


def _status(message: pb.StatusResponse) -> DaemonStatus:
    sizes = message.sizes
    engine = EngineStatus(
        revision=message.revision,
        memories=message.memories,
        links=message.links,
        vectors_pending=message.vectors_pending,
        indexes=tuple(_index(i) for i in message.indexes),
        model=_model(message.model),
        kernels=message.kernels,
        scopes=tuple((convert.scope(s.scope), s.total, s.active) for s in message.scopes),
        scope_count=message.scope_count,
        database_bytes=sizes.database_bytes,
        wal_bytes=sizes.wal_bytes,
        index_bytes=sizes.index_bytes,
        free_bytes=sizes.free_bytes,
        schema_version=message.schema_version,
        ranking=dict(message.ranking),
        model_change=_change(message.model_change) if message.HasField("model_change") else None,
    )
    return DaemonStatus(
        version=message.version,
        pid=message.pid,
        uptime=_seconds(message.uptime),
        started_at=convert.micros(message.started_at),
        socket_path=message.socket_path,
        data_dir=message.data_dir,
        time_zone=message.time_zone,
        libraries=dict(message.libraries),
        engine=engine,
        process=_process(message),
    )


def _process(message: pb.StatusResponse) -> ProcessStatus:
    threads = (
        ThreadStatus(
            t.name, t.role, t.alive, t.working, _seconds(t.since) if t.HasField("since") else None,
            t.cpu_seconds if t.HasField("cpu_seconds") else None, t.count, t.message,
        )
        for t in message.threads
    )  # fmt: skip
    last = message.last_error
    return ProcessStatus(
        threads=tuple(threads),
        queues=tuple(QueueStatus(q.name, q.depth, q.limit) for q in message.queues),
        last_error=LastError(convert.micros(last.at), last.where, last.message)
        if message.HasField("last_error")
        else None,
        calls=tuple(CallCount(c.method, c.code, c.count, _seconds(c.total)) for c in message.calls),
    )


def _seconds(span: Duration) -> float:
    return span.seconds + span.nanos / 1e9


def _index(message: pb.IndexStatus) -> IndexStatus:
    return IndexStatus(
        kind=convert.member(IndexKind, message.kind),
        state=convert.member(IndexState, message.state),
        watermark=message.watermark,
        durable_watermark=message.durable_watermark,
        entries=message.entries,
        tail_entries=message.tail_entries,
        dead_entries=message.dead_entries,
        size_bytes=message.size_bytes,
        stamp=message.stamp,
        message=message.message,
    )


def _change(message: pb.ModelChange) -> ModelChange:
    return ModelChange(
        from_id=message.from_id,
        to_id=message.to_id,
        to_dimension=message.to_dimension,
        phase=convert.member(ChangePhase, message.phase),
        done=message.done,
        total=message.total,
        former_serves=message.former_serves,
        message=message.message,
    )


def _model(message: pb.ModelStatus) -> ModelStatus:
    return ModelStatus(
        id=message.id,
        dimension=message.dimension,
        window_tokens=message.window_tokens,
        backend=message.backend,
        variant=message.variant,
        remote=message.remote,
        available=message.available,
        message=message.message,
        tau=message.tau,
    )
