"""Ranking kernels, compiled: what ``rank_py`` (its twin, which documents each function) does, in C.

Same operations in the same order, so that results are equal bit for bit; the twin and tests/vectors/rank change with
this file. The typed views check dtype and contiguity at the entry, lengths and rids are checked there once, and the
loops below check nothing. The GIL is released where a run is long enough to pay for taking it back
(``_RELEASE_ABOVE``): taking it back can wait for a busy Python thread, and a search calls several of these.
"""

import numpy as np

from libc.math cimport exp, log, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, qsort

cdef extern from "rank_loops.h" nogil:
    enum: MEMXD_BLOCK
    double memxd_recency(double reference, double now, double half_life)
    size_t memxd_compress(const uint8_t* mask, size_t n, int32_t first, int32_t* rids)
    void memxd_score_block(
        const int32_t* rids, size_t n, const double* semantic, const int64_t* reference, const uint32_t* retrieval,
        const uint32_t* access, const float* importance, const double* table, uint32_t last, double now,
        double half_life, double s, double r, double f, double m, double* raw)
    double memxd_clamp(double value, double low, double high)
    void memxd_range(const double* raw, size_t n, double infinity, double* low, double* high)
    double memxd_sum_distances(const double* raw, size_t n, double low, double high)
    double memxd_sum_squares(const double* raw, size_t n, double low, double high, double mean)

cdef enum:
    _RELEASE_ABOVE = 4096
    _SATURATED = 22026  # ln(_SATURATED + 1) / 10 >= 1
    _MODE_OFF = 1
    _MODE_TAGS = 3
    _MODE_ADAPTIVE = 4

ctypedef struct Moments:
    double low
    double high
    double mean
    double deviation

#: Frequency factor by count: a table, because a logarithm for each of 220,000 rows costs more than all the rest.
cdef double _FREQUENCY[_SATURATED + 1]


cdef void _fill_table() noexcept nogil:
    cdef int count
    for count in range(_SATURATED + 1):
        _FREQUENCY[count] = log(<double>count + 1.0) / 10.0
        if _FREQUENCY[count] > 1.0:
            _FREQUENCY[count] = 1.0


_fill_table()


# -- fusion --------------------------------------------------------------------------------------------------------


cdef int _compare(const void* a, const void* b) noexcept nogil:
    cdef int64_t x = (<const int64_t*>a)[0]
    cdef int64_t y = (<const int64_t*>b)[0]
    return (x > y) - (x < y)


cdef void _sort_leg(const int32_t[::1] rids, int64_t[::1] keys) noexcept nogil:
    """keys = rid and rank in one number, ascending: equal rids come best rank first."""
    cdef Py_ssize_t i
    for i in range(rids.shape[0]):
        keys[i] = <int64_t>rids[i] * <int64_t>4294967296 + (i + 1)
    if rids.shape[0] > 1:
        qsort(&keys[0], <size_t>rids.shape[0], sizeof(int64_t), &_compare)


cdef inline int32_t _rid(int64_t key) noexcept nogil:
    return <int32_t>(key >> 32)


cdef Py_ssize_t _merge(
    const int64_t[::1] a, const int64_t[::1] b, int64_t k, double a_weight, double b_weight,
    int32_t[::1] rids, double[::1] score, int32_t[::1] a_rank, int32_t[::1] b_rank,
) noexcept nogil:
    cdef Py_ssize_t i = 0, j = 0, n = 0
    cdef int32_t rid
    cdef double from_a, from_b
    while i < a.shape[0] or j < b.shape[0]:
        if j >= b.shape[0] or (i < a.shape[0] and _rid(a[i]) <= _rid(b[j])):
            rid = _rid(a[i])
        else:
            rid = _rid(b[j])
        rids[n] = rid
        a_rank[n] = 0
        b_rank[n] = 0
        from_a = from_b = 0.0
        if i < a.shape[0] and _rid(a[i]) == rid:
            a_rank[n] = <int32_t>a[i]  # the low half
            from_a = a_weight / <double>(k + a_rank[n])
            while i < a.shape[0] and _rid(a[i]) == rid:
                i += 1
        if j < b.shape[0] and _rid(b[j]) == rid:
            b_rank[n] = <int32_t>b[j]  # the low half
            from_b = b_weight / <double>(k + b_rank[n])
            while j < b.shape[0] and _rid(b[j]) == rid:
                j += 1
        score[n] = from_a + from_b
        n += 1
    return n


