"""The rules of a view, handed to the kernel that evaluates them over the by-rid arrays.

Owns which rows a ``View`` lets through (the store has the same rules in SQL: they change together). Knows neither
ids nor metadata: the caller narrows by those. Used by ``Columns``.

The moment and the states: ``as_of`` decides by the interval [event, else created; valid_until) and hides archived rows
(named states do not count then: the contract refuses the two together);
else ``filter.states`` names exactly those states, expired rows included; else ``every_state`` shows all; else active
and unexpired, and with ``include_superseded`` the superseded ones as well, whatever their valid_until.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt

from memxd._fast.choose_py import AS_OF, CURRENT, STATES, WITH_SUPERSEDED, Span
from memxd._fast.protocols import ChooseKernel
from memxd.index.columns.arrays import FOREVER, NO_EVENT, ColumnArrays
from memxd.index.columns.tags import Verdict
from memxd.model import Filter, State, TimeRange, View

__all__ = ["choose", "is_default_moment", "key_of"]

Rids = npt.NDArray[np.int32]
_Table = npt.NDArray[np.uint8]


def is_default_moment(view: View) -> bool:
    """True when the view shows active, unexpired rows: the usual case, whose answers ``Columns`` keeps."""
    return view.as_of is None and not view.filter.states and not view.every_state and not view.include_superseded


def key_of(wanted: Filter) -> Hashable:
    """Equal for filters with equal conditions on types, tags, times and importance; None when there are none."""
    key = (
        wanted.types,
        wanted.tags_any,
        wanted.tags_all,
        wanted.tags_none,
        wanted.created,
        wanted.event,
        wanted.importance_min,
    )
    return key if any(part is not None and part != frozenset() for part in key) else None


def choose(
    kernel: ChooseKernel, arrays: ColumnArrays, rids: Rids, view: View, verdict: Verdict | None
) -> tuple[Rids, int, int]:
    """The ``rids`` (int32, strictly ascending) that the view shows, and the half-open span of moments for which the
    default view stays so. ``verdict``: by tag set, for a filter with tags.

    Raises ValueError when a row has got a tag set beyond the verdict meanwhile: ask again.
    """
    wanted = view.filter
    rule, now, states = CURRENT, view.now, None
    if view.as_of is not None:
        rule, now = AS_OF, view.as_of
    elif wanted.states or view.every_state:
        rule, states = STATES, _table(wanted.states or State)
    elif view.include_superseded:
        rule = WITH_SUPERSEDED
    a = arrays
    return kernel.choose(
        rids, a.state, a.type, a.valid_until, a.created, a.event, a.importance_exact, a.tag_set,
        rule, now, states, _table(wanted.types) if wanted.types else None, verdict,
        _span(wanted.created), _span(wanted.event), wanted.importance_min,
    )  # fmt: skip


def _table(wanted: Iterable[int]) -> _Table:
    table = np.zeros(256, np.uint8)
    table[[int(value) for value in wanted]] = 1
    return table


def _span(span: TimeRange | None) -> Span | None:
    """Its first and last instant; the mark of "no event" is in none."""
    if span is None:
        return None
    first = NO_EVENT + 1 if span.start is None else max(span.start, NO_EVENT + 1)
    last = FOREVER if span.end is None else span.end - 1
    return (first, last) if first <= last else (1, 0)
