"""Every setting of the daemon: one frozen Config, filled from file < environment < flags.

Owns the names, types, units, limits, defaults and help of all settings (``SETTINGS``, which docs/CONFIGURATION.md is
checked against), and the places of the config file and of the data. The only module that reads the environment.
Does not create files or act on a value. ``daemon.py`` and ``cli/`` call it; everything below gets plain values.

A setting is named the same everywhere: ``max_pending`` in the TOML file, ``MEMXD_MAX_PENDING`` in the environment,
``--max-pending`` on the command line. An unknown name is refused with the nearest known one.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import platformdirs

from memxd.settings import Kind, Setting, is_time_zone, read_environ, read_file, read_flags
from memxd.socket_path import resolve_socket

PREFIX = "MEMXD_"
#: Names the config file itself.
CONFIG_NAME = "MEMXD_CONFIG"
#: Names in the environment with our prefix that are no settings: the build reads the other two.
_NO_SETTINGS = frozenset({CONFIG_NAME, "MEMXD_REQUIRE_EXTENSIONS", "MEMXD_DEBUG_EXTENSIONS"})

#: What SIGHUP changes in a running daemon.
_LIVE = frozenset({"log_level", "log_format", "slow_ms", "drain_seconds"})


def _about(help_: str, kind: Kind, **facts: Any) -> dict[str, Any]:
    return {"help": help_, "kind": kind, **facts}


def _setting(default: str | float, help_: str, kind: Kind, **facts: Any) -> Any:
    return field(default=default, repr=not facts.get("secret"), metadata=_about(help_, kind, **facts))


@dataclass(frozen=True, slots=True)
class Config:
    """All settings, valid as they stand. Made by ``Config.load``; tests may also use the constructor."""

    socket: Path = field(
        default_factory=Path,
        metadata=_about(
            "The Unix socket to serve. Not in the file, because clients do not read it: set MEMXD_SOCKET for both "
            "sides. Default: $XDG_RUNTIME_DIR/memxd/memxd.sock, else memxd-<uid>/memxd.sock in the temporary folder.",
            "socket",
            in_file=False,
        ),
    )
    data_dir: Path = field(
        default_factory=Path,
        metadata=_about(
            "Where everything is kept. Default: memxd in the user's data folder ($XDG_DATA_HOME or ~/.local/share; "
            "~/Library/Application Support on macOS).",
            "path",
        ),
    )
    log_level: str = _setting(
        "info", "The least severe log line that is written.", "choice", choices=("debug", "info", "warning", "error")
    )
    log_format: str = _setting(
        "auto",
        "How log lines look on standard error; auto = text on a terminal, else JSON.",
        "choice",
        choices=("auto", "text", "json"),
    )
    slow_ms: int = _setting(
        1_000, "A slower call is told in the log, a search with its stages; 0 = none.", "int", low=0, high=3_600_000
    )
    time_zone: str = _setting(
        "", "IANA zone in which dates are meant when a request names none. Empty = the system's.", "zone"
    )
    workers: int = _setting(8, "Threads that answer calls.", "int", unit="threads", low=1, high=256)
    max_pending: int = _setting(
        256,
        "Calls running or waiting at once; more are refused with OVERLOADED.",
        "int",
        unit="calls",
        low=1,
        high=65_536,
    )
    max_streams: int = _setting(
        16, "StoreMany streams at once; more are refused with OVERLOADED.", "int", unit="streams", low=1, high=256
    )
    stream_idle_seconds: float = _setting(
        300.0,
        "How long a StoreMany stream may bring no item before it ends with STREAM_IDLE.",
        "float",
        unit="seconds",
        low=1,
        high=86_400,
    )
    drain_seconds: float = _setting(
        10.0, "How long a stopping daemon lets running calls finish.", "float", unit="seconds", low=0, high=3_600
    )
    auth: str = _setting(
        "off",
        "Who may call: off = whoever can open the socket; token = whoever has a token besides (memx token create).",
        "choice",
        choices=("off", "token"),
    )
    listen: str = _setting(
        "",
        "A TCP address to serve besides the socket, such as 127.0.0.1:7077. Empty = none. Needs tls_cert, tls_key and "
        "tls_client_ca, or tls_cert, tls_key and auth = token; on the loopback address auth = token is enough.",
        "str",
        high=300,
    )
    tls_cert: str = _setting("", "PEM file with the TCP port's certificate chain. Empty = no TLS.", "str", high=4_096)
    tls_key: str = _setting("", "PEM file with the key of tls_cert; mode 0600.", "str", high=4_096)
    tls_client_ca: str = _setting(
        "",
        "PEM file with the certificates that sign those of clients; when set, the TCP port takes nobody without one.",
        "str",
        high=4_096,
    )
    reflection: bool = _setting(
        True, "Whether the gRPC reflection service answers; with auth = token, to any token.", "bool"
    )
    kernels: str = _setting(
        "auto",
        "Which kernels run: c = compiled (an error when missing), py = plain Python, auto = compiled when there.",
        "choice",
        choices=("auto", "c", "py"),
    )
    embedder: str = _setting(
        "onnx",
        "What turns text into vectors; hashing is for tests only.",
        "choice",
        choices=("onnx", "openai", "hashing"),
    )
    model: str = _setting(
        "",
        "The ONNX model: empty = the one that comes with memxd, else the name of an installed one or a folder.",
        "str",
        high=4_096,
    )
    embed_threads: int = _setting(
        0, "Texts embedded at the same time. 0 = one per core.", "int", unit="threads", low=0, high=256
    )
    query_cache: int = _setting(
        4_096, "Query vectors kept in memory. 0 = none.", "int", unit="vectors", low=0, high=1_000_000
    )
    openai_preset: str = _setting(
        "",
        "Known endpoint that fills base URL, model and dimension in. Empty = none.",
        "choice",
        choices=("", "openai", "deepinfra", "siliconflow", "ollama", "lmstudio"),
    )
    openai_base_url: str = _setting(
        "", "Base URL of an OpenAI-compatible embeddings endpoint. Empty = the preset's.", "url", high=2_048
    )
    openai_model: str = _setting("", "Model name at that endpoint. Empty = the preset's.", "str", high=256)
    openai_key: str = _setting(
        "", "Secret key for that endpoint. Empty = none is sent.", "str", high=4_096, secret=True
    )
    openai_dimension: int = _setting(
        0,
        "Vector length to ask of that endpoint. 0 = the preset's, or what it answers.",
        "int",
        unit="numbers",
        low=0,
        high=16_384,
    )
    openai_batch: int = _setting(
        0, "Texts sent to that endpoint in one request. 0 = the preset's.", "int", unit="texts", low=0, high=2_048
    )
    openai_window: int = _setting(
        0,
        "Longest text for that model in its own tokens. 0 = the preset's.",
        "int",
        unit="tokens",
        low=0,
        high=1_000_000,
    )
    openai_timeout: float = _setting(
        10.0, "How long one request to that endpoint may take.", "float", unit="seconds", low=0.1, high=600
    )
    bm25_k1: float = _setting(1.2, "BM25: how soon repetitions of a word stop counting.", "float", low=0, high=10)
    bm25_b: float = _setting(0.75, "BM25: how much long memories are held back.", "float", low=0, high=1)
    rrf_k: int = _setting(60, "Reciprocal rank fusion: the constant added to a rank.", "int", low=1, high=10_000)
    half_life_days: float = _setting(
        30.0, "Age at which recency is one half.", "float", unit="days", low=0.001, high=36_525
    )

    @classmethod
    def load(
        cls,
        flags: Mapping[str, object] | None = None,
        environ: Mapping[str, str] | None = None,
        file: str | os.PathLike[str] | None = None,
    ) -> Config:
        """Read all three sources and check every value.

        ``flags`` maps setting names to values (None = not given; text is parsed), ``environ`` defaults to the
        process's, ``file`` is ``--config`` (default: ``MEMXD_CONFIG``, else ``config_file(environ)`` if there is one).
        Raises ConfigError naming the key, where it was set, and the limit or the nearest known name.
        """
        environ = os.environ if environ is None else environ
        values: dict[str, Any] = {}
        chosen = chosen_file(file, environ)
        values.update(read_file(chosen, BY_NAME) if chosen else {})
        values.update(from_environ(environ))
        values.update(read_flags({} if flags is None else flags, BY_NAME))
        values["socket"] = resolve_socket(values.get("socket"), environ)
        values.setdefault("data_dir", data_folder(environ))
        return cls(**values)

    def public(self) -> dict[str, str]:
        """Every setting as text for logs and ``memx doctor``; secrets are shown as "set" or ""."""
        return {
            s.name: ("set" if getattr(self, s.name) else "") if s.secret else str(getattr(self, s.name))
            for s in SETTINGS
        }


def _table() -> tuple[Setting, ...]:
    return tuple(
        Setting(
            name=f.name,
            default=None if f.default is dataclasses.MISSING else f.default,
            env=PREFIX + f.name.upper(),
            flag="" if f.metadata.get("secret") else "--" + f.name.replace("_", "-"),
            live=f.name in _LIVE,
            **f.metadata,
        )
        for f in dataclasses.fields(Config)
    )


#: The settings table, in the order of the documentation.
SETTINGS: tuple[Setting, ...] = _table()
BY_NAME: dict[str, Setting] = {s.name: s for s in SETTINGS}
_BY_ENV: dict[str, Setting] = {s.env: s for s in SETTINGS}


def config_file(environ: Mapping[str, str] | None = None) -> Path:
    """Where the config file is looked for when nobody names one (``$XDG_CONFIG_HOME/memxd/config.toml``)."""
    default = platformdirs.user_config_path("memxd", appauthor=False)
    return _user_folder(environ, "XDG_CONFIG_HOME", default) / "config.toml"


def data_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Where data is kept when nobody names a folder (``$XDG_DATA_HOME/memxd``)."""
    return _user_folder(environ, "XDG_DATA_HOME", platformdirs.user_data_path("memxd", appauthor=False))


