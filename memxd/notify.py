"""Tells a service manager how the daemon is (the sd_notify protocol: one datagram of ``KEY=value`` lines).

Owns nothing but the sending; without ``NOTIFY_SOCKET`` it does nothing. Called by ``daemon.py``. Imports only the
standard library.
"""

from __future__ import annotations

import logging
import socket

log = logging.getLogger("memxd.notify")


def notify(address: str, **state: str) -> bool:
    """Send ``state`` (for example READY="1", STATUS="serving") to the manager's socket; True when it was sent.

    ``address`` is ``NOTIFY_SOCKET``: a path, or an abstract name that begins with "@"; empty = nobody listens.
    """
    if not address:
        return False
    target = "\0" + address[1:] if address.startswith("@") else address
    message = "\n".join(f"{key}={value}" for key, value in state.items())
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
        try:
            out.connect(target)
            out.sendall(message.encode())
        except OSError as error:
            log.warning("the service manager does not listen", extra={"fields": {"error": error.strerror}})
            return False
    return True
