"""How a client reaches the daemon: the socket or a TCP address, with which certificates and which token.

Owns the reading of addresses (``tls://host:port``, on this machine ``tcp://``), of the environment's names for them,
and of token files. A token goes over a Unix socket, TLS, or the loopback address, never elsewhere, and is part of no
message and no ``repr``. Sends nothing (``sync.py``, ``aio.py``).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from memxd.address import is_loopback, split_address
from memxd.client import connection
from memxd.errors import ConfigError, InvalidArgumentError

#: Names in the environment; the daemon reads none of them.
ADDRESS, TOKEN, TOKEN_FILE = "MEMX_ADDRESS", "MEMX_TOKEN", "MEMX_TOKEN_FILE"
TLS_CA, TLS_CERT, TLS_KEY = "MEMX_TLS_CA", "MEMX_TLS_CERT", "MEMX_TLS_KEY"
_MOST_BYTES = 1 << 20
_SHAPE = re.compile(r"mx_[0-9A-Za-z_-]{1,200}")

Path_ = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificates as PEM files. ``ca``: whom to believe that it is the daemon (None: what the system believes);
    ``cert`` and ``key``: what we show, when the daemon asks for it."""

    ca: Path_ | None = None
    cert: Path_ | None = None
    key: Path_ | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """Where to, and as whom. ``shown`` names the place in messages."""

    target: str
    shown: str
    credentials: grpc.ChannelCredentials | None = None
    token: str = field(default="", repr=False)

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What goes along with every call."""
        return (("authorization", f"Bearer {self.token}"),) if self.token else ()

    def channel(self, module: Any) -> Any:
        """A channel of ``grpc`` or ``grpc.aio``."""
        options = list(connection.OPTIONS)
        if self.credentials is None:
            return module.insecure_channel(self.target, options=options)
        return module.secure_channel(self.target, self.credentials, options=[*options, *_ALIVE])


#: Over a network nobody tells when the daemon's machine is gone.
_ALIVE: tuple[tuple[str, Any], ...] = (("grpc.keepalive_time_ms", 60_000), ("grpc.keepalive_timeout_ms", 20_000))


def find_access(
    socket: Path_ | None, address: str | None, token: str | None, tls: Tls | None, environ: Mapping[str, str]
) -> Access:
    """How to reach the daemon: what is given, else what the environment names, else the socket by docs/SOCKET.md.

    Raises InvalidArgumentError for an address or token that is none, ConfigError for files that cannot be used.
    """
    secret = _token(token, environ)
    address = address or ("" if socket is not None else environ.get(ADDRESS, ""))
    if not address:
        path = connection.find_socket(socket)
        return Access(connection.target(path), str(path), None, secret)
    if socket is not None:
        raise InvalidArgumentError.field("address", "give a socket or an address, not both")
    scheme, separator, rest = address.partition("://")
    try:
        host, port = split_address(rest)
    except ValueError:
        host, port = "", 0
    if not separator or not host or scheme not in ("tls", "tcp"):
        raise InvalidArgumentError.field("address", "must be tls://host:port, or on this machine tcp://127.0.0.1:port")
    if scheme == "tcp" and not is_loopback(host):
        raise InvalidArgumentError.field("address", "tcp:// is for this machine only; to others use tls://")
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    credentials = _credentials(tls or _tls_of(environ)) if scheme == "tls" else None
    return Access(target, address, credentials, secret)


def read_token(path: Path_) -> str:
    """The token in a file that nobody else can read. Raises ConfigError, InvalidArgumentError; neither quotes it."""
    raw = _read("the token file", path, secret=True)
    return _checked(raw.decode("utf-8", "replace").strip(), f"the token file {os.fspath(path)}")


def _token(given: str | None, environ: Mapping[str, str]) -> str:
    if given is not None:
        return _checked(given, "token") if given else ""
    if environ.get(TOKEN):
        return _checked(environ[TOKEN].strip(), TOKEN)
    return read_token(environ[TOKEN_FILE]) if environ.get(TOKEN_FILE) else ""


def _checked(token: str, where: str) -> str:
    if not _SHAPE.fullmatch(token):
        raise InvalidArgumentError.field("token", f"what stands in {where} is no token; one begins with mx_")
    return token


def _tls_of(environ: Mapping[str, str]) -> Tls:
    return Tls(environ.get(TLS_CA) or None, environ.get(TLS_CERT) or None, environ.get(TLS_KEY) or None)


def _credentials(tls: Tls) -> grpc.ChannelCredentials:
    if (tls.cert is None) != (tls.key is None):
        raise InvalidArgumentError.field("tls", "a client certificate and its key belong together")
    credentials: grpc.ChannelCredentials = grpc.ssl_channel_credentials(
        None if tls.ca is None else _read("the CA file", tls.ca),
        None if tls.key is None else _read("the key file", tls.key, secret=True),
        None if tls.cert is None else _read("the certificate file", tls.cert),
    )
    return credentials


def _read(what: str, path: Path_, *, secret: bool = False) -> bytes:
    try:
        with Path(path).expanduser().open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            raw = file.read(_MOST_BYTES)
    except OSError as error:
        raise ConfigError(f"{what} {os.fspath(path)} cannot be read: {error.strerror}") from error
    if secret and mode & 0o077:
        raise ConfigError(f"others can use {what} {os.fspath(path)} (mode {mode:04o}); run: chmod 600 on it")
    return raw
