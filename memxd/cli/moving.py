"""The verbs that keep memories safe: backup, restore, verify, compact.

Owns their flags and what they print. ``restore`` works on the files while no daemon runs,
and imports the store inside the function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Protocol, TypeVar

import typer

from memxd.cli.render import Output, size
from memxd.cli.scope import DAEMON, Session, verb
from memxd.cli.words import IndexWord

#: Exit code of a verification that found something.
_PROBLEMS = 5


#: Names in the data directory of what was there before something.
_COPIES = ("before-restore-*", "before-migration-*")


class _Step(Protocol):
    """How far something is."""

    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int: ...


S = TypeVar("S", bound=_Step)


def register(app: typer.Typer) -> None:
    verb(app, "backup", takes=DAEMON)(backup)
    verb(app, "restore", takes=("json",))(restore)
    verb(app, "verify", takes=DAEMON)(verify)
    verb(app, "compact", takes=DAEMON)(compact)


def backup(
    session: Session,
    directory: Annotated[Path, typer.Argument(help="An empty folder, or one to be made.")],
) -> None:
    """Copy every memory of every scope into a folder, while everything goes on."""
    out = session.out
    [*_, last] = shown(out, "copying", session.client.backup(directory, timeout=session.settings.timeout))
    if out.as_json:
        out.json({"directory": str(directory.absolute()), "backup": last})
        return
    out.line(f"{last.memories:,} memories and {last.links:,} links at revision {last.revision:,}: {size(last.total)}")
    out.line(f"sha256 {last.sha256}")


def shown(out: Output, what: str, steps: Iterable[S]) -> Iterator[S]:
    """The steps as they come, with a bar on a terminal."""
    if not out.terminal:
        yield from steps
        return
    from rich.progress import Progress as Bars

    with Bars(console=out.console, transient=True) as bars:
        task = bars.add_task(what, total=None)
        for step in steps:
            bars.update(task, completed=step.done, total=step.total or None)
            yield step


def _check(out: Output, directory: Path, move_aside: bool) -> None:
    from memxd.errors import InvalidArgumentError
    from memxd.store import restoring

    if move_aside:
        raise InvalidArgumentError.field("--verify", "only checks and restores nothing; leave out one of the two")
    manifest = restoring.verify(directory)
    if out.as_json:
        out.json({"directory": str(directory.absolute()), "manifest": manifest})
        return
    out.line(
        f"sound: {manifest.memories:,} memories at revision {manifest.revision:,} of {manifest.created_at}; "
        "nothing was restored"
    )


def restore(
    session: Session,
    directory: Annotated[Path, typer.Argument(help="The folder that `memx backup` wrote.")],
    move_aside: Annotated[
        bool, typer.Option("--move-aside", help="Keep a store that is there in a folder beside the restored one.")
    ] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Only check the backup.")] = False,
) -> None:
    """Put a backup in the place of the store, while no daemon runs."""
    import time

    from memxd.config import Config
    from memxd.daemon import claim_data
    from memxd.data_dir import prepare_data_dir
    from memxd.errors import DataInUseError
    from memxd.store import restoring
    from memxd.store.backup import read_manifest

    out = session.out
    if verify:
        _check(out, directory, move_aside)
        return
    data = Config.load().data_dir
    read_manifest(directory)  # a wrong path is told before anything has to be stopped for it
    prepare_data_dir(data)
    try:
        claim = claim_data(data)
    except DataInUseError as busy:
        pid = busy.metadata["pid"] or "unknown"
        raise DataInUseError(
            f"a daemon (pid {pid}) holds the data directory {data}; stop it first: memx stop", metadata=busy.metadata
        ) from busy
    with claim:
        done = restoring.restore(directory, data, time.time_ns() // 1_000, move_aside=move_aside)
    if out.as_json:
        out.json(
            {"data_dir": str(data), "aside": None if done.aside is None else str(done.aside), "manifest": done.manifest}
        )
        return
    out.line(f"{done.manifest.memories:,} memories at revision {done.manifest.revision:,} are in {data}")
    if done.aside is not None:
        out.line(f"the store that was there is in {done.aside}")
    out.line("the next start builds the indexes")


def verify(session: Session) -> None:
    """Look whether the database is sound and every memory stands in every index."""
    out = session.out
    [*_, last] = shown(out, "verifying", session.client.verify(timeout=session.settings.timeout))
    if out.as_json:
        out.json({"memories": last.done, "problems": last.problems})
    else:
        for problem in last.problems:
            whose = (
                f"memory {problem.id} of {problem.scope.agent_id}/{problem.scope.user_id}: " if problem.scope else ""
            )
            out.line(f"{problem.part}: {whose}{problem.message}")
        if not last.problems:
            out.line(f"{last.done:,} memories, everything is as it should be")
    if last.problems:
        if not out.as_json:
            out.note("an index is mended by: memx rebuild; a database by a backup: memx restore")
        raise typer.Exit(_PROBLEMS)


def compact(session: Session) -> None:
    """Write index files anew without what was erased, and empty the log."""
    steps = list(shown(session.out, "compacting", session.client.compact(timeout=session.settings.timeout)))
    done = {step.kind.name.lower(): step for step in steps if step.finished}
    copies = _copies(Path(session.client.status(max_scopes=0).data_dir))
    if session.out.as_json:
        session.out.json({"indexes": list(done.values()), "copies": copies})
        return
    for index in IndexWord:
        step = done.get(index.value)
        told = "nothing erased was left in it" if step is None else f"written anew, {step.done:,} entries"
        session.out.line(f"{index.value}: {told}")
    if copies:
        session.out.note(f"older copies beside the database still hold what was erased since: {', '.join(copies)}")


def _copies(data: Path) -> list[str]:
    """Stores set aside by a restore, and databases kept from before an upgrade: a compaction leaves them alone."""
    return sorted(path.name for pattern in _COPIES for path in data.glob(pattern))
