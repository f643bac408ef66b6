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

from memxd.errors import ConfigError, SocketPathError
from memxd.listening import Listening
from memxd.model import Limits
from memxd.service import health
from memxd.service.admin_servicer import AdminServicer
from memxd.service.calls import CallLog
from memxd.service.convert.admin import ProcessFacts
from memxd.service.gate import Gate
from memxd.service.guard import Guard
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
_HANDSHAKE_MS = 10_000
_IDLE_MS = 600_000
#: On one machine pings only cost: a peer that is gone is known to be gone.
_MACHINE: list[tuple[str, Any]] = [("grpc.keepalive_time_ms", 2**31 - 1)]
#: Of a peer on a network nobody tells; one that does not answer within 20 s is gone, and its calls with it.
_NETWORK: list[tuple[str, Any]] = [
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
]


def options(max_pending: int, connections: int, *, network: bool = False) -> list[tuple[str, Any]]:
    """How the server is tuned. Sent messages may be larger than received ones: our own limit (3.5 MiB) rules them.

    ``connections``: how many at once; further ones are closed at once. ``network``: whether it serves a TCP port.
    """
    alive = _NETWORK if network else _MACHINE
    return [
        ("grpc.max_receive_message_length", Limits.MESSAGE_BYTES),
        ("grpc.max_send_message_length", 2 * Limits.MESSAGE_BYTES),
        ("grpc.max_concurrent_streams", max(1_024, 2 * max_pending)),
        ("grpc.so_reuseport", 0),
        ("grpc.max_allowed_incoming_connections", connections),
        # A connection that does not finish its first bytes, and one that carries no call for so long, give up their
        # place; a client that calls again connects again within the call.
        ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
        ("grpc.max_connection_idle_ms", _IDLE_MS),
        *alive,
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
        guard: Guard | None = None,
        listening: Listening | None = None,
        connections: int = 1_000,
    ) -> None:
        calls = calls or CallLog()
        self._gate = gate
        self._health = health.HealthServicer(HEALTH_NAMES)
        interceptor = GateInterceptor(gate, guard or Guard(None), calls)
        self._listening = listening
        tuning = options(max_pending, connections, network=listening is not None)
        self._grpc = grpc.server(gate.calls, interceptors=[interceptor], options=tuning)
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
        if self._listening is not None:
            self._listen(self._listening)
        self._grpc.start()

    def _listen(self, listening: Listening) -> None:
        try:
            if not listening.certificate:
                self._grpc.add_insecure_port(listening.address)
                return
            credentials = grpc.ssl_server_credentials(
                [(listening.key, listening.certificate)],
                root_certificates=listening.client_ca or None,
                require_client_auth=bool(listening.client_ca),
            )
            self._grpc.add_secure_port(listening.address, credentials)
        except RuntimeError as error:
            raise ConfigError(
                f"listen: cannot serve {listening.address}: the address is taken or not this machine's, or tls_cert, "
                "tls_key and tls_client_ca do not fit together"
            ) from error

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
