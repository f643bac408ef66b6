"""How log lines look: one line each on standard error, for people or for machines.

Owns the two formats and their choice. Fields come as ``extra={"fields": {...}}`` and hold facts, never stored or asked
text. Standard output stays empty. Also remembers the last error, for Status. Called by ``daemon.py``.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

from memxd.model import LastError

log = logging.getLogger("memxd")

_QUIET = ("grpc", "httpx", "httpcore")


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, then the fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line = {"time": _time(record), "level": record.levelname.lower(), "logger": record.name}
        line |= {"message": record.getMessage(), **_fields(record)}
        return json.dumps(line, ensure_ascii=False, default=str)


class TextFormatter(logging.Formatter):
    """``time LEVEL logger: message key=value ...``; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        fields = _fields(record)
        trace = fields.pop("traceback", "")
        pairs = "".join(f" {key}={_plain(value)}" for key, value in fields.items())
        line = f"{_time(record)} {record.levelname:<7} {record.name}: {record.getMessage()}{pairs}"
        return f"{line}\n{str(trace).rstrip()}" if trace else line


def configure(level: str, form: str, stream: TextIO | None = None) -> None:
    """Send every log line to ``stream`` (default: standard error). ``form``: auto, text or json."""
    stream = sys.stderr if stream is None else stream
    text = form == "text" or (form == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter() if text else JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler, _remembering]
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    for name in _QUIET:  # their info lines name addresses and bodies
        logging.getLogger(name).setLevel(logging.WARNING)


class _Remembering(logging.Handler):
    """Keeps the newest line of level error."""

    last: LastError | None = None

    def emit(self, record: logging.LogRecord) -> None:
        fields = dict(getattr(record, "fields", {}))
        kind = fields.get("type") or (record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else "")
        text = record.getMessage() + (f" ({kind})" if kind else "")
        if "log_id" in fields:
            text += f", log id {fields['log_id']}"
        remember(str(fields.get("rpc", record.name)), text, int(record.created * 1e6))


_remembering = _Remembering(logging.ERROR)


def remember(where: str, text: str, at: int | None = None) -> None:
    """Make this the last error; for what is told on a lower level because its caller was told already."""
    _remembering.last = LastError(time.time_ns() // 1_000 if at is None else at, where, text)


def last_error() -> LastError | None:
    """What went wrong last in this process; None = nothing yet."""
    return _remembering.last


def keep_texts_out() -> None:
    """Have the interpreter's own last words about an exception go through the log, which leaves its text out."""

    def died(what: Any) -> None:
        thread = getattr(what.thread, "name", "?")
        trace = (what.exc_type, what.exc_value, what.exc_traceback)
        log.critical("a thread died", exc_info=trace, extra={"fields": {"thread": thread}})

    def passed_over(what: Any) -> None:
        trace = (what.exc_type, what.exc_value, what.exc_traceback)
        log.error("an exception in a place where none can be raised", exc_info=trace)

    threading.excepthook = died
    sys.unraisablehook = passed_over


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields = dict(getattr(record, "fields", {}))
    if record.exc_info and record.exc_info[0] is not None:
        # Type and frames only: the text of an exception may quote what somebody wanted remembered.
        fields["type"] = record.exc_info[0].__name__
        fields["traceback"] = "".join(traceback.format_tb(record.exc_info[2]))
    return fields


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(value: object) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or any(c in text for c in ' "=\n') else text
