"""The rules of a view, evaluated with numpy over the by-rid arrays.

Owns which rows a ``View`` lets through (the store has the same rules in SQL: they change together). Knows neither
ids nor metadata: the caller narrows by those. Used by ``Columns.select``.

The moment and the states: ``as_of`` decides by the interval [event, else created; valid_until) and hides archived rows
(named states do not count then: the contract refuses the two together);
else ``filter.states`` names exactly those states, expired rows included; else ``every_state`` shows all; else active
and unexpired, and with ``include_superseded`` the superseded ones as well, whatever their valid_until.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from memxd.index.columns.arrays import NO_EVENT, ColumnArrays
from memxd.model import Filter, State, TimeRange, View

__all__ = ["by_filter", "by_moment", "is_default_moment"]

Rids = npt.NDArray[np.int32]
Verdict = npt.NDArray[np.bool_]


def is_default_moment(view: View) -> bool:
    """True when the view shows active, unexpired rows: the usual case, which ``Columns`` caches."""
    return view.as_of is None and not view.filter.states and not view.every_state and not view.include_superseded


def by_moment(arrays: ColumnArrays, rids: Rids, view: View) -> Verdict:
    """bool[n]: which of ``rids`` exist and pass the view's rule of moment and state."""
    state: npt.NDArray[np.uint8] = arrays.state.take(rids)
    verdict: Verdict
    if view.as_of is not None:
        verdict = (state != 0) & (state != State.ARCHIVED) & (arrays.valid_until.take(rids) > view.as_of)
        event = arrays.event.take(rids)
        verdict &= np.where(event == NO_EVENT, arrays.created.take(rids), event) <= view.as_of
        return verdict
    if view.filter.states:
        return _one_of(state, view.filter.states)
    if view.every_state:
        verdict = state != 0
        return verdict
    verdict = state == State.ACTIVE
    verdict &= arrays.valid_until.take(rids) > view.now
    if view.include_superseded:
        verdict |= state == State.SUPERSEDED
    return verdict


def by_filter(arrays: ColumnArrays, rids: Rids, wanted: Filter, tag_sets: Callable[[Filter], Verdict]) -> Rids:
    """The ``rids`` that satisfy types, tags, times and importance. ``tag_sets`` is ``TagSets.passing``, called after
    the rows' numbers are read, so that it knows each of them."""
    if wanted.tags_any or wanted.tags_all or wanted.tags_none:
        numbers = arrays.tag_set.take(rids)
        rids = rids[tag_sets(wanted).take(numbers)]
    if wanted.types:
        rids = rids[_one_of(arrays.type.take(rids), wanted.types)]
    if wanted.importance_min is not None:
        rids = rids[arrays.importance_exact.take(rids) >= wanted.importance_min]
    if wanted.created is not None:
        rids = rids[_within(arrays.created.take(rids), wanted.created)]
    if wanted.event is not None:
        event = arrays.event.take(rids)
        rids = rids[_within(event, wanted.event) & (event != NO_EVENT)]
    return rids


def _one_of(values: npt.NDArray[np.uint8], wanted: frozenset[State] | frozenset[int]) -> Verdict:
    table = np.zeros(256, np.bool_)
    table[[int(w) for w in wanted]] = True
    table[0] = False  # "no such row" is no state and no type
    verdict: Verdict = table.take(values)
    return verdict


def _within(values: npt.NDArray[np.int64], span: TimeRange) -> Verdict:
    verdict = np.ones(values.shape[0], np.bool_)
    if span.start is not None:
        verdict &= values >= span.start
    if span.end is not None:
        verdict &= values < span.end
    return verdict
