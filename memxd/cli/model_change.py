"""A change of the embedding model as the command line shows it: restarting the daemon for it, its progress, its end.

Owns the words and the bar of ``memx models use``, of ``memx models`` and of ``memx status``. The change itself is the
daemon's. Called by models.py and admin.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memxd.cli.moving import shown
from memxd.cli.scope import Session
from memxd.errors import MemxdError

if TYPE_CHECKING:
    from memxd.client import Client
    from memxd.model import ModelChange, ModelStatus
    from memxd.operation.service import ServiceManager

_STOP_SECONDS = 70.0
#: Seconds between two looks at a change that is waited for, and that a look may take.
_LOOK_SECONDS = 0.5
_GLANCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class _Step:
    """Progress as the bar takes it."""

    done: int
    total: int
    change: ModelChange | None


def words(change: ModelChange) -> str:
    """How far it is, and who answers meanwhile."""
    share = f" ({100 * change.done // change.total} %)" if change.total else ""
    step = "building the index" if change.phase.name == "INDEXING" else f"{change.done:,} of {change.total:,}{share}"
    meanwhile = "the former model answers" if change.former_serves else "words answer, marked degraded"
    held = f"; held up: {change.message}" if change.message else ""
    return f"to {change.to_id}: {step}; {meanwhile} meanwhile{held}"


def running(session: Session) -> tuple[ModelStatus, ModelChange | None] | None:
    """The model that a running daemon answers with, and the change under way; None when none answers."""
    if not session.address and not session.socket.exists():
        return None
    with session.connect(start=False) as client:
        try:
            found = client.status(max_scopes=0, timeout=session.settings.timeout or _GLANCE_SECONDS).engine
        except MemxdError as error:
            session.out.note(str(error))
            return None
    return found.model, found.model_change


def restart(session: Session) -> int:
    """Have the daemon take the settings: the service restarted, or one in the background stopped, so that the next
    call starts it. The pid that ended, 0 when none ran."""
    from memxd.config import process_environ
    from memxd.errors import ServiceManagerError
    from memxd.operation.service import end_daemon, find_manager, socket_holder

    holder = socket_holder(session.socket)
    if not holder:
        return 0
    try:
        manager: ServiceManager | None = find_manager(process_environ())
    except ServiceManagerError:
        manager = None  # no service where there is no manager
    if manager is not None and manager.file.exists() and manager.state().pid == holder:
        manager.restart()
        return holder
    return end_daemon(session.socket, _STOP_SECONDS)


def wait(session: Session) -> ModelChange | None:
    """Show the change until it is done (None), or until what holds it up does not pass (what it is then)."""
    last: ModelChange | None = None
    for step in shown(session.out, "embedding", _steps(session.client)):
        last = step.change
    return last


def _steps(client: Client) -> Iterator[_Step]:
    while True:
        change = client.status(max_scopes=0).engine.model_change
        if change is None:
            yield _Step(1, 1, None)
            return
        yield _Step(change.done, change.total, change)
        time.sleep(_LOOK_SECONDS)
