"""``memx doctor``: what is wrong on this machine, why, and which command mends it.

Owns the flags and what is printed; the checks are in ``memxd/operation``, imported inside the function. Works without
a daemon and starts none.
"""

from __future__ import annotations

from typing import Annotated

import typer

from memxd.cli.scope import Session, verb

_SIGNS = {"ok": "ok", "note": "note", "problem": "PROBLEM", "fixed": "FIXED"}
_STYLES = {"ok": "green", "note": "yellow", "problem": "bold red", "fixed": "bold green"}


def register(app: typer.Typer) -> None:
    verb(app, "doctor", takes=("json",))(doctor)


def doctor(
    session: Session,
    fix: Annotated[bool, typer.Option("--fix", help="Mend what can be mended without loss. Deletes no data.")] = False,
) -> None:
    """Look at settings, socket, permissions, disk, schema, indexes, model and service; 5 when a problem is left."""
    from memxd.config import process_environ
    from memxd.operation.doctor import diagnose, mend

    found = diagnose(process_environ())
    if fix:
        found = mend(found)
    left = [finding for finding in found if finding.state == "problem"]
    if session.out.as_json:
        keys = ("check", "state", "text", "reason", "fix", "command")
        rows = [{**{key: getattr(f, key) for key in keys}, "mendable": f.mend is not None} for f in found]
        session.out.json({"sound": not left, "findings": rows})
    else:
        for finding in found:
            session.out.line(f"{_SIGNS[finding.state]:<8}{finding.check}: {finding.text}", _STYLES[finding.state])
            if finding.state != "ok":
                _explain(session, finding.reason, finding.fix, finding.command)
        if any(finding.mend for finding in left):
            session.out.note("memx doctor --fix mends what can be mended without loss")
    if left:
        raise typer.Exit(5)


def _explain(session: Session, reason: str, fix: str, command: str) -> None:
    told = f"{fix}: {command}" if fix and command else fix or command
    for name, text in (("why", reason), ("fix", told)):
        if text:
            session.out.line(f"        {name}: {text}")
