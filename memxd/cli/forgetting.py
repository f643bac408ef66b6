"""The verbs that let go: forget, archive, unarchive.

Owns their flags, what is asked before something is erased, the ten seconds in which it can be had back, and the
slices in which much is done, so that others' writes find their way in between. The daemon decides what a filter means.
``scope.py`` gives them their session.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from memxd.cli import undoing
from memxd.cli.erasing import SLICE, Step, erase, in_every_state
from memxd.cli.listing import brief
from memxd.cli.moving import shown
from memxd.cli.scope import Session, verb
from memxd.errors import MemoryNotFoundError, MemxdError

if TYPE_CHECKING:
    from memxd.model import Filter, Memory

#: Calls at once where each memory needs one of its own; the daemon commits together what arrives together.
_AT_ONCE = 8
#: Memories that a dry run shows.
_FIRST = 5

Ids = Annotated[list[str] | None, typer.Argument(help="Ids of memories; or give filter flags instead.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say how many it would be, and show the first few.")]


def register(app: typer.Typer) -> None:
    verb(app, "forget", filters=True)(forget)
    verb(app, "archive", filters=True)(archive)
    verb(app, "unarchive", filters=True)(unarchive)


def forget(
    session: Session,
    ids: Ids = None,
    everything: Annotated[bool, typer.Option("--all", help="The whole scope, without a filter.")] = False,
    archive: Annotated[bool, typer.Option("--archive", help="Set them aside instead, as memx archive does.")] = False,
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask, and do not wait for a change of mind.")] = False,
) -> None:
    """Erase memories for good: by id, or, after asking, all that the filter flags select.

    Filter flags select in every state unless --state is given. On a terminal, ids are set aside first and erased after
    10 seconds; Ctrl-C until then brings them back. --dry-run shows what it would be.
    """
    chosen = [bool(ids), session.filter is not None, everything]
    if sum(chosen) != 1:
        raise typer.BadParameter("give either ids, or filter flags, or --all")
    if archive:
        _set_aside(session, ids, dry_run=dry_run)
    elif ids:
        _forget_ids(session, ids, dry_run=dry_run, yes=yes)
    else:
        _forget_many(session, dry_run=dry_run, yes=yes)


def archive(session: Session, ids: Ids = None, dry_run: DryRun = False) -> None:
    """Set memories aside: no search, list or count shows them any more, and memx unarchive brings them back.

    By id, or all active ones that the filter flags select.
    """
    if bool(ids) == (session.filter is not None):
        raise typer.BadParameter("give either ids or filter flags")
    _set_aside(session, ids, dry_run=dry_run)


def unarchive(session: Session, ids: Ids = None, dry_run: DryRun = False) -> None:
    """Bring archived memories back, by id, or all that the filter flags select.

    One that has meanwhile been stored anew is refused, with the id of the new one.
    """
    if bool(ids) == (session.filter is not None):
        raise typer.BadParameter("give either ids or filter flags")
    _change_all(session, ids, "archived", undoing.bring_back, ("brought back", "would bring back"), dry_run=dry_run)


def _set_aside(session: Session, ids: Sequence[str] | None, *, dry_run: bool) -> None:
    _change_all(session, ids, "active", undoing.put_away, ("archived", "would archive"), dry_run=dry_run)


# -- erasing -----------------------------------------------------------------------------------------------------------


def _forget_ids(session: Session, ids: Sequence[str], *, dry_run: bool, yes: bool) -> None:
    """Each id on its own; those after a missing one are erased all the same, and the first refusal is told."""
    if not dry_run and not yes and session.out.terminal and sys.stdin.isatty():
        ids, first = undoing.wait(session, ids)
    else:
        first = None

    def one(id_: str) -> None:
        if dry_run:
            session.client.get(id_, record_access=False)
        else:
            session.client.delete(id_)

    done, refused = _each(ids, one)
    first = first or refused
    if done or first is None:
        _told(session, done, dry_run=dry_run)
    if first is not None:
        raise first


def _each(ids: Sequence[str], one: Callable[[str], None]) -> tuple[int, MemxdError | None]:
    """How many were done, and the first refusal."""
    done, first = 0, None
    for id_ in ids:
        try:
            one(id_)
            done += 1
        except MemxdError as error:
            first = first or error
    return done, first


def _forget_many(session: Session, *, dry_run: bool, yes: bool) -> None:
    settings = session.settings
    if settings.agent is None or settings.user is None:
        raise typer.BadParameter(
            "erasing by filter needs the scope spelled out; give --agent and --user (or MEMX_AGENT and MEMX_USER)"
        )
    if not dry_run and not yes and not sys.stdin.isatty():
        raise typer.BadParameter("standard input is no terminal to ask on; give --yes, or look with --dry-run")
    count = session.client.delete_many(session.filter, dry_run=True)
    if dry_run:
        _would(session, "would erase", count, in_every_state(session.filter), "deleted_count")
        return
    if not yes:
        question = f"Erase {_memories(count)} of agent {settings.agent!r}, user {settings.user!r} for good?"
        if count and not typer.confirm(question, err=True):
            raise typer.Exit(5)
    _told(session, erase(session, count), dry_run=False)


# -- there and back ----------------------------------------------------------------------------------------------------


def _change_all(
    session: Session,
    ids: Sequence[str] | None,
    state: str,
    change: Callable[[Session, Memory | str], None],
    words: tuple[str, str],
    *,
    dry_run: bool,
) -> None:
    """Change each of ``ids``, or of what the filter selects in ``state``, telling every refusal."""
    done_word, would_word = words
    if ids is not None and dry_run:
        count, first = _each(ids, lambda id_: _look(session, id_))
        _would(session, would_word, count, None, "count")
    elif dry_run:
        wanted = _in(state, session.filter)
        _would(session, would_word, session.client.count(wanted), wanted, "count")
        return
    else:
        count, first = _changed(session, ids, state, change)
        if session.out.as_json:
            session.out.json({"count": count, "dry_run": False})
        elif count or first is None:
            session.out.line(f"{done_word} {_memories(count)}")
    if first is not None:
        raise first


def _look(session: Session, id_: str) -> None:
    session.client.get(id_, record_access=False)


def _in(state: str, wanted: Filter | None) -> Filter:
    """The filter within one state: for active ones the usual view, which leaves out what has expired."""
    from memxd.model import NO_FILTER, State

    wanted = wanted or NO_FILTER
    only = State[state.upper()]
    if wanted.states - {only}:
        raise typer.BadParameter(f"only {state} memories can be changed so; leave --state away")
    return wanted if only is State.ACTIVE else replace(wanted, states=frozenset({only}))


def _changed(
    session: Session, ids: Sequence[str] | None, state: str, change: Callable[[Session, Memory | str], None]
) -> tuple[int, MemxdError | None]:
    """How many were changed, and the first refusal; with a filter, all refusals are noted as they come."""
    if ids is not None:
        return _each(ids, lambda id_: change(session, id_))
    wanted = _in(state, session.filter)
    total, first = session.client.count(wanted), []

    def steps() -> Iterator[Step]:
        done = 0
        for error in _outcomes(session, wanted, change):
            if error is None:
                done += 1
            else:
                first.append(error)
                session.out.note(str(error))
            yield Step(done, max(total, done))

    steps_done = [step.done for step in shown(session.out, "changing", steps())]
    return steps_done[-1] if steps_done else 0, first[0] if first else None


def _outcomes(
    session: Session, wanted: Filter, change: Callable[[Session, Memory | str], None]
) -> Iterator[MemxdError | None]:
    """Change what the filter selects, several at once; what refused each, or None."""
    from concurrent.futures import ThreadPoolExecutor

    def one(memory: Memory) -> MemxdError | None:
        try:
            change(session, memory)
        except MemoryNotFoundError:
            return None  # somebody has erased it meanwhile: it is out of the way as well
        except MemxdError as error:
            return error
        return None

    token = ""
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        while True:
            page = session.client.list(filter=wanted, order="created_at_asc", page_size=SLICE, page_token=token)
            yield from threads.map(one, page.memories)
            token = page.next_page_token
            if not token:
                return


# -- telling -----------------------------------------------------------------------------------------------------------


def _memories(count: int) -> str:
    return f"{count:,} memory" if count == 1 else f"{count:,} memories"


def _would(session: Session, words: str, count: int, wanted: Filter | None, name: str) -> None:
    """What a dry run found, with the first few where a filter chose them."""
    first: Sequence[Memory] = ()
    if wanted is not None and count:
        first = session.client.list(filter=wanted, order="created_at_asc", page_size=_FIRST).memories
    if session.out.as_json:
        session.out.json({name: count, "dry_run": True} | ({} if wanted is None else {"first": list(first)}))
        return
    session.out.line(f"{words} {_memories(count)}" + (", the oldest first:" if first else ""))
    for memory in first:
        session.out.line(f"  {brief(memory)}")
    if count > len(first) > 0:
        session.out.line(f"  and {count - len(first):,} more")


def _told(session: Session, count: int, *, dry_run: bool) -> None:
    if session.out.as_json:
        session.out.json({"deleted_count": count, "dry_run": dry_run})
    else:
        session.out.line(f"{'would erase' if dry_run else 'erased'} {_memories(count)}")
