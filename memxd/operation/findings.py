"""What a diagnosis is made of: one finding with its reason, its fix, and the command that does it.

Owns the shape only. The checks (``check_files.py``, ``check_daemon.py``, ``check_model.py``) make them, ``doctor.py``
gathers and mends, ``cli/doctor.py`` prints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

State: TypeAlias = Literal["ok", "note", "problem", "fixed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    ``reason`` says what it means when it is not in order, ``fix`` what to do, ``command`` how. ``mend`` does it here
    and now; it is there only where nothing can be lost by it.
    """

    check: str
    state: State
    text: str
    reason: str = ""
    fix: str = ""
    command: str = ""
    mend: Callable[[], object] | None = field(default=None, repr=False, compare=False)


def ok(check: str, text: str) -> Finding:
    """Nothing to do."""
    return Finding(check, "ok", text)


def note(check: str, text: str, reason: str = "", fix: str = "", command: str = "") -> Finding:
    """Good to know; nothing is wrong."""
    return Finding(check, "note", text, reason, fix, command)


def problem(
    check: str, text: str, reason: str, fix: str, command: str = "", mend: Callable[[], object] | None = None
) -> Finding:
    """Something is wrong."""
    return Finding(check, "problem", text, reason, fix, command, mend)
