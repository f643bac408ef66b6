"""Ranking kernels, compiled: what ``rank_py`` (its twin, which documents each function) does, in C.

Owns the entries: the typed views check dtype and contiguity, lengths and rids are checked here once, and the loops in
rank_loops.h and rank_select.h check nothing. Same operations in the same order as the twin, so that results are equal
bit for bit; the twin and tests/vectors/rank change with these files. The GIL is released only where a run is long
enough to pay for taking it back (``_RELEASE_ABOVE``): that can wait for a busy Python thread, and a search calls several.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef extern from "rank_loops.h" nogil:
    ctypedef struct memxd_weights:
        double s
        double r
        double f
        double m
    ctypedef struct memxd_moments:
        pass
    void memxd_fill_frequencies()
    void memxd_factors(
        const int32_t* rids, size_t n, const int64_t* reference, const uint32_t* retrieval, const uint32_t* access,
        const float* importance, double now, double half_life, double* recency, double* frequency, double* weight)
    void memxd_combine(
        const double* semantic, const double* recency, const double* frequency, const double* importance, size_t n,
        memxd_weights w, double* raw)
    size_t memxd_score_rows(
        const uint8_t* mask, size_t size, const double* semantic, const int64_t* reference, const uint32_t* retrieval,
        const uint32_t* access, const float* importance, double now, double half_life, memxd_weights w, int32_t* rids,
        double* raw)
    memxd_moments memxd_measure(const double* raw, size_t n)
    void memxd_normalise(const double* raw, size_t n, memxd_moments m, double* z, double* score)

cdef extern from "rank_select.h" nogil:
    size_t memxd_fuse(
        const int32_t* a, size_t a_n, const int32_t* b, size_t b_n, int64_t* a_keys, int64_t* b_keys, int64_t k,
        double a_weight, double b_weight, int32_t* rids, double* score, int32_t* a_rank, int32_t* b_rank)
    void memxd_top_k(const double* score, const int32_t* rids, size_t n, int32_t* best, size_t k)
    size_t memxd_dedup(
        const int32_t* order, size_t m, const uint64_t* ids, const uint64_t* content, const uint64_t* third,
        const uint8_t* third_kinds, int32_t* slots, size_t size, int32_t* kept, size_t limit, int32_t* folded_into)

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
    cdef int64_t[::1] keys = np.empty(both, np.int64)
    cdef int32_t[::1] r = rids, v = vector_rank, w = keyword_rank
    cdef double[::1] s = score
    cdef const int32_t* a = NULL
    cdef const int32_t* b = NULL
    if a_n:
        a = &vector_rids[0]
    if b_n:
        b = &keyword_rids[0]
    cdef int64_t* a_keys = &keys[0]
    cdef PyThreadState* state = _release(both)
    n = memxd_fuse(
        a, a_n, b, b_n, a_keys, a_keys + a_n, k, vector_weight, keyword_weight, &r[0], &s[0], &v[0], &w[0])
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
    cdef double now_f = <double>now, half = <double>half_life
    cdef PyThreadState* state = _release(n)
    memxd_factors(
        &rids[0], n, &reference[0], &retrieval[0], &access[0], &importance[0], now_f, half, &r[0], &f[0], &w[0])
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
        &order[0], m, &ids[0], content, third, kinds, &slots[0], size, &kept_out[0], most, &folded_out[0])
    _take_back(state)
    return kept[:count], folded_into


def rank_all(
    const uint8_t[::1] mask not None, const double[::1] semantic, const int64_t[::1] reference not None,
    const uint32_t[::1] retrieval not None, const uint32_t[::1] access not None,
    const float[::1] importance not None, int64_t now, int64_t half_life, weights, Py_ssize_t k,
):
    """As ``rank_py.rank_all``."""
    cdef size_t size = mask.shape[0], n = 0, m
    _at_least("k", k, 0)
    _at_least("half_life", half_life, 1)
    if semantic is not None and <size_t>semantic.shape[0] < size:
        raise ValueError("semantic is shorter than the mask")
    if size > <size_t>_shortest(reference, retrieval, access, importance):
        raise ValueError("a by-rid array is shorter than the mask")
    cdef memxd_weights w = _weights(weights)
    m = min(<size_t>k, size)
    rids, raw, z, score = np.empty(m, np.int32), np.empty(m), np.empty(m), np.empty(m)
    if size == 0:
        return rids, raw, z, score, 0
    cdef int32_t[::1] all_rids = np.empty(size, np.int32), best = np.empty(m + 1, np.int32), rids_out = rids
    cdef double[::1] all_raw = np.empty(size), raw_out = raw, z_out = z, score_out = score
    cdef const double* meaning = NULL
    if semantic is not None:
        meaning = &semantic[0]
    cdef double now_f = <double>now, half = <double>half_life
    cdef memxd_moments moments
    cdef size_t i
    with nogil:
        n = memxd_score_rows(&mask[0], size, meaning, &reference[0], &retrieval[0], &access[0], &importance[0], now_f,
                             half, w, &all_rids[0], &all_raw[0])
        m = min(m, n)
        memxd_top_k(&all_raw[0], &all_rids[0], n, &best[0], m)
        for i in range(m):
            rids_out[i] = all_rids[best[i]]
            raw_out[i] = all_raw[best[i]]
        if m:
            moments = memxd_measure(&all_raw[0], n)
            memxd_normalise(&raw_out[0], m, moments, &z_out[0], &score_out[0])
    return rids[:m], raw[:m], z[:m], score[:m], n


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
