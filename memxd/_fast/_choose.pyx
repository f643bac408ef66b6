"""Compiled twin of ``choose_py``: shapes, dtypes and meaning stand there, and results are equal.

The loops are in choose.h. Each function is one section without the GIL.
"""

import numpy as np

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t

cdef extern from "choose.h" nogil:
    ctypedef struct memxd_columns:
        const uint8_t *state
        const uint8_t *type
        const int64_t *valid_until
        const int64_t *created
        const int64_t *event
        const double *importance
        const int32_t *tag_set
    ctypedef struct memxd_wish:
        int rule
        int64_t now
        const uint8_t *states
        const uint8_t *types
        const uint8_t *tags
        int64_t sets
        int by_created
        int by_event
        int by_importance
        int64_t created_first
        int64_t created_last
        int64_t event_first
        int64_t event_last
        double importance_min
    int64_t memxd_choose(
        const memxd_columns *c, const memxd_wish *w, const int32_t *rids, size_t n, int32_t *out, int64_t *begin,
        int64_t *end)
    void memxd_group(
        const int32_t *scope, const uint8_t *state, size_t n, int32_t *place, size_t scopes, int32_t *out)


def choose(
    const int32_t[::1] rids not None, const uint8_t[::1] state not None, const uint8_t[::1] type not None,
    const int64_t[::1] valid_until not None, const int64_t[::1] created not None, const int64_t[::1] event not None,
    const double[::1] importance not None, const int32_t[::1] tag_set not None, int rule, int64_t now,
    const uint8_t[::1] states, const uint8_t[::1] types, const uint8_t[::1] tags, created_span, event_span,
    importance_min,
):
    """As ``choose_py.choose``."""
    cdef Py_ssize_t n = rids.shape[0], size = state.shape[0]
    cdef int64_t m = 0, begin = INT64_MIN, end = INT64_MAX
    cdef memxd_columns columns
    cdef memxd_wish wish
    if not 0 <= rule <= 3 or (rule == 0 and states is None):
        raise ValueError("rule must be 0..3, and 0 needs states")
    if min(type.shape[0], valid_until.shape[0], created.shape[0], event.shape[0], importance.shape[0],
           tag_set.shape[0]) < size:
        raise ValueError("a by-rid array is shorter than state")
    wish.rule, wish.now = rule, now
    wish.states = _table(states)
    wish.types = _table(types)
    wish.tags, wish.sets = NULL, 0
    cdef uint8_t nothing = 0
    if tags is not None:
        wish.tags, wish.sets = (&tags[0] if tags.shape[0] else &nothing), tags.shape[0]
    wish.by_created, wish.by_event, wish.by_importance = (
        created_span is not None, event_span is not None, importance_min is not None)
    wish.created_first, wish.created_last = created_span or (0, 0)
    wish.event_first, wish.event_last = event_span or (0, 0)
    wish.importance_min = importance_min or 0.0
    chosen = np.empty(n, np.int32)
    if n == 0:
        return chosen, begin, end
    columns.state, columns.type = &state[0] if size else NULL, &type[0] if size else NULL
    cdef int32_t[::1] out = chosen
    cdef Py_ssize_t i
    cdef int disorder = rids[0] < 0 or rids[n - 1] >= size
    if size:
        columns.valid_until, columns.created, columns.event = &valid_until[0], &created[0], &event[0]
        columns.importance, columns.tag_set = &importance[0], &tag_set[0]
    with nogil:
        for i in range(n - 1):
            disorder |= rids[i + 1] <= rids[i]
        if not disorder:
            m = memxd_choose(&columns, &wish, &rids[0], n, &out[0], &begin, &end)
    if disorder:
        raise ValueError("rids must ascend strictly within the by-rid arrays")
    if m < 0:
        raise ValueError("a row's tag set is beyond the verdicts")
    return chosen[:m].copy() if 2 * m < n else chosen[:m], begin, end


cdef const uint8_t *_table(const uint8_t[::1] table) except? NULL:
    if table is None:
        return NULL
    if table.shape[0] != 256:
        raise ValueError("a table by state or type has 256 entries")
    return &table[0]


def group(const int32_t[::1] scope not None, const uint8_t[::1] state not None):
    """As ``choose_py.group``."""
    cdef Py_ssize_t n = scope.shape[0], i
    cdef int64_t live = 0
    cdef int32_t largest = -1, least = 0
    if state.shape[0] != n:
        raise ValueError("scope and state have one length")
    with nogil:
        for i in range(n):
            if state[i]:
                live += 1
                largest = max(largest, scope[i])
                least = min(least, scope[i])
    if least < 0 or largest > 1 << 27:
        raise ValueError("scope numbers must be 0..2**27")
    rids, starts, place = np.empty(live, np.int32), np.zeros(largest + 2, np.int32), np.zeros(largest + 2, np.int32)
    cdef int32_t[::1] out = rids, at = place
    if live:
        with nogil:
            memxd_group(&scope[0], &state[0], n, &at[0], largest + 1, &out[0])
        starts[1:] = place[: largest + 1]  # each place has moved on to where the next scope begins
    return rids, starts
