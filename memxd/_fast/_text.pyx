"""Compiled twin of ``text_py``: the meaning of everything stands there, and results are equal.

Works on Python's own objects and so holds the interpreter's lock: a text of 4,000 characters takes some 0.1 ms.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

cdef extern from "Python.h":
    int PyUnicode_KIND(str text)
    void *PyUnicode_DATA(str text)
    Py_UCS4 PyUnicode_READ(int kind, void *data, Py_ssize_t index)
    str PyUnicode_Substring(str text, Py_ssize_t start, Py_ssize_t end)
    PyObject *PyDict_GetItemWithError(dict table, object key) except? NULL
    const char *PyUnicode_AsUTF8AndSize(str text, Py_ssize_t *size) except NULL

cdef extern from "terms.h" nogil:
    int terms_find(const uint8_t *map, int64_t size, const int64_t *tables, const uint8_t *key, int64_t length,
                   int64_t *place)

cdef enum:
    LONGEST = 1_024  # bytes of a field's number and a term that are looked up; no dictionary has longer ones
    KIND = 15
    NOTHING = 0
    WORD = 1
    HANGUL = 3
    FLAG = 8
    SYMBOL = 9
    DIGIT = 16
    SIGN = 32
    IGNORED = 64


cdef struct Reader:
    # A text's characters as their classes; the text and the table outlive it.
    int kind
    void *data
    Py_ssize_t size
    const unsigned char *classes
    Py_ssize_t known


cdef Reader reader(str text, bytes classes):
    cdef Reader made
    made.kind = PyUnicode_KIND(text)
    made.data = PyUnicode_DATA(text)
    made.size = len(text)
    made.classes = <const unsigned char *> <const char *> classes
    made.known = len(classes)
    return made


cdef inline int class_at(const Reader *r, Py_ssize_t at) noexcept:
    """0 also beyond the end."""
    cdef Py_UCS4 code
    if at >= r.size:
        return 0
    code = PyUnicode_READ(r.kind, r.data, at)
    return r.classes[code] if <Py_ssize_t> code < r.known else 0


cdef inline bint stands(const Reader *r, Py_ssize_t at, Py_UCS4 char) noexcept:
    return at < r.size and PyUnicode_READ(r.kind, r.data, at) == char


cdef inline Py_ssize_t run_end(const Reader *r, Py_ssize_t at, int kind) noexcept:
    while class_at(r, at) & KIND == kind and at < r.size:
        at += 1
    return at


cdef inline Py_ssize_t joint(const Reader *r, Py_ssize_t at) noexcept:
    cdef Py_ssize_t signs = 0
    while signs < 3 and class_at(r, at + signs) & SIGN:
        signs += 1
    while signs and class_at(r, at + signs) & KIND != WORD:
        signs -= 1
    if signs or not stands(r, at, u",") or class_at(r, at + 1) & KIND != WORD:
        return signs
    return (
        class_at(r, at - 1) & DIGIT and class_at(r, at + 1) & DIGIT and class_at(r, at + 2) & DIGIT
        and class_at(r, at + 3) & DIGIT and not class_at(r, at + 4) & DIGIT
    )


cdef Py_ssize_t word_end(const Reader *r, Py_ssize_t at) noexcept:
    cdef Py_ssize_t step
    at = run_end(r, at, WORD)
    while True:
        step = joint(r, at)
        if not step:
            break
        at = run_end(r, at + step, WORD)
    if stands(r, at, u"+") and stands(r, at + 1, u"+"):
        return at + 2
    return at + 1 if stands(r, at, u"#") else at


cdef inline int add(dict sums, object term, object weight) except -1:
    cdef PyObject *before = PyDict_GetItemWithError(sums, term)
    sums[term] = weight if before is NULL else <object> before + weight
    return 0


cdef Py_ssize_t add_word(dict sums, str token, dict words, object word, object one) except -1:
    cdef PyObject *met = PyDict_GetItemWithError(words, token)
    cdef tuple found = <tuple?> <object> met if met is not NULL else <tuple?> word(token)
    for term in <tuple?> found[0]:
        add(sums, term, one)
    return found[1]


cdef Py_ssize_t add_run(dict sums, object run, object one, object single) except -1:
    pairs, units, positions = run
    for term in pairs:
        add(sums, term, one)
    for term in units:
        add(sums, term, single if pairs else one)
    return positions


cdef int add_neighbours(dict sums, str text, Py_ssize_t at, Py_ssize_t end, object one, object single) except -1:
    cdef Py_ssize_t i
    for i in range(at, end - 1):
        add(sums, PyUnicode_Substring(text, i, i + 2), one)
    for i in range(at, end):
        add(sums, PyUnicode_Substring(text, i, i + 1), single if end - at > 1 else one)
    return 0


cdef tuple scan(str text, bytes classes, dict words, object word, object run, object one, object single):
    cdef Reader r = reader(text, classes)
    cdef dict sums = {}
    cdef Py_ssize_t length = 0, at = 0, end
    cdef int kind
    while at < r.size:
        kind = class_at(&r, at) & KIND
        end = at + 1
        if kind == WORD:
            end = word_end(&r, at)
            length += add_word(sums, PyUnicode_Substring(text, at, end), words, word, one)
        elif kind != NOTHING and kind <= HANGUL:
            end = run_end(&r, at, kind)
            add_neighbours(sums, text, at, end, one, single)
            length += end - at
        elif kind != NOTHING and kind < FLAG:
            end = run_end(&r, at, kind)
            length += add_run(sums, run(PyUnicode_Substring(text, at, end)), one, single)
        elif kind != NOTHING:
            if kind == FLAG and class_at(&r, at + 1) & KIND == FLAG:
                end = at + 2
            add(sums, PyUnicode_Substring(text, at, end), one)
            length += 1
        at = end
    return sums, length


def without_ignored(str text not None, bytes classes not None, /):
    cdef Reader r = reader(text, classes)
    cdef Py_ssize_t at
    for at in range(r.size):
        if class_at(&r, at) & IGNORED:
            return "".join([text[i] for i in range(r.size) if not class_at(&r, i) & IGNORED])
    return text


def count_terms(
    str text not None, bytes classes not None, dict words not None, word not None, run not None, /
):
    return scan(text, classes, words, word, run, 1, 1)


def weigh_terms(
    str text not None, bytes classes not None, dict words not None, word not None, run not None, double single, /
):
    return scan(text, classes, words, word, run, 1.0, single)[0]


def find_term(mapped not None, bytes tables not None, bytes field not None, str term not None, /):
    cdef Py_buffer view
    cdef Py_ssize_t size
    cdef const char *text = PyUnicode_AsUTF8AndSize(term, &size)
    cdef Py_ssize_t before = len(field)
    cdef uint8_t[LONGEST] key
    cdef int64_t[3] place
    cdef int found
    if len(tables) != 256 * 16:
        raise ValueError("a dictionary has 256 tables")
    if before + size > LONGEST:
        return None
    memcpy(&key[0], <const char *> field, before)
    memcpy(&key[before], text, size)
    PyObject_GetBuffer(mapped, &view, PyBUF_SIMPLE)
    found = terms_find(<const uint8_t *> view.buf, view.len, <const int64_t *> <const char *> tables, &key[0],
                       before + size, &place[0])
    PyBuffer_Release(&view)
    if found < 0:
        raise ValueError("the dictionary leads outside itself")
    return (place[0], place[1], place[2]) if found else None
