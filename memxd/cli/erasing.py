"""Erasing what a filter selects, in slices: so that others' writes find their way in between, and a bar can move.

Owns the size of a slice and what DeleteMany means by a filter. Asks nobody anything; ``forgetting.py`` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memxd.cli.moving import shown

if TYPE_CHECKING:
    from memxd.cli.scope import Session
    from memxd.model import Filter

#: How many are erased or archived between two looks at how far it is.
SLICE = 500
#: Seconds that a slice of an erasure may take, at least: an overwritten page costs more than a read one.
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Step:
    """How far something is."""

    done: int
    total: int


def erase(session: Session, count: int) -> int:
    """A few at once, all or nothing; many in slices, the oldest first: a break leaves the rest as it was."""
    patience = max(_PATIENCE, session.settings.timeout or 0.0)
    if count <= SLICE:
        return session.client.delete_many(session.filter, timeout=patience)
    done = 0
    for step in shown(session.out, "erasing", _slices(session, count, patience)):
        done = step.done
    return done


def _slices(session: Session, count: int, patience: float) -> Iterator[Step]:
    wanted, done = in_every_state(session.filter), 0
    while True:
        page = session.client.list(filter=wanted, order="created_at_asc", page_size=SLICE)
        ids = frozenset(memory.id for memory in page.memories)
        erased = session.client.delete_many(replace(wanted, ids=ids), timeout=patience) if ids else 0
        done += erased
        yield Step(done, max(count, done))
        if not erased:
            return


def in_every_state(wanted: Filter | None) -> Filter:
    """What DeleteMany means by a filter, for a list."""
    from memxd.model import NO_FILTER, State

    wanted = wanted or NO_FILTER
    return wanted if wanted.states else replace(wanted, states=frozenset(State))
