"""Words of the command line as Python values: times, spans of time, key=value pairs.

Owns the few notations that people type. Everything else is checked by the daemon. The verbs call it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import typer

_AGO = re.compile(r"(?P<sign>[+-]?)(?P<number>\d{1,6})(?P<unit>[smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
TIME_HELP = "RFC 3339, or 2026-05-01[T10:30] in your zone, or 7d (ago), +30d (from now), now"


def when(text: str, flag: str, now: datetime | None = None) -> datetime:
    """An aware datetime from RFC 3339, a local date or time, ``now``, ``7d`` (ago) or ``+30d`` (from now)."""
    now = now or datetime.now(UTC)
    text = text.strip()
    if text.lower() == "now":
        return now
    span = _AGO.fullmatch(text)
    try:
        if span:
            length = timedelta(**{_UNITS[span["unit"]]: int(span["number"])})
            return now + length if span["sign"] == "+" else now - length
        parsed = datetime.fromisoformat(text)
        return parsed.astimezone() if parsed.tzinfo is None else parsed
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is no time; write {TIME_HELP}", param_hint=flag) from None


def length(text: str, flag: str) -> timedelta:
    """A span of time such as ``90d``."""
    span = _AGO.fullmatch(text.strip())
    if span is None or span["sign"]:
        raise typer.BadParameter(f"{text!r} is no length of time; write 90d, 12h or 8w", param_hint=flag)
    return timedelta(**{_UNITS[span["unit"]]: int(span["number"])})


def maybe_when(text: str | None, flag: str) -> datetime | None:
    return None if text is None else when(text, flag)


def span(start: str | None, end: str | None, name: str) -> tuple[datetime | None, datetime | None] | None:
    """A half-open span from two flags; None when neither is given."""
    if start is None and end is None:
        return None
    return maybe_when(start, f"--{name}since"), maybe_when(end, f"--{name}until")


def metadata(pairs: Iterable[str], flag: str = "--meta") -> dict[str, Any]:
    """``key=value`` pairs; a value that reads as JSON is that (``2026``, ``true``, ``"2026"``), else it is text."""
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise typer.BadParameter(f"{pair!r} is not key=value", param_hint=flag)
        try:
            found[key.strip()] = json.loads(value, parse_constant=str)
        except (ValueError, RecursionError):
            found[key.strip()] = value
    return found


def content(argument: str | None, *, flag: str = "CONTENT") -> str:
    """The argument, or standard input when it is ``-`` or absent and something is piped in."""
    if argument is not None and argument != "-":
        return argument
    if argument is None and sys.stdin.isatty():
        raise typer.BadParameter("give the text as an argument, or pipe it in", param_hint=flag)
    raw = sys.stdin.buffer.read()
    if not raw.strip():
        raise typer.BadParameter("there is no text; give it as an argument, or pipe it in", param_hint=flag)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(
            f"standard input is not UTF-8 (byte {error.start}); convert it first, for example with iconv",
            param_hint=flag,
        ) from None
