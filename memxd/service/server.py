"""The gRPC server: which services it has, how it is tuned, and what health says.

Owns the grpc.Server, the registration of our two services, health (NOT_SERVING until told otherwise) and reflection,
and the order of stopping. Does not own the socket file (``socket.py``) or the engine. ``daemon.py`` builds one.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from memxd.errors import SocketPathError
from memxd.model import Limits
from memxd.service import health
from memxd.service.admin_servicer import AdminServicer
from memxd.service.calls import CallLog
from memxd.service.convert.admin import ProcessFacts
from memxd.service.gate import Gate
from memxd.service.interceptors import GateInterceptor
from memxd.service.memory_servicer import MemoryServicer
from memxd.service.socket import SocketClaim
from memxd.v1 import admin_service_pb2, admin_service_pb2_grpc, memory_service_pb2, memory_service_pb2_grpc

_MEMORY = memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"].full_name
_ADMIN = admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"].full_name
#: Services health knows; "" is the daemon as a whole.
HEALTH_NAMES = ("", _MEMORY, _ADMIN)
#: How long cancelled calls may take to notice, in seconds.
_CANCEL_SECONDS = 2.0
#: How long health's watchers may take to hear the last news, in seconds.
_TELL_SECONDS = 1.0


def options(max_pending: int) -> list[tuple[str, Any]]:
    """How the server is tuned. Sent messages may be larger than received ones: our own limit (3.5 MiB) rules them."""
    return [
        ("grpc.max_receive_message_length", Limits.MESSAGE_BYTES),
        ("grpc.max_send_message_length", 2 * Limits.MESSAGE_BYTES),
        ("grpc.max_concurrent_streams", max(1_024, 2 * max_pending)),
        ("grpc.so_reuseport", 0),
        # On one machine pings only cost: idle agents keep their connection without a word.
        ("grpc.keepalive_time_ms", 2**31 - 1),
        ("grpc.http2.max_ping_strikes", 0),
        # Bandwidth probing is for networks; one window holds the largest message.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", Limits.MESSAGE_BYTES),
    ]


class Server:
    """One server on one socket."""

    def __init__(
        self,
        gate: Gate,
        facts: ProcessFacts,
        *,
        max_pending: int,
        with_reflection: bool,
        calls: CallLog | None = None,
    ) -> None:
        calls = calls or CallLog()
        self._gate = gate
        self._health = health.HealthServicer(HEALTH_NAMES)
        self._grpc = grpc.server(gate.calls, interceptors=[GateInterceptor(gate, calls)], options=options(max_pending))
        memory_service_pb2_grpc.add_MemoryServiceServicer_to_server(MemoryServicer(gate), self._grpc)
        admin_service_pb2_grpc.add_AdminServiceServicer_to_server(AdminServicer(gate, facts, calls), self._grpc)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._grpc)
        if with_reflection:
            names = (_MEMORY, _ADMIN, health.SERVICE, reflection.SERVICE_NAME)
            reflection.enable_server_reflection(names, self._grpc)

    def start(self, claim: SocketClaim) -> None:
        """Bind and answer; health says NOT_SERVING and every other call is refused until the gate opens."""
        with claim.binding():
            try:
                self._grpc.add_insecure_port(f"unix:{_target(claim.path)}")
            except RuntimeError as error:
                raise SocketPathError(f"cannot bind {claim.path}; give another --socket") from error
        self._grpc.start()

    def set_serving(self, serving: bool) -> None:
        """What health answers for every name."""
        self._health.set_serving(serving)

    def stop(self) -> threading.Event:
        """Tell the watchers, stop listening, cancel what still runs; the event comes when gRPC is done with it all."""
        self._health.wait_told(_TELL_SECONDS)
        stopped: threading.Event = self._grpc.stop(0)
        return stopped

    def close(self) -> None:
        """Stop at once and join every thread."""
        self.stop().wait(_CANCEL_SECONDS)
        self._gate.close()


def _target(path: Path) -> str:
    """The path in a gRPC address, where a percent sign would begin an escape."""
    return str(path).replace("%", "%25")
