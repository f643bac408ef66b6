"""The sockets of an HTTP client, so that requests that wait for an answer can be ended from another thread.

Owns which sockets are open and the cutting of all of them. Closing a client, or a descriptor, wakes no thread that
reads from it: only a shutdown of the socket does. ``openai`` hands ``note`` to each request, and calls ``cut`` when it
is closed.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from weakref import WeakSet

#: What httpcore calls the moments at which a request has a socket of its own, or the same one with TLS.
_OPENED = ("connect_tcp.complete", "start_tls.complete")


class Connections:
    """Sockets that requests have opened. Safe from many threads."""

    def __init__(self) -> None:
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._lock = threading.Lock()
        self._cut = False

    def note(self, event: str, details: Mapping[str, Any]) -> None:
        """httpx's ``trace`` extension: told of every step of a request. After ``cut`` new sockets are cut at once."""
        if not event.endswith(_OPENED):
            return
        opened: socket.socket = details["return_value"].get_extra_info("socket")
        with self._lock:
            self._sockets.add(opened)
            if self._cut:
                _shut(opened)

    def cut(self) -> None:
        """End whatever is sent or awaited, now and from now on: who waits gets httpx's TransportError."""
        with self._lock:
            self._cut = True
            for each in self._sockets:
                _shut(each)


def _shut(opened: socket.socket) -> None:
    with suppress(OSError):  # the other side has gone, or the request is over: there is nothing to end
        socket.socket.shutdown(opened, socket.SHUT_RDWR)  # TLS would say goodbye first, and wait for an answer