cdef Py_ssize_t _fuse(
    const int32_t[::1] a, const int32_t[::1] b, int64_t[::1] a_keys, int64_t[::1] b_keys,
    int64_t k, double a_weight, double b_weight,
    int32_t[::1] rids, double[::1] score, int32_t[::1] a_rank, int32_t[::1] b_rank,
) noexcept nogil:
    _sort_leg(a, a_keys)
    _sort_leg(b, b_keys)
    return _merge(a_keys, b_keys, k, a_weight, b_weight, rids, score, a_rank, b_rank)


def fuse_rrf(
    const int32_t[::1] vector_rids not None, const int32_t[::1] keyword_rids not None, int64_t k,
    double vector_weight, double keyword_weight,
):
    """As ``rank_py.fuse_rrf``."""
    _at_least("k", k, 0)
    cdef Py_ssize_t n, most = vector_rids.shape[0] + keyword_rids.shape[0]
    cdef int64_t[::1] a_keys = np.empty(vector_rids.shape[0], np.int64)
    cdef int64_t[::1] b_keys = np.empty(keyword_rids.shape[0], np.int64)
    rids, score = np.empty(most, np.int32), np.empty(most, np.float64)
    vector_rank, keyword_rank = np.empty(most, np.int32), np.empty(most, np.int32)
    cdef int32_t[::1] r = rids, v = vector_rank, w = keyword_rank
    cdef double[::1] s = score
    if most > _RELEASE_ABOVE:
        with nogil:
            n = _fuse(vector_rids, keyword_rids, a_keys, b_keys, k, vector_weight, keyword_weight, r, s, v, w)
    else:
        n = _fuse(vector_rids, keyword_rids, a_keys, b_keys, k, vector_weight, keyword_weight, r, s, v, w)
    return rids[:n], score[:n], vector_rank[:n], keyword_rank[:n]


# -- factors and their sum -----------------------------------------------------------------------------------------


cdef inline double _frequency(uint32_t retrieval, uint32_t access) noexcept nogil:
    cdef uint32_t count = retrieval if retrieval else access
    return _FREQUENCY[count if count < _SATURATED else _SATURATED]


cdef void _factors(
    const int32_t[::1] rids, const int64_t[::1] reference, const uint32_t[::1] retrieval,
    const uint32_t[::1] access, const float[::1] importance, double now, double half_life,
    double[::1] recency, double[::1] frequency, double[::1] weight,
) noexcept nogil:
    cdef Py_ssize_t i
    cdef int32_t rid
    for i in range(rids.shape[0]):
        rid = rids[i]
        recency[i] = memxd_recency(<double>reference[rid], now, half_life)
        frequency[i] = _frequency(retrieval[rid], access[rid])
        weight[i] = importance[rid]


def factors(
    const int32_t[::1] rids not None, const int64_t[::1] reference not None, const uint32_t[::1] retrieval not None,
    const uint32_t[::1] access not None, const float[::1] importance not None, int64_t now, int64_t half_life,
):
    """As ``rank_py.factors``."""
    _at_least("half_life", half_life, 1)
    _rids_within(rids, _shortest(reference, retrieval, access, importance))
    cdef Py_ssize_t n = rids.shape[0]
    recency, frequency, weight = np.empty(n), np.empty(n), np.empty(n)
    cdef double[::1] r = recency, f = frequency, w = weight
    cdef double now_f = <double>now, half = <double>half_life
    if n > _RELEASE_ABOVE:
        with nogil:
            _factors(rids, reference, retrieval, access, importance, now_f, half, r, f, w)
    else:
        _factors(rids, reference, retrieval, access, importance, now_f, half, r, f, w)
    return recency, frequency, weight


