"""Compiled twin of ``dot_py``: shapes, dtypes and meaning stand there, and results are equal bit for bit.

The arithmetic is in dot.h. Each function is one section without the GIL.
"""

import numpy as np

from libc.math cimport NAN
from libc.stdint cimport int32_t, uint8_t, uint16_t, uint64_t
from libc.stdlib cimport calloc, free

cdef extern from "dot.h" nogil:
    ctypedef float (*memxd_dot_fn)(const float *query, const uint16_t *row, Py_ssize_t width)
    memxd_dot_fn memxd_dot_pick(int variant)
    ctypedef void (*memxd_dots_fn)(const float *query, const uint16_t *one, const uint16_t *two, Py_ssize_t width, float *out)
    memxd_dots_fn memxd_dots_pick(memxd_dot_fn dot)
    void MEMXD_PREFETCH(const void *address)

cdef extern from "walk.h" nogil:
    ctypedef uint64_t memxd_near
    int32_t memxd_row_of(memxd_near item)
    ctypedef struct memxd_walk:
        const uint16_t *matrix
        const int32_t *rids
        const int32_t *head
        const int32_t *links
        const int32_t *at
        const int32_t *upper
        Py_ssize_t nodes, dimension, fan, blocks, upper_fan
        int32_t entry, levels
        const float *query
        memxd_dot_fn dot
        memxd_dots_fn dots
        const uint8_t *mask
        Py_ssize_t capacity
        const int32_t *chosen
        Py_ssize_t chosen_size
        Py_ssize_t near, some, wide, needed, budget
        double share
        Py_ssize_t many, most
        double far, floor
        memxd_near *found
        Py_ssize_t found_size, scored
        int stop
    int memxd_stopped(const memxd_walk *walk)
    void memxd_stop(memxd_walk *walk)
    int memxd_walk_run(memxd_walk *walk)
    void memxd_walk_free(memxd_walk *walk)

cdef extern from "beside.h" nogil:
    ctypedef struct memxd_task:
        void (*run)(void *) noexcept
        void *state
        int stage
    ctypedef struct memxd_helpers:
        pass
    memxd_helpers *memxd_helpers_start(int threads)
    int memxd_post(memxd_helpers *helpers, memxd_task *task)
    int memxd_done(memxd_task *task)
    void memxd_finish_task(memxd_helpers *helpers, memxd_task *task, int drop)
    void memxd_helpers_stop(memxd_helpers *helpers)
    void memxd_helpers_free(memxd_helpers *helpers)

cdef memxd_dot_fn dot = memxd_dot_pick(0)

# How many rids ahead a row is asked of memory, and where it lies; the rows of one chain lie side by side. Up to
# KEEP_LOCK rids, a few microseconds, taking the interpreter's lock back would take longer than the work. No more than
# MOST_HELPERS threads look beside those that ask.
cdef enum:
    AHEAD = 8
    FAR = 32
    KEEP_LOCK = 512
    MOST_HELPERS = 4


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


cdef void best_of_each(
    const float *query, const uint16_t *matrix, Py_ssize_t count, Py_ssize_t width, const int32_t *head,
    Py_ssize_t heads, const int32_t *after, const int32_t *numbers, const int32_t *rids, Py_ssize_t n, double *best,
    int32_t *told,
) noexcept nogil:
    """Each step asks memory for a head FAR rids ahead and, AHEAD rids ahead, for all that its first row needs."""
    cdef Py_ssize_t i, at
    cdef float cosine
    cdef int32_t row
    for i in range(-FAR, n):
        at = i + FAR
        if at < n and 0 <= rids[at] < heads:
            MEMXD_PREFETCH(head + rids[at])
        at = i + AHEAD
        if 0 <= at < n and 0 <= rids[at] < heads:
            row = head[rids[at]]
            prefetch(matrix, width, count, row)
            if 0 <= row < count:
                MEMXD_PREFETCH(after + row)
                MEMXD_PREFETCH(numbers + row)
        if i < 0:
            continue
        row, cosine = -1, NAN
        if 0 <= rids[i] < heads:
            best_row(query, matrix, count, width, after, head[rids[i]], &cosine, &row)
        best[i] = cosine
        told[i] = numbers[row] if row >= 0 else -1


