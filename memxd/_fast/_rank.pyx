"""Ranking kernels, compiled: what ``rank_py`` (its twin, which documents each function) does, in C.

Owns the entries: dtype, contiguity, lengths and rids are checked here once, and the loops in rank_loops.h,
rank_select.h, rank_scope.h and rank_legs.h check nothing. Same operations in the same order as the twin, so that
results are equal bit for bit; the twin and tests/vectors/rank change with these files. The GIL is released only where a
run is long enough to pay for taking it back (``_RELEASE_ABOVE``), which can wait for a busy Python thread.
"""

import numpy as np

from memxd._fast.protocols import LegRanking, ScopeRanking

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport strchr

cdef extern from "rank_loops.h" nogil:
    ctypedef struct memxd_weights:
        double s
        double r
        double f
        double m
    ctypedef struct memxd_moments:
        pass
    void memxd_fill_frequencies()
    ctypedef struct memxd_columns:
        const int64_t* reference
        const uint32_t* retrieval
        const uint32_t* access
        const float* importance
        const uint8_t* type
        const uint8_t* cjk
        const uint64_t* content
        const uint64_t* fold
        const uint64_t* tag
    void memxd_factors(
        const memxd_columns* c, const int32_t* rids, size_t n, double now, double rate, double* recency,
        double* frequency, double* weight)
    void memxd_combine(
        const double* semantic, const double* recency, const double* frequency, const double* importance, size_t n,
        memxd_weights w, double* raw)
    memxd_moments memxd_measure(const double* raw, size_t n)
    void memxd_normalise(const double* raw, size_t n, memxd_moments m, double* z, double* score)

cdef extern from "rank_select.h" nogil:
    size_t memxd_fuse(
        const int32_t* a, size_t a_n, const int32_t* b, size_t b_n, int64_t* keys, double k, double a_weight,
        double b_weight, int32_t* rids, double* score, int32_t* a_rank, int32_t* b_rank)
    void memxd_top_k(const double* score, const int32_t* rids, size_t n, int32_t* best, size_t k)
    size_t memxd_dedup(
        const int32_t* order, size_t m, const uint64_t* ids, const uint64_t* content, const uint64_t* third,
        const uint8_t* third_kinds, const uint8_t* suspect, int32_t* slots, size_t size, int32_t* kept, size_t limit,
        int32_t* folded_into)

cdef extern from "rank_scope.h" nogil:
    ctypedef struct memxd_fused:
        void* block
    int memxd_fuse_legs(
        const int32_t* a, size_t a_n, const int32_t* b, size_t b_n, double k, double a_weight, double b_weight,
        memxd_fused* f)
    ctypedef struct memxd_scope:
        const int32_t* rids
        size_t n
        memxd_columns columns
        memxd_fused fused
        double now
        double rate
        memxd_weights weights
    ctypedef struct memxd_entry:
        pass
    ctypedef struct memxd_best:
        memxd_entry* entries
        int32_t* kept
        size_t depth
        size_t kept_n
    int memxd_rank_scope(
        memxd_scope* s, size_t columns_size, int mode, size_t k, size_t whole, memxd_best* best)
    void memxd_fill_best(const memxd_scope* s, const memxd_best* best, int normalise, int32_t* ids, double* values)

cdef extern from "rank_legs.h" nogil:
    ctypedef struct memxd_legs:
        const int32_t* vector_rids
        const double* vector_cosines
        const double* vector_bm25
        const double* vector_match
        size_t a
        const int32_t* keyword_rids
        const double* keyword_cosines
        const double* keyword_bm25
        const double* keyword_match
        size_t b
    ctypedef struct memxd_rules:
        int fusion
        int vector_asked
        int keyword_asked
        int normalise
        int dedup
        int64_t rrf_k
        double vector_weight
        double keyword_weight
        double now
        double rate
        double low
        double high
        double shifts[3]
        double word_share
        double relevance[3]
        memxd_weights weights
    cdef enum:
        MEMXD_BY_SCORES
        MEMXD_BY_COSINE
    ctypedef struct memxd_ranked:
        int32_t* rids
        int32_t* vector_rank
        int32_t* keyword_rank
        int32_t* order
        int32_t* folded_into
        int32_t* kept
        double* cosine
        double* bm25
        double* match
        double* rrf
        double* semantic
        double* recency
        double* frequency
        double* importance
        double* raw
        double* z
        double* score
        double* relevance
        size_t n
        size_t kept_n
        double best_cosine
        double best_relevance
    int memxd_rank_legs(
        const memxd_legs* legs, const memxd_columns* c, size_t columns_size, const memxd_rules* r, memxd_ranked* out)

