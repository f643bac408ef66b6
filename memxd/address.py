"""Network addresses as text: taken apart, and whether only this machine can reach one.

Owns no rule about them. The daemon's side is ``listening.py``, the client's ``client/access.py``; both call it. Imports
only the standard library.
"""

from __future__ import annotations

import ipaddress
import re

_PORT = re.compile(r"[0-9]{1,5}")


def split_address(text: str) -> tuple[str, int]:
    """``127.0.0.1:7077`` or ``[::1]:7077`` as host and port. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = str(ipaddress.IPv6Address(host[1:-1]))
    elif ":" in host:
        raise ValueError("an IPv6 address stands in brackets")
    if not colon or not host or not _PORT.fullmatch(port) or not 1 <= int(port) <= 65_535:
        raise ValueError("not host:port")
    if any(c.isspace() or c in "/%@,?#" for c in host):
        raise ValueError("not a host")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address. A name counts only when it is ``localhost``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
