"""BM25 over flat posting lists, compiled. Twin, oracle and documentation: ``bm25_py``; both change together.

The loops are in ``bm25_run.h`` (how they look at little, and why the answers are exact all the same). Here: the objects that
hold a segment's and a list's addresses, checked once when they are made, and the one entry that fills in a question, runs
it without the GIL and hands the answer out. What a list remembers between questions (bounds, a few document frequencies)
is read and written under the GIL only.
"""

import threading

import numpy as np

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.math cimport isfinite
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from memxd._fast.bm25_py import WEIGHT_MAX, WEIGHT_MIN, Scored
from memxd._fast.lists import OUTSIDE

cdef extern from "bm25_run.h" nogil:
    ctypedef struct bm25_segment:
        const int32_t* rids
        const int32_t* lengths
        const int32_t* died
        const int32_t* dead
        const int32_t* scopes
        int64_t size
        int32_t deaths
        int32_t low
        int32_t high

    ctypedef struct bm25_list:
        const int32_t* docs
        const uint32_t* packed
        const int32_t* more
        int64_t size
        int64_t more_count
        const int32_t* starts
        const float* bounds
        float bound
        const uint8_t* dense
        const uint8_t* filter
        int32_t wrap
        int64_t df
        int64_t known_df
        int32_t known_deaths

    ctypedef struct bm25_lane:
        pass

    ctypedef struct bm25_turn:
        pass

    ctypedef struct bm25_test:
        pass

    ctypedef struct bm25_scratch:
        pass

    ctypedef struct bm25_search:
        const bm25_segment* segments
        bm25_list* lists
        int64_t segment_count
        int64_t terms
        const double* weights
        const double* priors
        double prior_rows
        double average
        double k1
        double fixed
        double slope
        int32_t scope
        int64_t rows
        const int32_t* rids
        int64_t m
        const uint8_t* mask
        int64_t mask_size
        const int32_t* places
        const int32_t* also
        const int32_t* also_places
        int64_t also_count
        int64_t k
        int64_t kept
        int32_t* best
        double* score
        double* match
        double* also_score
        double* also_match
        double* idf
        int64_t* df
        double* impact
        double* said
        double said_total
        double margin
        bm25_lane* lanes
        bm25_turn* turns
        bm25_test* tests
        int32_t* others
        float* reach
        float* nearly
        bm25_scratch* scratch

    int BM25_BITS
    void bm25_pick()
    void bm25_pick_sieve()
    int64_t bm25_position(const int32_t* values, int64_t low, int64_t high, int32_t wanted)
    double bm25_frequency(const bm25_list* list, int64_t at)
    int bm25_run(bm25_search* search)

cdef extern from "bm25_lists.h" nogil:
    float bm25_bounds(const int32_t* docs, const uint32_t* packed, int64_t size, float fixed, float slope,
                      int64_t windows, int32_t* starts, float* bounds)
    void bm25_densify(const int32_t* docs, const uint32_t* packed, int64_t size, uint8_t* dense)
    void bm25_fill(const int32_t* docs, int64_t size, int32_t wrap, uint8_t* filter)
    int bm25_check(const int32_t* docs, const uint32_t* packed, int64_t size, const int32_t* more,
                   int64_t more_count, int64_t limit)

bm25_pick()
bm25_pick_sieve()

cdef enum:
    REMEMBERED = 4  # document frequencies kept with a list, by scope
    SHORT = 256  # lists of fewer postings have one bound for every slope
    DENSE_LEAST = 8_192  # smaller segments have no dense lists and no filters
    DENSE_SHARE = 32  # a list is made dense that holds at least the 32nd part of the documents
    DENSE_PAD = 4  # read, but never looked at, behind the last document
    FILTER_LEAST = 16  # shorter lists have no filter
    FILTER_BITS = 32  # of a filter for each posting, at least
    EXTRA_BYTES = 67_108_864  # of all dense lists and filters together; the rest is searched
    RENEWALS = 8  # how often bounds are made anew only because tighter ones are possible

cdef int64_t _extra_bytes = 0
cdef double _LEAST_WEIGHT = WEIGHT_MIN, _MOST_WEIGHT = WEIGHT_MAX


_empty, _INT32, _INT64, _FLOAT64 = np.empty, np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.float64)
_NONE = np.empty(0, np.float64)


