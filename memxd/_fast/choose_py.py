"""Which rows of a scope pass a view, over the by-rid arrays of the columns; and the rows of every scope.

The plain twin and oracle of ``_choose.pyx``; both answer the same. Called by ``index/columns``, which owns the meaning
of the arrays; instants are microseconds. Comparisons of stored values only, so there is nothing to round.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memxd._fast.arrays import F64, I32, I64, U8, check_array

__all__ = ["AS_OF", "CURRENT", "STATES", "WITH_SUPERSEDED", "Span", "choose", "group"]

#: Rules of moment and state: rows whose state stands in ``states``; active and unexpired at ``now``; these and all
#: superseded ones; begun and unexpired at ``now`` and not archived.
STATES, CURRENT, WITH_SUPERSEDED, AS_OF = 0, 1, 2, 3
#: First and last instant that count.
Span = tuple[int, int]

_ACTIVE, _SUPERSEDED, _ARCHIVED = 1, 2, 3
_LEAST, _LARGEST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
_TABLE = 256
_SCOPES = 1 << 27


def choose(
    rids: I32,
    state: U8,
    type: U8,
    valid_until: I64,
    created: I64,
    event: I64,
    importance: F64,
    tag_set: I32,
    rule: int,
    now: int,
    states: U8 | None,
    types: U8 | None,
    tags: U8 | None,
    created_span: Span | None,
    event_span: Span | None,
    importance_min: float | None,
) -> tuple[I32, int, int]:
    """The ``rids`` (int32[n], strictly ascending) that pass, as int32[m], and [begin, end): for every ``now`` within,
    rule CURRENT answers the same (when ``now`` itself does); for the other rules both mean nothing.

    By-rid arrays: ``state`` (0 = no such row), the others at least as long; ``event`` is the least int64 when absent.
    ``states`` and ``types``: uint8[256], 1 = passes; ``tags``: uint8[sets], 1 = that tag set passes; None = any. A row
    passes when all of them, both spans and ``importance >= importance_min`` hold. Raises ValueError for rids that do
    not ascend or lie outside, a table of another length, a tag set without a verdict.
    """
    size = check_array("state", state, np.uint8)
    n = check_array("rids", rids, np.int32)
    if not 0 <= rule <= AS_OF or (rule == STATES and states is None):
        raise ValueError("rule must be 0..3, and 0 needs states")
    if min(a.shape[0] for a in (type, valid_until, created, event, importance, tag_set)) < size:
        raise ValueError("a by-rid array is shorter than state")
    for table in (states, types):
        if table is not None and check_array("table", table, np.uint8) != _TABLE:
            raise ValueError("a table by state or type has 256 entries")
    if n and (rids[0] < 0 or rids[-1] >= size or (rids[1:] <= rids[:-1]).any()):
        raise ValueError("rids must ascend strictly within the by-rid arrays")
    own = state[rids]
    until = valid_until[rids]
    ok, begin, end = _by_moment(own, until, now, rule, states, created[rids], event[rids])
    if types is not None:
        ok &= types[type[rids]] != 0
    if importance_min is not None:
        ok &= importance[rids] >= importance_min
    for span, values in ((created_span, created), (event_span, event)):
        if span is not None:
            ok &= (values[rids] >= span[0]) & (values[rids] <= span[1])
    if tags is not None:
        numbers = tag_set[rids]
        if n and (numbers.min() < 0 or numbers.max() >= len(tags)):
            raise ValueError("a row's tag set is beyond the verdicts")
        ok &= tags[numbers] != 0
    return rids[ok], begin, end


def _by_moment(
    state: U8, until: I64, now: int, rule: int, states: U8 | None, created: I64, event: I64
) -> tuple[NDArray[np.bool_], int, int]:
    """Verdict by row and [begin, end)."""
    ok: NDArray[np.bool_]
    if rule == STATES and states is not None:
        return states[state] != 0, _LEAST, _LARGEST
    ok = (state != 0) & (state != _ARCHIVED) if rule == AS_OF else state == _ACTIVE
    begin = int(until[ok & (until <= now)].max(initial=_LEAST))
    end = int(until[ok & (until > now)].min(initial=_LARGEST))
    ok &= until > now
    if rule == WITH_SUPERSEDED:
        ok |= state == _SUPERSEDED
    if rule == AS_OF:
        ok &= np.where(event == _LEAST, created, event) <= now
    return ok, begin, end


def group(scope: I32, state: U8) -> tuple[I32, I32]:
    """The rids of all rows (state not 0) by scope, ascending within each: (int32[rows], int32[largest scope + 2]).

    The rows of scope s are ``rids[starts[s]:starts[s + 1]]``. Raises ValueError for scope numbers outside 0..2**27.
    """
    n = check_array("scope", scope, np.int32)
    check_array("state", state, np.uint8, n)
    rids = np.flatnonzero(state).astype(np.int32)
    own = scope[rids]
    largest = int(own.max(initial=-1))
    if own.min(initial=0) < 0 or largest > _SCOPES:
        raise ValueError("scope numbers must be 0..2**27")
    starts = np.zeros(largest + 2, np.int32)
    starts[1:] = np.cumsum(np.bincount(own, minlength=largest + 1)).astype(np.int32)
    return rids[np.argsort(own, kind="stable")], starts
