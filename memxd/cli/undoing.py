"""Ten seconds in which an erasure can be undone, and the way out and back in.

Owns the mark of a memory that is about to be erased: archived, with the moment under ``MARK`` in its metadata. Whoever
dies within those seconds leaves it so, shown as pending; ``memx forget`` then erases it and ``memx unarchive`` brings
it back. Called by ``forgetting.py``; ``listing.py`` and ``memories.py`` show the mark.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from memxd.errors import MemxdError

if TYPE_CHECKING:
    from memxd.cli.scope import Session
    from memxd.model import Memory

#: The key in the metadata of a memory that is about to be erased; its value is when, as RFC 3339.
MARK = "memx.erase_at"
#: Seconds in which it can be had back.
SECONDS = 10
#: Between two looks whether Ctrl-C was pressed.
_LOOK_SECONDS = 0.05


def pending(memory: Memory) -> bool:
    """Whether somebody began to erase it and did not come to the end."""
    return memory.state.name == "ARCHIVED" and MARK in memory.metadata


def put_away(session: Session, memory: Memory | str) -> None:
    """Archive it."""
    session.client.update(memory if isinstance(memory, str) else memory.id, state="archived")


def bring_back(session: Session, memory: Memory | str) -> None:
    """Make it active again, without the mark."""
    if isinstance(memory, str):
        memory = session.client.get(memory, record_access=False)
    changes: dict[str, Any] = {"state": "active"}
    if MARK in memory.metadata:
        changes["metadata"] = {key: value for key, value in memory.metadata.items() if key != MARK}
    session.client.update(memory.id, **changes, expected_revision=memory.revision)


def wait(session: Session, ids: Sequence[str]) -> tuple[list[str], MemxdError | None]:
    """Set ``ids`` aside, and wait; answers those that are to be erased now, and the first refusal.

    Ctrl-C brings all of them back and ends the command.
    """
    aside: list[Memory] = []
    first: MemxdError | None = None
    with _ctrl_c() as pressed:
        for id_ in ids:
            if pressed:
                break
            try:
                memory = session.client.get(id_, record_access=False)
                aside.append(memory)
                if memory.state.name == "ACTIVE":  # a superseded one cannot be archived: it stays until it goes
                    at = (datetime.now(UTC) + timedelta(seconds=SECONDS)).isoformat(timespec="seconds")
                    marked = {**memory.metadata, MARK: at}
                    session.client.update(
                        memory.id, state="archived", metadata=marked, expected_revision=memory.revision
                    )
            except MemxdError as error:
                first = first or error
        if aside and not pressed:
            what, them = ("1 memory goes", "it") if len(aside) == 1 else (f"{len(aside):,} memories go", "them")
            session.out.note(f"{what} for good in {SECONDS} seconds; Ctrl-C brings {them} back")
            end = time.monotonic() + SECONDS
            while not pressed and time.monotonic() < end:
                time.sleep(_LOOK_SECONDS)
        if pressed:
            _undo(session, aside)
            session.out.note("nothing was erased")
            raise typer.Exit(5)
    return [memory.id for memory in aside], first


@contextmanager
def _ctrl_c() -> Iterator[list[int]]:
    """Ctrl-C is noted, not raised: raised in the middle of a call it could leave a memory set aside, and where Python
    ignores exceptions it would be lost. A second one is raised as ever, for a daemon that does not answer."""
    pressed: list[int] = []

    def press(number: int, _: FrameType | None) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(number)

    former = signal.signal(signal.SIGINT, press)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, former)


def _undo(session: Session, aside: Sequence[Memory]) -> None:
    for memory in aside:
        if memory.state.name == "ACTIVE":
            bring_back(session, memory.id)
