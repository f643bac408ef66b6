"""Ranking kernels, compiled: what ``rank_py`` (its twin, which documents each function) does, in C.

Owns the entries: dtype, contiguity, lengths and rids are checked here once, and the loops in rank_loops.h,
rank_select.h, rank_scope.h and rank_legs.h check nothing. Same operations in the same order as the twin, so that
results are equal bit for bit; the twin and tests/vectors/rank change with these files. The GIL is released only where a
run is long enough to pay for taking it back (``_RELEASE_ABOVE``), which can wait for a busy Python thread.
"""

import numpy as np

from memxd._fast.protocols import LegRanking, ScopeRanking

from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, strchr

cdef extern from "rank_loops.h" nogil:
    ctypedef struct memxd_weights:
        double s
        double r
        double f
        double m
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

cdef extern from "rank_scope.h" nogil:
    ctypedef struct memxd_fused:
        void* block
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
        int32_t* rids
        int32_t* kept
        int32_t* folded_into
        size_t depth
        size_t kept_n
    int memxd_fuse_legs(
        memxd_scope* s, const int32_t* a, size_t a_n, const int32_t* b, size_t b_n, double k, double a_weight,
        double b_weight)
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
    _MODE_ADAPTIVE = 4
    _WHOLE = 512  # as in rank_py

memxd_fill_frequencies()


cdef inline PyThreadState* _release(size_t rows) noexcept nogil:
    """Let other threads run if it is worth it; between this and ``_take_back`` only C functions may be called."""
    return PyEval_SaveThread() if rows > _RELEASE_ABOVE else NULL


cdef inline void _take_back(PyThreadState* state) noexcept nogil:
    if state != NULL:
        PyEval_RestoreThread(state)


def rank_all(rids, vector_rids, keyword_rids, columns, rules, Py_ssize_t k):
    """As ``rank_py.rank_all``."""
    _at_least("k", k, 0)
    cdef _Columns held = _held(columns)
    cdef memxd_rules r = _rules(rules)
    cdef _Arrays given = _Arrays.__new__(_Arrays)
    cdef Py_ssize_t n, a_n, b_n
    cdef memxd_scope scope
    cdef memxd_best best
    scope.rids = <const int32_t*>given.take(rids, b"il", 4, &n)
    cdef const int32_t* a = <const int32_t*>given.take(vector_rids, b"il", 4, &a_n)
    cdef const int32_t* b = <const int32_t*>given.take(keyword_rids, b"il", 4, &b_n)
    if n == 0:
        return ScopeRanking(np.empty((4, 0), np.int32), np.empty(0, np.int32), np.empty((8, 0)), 0)
    if n > INT32_MAX:
        raise ValueError("more rids than there can be")
    scope.n, scope.columns, scope.now, scope.rate, scope.weights = n, held.columns, r.now, r.rate, r.weights
    best.entries, best.rids, best.kept, best.folded_into, best.depth, best.kept_n = NULL, NULL, NULL, NULL, 0, 0
    cdef PyThreadState* state = _release(n + a_n + b_n)
    cdef int wrong = -2
    if memxd_fuse_legs(&scope, a, a_n, b, b_n, <double>r.rrf_k, r.vector_weight, r.keyword_weight) == 0:
        wrong = memxd_rank_scope(&scope, held.size, r.dedup, k, _WHOLE, &best)
    _take_back(state)
    try:
        _refuse(wrong, "rids must be strictly ascending and lie within the columns")
        return _scope_ranking(&scope, &best, r.normalise)
    finally:
        free(best.entries)
        free(scope.fused.block)


cdef object _scope_ranking(const memxd_scope* scope, const memxd_best* best, int normalise):
    ids, kept, values = _empty((4, best.depth), _I32), _empty(best.kept_n, _I32), _empty((8, best.depth))
    memcpy(_data(kept), best.kept, best.kept_n * sizeof(int32_t))
    memxd_fill_best(scope, best, normalise, <int32_t*>_data(ids), <double*>_data(values))
    return _new_tuple(ScopeRanking, (ids, kept, values, scope.n))


def rank_legs(legs, columns, rules):
    """As ``rank_py.rank_legs``."""
    cdef _Columns held = _held(columns)
    cdef memxd_rules r = _rules(rules)
    cdef _Legs told = _Legs(legs)
    cdef size_t both = told.legs.a + told.legs.b
    ids, kept, values = _empty((5, both), _I32), _empty(both, _I32), _empty((12, both))
    if both == 0:
        return LegRanking(ids, kept, values, -1.0, 0.0)
    cdef memxd_ranked out
    cdef int32_t* i = <int32_t*>_data(ids)
    cdef double* v = <double*>_data(values)
    out.n, out.kept_n, out.best_cosine, out.best_relevance = 0, 0, -1.0, 0.0
    out.rids, out.vector_rank, out.keyword_rank = i, i + both, i + 2 * both
    out.order, out.folded_into, out.kept = i + 3 * both, i + 4 * both, <int32_t*>_data(kept)
    out.cosine, out.bm25, out.match, out.rrf = v, v + both, v + 2 * both, v + 3 * both
    v += 4 * both
    out.semantic, out.recency, out.frequency, out.importance = v, v + both, v + 2 * both, v + 3 * both
    v += 4 * both
    out.raw, out.z, out.score, out.relevance = v, v + both, v + 2 * both, v + 3 * both
    cdef PyThreadState* state = _release(both)
    cdef int wrong = memxd_rank_legs(&told.legs, &held.columns, held.size, &r, &out)
    _take_back(state)
    _refuse(wrong, "a rid lies outside of the columns")
    if out.n < both:
        ids, values = ids[:, :out.n], values[:, :out.n]
    if out.kept_n < both:
        kept = kept[:out.kept_n]
    return _new_tuple(LegRanking, (ids, kept, values, out.best_cosine, out.best_relevance))


cdef object _empty = np.empty
cdef object _I32 = np.dtype(np.int32)
cdef object _new_tuple = tuple.__new__  # that of a NamedTuple does the same with more work


cdef void* _data(array) except? NULL:
    """Where the numbers of an array lie that was made here."""
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE | PyBUF_WRITABLE)
    PyBuffer_Release(&view)
    return view.buf


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
    if not MEMXD_BY_SCORES <= r.fusion <= MEMXD_BY_COSINE:
        raise ValueError("fusion must be 1, 2 or 3")
    if not _MODE_OFF <= r.dedup <= _MODE_ADAPTIVE:
        raise ValueError("dedup must be 1, 2, 3 or 4")
    return r


cdef int _refuse(int wrong, str message) except -1:
    if wrong == -1:
        raise ValueError(message)
    if wrong:
        raise MemoryError
    return 0


cdef memxd_weights _weights(weights) except *:
    cdef memxd_weights w
    w.s, w.r, w.f, w.m = weights
    return w


cdef int _at_least(str name, int64_t value, int64_t least) except -1:
    if value < least:
        raise ValueError(f"{name} must be at least {least}")
    return 0