cdef extern from "Python.h":
    ctypedef struct PyThreadState:
        pass
    PyThreadState* PyEval_SaveThread() nogil
    void PyEval_RestoreThread(PyThreadState* state) nogil

cdef enum:
    _RELEASE_ABOVE = 4096
    _MODE_OFF = 1
    _MODE_TAGS = 3
    _MODE_ADAPTIVE = 4
    _WHOLE = 512  # as in rank_py

memxd_fill_frequencies()


cdef inline PyThreadState* _release(size_t rows) noexcept nogil:
    """Let other threads run if it is worth it; between this and ``_take_back`` only C functions may be called."""
    return PyEval_SaveThread() if rows > _RELEASE_ABOVE else NULL


cdef inline void _take_back(PyThreadState* state) noexcept nogil:
    if state != NULL:
        PyEval_RestoreThread(state)


def fuse_rrf(
    const int32_t[::1] vector_rids not None, const int32_t[::1] keyword_rids not None, int64_t k,
    double vector_weight, double keyword_weight,
):
    """As ``rank_py.fuse_rrf``."""
    _at_least("k", k, 0)
    cdef size_t a_n = vector_rids.shape[0], b_n = keyword_rids.shape[0], both = a_n + b_n, n
    rids, score = np.empty(both, np.int32), np.empty(both)
    vector_rank, keyword_rank = np.empty(both, np.int32), np.empty(both, np.int32)
    if both == 0:
        return rids, score, vector_rank, keyword_rank
    cdef int64_t[::1] keys = np.empty(2 * both, np.int64)
    cdef int32_t[::1] r = rids, v = vector_rank, w = keyword_rank
    cdef double[::1] s = score
    cdef const int32_t* a = NULL
    cdef const int32_t* b = NULL
    if a_n:
        a = &vector_rids[0]
    if b_n:
        b = &keyword_rids[0]
    cdef PyThreadState* state = _release(both)
    n = memxd_fuse(a, a_n, b, b_n, &keys[0], <double>k, vector_weight, keyword_weight, &r[0], &s[0], &v[0], &w[0])
    _take_back(state)
    return rids[:n], score[:n], vector_rank[:n], keyword_rank[:n]


def factors(
    const int32_t[::1] rids not None, const int64_t[::1] reference not None, const uint32_t[::1] retrieval not None,
    const uint32_t[::1] access not None, const float[::1] importance not None, int64_t now, int64_t half_life,
):
    """As ``rank_py.factors``."""
    _at_least("half_life", half_life, 1)
    _rids_within(rids, _shortest(reference, retrieval, access, importance))
    cdef size_t n = rids.shape[0]
    recency, frequency, weight = np.empty(n), np.empty(n), np.empty(n)
    if n == 0:
        return recency, frequency, weight
    cdef double[::1] r = recency, f = frequency, w = weight
    cdef memxd_columns c
    c.reference, c.retrieval, c.access, c.importance = &reference[0], &retrieval[0], &access[0], &importance[0]
    cdef PyThreadState* state = _release(n)
    memxd_factors(&c, &rids[0], n, <double>now, 1.0 / <double>half_life, &r[0], &f[0], &w[0])
    _take_back(state)
    return recency, frequency, weight


def combine(
    const double[::1] semantic not None, const double[::1] recency not None, const double[::1] frequency not None,
    const double[::1] importance not None, weights,
):
    """As ``rank_py.combine``."""
    cdef size_t n = semantic.shape[0]
    _same_length(n, recency.shape[0], frequency.shape[0], importance.shape[0])
    cdef memxd_weights w = _weights(weights)
    raw = np.empty(n)
    if n == 0:
        return raw
    cdef double[::1] out = raw
    cdef PyThreadState* state = _release(n)
    memxd_combine(&semantic[0], &recency[0], &frequency[0], &importance[0], n, w, &out[0])
    _take_back(state)
    return raw


def normalise(const double[::1] raw not None):
    """As ``rank_py.normalise``."""
    cdef size_t n = raw.shape[0]
    z, score = np.empty(n), np.empty(n)
    if n == 0:
        return z, score
    cdef double[::1] z_out = z, score_out = score
    cdef PyThreadState* state = _release(n)
    memxd_normalise(&raw[0], n, memxd_measure(&raw[0], n), &z_out[0], &score_out[0])
    _take_back(state)
    return z, score


