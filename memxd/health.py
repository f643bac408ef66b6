"""Asks a socket whether a daemon serves there, by gRPC's standard health service.

Owns the two messages as bytes (they are four bytes together), so that a client needs no further package. Called by the
background start, the command line and tests.
"""

from __future__ import annotations

import os

import grpc

_METHOD = "/grpc.health.v1.Health/Check"
_ANYTHING = b""
#: HealthCheckResponse with status = SERVING (field 1, varint 1).
_SERVING = b"\x08\x01"


def target(path: str | os.PathLike[str]) -> str:
    """The gRPC address of a socket path; a percent sign would begin an escape there."""
    return "unix:" + os.fspath(path).replace("%", "%25")


def is_serving(path: str | os.PathLike[str], timeout: float = 2.0) -> bool:
    """Whether a daemon answers there and is ready. False when nobody answers or it is starting or stopping.

    ``timeout`` in seconds for connecting and asking together.
    """
    if not os.path.exists(path):
        return False
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
    with grpc.insecure_channel(target(path), options=options) as channel:
        check = channel.unary_unary(_METHOD, request_serializer=bytes, response_deserializer=bytes)
        try:
            answer: bytes = check(_ANYTHING, timeout=timeout)
        except grpc.RpcError:
            return False  # refused, unreachable or too slow: all mean that nobody serves
    return answer == _SERVING
