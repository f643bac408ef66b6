"""Compiled twin of ``dot_py``: shapes, dtypes and meaning stand there, and results are equal bit for bit.

The arithmetic is in dot.h. Each function is one section without the GIL.
"""

import numpy as np

from libc.math cimport NAN
from libc.stdint cimport int32_t, uint16_t

cdef extern from "dot.h" nogil:
    ctypedef float (*memxd_dot_fn)(const float *query, const uint16_t *row, Py_ssize_t width)
    memxd_dot_fn memxd_dot_pick(int variant)
    void MEMXD_PREFETCH(const void *address)

cdef memxd_dot_fn dot = memxd_dot_pick(0)

# How many rids ahead a row is asked of memory; the rows of one chain lie side by side.
cdef enum:
    AHEAD = 8


def use_portable(bint portable):
    """For tests and benchmarks: take the portable arithmetic, or (False) the best of this processor again."""
    global dot
    dot = memxd_dot_pick(1 if portable else 0)


cdef inline void best_row(
    const float *query, const uint16_t *matrix, Py_ssize_t count, Py_ssize_t width,
    const int32_t *after, int32_t row, float *cosine, int32_t *where,
) noexcept nogil:
    """The best of a chain that begins at ``row``; where[0] = -1 when there is none."""
    cdef float value
    where[0] = -1
    cosine[0] = NAN
    while 0 <= row < count:
        value = dot(query, matrix + row * width, width)
        if value == value and (where[0] < 0 or value > cosine[0]):
            cosine[0] = value
            where[0] = row
        row = after[row]


cdef inline bint worse(float cosine_a, int32_t rid_a, float cosine_b, int32_t rid_b) noexcept nogil:
    return cosine_a < cosine_b or (cosine_a == cosine_b and rid_a > rid_b)


cdef inline void sift_down(
    int32_t *rids, float *cosines, int32_t *rows, Py_ssize_t size, int32_t rid, float cosine, int32_t row,
) noexcept nogil:
    """Put an entry into the hole at the root of a heap whose root is the worst."""
    cdef Py_ssize_t hole = 0, child
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        if child + 1 < size and worse(cosines[child + 1], rids[child + 1], cosines[child], rids[child]):
            child += 1
        if not worse(cosines[child], rids[child], cosine, rid):
            break
        rids[hole], cosines[hole], rows[hole] = rids[child], cosines[child], rows[child]
        hole = child
    rids[hole], cosines[hole], rows[hole] = rid, cosine, row


cdef inline void sift_up(
    int32_t *rids, float *cosines, int32_t *rows, Py_ssize_t hole, int32_t rid, float cosine, int32_t row,
) noexcept nogil:
    """Put an entry into the hole at the end of the heap."""
    cdef Py_ssize_t parent
    while hole > 0:
        parent = (hole - 1) // 2
        if not worse(cosine, rid, cosines[parent], rids[parent]):
            break
        rids[hole], cosines[hole], rows[hole] = rids[parent], cosines[parent], rows[parent]
        hole = parent
    rids[hole], cosines[hole], rows[hole] = rid, cosine, row


cdef inline void order_heap(int32_t *rids, float *cosines, int32_t *rows, Py_ssize_t size) noexcept nogil:
    """Heap to best first: the worst goes to the end, again and again."""
    cdef Py_ssize_t last
    cdef int32_t rid, row
    cdef float cosine
    for last in range(size - 1, 0, -1):
        rid, cosine, row = rids[last], cosines[last], rows[last]
        rids[last], cosines[last], rows[last] = rids[0], cosines[0], rows[0]
        sift_down(rids, cosines, rows, last, rid, cosine, row)


cdef inline void prefetch(const uint16_t *matrix, Py_ssize_t width, Py_ssize_t count, int32_t row) noexcept nogil:
    cdef Py_ssize_t i
    if 0 <= row < count:
        for i in range(0, width, 32):  # a cache line holds 32 halves
            MEMXD_PREFETCH(matrix + row * width + i)


def dot_rows(query, matrix, rows, /):
    cdef const float[::1] q = query
    cdef const uint16_t[:, ::1] m = matrix.view(np.uint16)
    cdef const int32_t[::1] r = rows
    cdef Py_ssize_t n = r.shape[0], count = m.shape[0], width = m.shape[1], i
    out = np.empty(n, np.float32)
    cdef float[::1] o = out
    if n == 0:
        return out
    if width == 0 or count == 0:
        out[:] = np.where((rows >= 0) & (rows < count), np.float32(0), np.float32(np.nan))
        return out
    with nogil:
        for i in range(n):
            if i + AHEAD < n:
                prefetch(&m[0, 0], width, count, r[i + AHEAD])
            o[i] = dot(&q[0], &m[0, 0] + r[i] * width, width) if 0 <= r[i] < count else <float>NAN
    return out


def best_by_rid(query, matrix, head, after, rids, /):
    cdef const float[::1] q = query
    cdef const uint16_t[:, ::1] m = matrix.view(np.uint16)
    cdef const int32_t[::1] h = head, a = after, r = rids
    cdef Py_ssize_t n = r.shape[0], heads = h.shape[0], width = m.shape[1], i
    cdef Py_ssize_t count = min(m.shape[0], a.shape[0])
    best = np.full(n, np.nan, np.float32)
    where = np.full(n, -1, np.int32)
    if n == 0 or count == 0 or heads == 0 or width == 0:
        return best, where
    cdef float[::1] b = best
    cdef int32_t[::1] w = where
    with nogil:
        for i in range(n):
            if i + AHEAD < n and 0 <= r[i + AHEAD] < heads:
                prefetch(&m[0, 0], width, count, h[r[i + AHEAD]])
            if 0 <= r[i] < heads:
                best_row(&q[0], &m[0, 0], count, width, &a[0], h[r[i]], &b[i], &w[i])
    return best, where


def search_rids(query, matrix, head, after, rids, k, /):
    cdef const float[::1] q = query
    cdef const uint16_t[:, ::1] m = matrix.view(np.uint16)
    cdef const int32_t[::1] h = head, a = after, r = rids
    cdef Py_ssize_t n = r.shape[0], heads = h.shape[0], width = m.shape[1], i, size = 0
    cdef Py_ssize_t count = min(m.shape[0], a.shape[0]), limit = min(<Py_ssize_t>k, n)
    cdef float cosine
    cdef int32_t row
    top_rids = np.empty(limit, np.int32)
    top_cosines = np.empty(limit, np.float32)
    top_rows = np.empty(limit, np.int32)
    if limit == 0 or count == 0 or heads == 0 or width == 0:
        return top_rids[:0], top_cosines[:0], top_rows[:0]
    cdef int32_t[::1] tr = top_rids, tw = top_rows
    cdef float[::1] tc = top_cosines
    with nogil:
        for i in range(n):
            if i + AHEAD < n and 0 <= r[i + AHEAD] < heads:
                prefetch(&m[0, 0], width, count, h[r[i + AHEAD]])
            if not 0 <= r[i] < heads:
                continue
            best_row(&q[0], &m[0, 0], count, width, &a[0], h[r[i]], &cosine, &row)
            if row < 0:
                continue
            if size < limit:
                sift_up(&tr[0], &tc[0], &tw[0], size, r[i], cosine, row)
                size += 1
            elif worse(tc[0], tr[0], cosine, r[i]):
                sift_down(&tr[0], &tc[0], &tw[0], limit, r[i], cosine, row)
        order_heap(&tr[0], &tc[0], &tw[0], size)
    return top_rids[:size], top_cosines[:size], top_rows[:size]