def top_k(const double[::1] score not None, const int32_t[::1] rids not None, Py_ssize_t k):
    """As ``rank_py.top_k``."""
    cdef size_t n = score.shape[0], kept
    _same_length(n, rids.shape[0], n, n)
    _at_least("k", k, 0)
    kept = min(<size_t>k, n)
    best = np.empty(kept, np.int32)
    if kept == 0:
        return best
    cdef int32_t[::1] out = best
    cdef PyThreadState* state = _release(n)
    memxd_top_k(&score[0], &rids[0], n, &out[0], kept)
    _take_back(state)
    return best


def dedup(
    const int32_t[::1] order not None, const int32_t[::1] rids not None, const uint8_t[::1] type not None,
    const uint64_t[::1] content_hash not None, const uint64_t[::1] fold_hash not None,
    const uint64_t[::1] tag_hash not None, int mode, Py_ssize_t limit,
):
    """As ``rank_py.dedup``."""
    cdef Py_ssize_t n = rids.shape[0]
    _same_length(n, type.shape[0], content_hash.shape[0], fold_hash.shape[0])
    _same_length(n, tag_hash.shape[0], n, n)
    _at_least("limit", limit, 0)
    if not _MODE_OFF <= mode <= _MODE_ADAPTIVE:
        raise ValueError("mode must be 1, 2, 3 or 4")
    _rids_within(order, n)
    cdef size_t m = order.shape[0], most = min(<size_t>limit, m), size = 4, count
    kept, folded_into = np.empty(most, np.int32), np.full(n, -1, np.int32)
    if most == 0:
        return kept, folded_into
    while size < 2 * most:
        size *= 2
    cdef int32_t[::1] kept_out = kept, folded_out = folded_into, slots = np.zeros(3 * size, np.int32)
    cdef const uint64_t[::1] ids = np.asarray(rids).astype(np.uint64)
    cdef const uint64_t* content = NULL
    cdef const uint64_t* third = NULL
    cdef const uint8_t* kinds = NULL
    if mode != _MODE_OFF:
        content = &content_hash[0]
    if mode == _MODE_TAGS:
        third = &tag_hash[0]
        kinds = &type[0]
    elif mode == _MODE_ADAPTIVE:
        third = &fold_hash[0]
    cdef PyThreadState* state = _release(m)
    count = memxd_dedup(
        &order[0], m, &ids[0], content, third, kinds, NULL, &slots[0], size, &kept_out[0], most, &folded_out[0])
    _take_back(state)
    return kept[:count], folded_into


def rank_all(
    const int32_t[::1] rids not None, const int32_t[::1] vector_rids not None,
    const int32_t[::1] keyword_rids not None, columns, rules, Py_ssize_t k,
):
    """As ``rank_py.rank_all``."""
    _at_least("k", k, 0)
    cdef _Columns held = _held(columns)
    cdef memxd_rules r = _rules(rules)
    cdef size_t n = rids.shape[0]
    cdef memxd_scope scope
    cdef memxd_best best
    cdef int wrong
    scope.n, scope.columns = n, held.columns
    scope.now, scope.rate, scope.weights = r.now, r.rate, r.weights
    if n == 0:
        return ScopeRanking(np.empty((4, 0), np.int32), np.empty(0, np.int32), np.empty((8, 0)), 0)
    scope.rids = &rids[0]
    best.entries, best.kept, best.depth, best.kept_n = NULL, NULL, 0, 0
    cdef const int32_t* a = _first(vector_rids)
    cdef const int32_t* b = _first(keyword_rids)
    cdef size_t a_n = vector_rids.shape[0], b_n = keyword_rids.shape[0]
    cdef PyThreadState* state = _release(n + a_n + b_n)
    wrong = memxd_fuse_legs(a, a_n, b, b_n, <double>r.rrf_k, r.vector_weight, r.keyword_weight, &scope.fused)
    if wrong == 0:
        wrong = memxd_rank_scope(&scope, held.size, r.dedup, k, _WHOLE, &best)
    else:
        wrong = -2
    _take_back(state)
    try:
        _refuse(wrong, "rids must be strictly ascending and lie within the columns")
        ids, kept = np.empty((4, best.depth), np.int32), np.empty(best.kept_n, np.int32)
        values = np.empty((8, best.depth))
        _fill(&scope, &best, r.normalise, ids, kept, values)
    finally:
        free(best.entries)
        free(scope.fused.block)
    return ScopeRanking(ids, kept, values, n)


