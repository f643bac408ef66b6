"""The verbs about the daemon: status, flush, rebuild, version, completion.

Owns their flags and what they print.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memxd.cli import process
from memxd.cli.model_change import words
from memxd.cli.render import Column, Output, local, size
from memxd.cli.scope import DAEMON, Session, verb
from memxd.cli.usage import Command, summary
from memxd.cli.words import IndexWord, ShellWord
from memxd.errors import MemxdError

if TYPE_CHECKING:
    from memxd.client import DaemonStatus
    from memxd.model import Progress

_INDEXES = (
    Column("index", style="bold"),
    Column("state", style="green"),
    Column("revision", right=True),
    Column("on disk", right=True, from_width=75),
    Column("entries", right=True),
    Column("tail", right=True, from_width=90),
    Column("dead", right=True, from_width=90),
    Column("size", right=True),
    Column("message", grow=True, fold=True, optional=True),
)
_SCOPES = (
    Column("agent", style="bold"),
    Column("user", style="bold"),
    Column("active", right=True),
    Column("all", right=True),
)
#: Seconds that ``version`` waits for the daemon's answer.
_GLANCE = 1.0


def register(app: typer.Typer) -> None:
    verb(app, "status", takes=DAEMON)(status)
    verb(app, "flush", takes=DAEMON)(flush)
    verb(app, "rebuild", takes=DAEMON)(rebuild)
    verb(app, "version", takes=tuple(name for name in DAEMON if name != "no_start"))(version)
    app.command("completion", cls=Command, short_help=summary(completion))(completion)


def status(
    session: Session,
    scopes: Annotated[int | None, typer.Option(help="How many scopes to list, 0..1000 (100).")] = None,
    threads: Annotated[bool, typer.Option("--threads", help="Every thread, queue and kind of call as well.")] = False,
) -> None:
    """Tell how the daemon is: indexes, model, scopes, sizes, threads, calls, the last error."""
    found = session.client.status(max_scopes=scopes)
    if session.out.as_json:
        session.out.json(found)
        return
    _summary(session.out, found)
    out, engine = session.out, found.engine
    out.line()
    out.table(
        _INDEXES,
        [
            (
                i.kind.name.lower(), i.state.name.lower(), str(i.watermark), str(i.durable_watermark), f"{i.entries:,}",
                f"{i.tail_entries:,}", f"{i.dead_entries:,}", size(i.size_bytes), i.message,
            )
            for i in engine.indexes
        ],
    )  # fmt: skip
    if threads:
        process.tables(out, found.process)
    if engine.scopes:
        out.line()
        out.table(_SCOPES, [(s.agent_id, s.user_id, f"{active:,}", f"{total:,}") for s, total, active in engine.scopes])
        if engine.scope_count > len(engine.scopes):
            out.note(f"{engine.scope_count:,} scopes in all; --scopes shows more")


def _summary(out: Output, found: DaemonStatus) -> None:
    engine = found.engine
    model = engine.model
    where = "remote: texts leave this machine" if model.remote else "on this machine"
    variant = f", {model.variant}" if model.variant else ""
    disk = f"database {size(engine.database_bytes)}, log {size(engine.wal_bytes)}, indexes {size(engine.index_bytes)}"
    pending = f", {engine.vectors_pending:,} wait for a vector" if engine.vectors_pending else ""
    scopes = _count(engine.scope_count, "scope")
    out.fields(
        [
            ("memxd", f"{found.version}, pid {found.pid}, since {local(found.started_at)} ({_duration(found.uptime)})"),
            ("socket", found.socket_path),
            ("data", found.data_dir),
            ("disk", f"{disk}, free {size(engine.free_bytes)}"),
            ("memories", f"{engine.memories:,} in {scopes}, {_count(engine.links, 'link')}{pending}"),
            ("revision", f"{engine.revision:,}"),
            ("model", f"{model.id} ({model.backend}{variant}, {model.dimension} dimensions, {where})"),
            ("new model", "" if engine.model_change is None else words(engine.model_change)),
            ("model says", model.message or ("" if model.available else "not available")),
            ("kernels", "compiled" if engine.kernels == "c" else "plain Python (slower)"),
            ("time zone", found.time_zone),
            *process.lines(found.process),
        ]
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _duration(seconds: float) -> str:
    days, rest = divmod(int(seconds), 86400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    return f"{days} d {hours} h" if days else f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def flush(session: Session) -> None:
    """Write counters and every index to disk."""
    revision = session.client.flush()
    if session.out.as_json:
        session.out.json({"revision": revision})
    else:
        session.out.line(f"everything is on disk at revision {revision}")


def rebuild(
    session: Session,
    index: Annotated[IndexWord | None, typer.Argument(help="Which index (default: each).")] = None,
) -> None:
    """Build an index anew from the store; searches go on meanwhile."""
    progress = session.client.rebuild(index, timeout=session.settings.timeout)
    last: dict[str, Progress] = {}
    if session.out.terminal:
        from rich.progress import Progress as Bars

        with Bars(console=session.out.console, transient=True) as bars:
            tasks: dict[str, Any] = {}
            for step in progress:
                name = step.kind.name.lower()
                last[name] = step
                if name not in tasks:
                    tasks[name] = bars.add_task(name, total=None)
                bars.update(tasks[name], completed=step.done, total=step.total or None)
    else:
        last.update((step.kind.name.lower(), step) for step in progress)
    if session.out.as_json:
        session.out.json({"indexes": list(last.values())})
        return
    for name, step in last.items():
        session.out.line(f"{name}: {step.done:,} entries, revision {step.watermark:,}")


def version(session: Session) -> None:
    """Print the version of this program and, when one runs, of the daemon."""
    from memxd import __version__

    daemon = _glance(session)
    if session.out.as_json:
        session.out.json({"version": __version__, "daemon": daemon})
        return
    session.out.line(f"memxd {__version__}")
    if daemon is None:
        session.out.line("daemon: none answers")
    else:
        session.out.line(f"daemon {daemon['version']} (pid {daemon['pid']})")


def _glance(session: Session) -> dict[str, Any] | None:
    """The running daemon's version and pid; None when none answers. Never starts one."""
    if not session.address and not session.socket.exists():
        return None  # and gRPC need not even be imported
    with session.connect(start=False) as client:
        try:
            found = client.status(max_scopes=0, timeout=min(_GLANCE, session.settings.timeout or _GLANCE))
        except MemxdError as error:
            session.out.note(str(error))
            return None
    return {"version": found.version, "pid": found.pid}


def completion(shell: Annotated[ShellWord, typer.Argument(help="Which shell.")]) -> None:
    """Print the completion script of a shell: eval "$(memx completion bash)"."""
    from memxd.cli.completion import SCRIPTS

    typer.echo(SCRIPTS[shell], nl=False)