def best_by_rid(query, matrix, head, after, numbers, rids, /):
    cdef const float[::1] q = query
    cdef const uint16_t[:, ::1] m = matrix.view(np.uint16)
    cdef const int32_t[::1] h = head, a = after, of = numbers, r = rids
    cdef Py_ssize_t n = r.shape[0], heads = h.shape[0], width = m.shape[1]
    cdef Py_ssize_t count = min(min(m.shape[0], a.shape[0]), of.shape[0])
    if n == 0 or count == 0 or heads == 0 or width == 0:
        return np.full(n, np.nan), np.full(n, -1, np.int32)
    best, told = np.empty(n), np.empty(n, np.int32)
    cdef double[::1] b = best
    cdef int32_t[::1] t = told
    if n <= KEEP_LOCK:
        best_of_each(&q[0], &m[0, 0], count, width, &h[0], heads, &a[0], &of[0], &r[0], n, &b[0], &t[0])
        return best, told
    with nogil:
        best_of_each(&q[0], &m[0, 0], count, width, &h[0], heads, &a[0], &of[0], &r[0], n, &b[0], &t[0])
    return best, told


cdef struct Best:
    int32_t *rids
    float *cosines
    int32_t *rows
    Py_ssize_t size, limit


cdef inline void keep(Best *best, int32_t rid, float cosine, int32_t row) noexcept nogil:
    """Put a memory among the best ``limit``."""
    if best.size < best.limit:
        sift_up(best.rids, best.cosines, best.rows, best.size, rid, cosine, row)
        best.size += 1
    elif worse(best.cosines[0], best.rids[0], cosine, rid):
        sift_down(best.rids, best.cosines, best.rows, best.limit, rid, cosine, row)


cdef inline bint first_time(uint8_t *done, int32_t rid) noexcept nogil:
    cdef uint8_t bit = <uint8_t>(1 << (rid & 7))
    if done[rid >> 3] & bit:
        return False
    done[rid >> 3] |= bit
    return True


cdef inline void consider(
    memxd_walk *walk, uint8_t *done, Best *best, const int32_t *after, Py_ssize_t count, int32_t row,
) noexcept nogil:
    """The memory of a row, when it is selected and was not looked at yet: its best chunk, among the best."""
    cdef int32_t rid = walk.rids[row], place
    cdef float cosine
    if 0 <= rid < walk.capacity and walk.mask[rid] and first_time(done, rid):
        best_row(walk.query, walk.matrix, count, walk.dimension, after, walk.head[rid], &cosine, &place)
        if place >= 0:
            keep(best, rid, cosine, place)


cdef struct Job:
    memxd_walk walk  # of a scan: the query, the rows and ``chosen``
    Best best
    const int32_t *after
    Py_ssize_t count, end
    int graph, fine


cdef void scan(Job *job) noexcept nogil:
    """Every chosen rid; ``capacity`` = length of ``head``."""
    cdef memxd_walk *walk = &job.walk
    cdef const int32_t *r = walk.chosen
    cdef Py_ssize_t i, n = walk.chosen_size
    cdef float cosine
    cdef int32_t row
    for i in range(n):
        if i & 1023 == 0 and memxd_stopped(walk):
            break
        if i + AHEAD < n and 0 <= r[i + AHEAD] < walk.capacity:
            prefetch(walk.matrix, walk.dimension, job.count, walk.head[r[i + AHEAD]])
        if not 0 <= r[i] < walk.capacity:
            continue
        best_row(walk.query, walk.matrix, job.count, walk.dimension, job.after, walk.head[r[i]], &cosine, &row)
        if row >= 0:
            keep(&job.best, r[i], cosine, row)