cdef int _fill(
    const memxd_scope* scope, const memxd_best* best, int normalise, int32_t[:, ::1] ids, int32_t[::1] kept,
    double[:, ::1] values,
) except -1:
    cdef size_t i
    for i in range(best.kept_n):
        kept[i] = best.kept[i]
    memxd_fill_best(scope, best, normalise, &ids[0, 0], &values[0, 0])
    return 0


def rank_legs(legs, columns, rules):
    """As ``rank_py.rank_legs``."""
    cdef _Columns held = _held(columns)
    cdef memxd_rules r = _rules(rules)
    if not MEMXD_BY_SCORES <= r.fusion <= MEMXD_BY_COSINE:
        raise ValueError("fusion must be 1, 2 or 3")
    cdef _Legs told = _Legs(legs)
    cdef size_t both = told.legs.a + told.legs.b
    ids, kept, values = np.empty((5, both), np.int32), np.empty(both, np.int32), np.empty((12, both))
    if both == 0:
        return LegRanking(ids, kept, values, -1.0, 0.0)
    cdef int32_t[:, ::1] i = ids
    cdef int32_t[::1] kept_out = kept
    cdef double[:, ::1] v = values
    cdef memxd_ranked out
    out.n, out.kept_n, out.best_cosine, out.best_relevance = 0, 0, -1.0, 0.0
    out.rids, out.vector_rank, out.keyword_rank = &i[0, 0], &i[1, 0], &i[2, 0]
    out.order, out.folded_into, out.kept = &i[3, 0], &i[4, 0], &kept_out[0]
    out.cosine, out.bm25, out.match, out.rrf = &v[0, 0], &v[1, 0], &v[2, 0], &v[3, 0]
    out.semantic, out.recency, out.frequency, out.importance = &v[4, 0], &v[5, 0], &v[6, 0], &v[7, 0]
    out.raw, out.z, out.score, out.relevance = &v[8, 0], &v[9, 0], &v[10, 0], &v[11, 0]
    cdef PyThreadState* state = _release(both)
    cdef int wrong = memxd_rank_legs(&told.legs, &held.columns, held.size, &r, &out)
    _take_back(state)
    _refuse(wrong, "a rid lies outside of the columns")
    return LegRanking(ids[:, :out.n], kept[:out.kept_n], values[:, :out.n], out.best_cosine, out.best_relevance)


cdef class _Arrays:
    """Arrays held while a kernel reads them. Takes buffers itself: typed views cost twice as long, and there are many."""

    cdef Py_buffer views[9]
    cdef int count

    cdef const void* take(self, array, const char* formats, Py_ssize_t itemsize, Py_ssize_t* length) except? NULL:
        cdef Py_buffer* view = &self.views[self.count]
        if array is None:
            raise TypeError("an array is needed where None was given")
        PyObject_GetBuffer(array, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)
        self.count += 1
        if view.ndim != 1 or view.itemsize != itemsize or view.format == NULL or view.format[0] == 0 \
                or view.format[1] != 0 or strchr(formats, view.format[0]) == NULL:
            raise ValueError("an array is not of one dimension or of another type")
        length[0] = view.shape[0]
        return view.buf

    def __dealloc__(self):
        while self.count:
            self.count -= 1
            PyBuffer_Release(&self.views[self.count])


cdef class _Columns(_Arrays):
    """``RankColumns`` checked; ``size``: the length of the shortest."""

    cdef memxd_columns columns
    cdef Py_ssize_t size
    cdef object source

    def __cinit__(self, columns):
        reference, retrieval, access, importance, type_, cjk, content, fold, tag = columns
        cdef Py_ssize_t n[9]
        cdef int i
        self.columns.reference = <const int64_t*>self.take(reference, b"lq", 8, &n[0])
        self.columns.retrieval = <const uint32_t*>self.take(retrieval, b"IL", 4, &n[1])
        self.columns.access = <const uint32_t*>self.take(access, b"IL", 4, &n[2])
        self.columns.importance = <const float*>self.take(importance, b"f", 4, &n[3])
        self.columns.type = <const uint8_t*>self.take(type_, b"B", 1, &n[4])
        self.columns.cjk = <const uint8_t*>self.take(cjk, b"B", 1, &n[5])
        self.columns.content = <const uint64_t*>self.take(content, b"LQ", 8, &n[6])
        self.columns.fold = <const uint64_t*>self.take(fold, b"LQ", 8, &n[7])
        self.columns.tag = <const uint64_t*>self.take(tag, b"LQ", 8, &n[8])
        self.size = n[0]
        for i in range(1, 9):
            self.size = min(self.size, n[i])
        self.source = columns


