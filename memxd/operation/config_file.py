"""The config file as something to write and to show: set values in it, tell where each setting comes from.

Owns the editing, which leaves every other line as it is and replaces the file in one step with mode 0600, and the list
that ``memx config show`` prints. What a setting is, and the reading, are ``memxd/config.py``'s.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memxd.config import BY_NAME, SETTINGS, Config, chosen_file, from_environ
from memxd.errors import ConfigError
from memxd.settings import read_file, unknown

_TABLE_LINE = re.compile(r"^[ \t]*\[", re.MULTILINE)
_HEAD = "# Settings of memxd; docs/CONFIGURATION.md lists all, `memx config check` checks.\n"


@dataclass(frozen=True, slots=True)
class Shown:
    """One setting as it holds: ``value`` as text (a secret: "set" or ""), ``origin``: a file, a variable, "default"."""

    name: str
    value: str
    origin: str
    meaning: str


def shown_settings(environ: Mapping[str, str], file: str | os.PathLike[str] | None = None) -> list[Shown]:
    """Every setting, in the order of the documentation. Raises ConfigError as the daemon's start would."""
    values = Config.load({}, environ, file).public()
    path = chosen_file(file, environ)
    origins = dict.fromkeys(read_file(path, BY_NAME), str(path)) if path else {}
    origins |= {name: BY_NAME[name].env for name in from_environ(environ)}
    return [Shown(s.name, values[s.name], origins.get(s.name, "default"), s.help) for s in SETTINGS]


def parse_assignment(text: str) -> tuple[str, object]:
    """``name=value`` as a setting's name and checked value. Raises ConfigError."""
    name, sign, value = text.partition("=")
    name = name.strip()
    if not sign:
        raise ConfigError(f"{text!r}: write name=value")
    if name not in BY_NAME:
        raise unknown(name, "--set", BY_NAME)
    setting = BY_NAME[name]
    if not setting.in_file:
        raise ConfigError(f"{name} does not go into the file, because clients do not read it; set {setting.env}")
    return name, setting.parse(value.strip(), "--set")


def write_settings(path: Path, values: Mapping[str, object]) -> None:
    """Set these in the file, which is made when it lacks. Raises ConfigError when it is no TOML or is not writable."""
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else _HEAD
        tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML ({error}); mend it first") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    for name, value in values.items():
        text = _with(text, name, f"{name} = {_toml(value)}")
    tomllib.loads(text)
    try:
        _replace(path, text)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def _with(text: str, name: str, line: str) -> str:
    """The text with the setting's line replaced, or added before the first table."""
    table = _TABLE_LINE.search(text)
    head, rest = (text[: table.start()], text[table.start() :]) if table else (text, "")
    pattern = re.compile(rf"^[ \t]*{re.escape(name)}[ \t]*=.*$", re.MULTILINE)
    if pattern.search(head):
        return pattern.sub(lambda _: line, head, count=1) + rest
    return f"{head.rstrip()}\n{line}\n".lstrip() + ("\n" if rest else "") + rest


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    # JSON's strings are TOML's, but for DEL, which TOML wants escaped.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, fresh = tempfile.mkstemp(dir=path.parent, prefix=".config-")  # mkstemp makes it 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(fresh, path)
    except OSError:
        Path(fresh).unlink(missing_ok=True)
        raise