cdef void look(Job *job) noexcept nogil:
    """The graph, then the rows behind it."""
    cdef memxd_walk *walk = &job.walk
    cdef uint8_t *done = <uint8_t *>calloc(walk.capacity // 8 + 1, 1)
    cdef const int32_t *owner = walk.rids
    cdef Py_ssize_t i
    job.fine = done != NULL and memxd_walk_run(walk)
    if job.fine:
        for i in range(walk.found_size):
            consider(walk, done, &job.best, job.after, job.count, memxd_row_of(walk.found[i]))
        for i in range(walk.nodes, job.end):
            if i + AHEAD < job.end and 0 <= owner[i + AHEAD] < walk.capacity and walk.mask[owner[i + AHEAD]]:
                prefetch(walk.matrix, walk.dimension, job.count, <int32_t>(i + AHEAD))
            consider(walk, done, &job.best, job.after, job.count, <int32_t>i)
    memxd_walk_free(walk)
    free(done)


cdef void do_job(void *of) noexcept nogil:
    cdef Job *job = <Job *>of
    if job.best.limit == 0:
        return
    if job.graph:
        look(job)
    else:
        scan(job)
    order_heap(job.best.rids, job.best.cosines, job.best.rows, job.best.size)


cdef class Look:
    """One search of vectors, which may run on another thread: holds every array until that has ended."""

    cdef Job job
    cdef memxd_task task
    cdef tuple held
    cdef object rids, cosines, rows
    cdef Helpers helpers
    cdef bint given  # another thread may be at it

    def __dealloc__(self):
        self.end(True)

    cdef void end(self, bint drop) noexcept:
        """Nobody else touches the arrays any more."""
        cdef memxd_helpers *pool
        if not self.given:
            return
        self.given = False
        pool = self.helpers.pool
        if not memxd_done(&self.task):
            if drop:
                memxd_stop(&self.job.walk)
            with nogil:
                memxd_finish_task(pool, &self.task, drop)
        self.helpers.busy -= 1

    cdef int take(self, matrix, head, after, rids, Py_ssize_t k, const float[::1] q) except -1:
        """What both kinds of search need."""
        cdef const uint16_t[:, ::1] m = matrix.view(np.uint16)
        cdef const int32_t[::1] h = head, a = after, r = rids
        cdef Py_ssize_t limit = max(0, min(k, r.shape[0]))
        cdef Job *job = &self.job
        job.walk.query, job.walk.dimension, job.walk.dot, job.walk.dots = NULL, m.shape[1], dot, memxd_dots_pick(dot)
        job.walk.capacity, job.walk.chosen_size = h.shape[0], r.shape[0]
        job.count, job.fine = min(m.shape[0], a.shape[0]), 1
        self.rids, self.cosines, self.rows = np.empty(limit, np.int32), np.empty(limit, np.float32), np.empty(limit, np.int32)
        if limit == 0 or job.count == 0 or h.shape[0] == 0 or m.shape[1] == 0:
            return 0
        cdef int32_t[::1] tr = self.rids, tw = self.rows
        cdef float[::1] tc = self.cosines
        job.best.rids, job.best.cosines, job.best.rows, job.best.limit = &tr[0], &tc[0], &tw[0], limit
        job.walk.query, job.walk.matrix, job.walk.head, job.walk.chosen = &q[0], &m[0, 0], &h[0], &r[0]
        job.after = &a[0]
        return 0

    cdef int take_graph(self, by_row, graph, mask, Py_ssize_t tail_end, effort) except -1:
        """What the graph needs besides; after ``take``."""
        cdef const int32_t[::1] owner = by_row, at = graph.at
        cdef const int32_t[:, ::1] links = graph.links, upper = graph.upper
        cdef const uint8_t[::1] allowed = mask
        cdef Job *job = &self.job
        cdef memxd_walk *walk = &job.walk
        job.graph, job.end = 1, min(min(tail_end, job.count), owner.shape[0])
        walk.nodes, walk.fan = min(min(links.shape[0], at.shape[0]), job.end), links.shape[1]
        walk.blocks, walk.upper_fan, walk.entry, walk.levels = upper.shape[0], upper.shape[1], graph.entry, graph.levels
        walk.near, walk.some, walk.wide, walk.needed, walk.budget, walk.share = effort[:6]
        walk.many, walk.far, walk.most, walk.floor = effort[6:]
        walk.capacity = min(allowed.shape[0], walk.capacity)
        if links.shape[1] > 256 or walk.near < 1:
            raise ValueError("the query has another length than a row, the graph too many links, or the beam is below 1")
        if job.end <= 0 or walk.capacity == 0:
            job.best.limit = 0
        if job.best.limit == 0:
            return 0
        walk.rids, walk.mask = &owner[0], &allowed[0]
        walk.links = &links[0, 0] if walk.nodes > 0 and walk.fan else NULL
        walk.at = &at[0] if walk.nodes > 0 else NULL
        walk.upper = &upper[0, 0] if walk.blocks and walk.upper_fan else NULL
        return 0

    def result(self):
        """See ``protocols.Look.result``."""
        if self.helpers is None:
            with nogil:
                do_job(&self.job)
            self.job.best.limit = 0  # a second time there is nothing to do
        else:
            self.end(False)
        if not self.job.fine:
            raise MemoryError
        cdef Py_ssize_t size = self.job.best.size
        return self.rids[:size], self.cosines[:size], self.rows[:size], self.job.walk.scored

    def drop(self):
        """See ``protocols.Look.drop``."""
        self.end(True)


cdef Look graph_look(query, matrix, head, after, by_row, graph, mask, rids, tail_end, k, effort):
    cdef const float[::1] q = query
    cdef Look look = Look()
    if q.shape[0] != matrix.shape[1]:
        raise ValueError("the query has another length than a row, the graph too many links, or the beam is below 1")
    look.take(matrix, head, after, rids, k, q)
    look.take_graph(by_row, graph, mask, tail_end, effort)
    look.held = (query, matrix, head, after, by_row, graph, mask, rids)
    return look


cdef Look rids_look(query, matrix, head, after, rids, k):
    cdef const float[::1] q = query
    cdef Look look = Look()
    look.take(matrix, head, after, rids, k, q)
    look.held = (query, matrix, head, after, rids)
    return look


def search_rids(query, matrix, head, after, rids, k, /):
    return rids_look(query, matrix, head, after, rids, k).result()[:3]


def search_graph(query, matrix, head, after, by_row, graph, mask, rids, tail_end, k, effort, /):
    return graph_look(query, matrix, head, after, by_row, graph, mask, rids, tail_end, k, effort).result()


cdef class Helpers:
    """See ``helpers.Helpers``. Everything but the work itself happens under the interpreter's lock."""

    cdef memxd_helpers *pool
    cdef int threads, cores
    cdef bint closed
    cdef Py_ssize_t within, busy

    def __init__(self, int cores):
        self.cores, self.threads = cores, min(cores // 2, MOST_HELPERS)

    def __dealloc__(self):
        if self.pool != NULL:
            memxd_helpers_stop(self.pool)
            memxd_helpers_free(self.pool)

    def enter(self):
        """See ``helpers.Helpers.enter``."""
        self.within += 1

    def leave(self):
        """See ``helpers.Helpers.leave``."""
        self.within -= 1

    cdef Look hand_over(self, Look look):
        if self.pool == NULL:
            self.pool = memxd_helpers_start(self.threads)
            if self.pool == NULL:
                raise MemoryError
        look.task.run, look.task.state = do_job, &look.job
        if not memxd_post(self.pool, &look.task):
            return None
        look.helpers, look.given = self, True
        self.busy += 1
        return look

    cdef bint free(self):
        return self.within + self.busy < self.cores and self.threads > 0 and not self.closed

    def begin_rids(self, query, matrix, head, after, rids, k, /):
        """See ``helpers.Helpers.begin_rids``."""
        return self.hand_over(rids_look(query, matrix, head, after, rids, k)) if self.free() else None

    def begin_graph(self, query, matrix, head, after, by_row, graph, mask, rids, tail_end, k, effort, /):
        """See ``helpers.Helpers.begin_graph``."""
        if not self.free():
            return None
        return self.hand_over(graph_look(query, matrix, head, after, by_row, graph, mask, rids, tail_end, k, effort))

    def close(self):
        """See ``helpers.Helpers.close``."""
        cdef bint first = not self.closed
        self.closed = True
        if first and self.pool != NULL:
            with nogil:
                memxd_helpers_stop(self.pool)
