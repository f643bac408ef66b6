"""BM25 over flat posting arrays, compiled. Twin, oracle and documentation: ``bm25_py``; both change together.

One section without the GIL does a whole query: count the selection, gather each term's live matches, add their
scores into an accumulator, keep the k best. Dense path: the accumulator is indexed by rid and the selection is a
mask. Sparse path (mask None): it is indexed by position in the selection, whose rows are looked up in the posting
lists by galloping (Bentley and Yao 1976). Buffers belong to the thread and are left zeroed.
"""

import threading

import numpy as np

from libc.math cimport log
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc

from memxd._fast.bm25_py import Scored

cdef struct Segment:
    const int32_t* rids
    const uint8_t* alive
    int64_t size
    int64_t placed  # where its selected documents start in Work.docs and Work.slots (sparse path, ascending rids)
    int64_t chosen  # how many there are; -1 = not looked up

cdef struct List:
    int64_t term
    int64_t segment
    const int32_t* docs
    const int32_t* tfs
    int64_t size

cdef struct Work:
    Segment* segments
    int64_t segment_count
    List* lists
    int64_t list_count
    int64_t terms
    const double* weights
    const int32_t* lengths  # by rid, -1 = not held
    int64_t capacity
    const int32_t* rids  # the selection
    int64_t m
    const uint8_t* mask  # the selection by rid (dense path)
    int64_t limit
    bint dense
    double k1
    double b
    double* sums  # by slot (dense: rid, sparse: position in the selection), all zero between calls
    int32_t* touched  # slots with a score
    int32_t* slots  # matches of the present term: slot, term frequency
    int32_t* tfs
    int32_t* docs  # sparse: document numbers of the selection, segment by segment
    int32_t* places  # sparse: their slots
    int64_t* df  # answers
    double* idf
    int32_t* best
    double* scores
    int64_t k
    const int32_t* also
    int64_t also_count
    double* extra
    int64_t rows
    double average


