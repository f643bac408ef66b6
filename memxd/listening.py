"""The TCP port, when one is asked for: its address, its certificates, and what it must have to be opened at all.

Owns the rule: beyond this machine only with TLS, and there only with client certificates or tokens; on the loopback
address tokens are enough. Never by default. Reads the certificate files, and refuses a key that others can read. Opens
nothing (``service/server.py`` binds). Called by ``daemon.py`` at the start and by ``memx config check``.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from memxd.address import is_loopback, split_address
from memxd.errors import ConfigError

#: A certificate file of more bytes is none.
_PEM_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Listening:
    """Where to listen and how. ``address`` is ``host:port`` as gRPC reads it; the rest PEM, empty = none."""

    address: str
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)
    client_ca: bytes = b""


def open_listening(listen: str, *, auth: str, certificate: str, key: str, client_ca: str) -> Listening | None:
    """What to listen on; None when ``listen`` is empty. The last three are paths, empty = none. Raises ConfigError
    naming what to set.
    """
    if not listen:
        return None
    try:
        host, port = split_address(listen)
    except ValueError as error:
        raise ConfigError(f"listen: {listen!r} is no address; it must be host:port, such as 127.0.0.1:7077") from error
    if bool(certificate) != bool(key):
        raise ConfigError("listen: tls_cert and tls_key belong together; set both")
    if client_ca and not certificate:
        raise ConfigError("listen: tls_client_ca needs a certificate of the daemon's own; set tls_cert and tls_key")
    _check_rule(listen, host, token=auth == "token", tls=bool(certificate), mutual=bool(client_ca))
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if not certificate:
        return Listening(address)
    return Listening(
        address,
        _pem("tls_cert", certificate),
        _pem("tls_key", key, secret=True),
        _pem("tls_client_ca", client_ca) if client_ca else b"",
    )


def _check_rule(listen: str, host: str, *, token: bool, tls: bool, mutual: bool) -> None:
    if tls and (mutual or token):
        return
    if tls:
        raise ConfigError(
            f'listen: on {listen} anybody could call; set tls_client_ca (client certificates) or auth = "token"'
        )
    if not is_loopback(host):
        raise ConfigError(
            f"listen: {listen} can be reached from other machines, where nothing may go in plain text; set tls_cert "
            'and tls_key, and tls_client_ca or auth = "token" (or listen on 127.0.0.1)'
        )
    if not token:
        raise ConfigError(
            f'listen: every user of this machine could call {listen}; set auth = "token", or tls_cert, tls_key and '
            "tls_client_ca"
        )


def _pem(name: str, text: str, *, secret: bool = False) -> bytes:
    path = Path(text).expanduser()
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            raw = file.read(_PEM_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{name}: cannot read {path}: {error.strerror}") from error
    if secret and mode & 0o077:
        raise ConfigError(f"{name}: others can use {path} (mode {mode:04o}); run: chmod 600 {path}")
    if len(raw) > _PEM_BYTES or b"-----BEGIN " not in raw:
        raise ConfigError(f"{name}: {path} holds no PEM")
    return raw