def system_time_zone(environ: Mapping[str, str] | None = None) -> str:
    """IANA name of the machine's zone: ``TZ`` when it is one, else where /etc/localtime points to, else UTC."""
    named = (os.environ if environ is None else environ).get("TZ", "").removeprefix(":")
    target = os.path.realpath("/etc/localtime")
    for name in (named, target.partition("/zoneinfo/")[2]):
        if name and is_time_zone(name):
            return name
    return "UTC"


def process_environ() -> Mapping[str, str]:
    """The process's environment, for the few callers that must hand it on (the one door to ``os.environ``)."""
    return os.environ


def silence_grpc() -> None:
    """Keep gRPC's own lines out of the log, unless the operator's environment asks for them. Before gRPC's first use.

    They are no lines of ours in form, and quote what any peer sends (a GOAWAY's text with its line breaks). What they
    tell and matters, a failed bind, is raised as well.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")


def _user_folder(environ: Mapping[str, str] | None, xdg: str, default: Path) -> Path:
    base = (os.environ if environ is None else environ).get(xdg, "")
    return Path(base) / "memxd" if base.startswith("/") else default


def chosen_file(file: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> Path | None:
    """The file to read: a named one must exist, the default one need not."""
    named = os.fspath(file) if file is not None else environ.get(CONFIG_NAME, "")
    if named:
        return Path(named).expanduser()
    default = config_file(environ)
    return default if default.exists() else None


def from_environ(environ: Mapping[str, str]) -> dict[str, Any]:
    """The settings of the environment, checked."""
    return read_environ(environ, PREFIX, _BY_ENV, _NO_SETTINGS)