cdef const void* _data(values, char kind, char other, Py_ssize_t width, int64_t wanted) except? NULL:
    """Address of a contiguous array of so many numbers of a kind, which the caller keeps alive. Cheaper than a typed view."""
    cdef Py_buffer view
    PyObject_GetBuffer(values, &view, PyBUF_ND | PyBUF_FORMAT)
    cdef const void* at = view.buf
    cdef bint fine = view.ndim == 1 and view.itemsize == width and view.format != NULL and view.format[1] == 0
    fine = fine and (view.format[0] == kind or view.format[0] == other)
    cdef bint long_enough = fine and view.shape[0] == wanted
    PyBuffer_Release(&view)
    if not fine:
        raise ValueError("an array of numbers of another kind")
    if not long_enough:
        raise ValueError("an array has another length")
    return at


cdef inline const int32_t* _ints(values, int64_t wanted) except? NULL:
    return <const int32_t*>_data(values, c"i", c"l", 4, wanted)


cdef inline const double* _floats(values, int64_t wanted) except? NULL:
    return <const double*>_data(values, c"d", c"d", 8, wanted)


cdef const int32_t* _plain_ints(values, int64_t* size) except? NULL:
    """The same, and how many there are: faster, for an array that is known to hold int32 and to be contiguous."""
    cdef Py_buffer view
    PyObject_GetBuffer(values, &view, PyBUF_SIMPLE)
    cdef const int32_t* at = <const int32_t*>view.buf
    size[0] = view.len // 4
    PyBuffer_Release(&view)
    return at


cdef void* _address(made) except? NULL:
    """Address of an array that was made here: contiguous, writable and kept alive by the caller."""
    cdef Py_buffer view
    PyObject_GetBuffer(made, &view, PyBUF_SIMPLE | PyBUF_WRITABLE)
    cdef void* at = view.buf
    PyBuffer_Release(&view)
    return at


cdef class Segment:
    """See ``bm25_py.Segment``."""

    cdef readonly int64_t size
    cdef bm25_segment seen
    cdef tuple held

    def __init__(self, rids, lengths, died, dead, scopes=None):
        cdef int64_t i
        cdef int32_t wrong = 0
        self.size = len(rids)
        if not len(lengths) == len(died) == len(dead) == self.size or self.size > 0x7fffffff:
            raise ValueError("a segment's arrays differ in length")
        if scopes is not None and len(scopes) != self.size:
            raise ValueError("scopes has another length")
        self.seen.rids, self.seen.lengths = _ints(rids, self.size), _ints(lengths, self.size)
        self.seen.died, self.seen.dead = _ints(died, self.size), _ints(dead, self.size)
        self.seen.scopes = NULL if scopes is None else _ints(scopes, self.size)
        self.seen.size = self.size
        self.held = (rids, lengths, died, dead, scopes)
        for i in range(self.size):
            wrong |= (self.seen.rids[i] < 0) | (self.seen.lengths[i] < 0)
        if wrong:
            raise ValueError("a segment holds negative numbers")

    def length(self, int64_t doc):
        """See ``bm25_py.Segment.length``."""
        if not 0 <= doc < self.size:
            raise IndexError(doc)
        return self.seen.lengths[doc]


cdef class _Bounds:
    """Upper bounds of a list for one ``fixed`` and every slope from ``slope`` on."""

    cdef float fixed
    cdef float slope
    cdef float bound
    cdef int32_t* starts
    cdef float* bounds
    cdef int64_t windows

    def __dealloc__(self):
        free(self.starts)
        free(self.bounds)



