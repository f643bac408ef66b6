"""``memx config``: where the settings come from, what holds, and whether they are sound. ``memxd config`` is the same.

Owns the flags and what is printed; the settings are ``memxd/config.py``'s. Works on the files, without a daemon.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memxd.cli.render import Column
from memxd.cli.scope import Session, verb

_FILES = ("json",)
_COLUMNS = (
    Column("setting", style="bold"),
    Column("value", fold=True, grow=True),
    Column("from", fold=True),
)
File = Annotated[Path | None, typer.Argument(help="The file (default: MEMXD_CONFIG, else the usual place).")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="The daemon's settings.", no_args_is_help=True, rich_markup_mode=None)
    for function in (show, path, check):
        verb(group, function.__name__, takes=_FILES)(function)
    app.add_typer(group, name="config")


def show(session: Session, file: File = None) -> None:
    """List every setting, its value and where it was set. Secrets are not shown."""
    from memxd.config import process_environ
    from memxd.operation.config_file import shown_settings

    rows = shown_settings(process_environ(), file)
    if session.out.as_json:
        session.out.json({"settings": rows})
        return
    session.out.table(_COLUMNS, [(row.name, row.value, row.origin) for row in rows])


def path(session: Session) -> None:
    """Print the path of the config file, whether it exists or not."""
    from memxd.config import chosen_file, config_file, process_environ

    environ = process_environ()
    found = chosen_file(None, environ) or config_file(environ)
    if session.out.as_json:
        session.out.json({"path": str(found), "exists": found.exists()})
    else:
        session.out.line(str(found))


def check(session: Session, file: File = None) -> None:
    """Read the settings as the daemon's start would. Exit code 2, with the key and the place, when one is wrong."""
    from memxd.config import chosen_file, process_environ
    from memxd.operation.config_file import shown_settings

    environ = process_environ()
    changed = [row for row in shown_settings(environ, file) if row.origin != "default"]
    read = chosen_file(file, environ)
    if session.out.as_json:
        session.out.json({"sound": True, "file": str(read) if read else None, "changed": [r.name for r in changed]})
        return
    names = ", ".join(row.name for row in changed) or "none, the defaults hold"
    session.out.line(f"sound; file: {read or 'none'}; set: {names}")