cdef class _Buffers:
    """Scratch memory of one thread; grows, never shrinks below what the largest query needed."""

    cdef double* sums
    cdef int32_t* numbers
    cdef int64_t slots
    cdef int64_t size

    def __dealloc__(self):
        free(self.sums)
        free(self.numbers)

    cdef int reserve(self, int64_t slots, int64_t numbers) except -1:
        if slots > self.slots:
            free(self.sums)
            self.slots = 0
            self.sums = <double*>calloc(slots + slots // 4, sizeof(double))
            if self.sums == NULL:
                raise MemoryError()
            self.slots = slots + slots // 4
        if numbers > self.size:
            free(self.numbers)
            self.size = 0
            self.numbers = <int32_t*>malloc((numbers + numbers // 4) * sizeof(int32_t))
            if self.numbers == NULL:
                raise MemoryError()
            self.size = numbers + numbers // 4
        return 0


_local = threading.local()


cdef _Buffers _buffers():
    found = getattr(_local, "buffers", None)
    if found is None:
        found = _local.buffers = _Buffers()
    return <_Buffers>found


cdef inline int64_t _first_at_least(const int32_t* values, int64_t low, int64_t size, int32_t wanted) noexcept nogil:
    """First position >= low whose value is >= wanted, or size: doubling steps, then bisection."""
    cdef int64_t step = 1, high, middle
    if low >= size or values[low] >= wanted:
        return low
    while low + step < size and values[low + step] < wanted:
        low += step
        step *= 2
    high = low + step if low + step < size else size
    low += 1
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline int64_t _position(const int32_t* values, int64_t size, int32_t wanted) noexcept nogil:
    """Position of a value in an ascending array, or -1."""
    cdef int64_t low = 0, high = size, middle
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < size and values[low] == wanted else -1


cdef void _place(Segment* segment, int64_t start, Work* work) noexcept nogil:
    """Find the selection's live documents in a segment with ascending rids."""
    cdef int64_t at = 0, i, n = start
    for i in range(work.m):
        at = _first_at_least(segment.rids, at, segment.size, work.rids[i])
        if at >= segment.size:
            break
        if segment.rids[at] == work.rids[i] and segment.alive[at]:
            work.docs[n] = <int32_t>at
            work.places[n] = <int32_t>i
            n += 1
    segment.placed = start
    segment.chosen = n - start


cdef int64_t _match_dense(const List* postings, const Segment* segment, int64_t n, Work* work) noexcept nogil:
    """Append the live, selected matches of one posting list to n others; the new number."""
    cdef int64_t i
    cdef int32_t doc, rid
    for i in range(postings.size):
        doc = postings.docs[i]
        rid = segment.rids[doc]
        if segment.alive[doc] and rid < work.limit and work.mask[rid]:
            work.slots[n] = rid
            work.tfs[n] = postings.tfs[i]
            n += 1
    return n


cdef int64_t _match_sparse(const List* postings, const Segment* segment, int64_t n, Work* work) noexcept nogil:
    """As ``_match_dense``; slots are positions in the selection."""
    cdef int64_t i, at = 0
    cdef int32_t doc
    if segment.chosen < 0 or postings.size < segment.chosen:  # fewer postings than rows, or rids in no order
        for i in range(postings.size):
            doc = postings.docs[i]
            if segment.alive[doc]:
                at = _position(work.rids, work.m, segment.rids[doc])
                if at >= 0:
                    work.slots[n] = <int32_t>at
                    work.tfs[n] = postings.tfs[i]
                    n += 1
        return n
    for i in range(segment.placed, segment.placed + segment.chosen):
        at = _first_at_least(postings.docs, at, postings.size, work.docs[i])
        if at >= postings.size:
            break
        if postings.docs[at] == work.docs[i]:
            work.slots[n] = work.places[i]
            work.tfs[n] = postings.tfs[at]
            n += 1
    return n


cdef inline bint _worse(double left, int32_t left_slot, double right, int32_t right_slot) noexcept nogil:
    return left < right or (left == right and left_slot > right_slot)


cdef void _sift(int32_t* heap, int64_t at, int64_t size, const double* sums) noexcept nogil:
    """Restore the heap whose root is the worst of its slots."""
    cdef int64_t child
    cdef int32_t moved = heap[at]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _worse(sums[heap[child + 1]], heap[child + 1], sums[heap[child]], heap[child]):
            child += 1
        if not _worse(sums[heap[child]], heap[child], sums[moved], moved):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = moved


cdef int64_t _best(Work* work, int64_t touched) noexcept nogil:
    """The k best slots, best first. Slots ascend as rids do, so ties fall to the smaller rid."""
    cdef int64_t i, n = touched if touched < work.k else work.k
    cdef int32_t slot
    cdef int32_t* heap = work.best
    if n == 0:
        return 0
    for i in range(n):
        heap[i] = work.touched[i]
    for i in range(n // 2 - 1, -1, -1):
        _sift(heap, i, n, work.sums)
    for i in range(n, touched):
        slot = work.touched[i]
        if _worse(work.sums[heap[0]], heap[0], work.sums[slot], slot):
            heap[0] = slot
            _sift(heap, 0, n, work.sums)
    for i in range(n - 1, 0, -1):
        slot = heap[0]
        heap[0] = heap[i]
        heap[i] = slot
        _sift(heap, 0, i, work.sums)
    return n


cdef void _count_rows(Work* work) noexcept nogil:
    """N and the average length within the selection; on the sparse path also where its rows are."""
    cdef int64_t i, rows = 0, total = 0, placed = 0
    cdef int32_t held
    if work.dense:
        for i in range(work.limit):  # without branches, so that it runs in vector registers
            held = (work.mask[i] != 0) & (work.lengths[i] >= 0)
            rows += held
            total += work.lengths[i] & -held
    else:
        for i in range(work.m):
            if work.rids[i] < work.capacity and work.lengths[work.rids[i]] >= 0:
                rows += 1
                total += work.lengths[work.rids[i]]
        for i in range(work.segment_count):
            if work.segments[i].chosen == 0:
                _place(&work.segments[i], placed, work)
                placed += work.segments[i].chosen
    work.rows = rows
    work.average = <double>total / <double>rows if rows else 0.0


cdef int64_t _add_terms(Work* work) noexcept nogil:
    """Add every term's scores in the order given; the number of slots touched."""
    cdef int64_t at = 0, i, n, term, touched = 0
    cdef double weight, tf, length
    cdef double fixed = work.k1 * (1.0 - work.b)
    cdef double slope = work.k1 * work.b / work.average if work.average > 0.0 else 0.0
    cdef int32_t slot
    for term in range(work.terms):
        n = 0
        while at < work.list_count and work.lists[at].term == term:
            if work.dense:
                n = _match_dense(&work.lists[at], &work.segments[work.lists[at].segment], n, work)
            else:
                n = _match_sparse(&work.lists[at], &work.segments[work.lists[at].segment], n, work)
            at += 1
        work.df[term] = n
        if n == 0:
            continue
        work.idf[term] = log(1.0 + (work.rows - n + 0.5) / (n + 0.5))
        weight = work.idf[term] * work.weights[term]
        for i in range(n):
            slot = work.slots[i]
            tf = work.tfs[i]
            length = work.lengths[slot if work.dense else work.rids[slot]]
            if work.sums[slot] == 0.0:
                work.touched[touched] = slot
                touched += 1
            work.sums[slot] += tf * (work.k1 + 1.0) / (tf + (fixed + slope * length)) * weight
    return touched


cdef int64_t _run(Work* work) noexcept nogil:
    """The whole query; the number of hits. Leaves the accumulator zeroed."""
    cdef int64_t i, at, kept, touched
    _count_rows(work)
    touched = _add_terms(work)
    kept = _best(work, touched)
    for i in range(kept):
        work.scores[i] = work.sums[work.best[i]]
        if not work.dense:
            work.best[i] = work.rids[work.best[i]]
    for i in range(work.also_count):
        at = work.also[i] if work.dense else _position(work.rids, work.m, work.also[i])
        if 0 <= at < (work.capacity if work.dense else work.m):
            work.extra[i] = work.sums[at]
    for i in range(touched):
        work.sums[work.touched[i]] = 0.0
    return kept


cdef inline const int32_t* _ints(values) except? NULL:
    """Address of an int32 array that the caller keeps alive."""
    cdef const int32_t[::1] view = values
    return &view[0] if view.shape[0] else NULL


cdef int64_t _take_segments(segments, Work* work) except -1:
    """Fill in the segments; the number of their documents that a sparse search may have to place."""
    cdef const uint8_t[::1] alive
    cdef int64_t i, placed = 0
    for i in range(work.segment_count):
        rids, flags, ascending = segments[i]
        alive = flags
        work.segments[i].size = len(rids)
        work.segments[i].rids = _ints(rids)
        work.segments[i].alive = &alive[0] if alive.shape[0] else NULL
        work.segments[i].placed = 0
        work.segments[i].chosen = 0 if ascending else -1
        if not work.dense and ascending:
            placed += min(work.m, work.segments[i].size)
    return placed


cdef int64_t _take_lists(postings, Work* work, int64_t* total) except -1:
    """Fill in the posting lists and their total length; the length of the longest term."""
    cdef int64_t at = 0, term, size, most = 0
    for term in range(work.terms):
        size = 0
        for number, docs, tfs in postings[term]:
            work.lists[at].term = term
            work.lists[at].segment = number
            work.lists[at].docs = _ints(docs)
            work.lists[at].tfs = _ints(tfs)
            work.lists[at].size = len(docs)
            size += work.lists[at].size
            at += 1
        most = max(most, size)
        total[0] += size
    return most


cdef int _reserve(Work* work, int64_t total, int64_t most, int64_t placed) except -1:
    """Lay the buffers of this thread out for a query."""
    cdef int64_t slots = work.capacity if work.dense else work.m
    cdef int64_t scored = min(total, slots)
    cdef _Buffers buffers = _buffers()
    buffers.reserve(slots, scored + 2 * most + 2 * placed)
    work.sums = buffers.sums
    work.touched = buffers.numbers
    work.slots = work.touched + scored
    work.tfs = work.slots + most
    work.docs = work.tfs + most
    work.places = work.docs + placed
    return 0


def score(segments, postings, weights, lengths, rids, mask, double k1, double b, Py_ssize_t k, also):
    """See ``bm25_py.score``."""
    if k < 0:
        raise ValueError("k is negative")
    cdef const uint8_t[::1] flags
    cdef const double[::1] weight_of = weights
    cdef int64_t total = 0, most, placed, hits
    cdef Work work
    work.dense = mask is not None
    work.segment_count, work.terms = len(segments), len(postings)
    work.list_count = sum([len(lists) for lists in postings])
    work.weights = &weight_of[0] if weight_of.shape[0] else NULL
    work.lengths, work.capacity = _ints(lengths), len(lengths)
    work.rids, work.m = _ints(rids), len(rids)
    work.also, work.also_count = _ints(also), len(also)
    work.mask, work.limit, work.k1, work.b, work.k = NULL, 0, k1, b, min(k, work.m)
    if work.dense:
        flags = mask
        work.limit = min(flags.shape[0], work.capacity)
        work.mask = &flags[0] if flags.shape[0] else NULL
    idf, df = np.zeros(work.terms, np.float64), np.zeros(work.terms, np.int64)
    best, scores = np.empty(work.k, np.int32), np.empty(work.k, np.float64)
    extra = np.zeros(work.also_count, np.float64)
    work.idf, work.df = <double*><size_t>idf.ctypes.data, <int64_t*><size_t>df.ctypes.data
    work.best, work.scores = <int32_t*><size_t>best.ctypes.data, <double*><size_t>scores.ctypes.data
    work.extra = <double*><size_t>extra.ctypes.data
    work.segments = <Segment*>malloc((work.segment_count + 1) * sizeof(Segment))
    work.lists = <List*>malloc((work.list_count + 1) * sizeof(List))
    try:
        if work.segments == NULL or work.lists == NULL:
            raise MemoryError()
        placed = _take_segments(segments, &work)
        most = _take_lists(postings, &work, &total)
        _reserve(&work, total, most, placed)
        with nogil:
            hits = _run(&work)
    finally:
        free(work.segments)
        free(work.lists)
    return Scored(best[:hits], scores[:hits], extra, idf, df, work.rows, work.average)
