"""Tells a service manager how the daemon is (the sd_notify protocol: one datagram of ``KEY=value`` lines).

Owns the sending and the interval of the watchdog; without ``NOTIFY_SOCKET`` it does nothing. The watchdog is fed by the
daemon's main loop: a process whose interpreter is stuck goes silent and is replaced. Called by ``daemon.py``. Imports
only the standard library.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Mapping

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


class Manager:
    """The service manager that started this process, or nobody.

    ``watchdog``: seconds between two signs of life that it demands, 0 = none. Every method is harmless without one.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        self.watchdog = _watchdog_seconds(environ)

    def every(self, seconds: float) -> float:
        """How often the main loop must wake: ``seconds``, or thrice in each period of the watchdog."""
        return min(seconds, self.watchdog / 3) if self.watchdog else seconds

    def status(self, text: str) -> None:
        """One line that ``systemctl status`` shows."""
        notify(self._address, STATUS=text)

    def ready(self, text: str) -> None:
        """The daemon serves (again, after ``reloading``)."""
        notify(self._address, READY="1", STATUS=text)

    def alive(self) -> None:
        """Feed the watchdog."""
        if self.watchdog:
            notify(self._address, WATCHDOG="1")

    def reloading(self) -> None:
        """Settings are read anew; ``ready`` ends it."""
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
        notify(self._address, RELOADING="1", MONOTONIC_USEC=str(now), STATUS="reading settings")

    def stopping(self, text: str, seconds: float) -> None:
        """The daemon stops and may take so many seconds, whatever the unit file says."""
        notify(self._address, STOPPING="1", STATUS=text, EXTEND_TIMEOUT_USEC=str(int(seconds * 1e6)))


def _watchdog_seconds(environ: Mapping[str, str]) -> float:
    """``WATCHDOG_USEC`` when it is meant for this process (``WATCHDOG_PID``), else 0."""
    text, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    if not text.isdecimal() or (pid and pid != str(os.getpid())):
        return 0.0
    return int(text) / 1e6