cdef void _combine(
    const double[::1] semantic, const double[::1] recency, const double[::1] frequency, const double[::1] importance,
    double s, double r, double f, double m, double[::1] raw,
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(raw.shape[0]):
        raw[i] = ((s * semantic[i] + r * recency[i]) + f * frequency[i]) + m * importance[i]


def combine(
    const double[::1] semantic not None, const double[::1] recency not None, const double[::1] frequency not None,
    const double[::1] importance not None, weights,
):
    """As ``rank_py.combine``."""
    cdef Py_ssize_t n = semantic.shape[0]
    _same_length(n, recency.shape[0], frequency.shape[0], importance.shape[0])
    cdef double s, r, f, m
    s, r, f, m = weights
    raw = np.empty(n)
    cdef double[::1] out = raw
    if n > _RELEASE_ABOVE:
        with nogil:
            _combine(semantic, recency, frequency, importance, s, r, f, m, out)
    else:
        _combine(semantic, recency, frequency, importance, s, r, f, m, out)
    return raw


# -- z-score and sigmoid -------------------------------------------------------------------------------------------


cdef Moments _moments(const double[::1] raw, Py_ssize_t n) noexcept nogil:
    cdef Moments m
    cdef double infinity = 1e308 * 10.0
    m.low = m.high = m.mean = m.deviation = 0.0
    if n == 0:
        return m
    memxd_range(&raw[0], <size_t>n, infinity, &m.low, &m.high)
    if m.low >= m.high:
        return m  # none is finite, or all are equal
    m.mean = memxd_sum_distances(&raw[0], <size_t>n, m.low, m.high) / <double>n
    m.deviation = sqrt(memxd_sum_squares(&raw[0], <size_t>n, m.low, m.high, m.mean) / <double>n)
    if not (0.0 < m.deviation < infinity):
        m.deviation = 0.0
    return m


cdef inline double _z_score(double value, Moments m) noexcept nogil:
    return (memxd_clamp(value, m.low, m.high) - m.low - m.mean) / m.deviation if m.deviation > 0.0 else 0.0


cdef inline double _sigmoid(double z) noexcept nogil:
    cdef double e
    if z >= 0.0:
        return 1.0 / (1.0 + exp(-z))
    e = exp(z)
    return e / (1.0 + e)


cdef void _normalise(const double[::1] raw, double[::1] z, double[::1] score) noexcept nogil:
    cdef Py_ssize_t i
    cdef Moments m = _moments(raw, raw.shape[0])
    for i in range(raw.shape[0]):
        z[i] = _z_score(raw[i], m)
        score[i] = _sigmoid(z[i])


def normalise(const double[::1] raw not None):
    """As ``rank_py.normalise``."""
    cdef Py_ssize_t n = raw.shape[0]
    z, score = np.empty(n), np.empty(n)
    cdef double[::1] z_out = z, score_out = score
    if n > _RELEASE_ABOVE:
        with nogil:
            _normalise(raw, z_out, score_out)
    else:
        _normalise(raw, z_out, score_out)
    return z, score


# -- the best k ----------------------------------------------------------------------------------------------------


cdef inline bint _before(const double[::1] score, const int32_t[::1] rids, int32_t i, int32_t j) noexcept nogil:
    """Whether position i ranks before position j."""
    cdef double a = score[i], b = score[j]
    if a > b:
        return True
    if a < b:
        return False
    if (a != a) != (b != b):
        return b != b
    if rids[i] != rids[j]:
        return rids[i] < rids[j]
    return i < j


cdef void _sift_down(
    int32_t[::1] heap, Py_ssize_t size, Py_ssize_t root, const double[::1] score, const int32_t[::1] rids
) noexcept nogil:
    """Restore the heap whose root is the last in rank."""
    cdef Py_ssize_t child
    cdef int32_t moving = heap[root]
    while True:
        child = 2 * root + 1
        if child >= size:
            break
        if child + 1 < size and _before(score, rids, heap[child], heap[child + 1]):
            child += 1
        if not _before(score, rids, moving, heap[child]):
            break
        heap[root] = heap[child]
        root = child
    heap[root] = moving


cdef void _top_k(const double[::1] score, const int32_t[::1] rids, Py_ssize_t n, int32_t[::1] best) noexcept nogil:
    """best: as many positions as it holds (at most n), best first."""
    cdef Py_ssize_t k = best.shape[0], i
    cdef int32_t last
    if k == 0:
        return
    for i in range(k):
        best[i] = <int32_t>i
    for i in range(k // 2 - 1, -1, -1):
        _sift_down(best, k, i, score, rids)
    for i in range(k, n):
        if not (score[i] < score[best[0]]) and _before(score, rids, <int32_t>i, best[0]):
            best[0] = <int32_t>i
            _sift_down(best, k, 0, score, rids)
    for i in range(k - 1, 0, -1):
        last = best[0]
        best[0] = best[i]
        best[i] = last
        _sift_down(best, i, 0, score, rids)


def top_k(const double[::1] score not None, const int32_t[::1] rids not None, Py_ssize_t k):
    """As ``rank_py.top_k``."""
    cdef Py_ssize_t n = score.shape[0]
    _same_length(n, rids.shape[0], n, n)
    _at_least("k", k, 0)
    best = np.empty(min(k, n), np.int32)
    cdef int32_t[::1] out = best
    if n > _RELEASE_ABOVE:
        with nogil:
            _top_k(score, rids, n, out)
    else:
        _top_k(score, rids, n, out)
    return best


# -- deduplication -------------------------------------------------------------------------------------------------

# A hash table is an array of positions + 1 (0 = free), a power of two long; keys are read from the candidates' arrays.


cdef inline uint64_t _mix(uint64_t key) noexcept nogil:
    key = (key ^ (key >> 32)) * <uint64_t>0x9E3779B97F4A7C15
    return key ^ (key >> 29)


cdef Py_ssize_t _slot(
    const int32_t* table, Py_ssize_t size, const uint64_t[::1] keys, const uint8_t[::1] kinds, bint by_kind, int32_t p
) noexcept nogil:
    """The slot that holds an equal key, or the free one where p belongs."""
    cdef Py_ssize_t slot = <Py_ssize_t>(_mix(keys[p]) & <uint64_t>(size - 1))
    cdef int32_t other
    while table[slot]:
        other = table[slot] - 1
        if keys[other] == keys[p] and (not by_kind or kinds[other] == kinds[p]):
            break
        slot = (slot + 1) & (size - 1)
    return slot


cdef Py_ssize_t _dedup(
    const int32_t[::1] order, const uint64_t[::1] ids, const uint8_t[::1] kinds, const uint64_t[::1] content,
    const uint64_t[::1] third, bint use_content, bint use_third, bint by_kind,
    int32_t[::1] kept, int32_t[::1] folded_into, int32_t* tables, Py_ssize_t size,
) noexcept nogil:
    cdef Py_ssize_t i, n = 0, a, b = 0, c = 0
    cdef int32_t p, found
    cdef bint has_third
    for i in range(order.shape[0]):
        p = order[i]
        has_third = use_third and third[p] != 0
        a = _slot(tables, size, ids, kinds, False, p)
        found = tables[a]
        if use_content:
            b = size + _slot(tables + size, size, content, kinds, False, p)
            found = found if found else tables[b]
        if has_third:
            c = 2 * size + _slot(tables + 2 * size, size, third, kinds, by_kind, p)
            found = found if found else tables[c]
        if found:
            folded_into[p] = found - 1
        elif n < kept.shape[0]:
            kept[n] = p
            n += 1
            tables[a] = p + 1
            if use_content:
                tables[b] = p + 1
            if has_third:
                tables[c] = p + 1
    return n


def dedup(
    const int32_t[::1] order not None, const int32_t[::1] rids not None, const uint8_t[::1] type not None,
    const uint64_t[::1] content_hash not None, const uint64_t[::1] fold_hash not None,
    const uint64_t[::1] tag_hash not None, int mode, Py_ssize_t limit,
):
    """As ``rank_py.dedup``."""
    cdef Py_ssize_t n = rids.shape[0], m = order.shape[0], size = 4, count
    _same_length(n, type.shape[0], content_hash.shape[0], fold_hash.shape[0])
    _same_length(n, tag_hash.shape[0], n, n)
    _at_least("limit", limit, 0)
    if not _MODE_OFF <= mode <= _MODE_ADAPTIVE:
        raise ValueError("mode must be 1, 2, 3 or 4")
    _rids_within(order, n)
    kept, folded_into = np.empty(min(limit, m), np.int32), np.full(n, -1, np.int32)
    cdef int32_t[::1] kept_out = kept, folded_out = folded_into
    cdef const uint64_t[::1] ids = np.asarray(rids).astype(np.uint64)
    cdef const uint64_t[::1] third = tag_hash if mode == _MODE_TAGS else fold_hash
    cdef bint use_content = mode != _MODE_OFF, by_kind = mode == _MODE_TAGS, use_third = mode >= _MODE_TAGS
    while size < 2 * kept_out.shape[0]:
        size *= 2
    cdef int32_t* tables = <int32_t*>calloc(<size_t>(3 * size), sizeof(int32_t))
    if tables == NULL:
        raise MemoryError
    if m > _RELEASE_ABOVE:
        with nogil:
            count = _dedup(order, ids, type, content_hash, third, use_content, use_third, by_kind,
                           kept_out, folded_out, tables, size)
    else:
        count = _dedup(order, ids, type, content_hash, third, use_content, use_third, by_kind,
                       kept_out, folded_out, tables, size)
    free(tables)
    return kept[:count], folded_into


# -- everything in one run -----------------------------------------------------------------------------------------


cdef Py_ssize_t _score_rows(
    const uint8_t[::1] mask, const double[::1] semantic, bint has_semantic, const int64_t[::1] reference,
    const uint32_t[::1] retrieval, const uint32_t[::1] access, const float[::1] importance, double now,
    double half_life, double s, double r, double f, double m, int32_t[::1] rids, double[::1] raw,
) noexcept nogil:
    """Block by block, so that what is gathered stays in the cache; answers how many rows the mask lets through."""
    cdef Py_ssize_t first = 0, found, n = 0, size = mask.shape[0]
    if size == 0:
        return 0
    cdef int32_t* rids_out = &rids[0]
    cdef double* raw_out = &raw[0]
    while first < size:
        found = <Py_ssize_t>memxd_compress(
            &mask[first], <size_t>min(<Py_ssize_t>MEMXD_BLOCK, size - first), <int32_t>first, rids_out + n)
        memxd_score_block(
            rids_out + n, <size_t>found, &semantic[0] if has_semantic else NULL, &reference[0], &retrieval[0],
            &access[0], &importance[0], _FREQUENCY, _SATURATED, now, half_life, s, r, f, m, raw_out + n)
        n += found
        first += MEMXD_BLOCK
    return n


cdef void _rank_scored(
    const double[::1] raw, const int32_t[::1] rids, Py_ssize_t n, int32_t[::1] best,
    int32_t[::1] rids_out, double[::1] raw_out, double[::1] z_out, double[::1] score_out,
) noexcept nogil:
    cdef Py_ssize_t i
    cdef Moments moments = _moments(raw, n)
    _top_k(raw, rids, n, best)
    for i in range(best.shape[0]):
        rids_out[i] = rids[best[i]]
        raw_out[i] = raw[best[i]]
        z_out[i] = _z_score(raw_out[i], moments)
        score_out[i] = _sigmoid(z_out[i])


def rank_all(
    const uint8_t[::1] mask not None, const double[::1] semantic, const int64_t[::1] reference not None,
    const uint32_t[::1] retrieval not None, const uint32_t[::1] access not None,
    const float[::1] importance not None, int64_t now, int64_t half_life, weights, Py_ssize_t k,
):
    """As ``rank_py.rank_all``."""
    cdef Py_ssize_t size = mask.shape[0], n, m
    cdef bint has_semantic = semantic is not None
    _at_least("k", k, 0)
    _at_least("half_life", half_life, 1)
    if has_semantic and semantic.shape[0] < size:
        raise ValueError("semantic is shorter than the mask")
    if size > _shortest(reference, retrieval, access, importance):
        raise ValueError("a by-rid array is shorter than the mask")
    cdef double w_s, w_r, w_f, w_i, now_f = <double>now, half = <double>half_life
    w_s, w_r, w_f, w_i = weights
    m = min(k, size)
    rids, raw, z, score = np.empty(m, np.int32), np.empty(m), np.empty(m), np.empty(m)
    cdef int32_t[::1] all_rids = np.empty(size, np.int32), best = np.empty(m, np.int32), rids_out = rids
    cdef double[::1] all_raw = np.empty(size), raw_out = raw, z_out = z, score_out = score
    with nogil:
        n = _score_rows(mask, semantic, has_semantic, reference, retrieval, access, importance, now_f, half,
                        w_s, w_r, w_f, w_i, all_rids, all_raw)
        m = min(m, n)
        _rank_scored(all_raw, all_rids, n, best[:m], rids_out, raw_out, z_out, score_out)
    return rids[:m], raw[:m], z[:m], score[:m], n


# -- entry checks --------------------------------------------------------------------------------------------------


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
