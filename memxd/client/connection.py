"""Where the daemon is and how a channel to it is set up.

Owns the target of a socket, the channel options and the timeouts that both clients share. Does not send anything
(``sync.py``, ``aio.py``) and does not start a daemon (``memxd/autostart.py``, which the command line uses).
"""

from __future__ import annotations

import os
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memxd.client.call import Call
from memxd.client.retry import Attempts, Retry
from memxd.model import Limits
from memxd.socket_path import client_socket

if TYPE_CHECKING:
    from memxd.client.access import Access

#: Seconds a call may take when its caller names no timeout.
DEFAULT_TIMEOUT = 10.0
#: How many items of a StoreMany stream may be unanswered at a time.
WINDOW = 256

OPTIONS: tuple[tuple[str, Any], ...] = (
    ("grpc.max_send_message_length", Limits.MESSAGE_BYTES),
    ("grpc.max_receive_message_length", Limits.MESSAGE_BYTES),
    ("grpc.enable_retries", 0),  # ours knows which calls are safe
    ("grpc.enable_http_proxy", 0),
    # A restarted daemon is on this machine: look again at once, not after gRPC's second and more.
    ("grpc.initial_reconnect_backoff_ms", 50),
    # In spite of its name: how long an attempt to connect may take. A busy machine needs more than a moment for it.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 500),
)


def find_socket(explicit: str | os.PathLike[str] | None) -> Path:
    """The daemon's socket by the rule of docs/SOCKET.md.

    The process's environment is read here rather than through ``memxd.config``, whose imports a lean client lacks.
    """
    return client_socket(explicit, os.environ)


def target(socket: Path) -> str:
    """The gRPC target of a socket. gRPC reads it as a URI, so "%" and the like are escaped."""
    return "unix:" + urllib.parse.quote(os.fsencode(socket))


@dataclass(frozen=True, slots=True)
class Settings:
    """What a connection needs to know. ``timeout`` in seconds for calls that name none; infinity = no deadline."""

    access: Access
    timeout: float = DEFAULT_TIMEOUT
    retry: Retry = field(default_factory=Retry)

    def attempts(self, call: Call[Any]) -> Attempts:
        timeout = self.timeout if call.timeout is None else call.timeout
        return Attempts(self.retry, timeout, repeatable=call.repeatable)
