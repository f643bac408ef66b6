"""How ``memx status`` shows the daemon's process: threads, queues, calls, the last error.

Owns these tables and lines; ``admin.py`` prints them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memxd.cli.render import Column, Output, moment

if TYPE_CHECKING:
    from memxd.model import ProcessStatus, ThreadStatus

_THREADS = (
    Column("thread", style="bold"),
    Column("state", style="green"),
    Column("for", right=True),
    Column("cpu", right=True),
    Column("does", grow=True, fold=True),
)
_QUEUES = (Column("queue", style="bold"), Column("depth", right=True), Column("limit", right=True))
_CALLS = (
    Column("call", style="bold"),
    Column("code", style="green"),
    Column("count", right=True),
    Column("mean", right=True),
)


def lines(process: ProcessStatus) -> list[tuple[str, str]]:
    """What stands in the summary: one line each for threads, queues, calls and the last error."""
    alive = sum(t.count for t in process.threads if t.alive)
    cpu = sum(t.cpu or 0.0 for t in process.threads)
    dead = [f"{t.name} ({t.message})" for t in process.threads if not t.alive]
    told = f"{alive} alive, {cpu:.1f} s of processor time"
    if dead:
        told += f"; DEAD: {', '.join(dead)}; a restart brings them back"
    waiting = [f"{q.name} {q.depth}" for q in process.queues if q.depth]
    failed = sum(c.count for c in process.calls if c.code != "OK")
    calls = f"{sum(c.count for c in process.calls):,}, of which {failed:,} were refused or failed"
    last = process.last_error
    return [
        ("threads", told),
        ("queues", ", ".join(waiting) or "empty"),
        ("calls", calls),
        ("last error", "none" if last is None else f"{moment(last.at)}, {last.where}: {last.message}"),
    ]


def tables(out: Output, process: ProcessStatus) -> None:
    """Every thread, queue and kind of call."""
    out.line()
    out.table(_THREADS, [_thread(each) for each in process.threads])
    out.line()
    out.table(_QUEUES, [(q.name, f"{q.depth:,}", f"{q.limit:,}" if q.limit else "-") for q in process.queues])
    out.line()
    rows = [(c.method, c.code, f"{c.count:,}", f"{c.seconds / max(1, c.count) * 1e3:.2f} ms") for c in process.calls]
    out.table(_CALLS, rows)


def _thread(each: ThreadStatus) -> tuple[str, ...]:
    state = "alive" if each.age is None else "works" if each.working else "waits"
    return (
        each.name if each.count == 1 else f"{each.name} x {each.count}",
        state if each.alive else "DEAD",
        "-" if each.age is None else f"{each.age:.1f} s",
        "-" if each.cpu is None else f"{each.cpu:.2f} s",
        each.role + (f": {each.message}" if each.message else ""),
    )
