"""AdminService: how the daemon is, writing everything out, building an index anew, copying the store.

Owns the process's own facts in Status (uptime); everything else is the engine's, and refusals are mapped by the
interceptor. Converts, calls the engine's verb of the same name, converts back. gRPC calls it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import grpc

from memxd import logs, threads
from memxd.model import SECOND, IndexKind, ProcessStatus
from memxd.service.calls import CallLog
from memxd.service.convert import admin, values
from memxd.service.gate import Gate
from memxd.service.running import deadline_of
from memxd.v1 import admin_service_pb2 as pb
from memxd.v1 import admin_service_pb2_grpc


class AdminServicer(admin_service_pb2_grpc.AdminServiceServicer):
    """What operators call."""

    def __init__(self, gate: Gate, facts: admin.ProcessFacts, calls: CallLog) -> None:
        self._gate = gate
        self._calls = calls
        self._facts = facts
        self._began = time.monotonic()

    def Status(self, request: pb.StatusRequest, context: grpc.ServicerContext) -> pb.StatusResponse:
        """How the daemon is."""
        status = self._gate.engine.status(values.optional(request, "max_scopes"), deadline_of(context))
        response = pb.StatusResponse()
        uptime = int((time.monotonic() - self._began) * SECOND)
        admin.fill_status(response, self._facts, status, uptime)
        process = ProcessStatus(threads.overview(), threads.queues(), logs.last_error(), self._calls.counts())
        admin.fill_process(response, process)
        return response

    def Flush(self, request: pb.FlushRequest, context: grpc.ServicerContext) -> pb.FlushResponse:
        """Everything on disk."""
        return pb.FlushResponse(revision=self._gate.engine.flush(deadline_of(context)))

    def Rebuild(self, request: pb.RebuildRequest, context: grpc.ServicerContext) -> Iterator[pb.RebuildResponse]:
        """An index anew, telling how far it is."""
        kind = values.enum_or_none(IndexKind, request.kind, "kind")
        for progress in self._gate.engine.rebuild(kind, deadline_of(context)):
            self._gate.check_draining()
            response = pb.RebuildResponse()
            admin.fill_progress(response, progress)
            yield response

    def Backup(self, request: pb.BackupRequest, context: grpc.ServicerContext) -> Iterator[pb.BackupResponse]:
        """A copy of the store, telling how far it is."""
        for step in self._gate.engine.backup(request.directory, deadline_of(context)):
            self._gate.check_draining()
            yield admin.backup_step(step)

    def Verify(self, request: pb.VerifyRequest, context: grpc.ServicerContext) -> Iterator[pb.VerifyResponse]:
        """Whether everything is as it should be, telling how far the look is."""
        for step in self._gate.engine.verify(deadline_of(context)):
            self._gate.check_draining()
            yield admin.verify_step(step)

    def Compact(self, request: pb.CompactRequest, context: grpc.ServicerContext) -> Iterator[pb.CompactResponse]:
        """Files without what was erased, telling how far it is."""
        for progress in self._gate.engine.compact(deadline_of(context)):
            self._gate.check_draining()
            response = pb.CompactResponse()
            admin.fill_progress(response, progress)
            yield response