cdef class Postings:
    """See ``bm25_py.Postings``."""

    cdef readonly int64_t size
    cdef int64_t limit
    cdef bm25_list list
    cdef tuple held
    cdef _Bounds made
    cdef int64_t extra
    cdef int renewed
    cdef int32_t scope_of[REMEMBERED]
    cdef int32_t deaths_of[REMEMBERED]
    cdef int64_t df_of[REMEMBERED]

    def __init__(self, docs, packed, more, int64_t limit):
        cdef int64_t size = len(docs), pairs = len(more)
        if len(packed) != size or pairs % 2:
            raise ValueError("a posting list's arrays differ in length")
        self.held = (docs, packed, more)
        self.take(_ints(docs, size), <const uint32_t*>_data(packed, c"I", c"L", 4, size), size, _ints(more, pairs),
                  pairs // 2, limit)

    @staticmethod
    def cut(words, int64_t count, int64_t offset, int64_t size, int64_t limit):
        """See ``bm25_py.Postings.cut``."""
        cdef Postings made = Postings.__new__(Postings)
        cdef int64_t words_held = 0
        cdef int64_t at = offset // 4
        cdef const int32_t* first = _plain_ints(words, &words_held)
        if (offset < 0 or offset % 4 or size % 8 or count < 1 or size // 8 < count or at < 2
                or size // 4 > words_held - at):
            raise ValueError(OUTSIDE)
        made.held = (words,)
        first += at
        made.take(first, <const uint32_t*>(first + count), count, first + 2 * count, size // 8 - count, limit)
        return made

    cdef int take(self, const int32_t* docs, const uint32_t* packed, int64_t size, const int32_t* more,
                  int64_t more_count, int64_t limit) except -1:
        """The list is this, once it is checked."""
        cdef int bad
        cdef int i
        self.size, self.limit = size, limit
        self.list.docs, self.list.packed, self.list.more = docs, packed, more
        self.list.size, self.list.more_count = size, more_count
        with nogil:
            bad = bm25_check(docs, packed, size, more, more_count, limit)
        if bad:
            raise ValueError("an impossible posting list")
        for i in range(REMEMBERED):
            self.df_of[i] = -1
        return 0

    def __dealloc__(self):
        global _extra_bytes
        _extra_bytes -= self.extra
        free(<void*>self.list.dense)
        free(<void*>self.list.filter)

    def frequency(self, int32_t doc):
        """See ``bm25_py.Postings.frequency``."""
        cdef int64_t at = bm25_position(self.list.docs, 0, self.size, doc)
        return <int64_t>bm25_frequency(&self.list, at) if at >= 0 else 0

    cdef _Bounds bounds_for(self, float fixed, float slope):
        """Bounds that hold for these parameters, made when there are none."""
        cdef _Bounds made = self.made
        cdef int64_t windows = (self.limit >> BM25_BITS) + 1
        cdef bint loose
        if made is not None and made.fixed == fixed and made.slope <= slope:
            loose = slope > 2 * made.slope and self.size >= SHORT and self.renewed < RENEWALS
            if not loose:
                return made
            self.renewed += 1
        made = _Bounds()
        made.fixed, made.slope = fixed, 0.9 * slope if self.size >= SHORT else 0.0
        made.windows = windows
        if self.size >= SHORT and self.size >= 8 * windows:
            made.starts = <int32_t*>malloc((windows + 1) * sizeof(int32_t))
            made.bounds = <float*>malloc(windows * sizeof(float))
            if made.starts == NULL or made.bounds == NULL:
                raise MemoryError()
        with nogil:
            made.bound = bm25_bounds(self.list.docs, self.list.packed, self.list.size, made.fixed, made.slope,
                                     windows, made.starts, made.bounds)
        self.made = made
        return made

    cdef int equip(self) except -1:
        """Make what spares searching the list: itself by document when it is long for its segment, or else a filter."""
        global _extra_bytes
        cdef uint8_t* made
        cdef int64_t bits = 256
        cdef int64_t extra
        if self.extra or self.limit < DENSE_LEAST or self.size < FILTER_LEAST:
            return 0
        while bits < FILTER_BITS * self.size:
            bits *= 2
        extra = self.limit + DENSE_PAD if self.size * DENSE_SHARE >= self.limit else bits // 8
        if _extra_bytes + extra > EXTRA_BYTES:
            return 0
        made = <uint8_t*>calloc(extra, 1)
        if made == NULL:
            return 0
        _extra_bytes += extra
        self.extra = extra
        if self.size * DENSE_SHARE >= self.limit:
            bm25_densify(self.list.docs, self.list.packed, self.size, made)
            self.list.dense = made
        else:
            self.list.wrap = <int32_t>(bits - 1)
            bm25_fill(self.list.docs, self.size, self.list.wrap, made)
            self.list.filter = made
        return 0


cdef class _Scratch:
    """Window buffers of one thread; sums are zero between questions."""

    cdef bm25_scratch* memory

    def __cinit__(self):
        self.memory = <bm25_scratch*>calloc(1, sizeof(bm25_scratch))
        if self.memory == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.memory)


_local = threading.local()


cdef _Scratch _scratch():
    found = getattr(_local, "scratch", None)
    if found is None:
        found = _local.scratch = _Scratch()
    return <_Scratch>found


cdef int _take_segments(list segments, bm25_segment* into) except -1:
    cdef int64_t i
    cdef Segment segment
    for i in range(len(segments)):
        handle, deaths, low, high = <tuple>segments[i]
        segment = handle
        into[i] = segment.seen
        into[i].deaths, into[i].low, into[i].high = deaths, low, high
        if not 0 <= low <= high <= segment.size or not 0 <= deaths <= segment.size:
            raise ValueError("a range outside the segment")
    return 0


cdef int _take_lists(list segments, list postings, bm25_search* s, list kept) except -1:
    """Fill in the lists; ``kept`` takes the bounds, which another thread may exchange meanwhile."""
    cdef int64_t at, i
    cdef int32_t slot = s.scope & (REMEMBERED - 1)
    cdef Postings found
    cdef _Bounds made
    cdef const bm25_segment* into = s.segments
    for at in range(len(postings)):
        s.lists[at].size, s.lists[at].known_df, s.lists[at].known_deaths = 0, -1, 0
        if postings[at] is None:
            continue
        found = postings[at]
        i = at // s.terms
        if found.limit > (<Segment>(<tuple>segments[i])[0]).size:
            raise ValueError("a posting list of a larger segment")
        made = found.bounds_for(<float>s.fixed, <float>s.slope)
        kept.append(made)
        found.equip()
        s.lists[at] = found.list
        s.lists[at].bound = made.bound
        if (into[i].size - 1) >> BM25_BITS < made.windows:
            s.lists[at].starts, s.lists[at].bounds = made.starts, made.bounds
        if found.limit != into[i].size:
            s.lists[at].dense = NULL
        s.lists[at].known_df = found.df_of[slot] if found.scope_of[slot] == s.scope else -1
        s.lists[at].known_deaths = found.deaths_of[slot]
    return 0


cdef int _remember(list postings, bm25_search* s) except -1:
    """Keep the document frequencies that were counted."""
    cdef int64_t at
    cdef int32_t slot = s.scope & (REMEMBERED - 1)
    cdef Postings found
    cdef const bm25_segment* segment
    for at in range(len(postings)):
        if postings[at] is None:
            continue
        segment = &s.segments[at // s.terms]
        if segment.scopes == NULL and segment.deaths:
            found = postings[at]
            found.scope_of[slot], found.df_of[slot] = s.scope, s.lists[at].df
            found.deaths_of[slot] = segment.deaths
    return 0


cdef int _check(bm25_search* s, double b, int64_t total) except -1:
    cdef int64_t i
    if not (0.0 <= s.k1 <= 1000.0 and 0.0 <= b <= 1.0):
        raise ValueError("k1 is not in 0..1,000 or b not in 0..1")
    if s.rows < 0 or total < 0 or not (0.0 <= s.prior_rows and isfinite(s.prior_rows)):
        raise ValueError("a negative number of rows")
    for i in range(s.terms):
        if not (_LEAST_WEIGHT <= s.weights[i] <= _MOST_WEIGHT and 0.0 <= s.priors[i] <= s.prior_rows):
            raise ValueError("an impossible weight or prior")
    return 0


cdef int _take_terms(weights, priors, bm25_search* s) except -1:
    """Copy what is given by term: weights may be any numbers."""
    cdef double* into = <double*><size_t>s.weights
    cdef const double* given = NULL if priors is None else _floats(priors, s.terms)
    cdef int64_t i = 0
    for weight in weights:
        if i < s.terms:
            into[i] = weight
        i += 1
    if i != s.terms:
        raise ValueError("weights changed their number")
    into = <double*><size_t>s.priors
    for i in range(s.terms):
        into[i] = 0.0 if given == NULL else given[i]
    return 0


cdef int _lay(bm25_search* s, void** block) except -1:
    """One block of memory for everything by term and by list."""
    cdef int64_t t = s.terms, lists = s.segment_count * s.terms
    cdef char* at
    block[0] = malloc(
        (s.segment_count + 1) * sizeof(bm25_segment) + lists * sizeof(bm25_list)
        + t * (sizeof(bm25_lane) + sizeof(bm25_test) + 5 * sizeof(double) + sizeof(int64_t) + sizeof(bm25_turn) + sizeof(int32_t) + sizeof(float))
        + s.k * (sizeof(float) + 2 * sizeof(double) + sizeof(int32_t))
    )
    if block[0] == NULL:
        raise MemoryError()
    at = <char*>block[0]
    s.segments = <bm25_segment*>at
    at += (s.segment_count + 1) * sizeof(bm25_segment)
    s.lists = <bm25_list*>at
    at += lists * sizeof(bm25_list)
    s.lanes = <bm25_lane*>at
    at += t * sizeof(bm25_lane)
    s.tests = <bm25_test*>at
    at += t * sizeof(bm25_test)
    s.impact = <double*>at
    s.said = s.impact + t
    s.weights = s.said + t
    s.priors = s.weights + t
    s.idf = s.said + 3 * t
    s.df = <int64_t*>(s.idf + t)
    s.score = <double*>(s.df + t)
    s.match = s.score + s.k
    s.turns = <bm25_turn*>(s.match + s.k)
    s.others = <int32_t*>(s.turns + t)
    s.best = s.others + t
    s.reach = <float*>(s.best + s.k)
    s.nearly = s.reach + t
    return 0


cdef object _copied(const void* values, int64_t size, Py_ssize_t width, kind):
    """A new array of these numbers."""
    made = _empty(size, kind)
    if size:
        memcpy(_address(made), values, size * width)
    return made


def score(list segments, list postings, weights, priors, double prior_rows, int scope, int64_t rows, int64_t total,
          rids, mask, places, also, also_places, double k1, double b, int64_t k):
    """See ``bm25_py.score``."""
    cdef bm25_search s
    cdef _Scratch scratch = _scratch()
    cdef void* block = NULL
    cdef int failed
    cdef list kept = []
    if k < 0:
        raise ValueError("k is negative")
    s.segment_count, s.terms, s.m, s.also_count = len(segments), len(weights), len(rids), len(also)
    if len(postings) != s.segment_count * s.terms:
        raise ValueError("postings are not segments x terms")
    s.prior_rows, s.scope, s.rows, s.k1 = prior_rows, scope, rows, k1
    s.average = <double>total / <double>rows if rows else 0.0
    s.fixed, s.slope = k1 * (1.0 - b), k1 * b / s.average if s.average > 0.0 else 0.0
    s.rids, s.also = _ints(rids, s.m), _ints(also, s.also_count)
    s.k, s.kept, s.said_total, s.mask, s.mask_size = min(k, s.m), 0, 0.0, NULL, 0
    s.places = NULL if places is None else _ints(places, 2 * s.m)
    s.also_places = _ints(also_places, 2 * s.also_count)
    if mask is not None:
        s.mask_size = len(mask)
        s.mask = <const uint8_t*>_data(mask, c"B", c"B", 1, s.mask_size)
    extra = extra_match = _NONE
    s.also_score = s.also_match = NULL
    if s.also_count:
        extra, extra_match = np.zeros(s.also_count, _FLOAT64), np.zeros(s.also_count, _FLOAT64)
        s.also_score, s.also_match = <double*>_address(extra), <double*>_address(extra_match)
    s.scratch = scratch.memory
    try:
        _lay(&s, &block)
        _take_terms(weights, priors, &s)
        _check(&s, b, total)
        _take_segments(segments, <bm25_segment*><size_t>s.segments)
        _take_lists(segments, postings, &s, kept)
        with nogil:
            failed = bm25_run(&s)
        if failed:
            raise ValueError("fewer rows than documents with a term")
        _remember(postings, &s)
        return tuple.__new__(Scored, (
            _copied(s.best, s.kept, sizeof(int32_t), _INT32), _copied(s.score, s.kept, sizeof(double), _FLOAT64),
            _copied(s.match, s.kept, sizeof(double), _FLOAT64), extra, extra_match,
            _copied(s.idf, s.terms, sizeof(double), _FLOAT64), _copied(s.df, s.terms, sizeof(int64_t), _INT64),
            rows, s.average,
        ))
    finally:
        free(block)
