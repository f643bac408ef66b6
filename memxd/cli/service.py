"""``memx service``: the daemon under systemd or launchd. ``memxd service`` is the same. And ``memx stop``.

Owns the flags and what is printed; the managers are in ``memxd/operation``, imported inside the functions. Works
without a daemon. Starting takes over from a daemon that a ``memx`` command had started in the background.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memxd.cli.scope import Session, verb

if TYPE_CHECKING:
    from memxd.operation.service import ServiceManager
    from memxd.operation.systemctl import SystemdUser

#: The common flags of verbs that work on files, without a daemon.
_FILES = ("json",)
#: Seconds for a background daemon to finish before the service takes its place.
_TAKE_OVER_SECONDS = 70.0
System = Annotated[bool, typer.Option("--system", help="The machine-wide template memxd@USER (systemd, as root).")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Run the daemon as a service.", no_args_is_help=True, rich_markup_mode=None)
    verb(group, "install", takes=_FILES)(install)
    for function in (start, stop, restart, status, remove):
        verb(group, function.__name__, takes=_FILES)(function)
    verb(group, "logs", takes=())(logs)
    app.add_typer(group, name="service")
    verb(app, "stop", takes=_FILES)(stop_daemon)


def _manager() -> ServiceManager:
    from memxd.config import process_environ
    from memxd.operation.service import find_manager

    return find_manager(process_environ())


def _systemd() -> SystemdUser:
    from memxd.config import process_environ
    from memxd.operation.systemctl import SystemdUser

    return SystemdUser(process_environ())


def _told(session: Session, text: str, **facts: Any) -> None:
    if session.out.as_json:
        session.out.json(facts)
    else:
        session.out.line(text)


def install(
    session: Session,
    system: System = False,
    no_start: Annotated[bool, typer.Option("--only", help="Do not start it now.")] = False,
    show: Annotated[bool, typer.Option("--print", help="Print the file; change nothing.")] = False,
) -> None:
    """Write the service's file, have it started at login, and start it."""
    if show:
        session.out.line((_systemd().template() if system else _manager().unit()).rstrip("\n"))
        return
    if system:
        path = _systemd().install_template()
        _told(session, f"wrote {path}; start one with: systemctl enable --now memxd@USER", file=str(path))
        return
    manager = _manager()
    path = manager.install()
    if not no_start:
        _take_over(session, manager)
        manager.restart()
    pid = manager.state().pid
    _told(
        session,
        f"wrote {path}" + ("; start it with: memx service start" if no_start else f"; memxd runs (pid {pid})"),
        file=str(path),
        pid=pid,
    )
    if manager.name == "systemd" and not no_start:
        session.out.note("it runs while you are logged in; to run it always: loginctl enable-linger")


def _take_over(session: Session, manager: ServiceManager) -> None:
    """The service wants the socket: end the daemon that holds it, unless it is the service's own."""
    from memxd.config import Config
    from memxd.operation.service import end_daemon

    ended = end_daemon(Config.load().socket, _TAKE_OVER_SECONDS, but=manager.state().pid)
    if ended:
        session.out.note(f"ended the daemon that ran in the background (pid {ended})")


def _installed() -> ServiceManager:
    """The manager, with a service to start: before a daemon that runs is ended for it."""
    from memxd.errors import ServiceManagerError

    manager = _manager()
    if not manager.file.exists():
        raise ServiceManagerError("the service is not installed; run: memx service install")
    return manager


def start(session: Session) -> None:
    """Start it; returns when it serves."""
    manager = _installed()
    _take_over(session, manager)
    manager.start()
    pid = manager.state().pid
    _told(session, f"memxd runs (pid {pid})", pid=pid)


def stop_daemon(session: Session) -> None:
    """Stop the daemon, the service's or one in the background. The next memx command starts it again."""
    from memxd.config import Config, process_environ
    from memxd.errors import ServiceManagerError
    from memxd.operation.service import end_daemon, find_manager, socket_holder

    socket = Config.load().socket
    holder = socket_holder(socket)
    try:
        manager: ServiceManager | None = find_manager(process_environ())
    except ServiceManagerError:
        manager = None  # no service where there is no manager
    if manager is not None and holder and manager.file.exists() and manager.state().pid == holder:
        manager.stop()
        ended = holder
    else:
        ended = end_daemon(socket, _TAKE_OVER_SECONDS)
    _told(session, f"stopped (pid {ended})" if ended else f"no daemon runs on {socket}", pid=ended)


def stop(session: Session) -> None:
    """Stop it until the next login, or until the next memx command that is not given --no-start."""
    _manager().stop()
    _told(session, "stopped", stopped=True)


def restart(session: Session) -> None:
    """Stop and start it; changed settings hold from then on."""
    manager = _installed()
    _take_over(session, manager)
    manager.restart()
    pid = manager.state().pid
    _told(session, f"memxd runs (pid {pid})", pid=pid)


def status(session: Session) -> None:
    """Tell whether it is installed and runs. Exit code 4 when it does not run."""
    found = _manager().state()
    if session.out.as_json:
        from dataclasses import asdict

        session.out.json({**asdict(found), "file": str(found.file)})
    else:
        installed = "yes" if found.current else "yes, written for other settings: memx service install"
        session.out.fields(
            [
                ("service", found.text),
                ("pid", str(found.pid or "")),
                ("installed", installed if found.installed else "no"),
                ("at login", "started" if found.enabled else "not started"),
                ("file", str(found.file) if found.installed else ""),
                ("manager", found.manager),
            ]
        )
    if not found.active:
        raise typer.Exit(4)


def remove(session: Session) -> None:
    """Stop it and delete its file. The memories stay."""
    removed = _manager().remove()
    _told(session, "removed; the memories stay" if removed else "no service is installed", removed=removed)


def logs(
    session: Session,
    lines: Annotated[int, typer.Option("-n", "--lines", min=0, max=1_000_000, help="How many, from the end.")] = 50,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until interrupted.")] = False,
) -> None:
    """Show the service's log, as the manager keeps it."""
    from memxd.config import Config
    from memxd.errors import ServiceManagerError

    manager = _manager()
    if not manager.file.exists():
        background = Config.load().data_dir / "log" / "memxd.log"
        raise ServiceManagerError(f"the service is not installed; a daemon in the background writes to {background}")
    command = manager.log_command(lines, follow=follow)
    try:
        code = subprocess.call(command)
    except FileNotFoundError:
        raise ServiceManagerError(f"this machine has no {command[0]}, which shows the log") from None
    if code:
        raise typer.Exit(5)
