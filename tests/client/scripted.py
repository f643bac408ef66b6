"""A real gRPC server on a Unix socket that answers as a test tells it: for failures that a healthy daemon never has.

Owns ``Scripted``. It speaks the whole v1 contract and the health check; a method without a script is UNIMPLEMENTED.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent import futures
from pathlib import Path
from typing import Any, NoReturn

import grpc
from google.protobuf import message_factory
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2
from grpc_status import rpc_status

from memxd.client.connection import target
from memxd.v1 import admin_service_pb2, memory_service_pb2

Script = Callable[[Any, grpc.ServicerContext], Any]

_FILES = (memory_service_pb2, admin_service_pb2, health_pb2)
METHODS = {
    f"/{service.full_name}/{method.name}": method
    for file in _FILES
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}


def refuse(
    context: grpc.ServicerContext,
    code: grpc.StatusCode,
    reason: str,
    message: str = "no",
    *,
    domain: str = "memxd",
    metadata: dict[str, str] | None = None,
    violations: Iterable[tuple[str, str]] = (),
    retry_ms: int | None = None,
) -> NoReturn:
    """Abort as the daemon does: ErrorInfo, and on request BadRequest and RetryInfo."""
    details: list[Any] = [error_details_pb2.ErrorInfo(reason=reason, domain=domain, metadata=metadata or {})]
    if violations:
        found = [error_details_pb2.BadRequest.FieldViolation(field=f, description=d) for f, d in violations]
        details.append(error_details_pb2.BadRequest(field_violations=found))
    if retry_ms is not None:
        delay = Duration()
        delay.FromMilliseconds(retry_ms)
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    status = status_pb2.Status(code=code.value[0], message=message)
    for detail in details:
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    context.abort_with_status(rpc_status.to_status(status))
    raise AssertionError("abort_with_status returned")


class Scripted(grpc.GenericRpcHandler):
    """``on(name, script)`` answers a method; ``seen`` holds (method name, request) in the order of arrival."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.seen: list[tuple[str, Any]] = []
        self._scripts: dict[str, Script] = {}
        self._lock = threading.Lock()
        self._server: grpc.Server | None = None

    def on(self, name: str, script: Script) -> None:
        self._scripts[name] = script

    def requests(self, name: str) -> list[Any]:
        with self._lock:
            return [request for method, request in self.seen if method == name]

    def start(self) -> None:
        self._server = grpc.server(futures.ThreadPoolExecutor(4), handlers=[self])
        self._server.add_insecure_port(target(self.socket))
        self._server.start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop(0).wait()
            self._server = None

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        method = METHODS.get(details.method)
        if method is None or method.name not in self._scripts:
            return None

        def answer(request: Any, context: grpc.ServicerContext) -> Any:
            if not method.client_streaming:
                with self._lock:
                    self.seen.append((method.name, request))
            return self._scripts[method.name](request, context)

        makers = {
            (False, False): grpc.unary_unary_rpc_method_handler,
            (False, True): grpc.unary_stream_rpc_method_handler,
            (True, True): grpc.stream_stream_rpc_method_handler,
        }
        return makers[method.client_streaming, method.server_streaming](
            answer,
            request_deserializer=message_factory.GetMessageClass(method.input_type).FromString,
            response_serializer=message_factory.GetMessageClass(method.output_type).SerializeToString,
        )