cdef _Columns _recent = None


cdef _Columns _held(columns):
    """The columns checked; those of the last call, the same tuple, are not checked again: searches bring it always."""
    global _recent
    cdef _Columns held = _recent
    if held is None or held.source is not columns:
        held = _Columns(columns)
        if isinstance(columns, tuple):  # which nobody changes
            _recent = held
    return held


cdef class _Legs(_Arrays):
    """``RankLegs`` checked."""

    cdef memxd_legs legs

    def __cinit__(self, legs):
        vector_rids, vector_cosines, vector_bm25, vector_match, keyword_rids, keyword_cosines, bm25, match = legs
        cdef Py_ssize_t a, b
        self.legs.vector_rids = <const int32_t*>self.take(vector_rids, b"il", 4, &a)
        self.legs.keyword_rids = <const int32_t*>self.take(keyword_rids, b"il", 4, &b)
        self.legs.a, self.legs.b = a, b
        self.legs.vector_cosines = self.told(vector_cosines, a)
        self.legs.vector_bm25 = NULL if vector_bm25 is None else self.told(vector_bm25, a)
        self.legs.vector_match = NULL if vector_match is None else self.told(vector_match, a)
        self.legs.keyword_cosines = NULL if keyword_cosines is None else self.told(keyword_cosines, b)
        self.legs.keyword_bm25 = self.told(bm25, b)
        self.legs.keyword_match = self.told(match, b)

    cdef const double* told(self, array, Py_ssize_t length) except? NULL:
        cdef Py_ssize_t n
        cdef const void* values = self.take(array, b"d", 8, &n)
        if n != length:
            raise ValueError("what a leg tells has one length")
        return <const double*>values


cdef memxd_rules _rules(rules) except *:
    cdef memxd_rules r
    cdef int64_t now, half_life
    (r.fusion, r.vector_asked, r.keyword_asked, r.rrf_k, r.vector_weight, r.keyword_weight, weights, now, half_life,
     r.normalise, r.dedup, band, shifts, r.word_share, relevance) = rules
    r.weights = _weights(weights)
    r.now, r.rate = <double>now, 1.0 / <double>half_life
    r.low, r.high = band
    r.shifts[0], r.shifts[1], r.shifts[2] = shifts
    r.relevance[0], r.relevance[1], r.relevance[2] = relevance
    _at_least("rrf_k", r.rrf_k, 0)
    _at_least("half_life", half_life, 1)
    if not _MODE_OFF <= r.dedup <= _MODE_ADAPTIVE:
        raise ValueError("dedup must be 1, 2, 3 or 4")
    return r


cdef int _refuse(int wrong, str message) except -1:
    if wrong == -1:
        raise ValueError(message)
    if wrong:
        raise MemoryError
    return 0


cdef const int32_t* _first(const int32_t[::1] array) noexcept:
    return &array[0] if array.shape[0] else NULL


cdef memxd_weights _weights(weights) except *:
    cdef memxd_weights w
    w.s, w.r, w.f, w.m = weights
    return w


cdef int _at_least(str name, int64_t value, int64_t least) except -1:
    if value < least:
        raise ValueError(f"{name} must be at least {least}")
    return 0


cdef int _same_length(Py_ssize_t n, Py_ssize_t a, Py_ssize_t b, Py_ssize_t c) except -1:
    if a != n or b != n or c != n:
        raise ValueError("arrays of one length are needed")
    return 0


cdef Py_ssize_t _shortest(
    const int64_t[::1] reference, const uint32_t[::1] retrieval, const uint32_t[::1] access, const float[::1] importance
) noexcept:
    return min(min(reference.shape[0], retrieval.shape[0]), min(access.shape[0], importance.shape[0]))


cdef int _rids_within(const int32_t[::1] rids, Py_ssize_t size) except -1:
    cdef Py_ssize_t i
    cdef uint32_t largest = 0
    for i in range(rids.shape[0]):
        largest = max(largest, <uint32_t>rids[i])  # a negative one becomes large
    if rids.shape[0] and <Py_ssize_t>largest >= size:
        raise ValueError(f"a position or rid lies outside of 0..{size - 1}")
    return 0
