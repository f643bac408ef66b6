"""The daemon's condition: process facts and the engine's status in one answer, and the progress of a rebuild.

Owns the filling of StatusResponse and RebuildResponse, and ``ProcessFacts``, which ``daemon.py`` gathers. Measures and
decides nothing. Called by ``admin_servicer.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memxd.model import (
    SECOND,
    BackupStep,
    EngineStatus,
    IndexStatus,
    Micros,
    ModelChange,
    ModelStatus,
    ProcessStatus,
    Progress,
    VerifyStep,
)
from memxd.service.convert import values
from memxd.v1 import admin_service_pb2


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """What the daemon knows about itself; the engine's part comes from the engine."""

    version: str
    pid: int
    started_at: Micros
    socket_path: str
    data_dir: str
    time_zone: str
    libraries: Mapping[str, str] = field(default_factory=dict)


def fill_process(message: admin_service_pb2.StatusResponse, process: ProcessStatus) -> None:
    """Write threads, queues, the last error and the counts of calls."""
    for thread in process.threads:
        told = message.threads.add(
            name=thread.name, role=thread.role, alive=thread.alive, working=thread.working, count=thread.count,
            message=thread.message, cpu_seconds=thread.cpu,
        )  # fmt: skip
        if thread.age is not None:
            values.fill_span(told.since, int(thread.age * SECOND))
    for queue in process.queues:
        message.queues.add(name=queue.name, depth=queue.depth, limit=queue.limit)
    if process.last_error is not None:
        message.last_error.where, message.last_error.message = process.last_error.where, process.last_error.message
        values.fill_instant(message.last_error.at, process.last_error.at)
    for each in process.calls:
        count = message.calls.add(method=each.method, code=each.code, count=each.count)
        values.fill_span(count.total, int(each.seconds * SECOND))


def fill_status(
    message: admin_service_pb2.StatusResponse, facts: ProcessFacts, status: EngineStatus, uptime: Micros
) -> None:
    """Write the whole status into an empty message. ``uptime`` in microseconds, from the monotonic clock."""
    message.version = facts.version
    message.pid = facts.pid
    values.fill_span(message.uptime, uptime)
    values.fill_instant(message.started_at, facts.started_at)
    message.socket_path = facts.socket_path
    message.data_dir = facts.data_dir
    message.time_zone = facts.time_zone
    message.libraries.update(facts.libraries)
    _fill_engine(message, status)


def _fill_engine(message: admin_service_pb2.StatusResponse, status: EngineStatus) -> None:
    message.revision = status.revision
    message.memories = status.memories
    message.links = status.links
    message.vectors_pending = status.vectors_pending
    for index in status.indexes:
        _fill_index(message.indexes.add(), index)
    _fill_model(message.model, status.model)
    message.kernels = status.kernels
    for scope, total, active in status.scopes:
        count = message.scopes.add(total=total, active=active)
        values.fill_scope(count.scope, scope)
    message.scope_count = status.scope_count
    message.sizes.database_bytes = status.database_bytes
    message.sizes.wal_bytes = status.wal_bytes
    message.sizes.index_bytes = status.index_bytes
    message.sizes.free_bytes = status.free_bytes
    message.schema_version = status.schema_version
    message.ranking.update(status.ranking)
    if status.model_change is not None:
        _fill_change(message.model_change, status.model_change)


def _fill_index(message: admin_service_pb2.IndexStatus, index: IndexStatus) -> None:
    message.kind = values.wire(index.kind)
    message.state = values.wire(index.state)
    message.watermark = index.watermark
    message.durable_watermark = index.durable_watermark
    message.entries = index.entries
    message.tail_entries = index.tail_entries
    message.dead_entries = index.dead_entries
    message.size_bytes = index.size_bytes
    message.stamp = index.stamp
    message.message = index.message


def _fill_change(message: admin_service_pb2.ModelChange, change: ModelChange) -> None:
    message.from_id = change.from_id
    message.to_id = change.to_id
    message.to_dimension = change.to_dimension
    message.phase = values.wire(change.phase)
    message.done = change.done
    message.total = change.total
    message.former_serves = change.former_serves
    message.message = change.message


def _fill_model(message: admin_service_pb2.ModelStatus, model: ModelStatus) -> None:
    message.id = model.id
    message.dimension = model.dimension
    message.window_tokens = model.window_tokens
    message.backend = model.backend
    message.variant = model.variant
    message.remote = model.remote
    message.available = model.available
    message.message = model.message
    message.tau = model.tau


def fill_progress(
    message: admin_service_pb2.RebuildResponse | admin_service_pb2.CompactResponse, progress: Progress
) -> None:
    """Write one step of a rebuild or a compaction into an empty message."""
    message.kind = values.wire(progress.kind)
    message.done = progress.done
    message.total = progress.total
    message.finished = progress.finished
    message.watermark = progress.watermark


def backup_step(step: BackupStep) -> admin_service_pb2.BackupResponse:
    """One step of a backup as a message."""
    return admin_service_pb2.BackupResponse(
        done=step.done,
        total=step.total,
        finished=step.finished,
        revision=step.revision,
        memories=step.memories,
        links=step.links,
        sha256=step.sha256,
    )


def verify_step(step: VerifyStep) -> admin_service_pb2.VerifyResponse:
    """One step of a verification as a message."""
    message = admin_service_pb2.VerifyResponse(done=step.done, total=step.total, finished=step.finished)
    for problem in step.problems:
        found = message.problems.add(part=problem.part, message=problem.message, id=problem.id)
        if problem.scope is not None:
            values.fill_scope(found.scope, problem.scope)
    return message
