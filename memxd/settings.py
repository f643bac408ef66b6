"""How a setting is described, parsed and checked; the mechanism below ``config.py``.

Owns the ``Setting`` description, the parsing of text and TOML values with their limits, the reading of the config
file with its permission rule, and the suggestion of a near name. Holds no setting itself and reads no environment.
Called by ``config.py``, by the command line (which turns settings into flags) and by the documentation check.
"""

from __future__ import annotations

import difflib
import math
import os
import stat
import tomllib
import zoneinfo
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from memxd.errors import ConfigError

Kind: TypeAlias = Literal["int", "float", "bool", "str", "choice", "path", "socket", "zone", "url"]

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})


#: Characters of a wrong value that a message repeats.
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its names, its type and limits, and what it is for.

    ``low`` and ``high`` bound a number (inclusive); for text ``high`` is its greatest length in characters. A
    ``secret`` is never logged, has no flag (others could read it in the process list), and makes a config file
    that others can read refused. ``live``: SIGHUP changes it in a running daemon.
    """

    name: str
    kind: Kind
    default: Any  # None = it depends on the environment; the help says how
    env: str
    flag: str
    help: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    secret: bool = False
    in_file: bool = True
    live: bool = False

    @property
    def limit(self) -> str:
        """The allowed values in words, for messages and documentation; empty = any."""
        if self.kind == "choice":
            return "one of " + ", ".join(c or '""' for c in self.choices)
        if self.kind in ("int", "float"):
            return f"{_number(self.low)} to {_number(self.high)}" + (f" {self.unit}" if self.unit else "")
        fixed = {
            "path": "a path",
            "socket": "a path",
            "bool": "true or false",
            "zone": "an IANA time zone name",
            "url": "an http:// or https:// URL",
        }
        return fixed.get(self.kind, f"at most {_number(self.high)} characters" if self.high else "")

    def parse(self, value: object, where: str) -> Any:
        """The value in its own type. Text is parsed. Raises ConfigError naming key, place and limit."""
        try:
            return _PARSERS[self.kind](self, value)
        except (ValueError, TypeError, OverflowError) as error:
            shown = "the value given" if self.secret else _shown(value)
            raise ConfigError(
                f"{self.name} ({where}): {shown} is not allowed; it must be {self.limit or 'text'}",
                metadata={"key": self.name, "where": where},
            ) from error


def _shown(value: object) -> str:
    """The value for a message, not longer than a line."""
    try:
        text = repr(value)
    except ValueError:  # a number of thousands of digits, which Python refuses to write out
        return "the value given"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def unknown(name: str, where: str, known: Iterable[str], prefix: str = "") -> ConfigError:
    """The refusal of a name nobody knows, with the nearest known one. ``prefix`` is common to all: it tells nothing."""
    rests = [n.removeprefix(prefix) for n in known]
    near = [prefix + n for n in difflib.get_close_matches(name.removeprefix(prefix), rests, n=1, cutoff=0.6)]
    hint = f"; did you mean {near[0]}?" if near else "; docs/CONFIGURATION.md lists all settings"
    return ConfigError(f"{name} ({where}): no such setting{hint}", metadata={"key": name, "where": where})


def read_file(path: Path, settings: Mapping[str, Setting]) -> dict[str, Any]:
    """The settings of a TOML file (flat ``name = value`` lines), each checked.

    Refused: a file that others can write, one with a secret that others can read, unknown names, values beyond their
    limit. Raises ConfigError naming the key and the file.
    """
    where = str(path)
    try:
        with path.open("rb") as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            raw = tomllib.load(stream)
    except OSError as error:
        raise ConfigError(f"cannot read the config file {where}: {error.strerror}") from error
    except RecursionError as error:
        raise ConfigError(f"the config file {where} is not valid TOML: nested too deep") from error
    except ValueError as error:  # syntax, encoding, a number of thousands of digits
        raise ConfigError(f"the config file {where} is not valid TOML: {error}") from error
    _check_mode(where, mode, secret=any(n in settings and settings[n].secret for n in raw))
    return {name: _from_toml(name, value, where, settings) for name, value in raw.items()}


def read_environ(
    environ: Mapping[str, str], prefix: str, by_env: Mapping[str, Setting], others: Collection[str]
) -> dict[str, Any]:
    """The settings among the variables, each checked. Raises ConfigError for a name that begins with ``prefix`` and
    is neither a setting nor among ``others``."""
    values: dict[str, Any] = {}
    for name, text in environ.items():
        if not name.startswith(prefix) or name in others:
            continue
        setting = by_env.get(name)
        if setting is None:
            raise unknown(name, "environment", by_env, prefix)
        if text:
            values[setting.name] = setting.parse(text, f"{name} in the environment")
    return values


def read_flags(flags: Mapping[str, object], settings: Mapping[str, Setting]) -> dict[str, Any]:
    """The settings among the flags, each checked; None = not given. Raises ConfigError for an unknown name."""
    values: dict[str, Any] = {}
    for name, value in flags.items():
        setting = settings.get(name)
        if setting is None or not setting.flag:
            raise unknown(name, "command line", settings)
        if value is not None:
            values[name] = setting.parse(value, setting.flag)
    return values


def _from_toml(name: str, value: object, where: str, settings: Mapping[str, Setting]) -> Any:
    if name not in settings:
        raise unknown(name, where, settings)
    if not settings[name].in_file:
        raise ConfigError(
            f"{name} ({where}): not allowed in the file, because clients do not read it; set {settings[name].env}",
            metadata={"key": name, "where": where},
        )
    return settings[name].parse(value, where)


def _check_mode(where: str, mode: int, *, secret: bool) -> None:
    if mode & 0o022:
        raise ConfigError(f"others can write the config file {where} (mode {mode:04o}); run: chmod 600 {where}")
    if secret and mode & 0o077:
        raise ConfigError(
            f"the config file {where} holds a secret and others can read it (mode {mode:04o}); run: chmod 600 {where}"
        )


def is_time_zone(name: str) -> bool:
    """Whether the IANA database knows the name. Paths and names with odd characters are not names."""
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


# -- parsers: each takes a Python value or text, and raises ValueError or TypeError ---------------------------------


def _int(setting: Setting, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError("not a whole number")
    return int(_bounded(setting, int(value)))


def _float(setting: Setting, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError("not a number")
    return float(_bounded(setting, float(value)))


def _bounded(setting: Setting, number: float) -> float:
    too_low = setting.low is not None and number < setting.low
    too_high = setting.high is not None and number > setting.high
    if too_low or too_high or not math.isfinite(number):
        raise ValueError("out of range")
    return number


def _bool(_: Setting, value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = _plain(value).lower()
    if text not in _TRUE | _FALSE:
        raise ValueError("neither true nor false")
    return text in _TRUE


def _str(setting: Setting, value: object) -> str:
    text = _plain(value)
    if setting.high is not None and len(text) > setting.high:
        raise ValueError("too long")
    return text


def _choice(setting: Setting, value: object) -> str:
    text = _plain(value)
    if text not in setting.choices:
        raise ValueError("not a choice")
    return text


def _path(_: Setting, value: object) -> Path:
    text = _plain(os.fspath(value) if isinstance(value, os.PathLike) else value)
    if not text:
        raise ValueError("empty")
    return Path(os.path.abspath(os.path.expanduser(text)))


def _socket(_: Setting, value: object) -> str:
    """As it is: clients in other languages neither trim it nor expand a tilde."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str):
        raise TypeError("not text")
    return text


def _zone(_: Setting, value: object) -> str:
    text = _plain(value)
    if text and not is_time_zone(text):
        raise ValueError("no such zone")
    return text


def _url(setting: Setting, value: object) -> str:
    text = _str(setting, value)
    if text and not text.startswith(("http://", "https://")):
        raise ValueError("not a URL")
    return text


def _plain(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    if "\0" in value:
        raise ValueError("holds a zero byte")
    return value.strip()


def _number(value: float | None) -> str:
    return "any" if value is None else f"{value:,.6g}" if value < 10_000 else f"{value:,.0f}"


_PARSERS: dict[str, Any] = {
    "int": _int,
    "float": _float,
    "bool": _bool,
    "str": _str,
    "choice": _choice,
    "path": _path,
    "socket": _socket,
    "zone": _zone,
    "url": _url,
}
