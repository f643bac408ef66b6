"""``memx setup`` and ``memx uninstall``: the first and the last thing on a machine.

Owns the questions and what is printed; the file is ``memxd/operation/config_file.py``'s, the service that of
``service.py``. Works on the files, without a daemon.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from memxd.cli.scope import Session, verb
from memxd.errors import ConfigError

_FILES = ("json",)
_LOCAL = "here"
#: Presets whose endpoint is this machine's own and wants no key.
_KEYLESS = ("ollama", "lmstudio")
#: Seconds for a daemon to finish before its files are removed.
_END_SECONDS = 70.0
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Set this; repeat. NAME=- reads a line of standard input."),
]


def register(app: typer.Typer) -> None:
    verb(app, "setup", takes=_FILES)(setup)
    verb(app, "uninstall", takes=_FILES)(uninstall)


def setup(
    session: Session,
    non_interactive: Annotated[bool, typer.Option("--non-interactive", help="Ask nothing.")] = False,
    assignments: Assignments = None,
    service: Annotated[bool | None, typer.Option("--service/--no-service", help="Run it as a service.")] = None,
) -> None:
    """Write the config file: by a few questions, or as --set says. Every answer has a default that works."""
    from memxd.config import Config, config_file, process_environ
    from memxd.operation.config_file import parse_assignment, write_settings

    environ = process_environ()
    path = config_file(environ)
    if not non_interactive and not sys.stdin.isatty():
        raise ConfigError("there is no terminal to ask on; use --non-interactive with --set NAME=VALUE")
    values = {} if non_interactive else _ask(Config.load({}, environ))
    values |= dict(parse_assignment(_secret(text)) for text in assignments or ())
    if not non_interactive and service is None:
        service = typer.confirm("Start it at every login, as a service?", default=True, err=True)
    write_settings(path, values)
    Config.load({}, environ)  # what was just written must be sound together with the rest
    if session.out.as_json:
        session.out.json({"config_file": str(path), "written": sorted(values), "service": bool(service)})
    else:
        session.out.line(f"wrote {path}")
        _tell_running(session, Config.load({}, environ).socket, service=bool(service))
    if service:
        from memxd.cli.service import install

        install(Session(session.settings))


def _tell_running(session: Session, socket: Path, *, service: bool) -> None:
    """A daemon that runs has read the settings as they were."""
    from memxd.operation.service import socket_holder

    if not service and (pid := socket_holder(socket)):
        session.out.note(f"the daemon that runs (pid {pid}) keeps its settings until: memx stop")


def _secret(assignment: str) -> str:
    """``NAME=-`` takes the value from a line of standard input: others can read a command line."""
    name, sign, value = assignment.partition("=")
    return f"{name}={sys.stdin.readline().strip()}" if sign and value == "-" else assignment


def _ask(config: Any) -> dict[str, object]:
    """The questions; values that differ from what holds already."""
    from memxd.embed.openai_presets import PRESETS
    from memxd.settings import is_time_zone

    now = _LOCAL if config.embedder != "openai" else config.openai_preset or _LOCAL
    where = _choose("Where are texts turned into vectors? here = on this machine, no network", [_LOCAL, *PRESETS], now)
    values: dict[str, object] = {}
    if where != _LOCAL:
        values = {"embedder": "openai", "openai_preset": where}
        if where not in _KEYLESS:
            key = typer.prompt("Key of that service (not shown; empty = keep)", default="", hide_input=True,
                               show_default=False, err=True)  # fmt: skip
            values |= {"openai_key": key} if key else {}
    elif config.embedder == "openai":
        values = {"embedder": "onnx"}
    zone = _answer("Time zone of dates without one (empty = the system's)", config.time_zone, is_time_zone)
    if zone != config.time_zone:
        values["time_zone"] = zone
    data_dir = typer.prompt("Where are memories kept?", default=str(config.data_dir), err=True)
    if data_dir != str(config.data_dir):
        values["data_dir"] = data_dir
    return values


def _choose(question: str, choices: list[str], default: str) -> str:
    return _answer(f"{question} ({', '.join(choices)})", default, lambda text: text in choices)


def _answer(question: str, default: str, allowed: Callable[[str], bool]) -> str:
    """Ask until the answer is allowed; the default always is."""
    while True:
        text = str(typer.prompt(question, default=default, show_default=bool(default), err=True)).strip()
        if text == default or allowed(text):
            return text
        typer.echo(f"{text!r} is not one of them", err=True)


def uninstall(
    session: Session,
    purge: Annotated[bool, typer.Option("--purge", help="Delete the memories and the settings as well.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before deleting.")] = False,
) -> None:
    """Remove the service and end the daemon. The memories and the settings stay, unless --purge is given."""
    from memxd.config import Config, config_file, process_environ

    environ = process_environ()
    config, file = Config.load({}, environ), config_file(environ)
    if purge and not yes:
        _confirm(str(config.data_dir))
    done = {"service_removed": _remove_service(session), "daemon_ended": _end(config), "purged": False}
    if purge:
        from memxd.operation.purge import purge as delete

        done["purged"] = delete(config.data_dir)
        file.unlink(missing_ok=True)
    if session.out.as_json:
        session.out.json({**done, "data_dir": str(config.data_dir), "config_file": str(file)})
        return
    session.out.line("the service is removed" if done["service_removed"] else "no service was installed")
    if done["daemon_ended"]:
        session.out.line("the daemon that ran in the background has ended")
    kept = f"the memories stay in {config.data_dir}, the settings in {file}; memx uninstall --purge deletes them"
    session.out.line("memories and settings are deleted" if purge else kept)
    session.out.line("the program itself: pip uninstall memxd")


def _confirm(folder: str) -> None:
    if not sys.stdin.isatty():
        raise ConfigError("--purge deletes every memory; without a terminal to ask on, say so with --yes")
    answer = typer.prompt(f'This deletes every memory in {folder}. Type "delete" to do it', default="no", err=True)
    if answer.strip() != "delete":
        raise typer.Abort


def _remove_service(session: Session) -> bool:
    from memxd.config import process_environ
    from memxd.operation.service import find_manager

    manager = find_manager(process_environ())
    return manager.file.exists() and manager.remove()


def _end(config: Any) -> bool:
    from memxd.operation.service import end_daemon

    return end_daemon(config.socket, _END_SECONDS) > 0
