"""Cutting a text into tokens, counting and finding their terms, in plain Python: the twin and oracle of ``_text``.

Owns the loop over a text's characters: where a token begins and ends, and the sums. What a character is comes as a
table of ``classes`` (one byte for each code point from 0, larger ones are nothing), what a word's terms are from the
caller's ``words`` (those met before) and ``word`` (the others), which may add to ``words`` meanwhile. So the rules of
the analyzer stand in ``memxd/index/lexical``, its only caller, and its speed here.

A token is a word: characters of kind WORD, joined by one to three SIGNs between them (as ``://``) or by a comma before
exactly three DIGITs after one, with ``++`` or ``#`` behind it; or a run of one other kind up to KHMER; or a symbol.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from hashlib import md5
from mmap import mmap
from typing import Protocol, TypeVar

#: The low four bits of a class: what kind of token a character is part of.
KIND = 15
NOTHING, WORD, HAN_KANA, HANGUL, THAI, LAO, MYANMAR, KHMER, FLAG, SYMBOL = range(10)
#: Bits of a class: a decimal digit, a sign that joins words, a character that is dropped beforehand.
DIGIT, SIGN, IGNORED = 16, 32, 64

#: Of a dictionary: a slot of a hash table (hash, place of the item, 0 = empty); an item's sizes of key and value, which
#: come next; of the value: documents, where the list begins in bytes, how many it has.
_SLOT, _SIZES, _PLACE = struct.Struct("!Iq"), struct.Struct("!ii"), struct.Struct("!5xI14xqi")
_TABLE = struct.Struct("=qq")
#: Longer keys (bytes) are in no dictionary.
LONGEST = 1_024

#: The terms of a word, each once, and its length in positions.
WordTerms = tuple[tuple[str, ...], int]
#: (bigrams, single units, length) of a run, repetitions kept.
RunTerms = tuple[list[str], list[str], int]
N = TypeVar("N", int, float)
#: What can be indexed and cut, such as a mapped file.
Bytes = bytes | mmap


class TextKernel(Protocol):
    """Implemented by ``_text`` and this module."""

    def without_ignored(self, text: str, classes: bytes, /) -> str: ...

    def count_terms(
        self,
        text: str,
        classes: bytes,
        words: dict[str, WordTerms],
        word: Callable[[str], WordTerms],
        run: Callable[[str], RunTerms],
        /,
    ) -> tuple[dict[str, int], int]: ...

    def weigh_terms(
        self,
        text: str,
        classes: bytes,
        words: dict[str, WordTerms],
        word: Callable[[str], WordTerms],
        run: Callable[[str], RunTerms],
        single: float,
        /,
    ) -> dict[str, float]: ...

    def find_term(self, mapped: Bytes, tables: bytes, field: bytes, term: str, /) -> tuple[int, int, int] | None: ...


def without_ignored(text: str, classes: bytes, /) -> str:
    """``text`` without its characters of class IGNORED; the very object when it has none."""
    kept = "".join([char for char in text if not _class(char, classes) & IGNORED])
    return text if len(kept) == len(text) else kept


def count_terms(
    text: str,
    classes: bytes,
    words: dict[str, WordTerms],
    word: Callable[[str], WordTerms],
    run: Callable[[str], RunTerms],
    /,
) -> tuple[dict[str, int], int]:
    """(term -> how often, in order of first occurrence; length in positions).

    A run of HAN_KANA or HANGUL counts its pairs of neighbours, then its characters, a position each; one of another
    script what ``run`` says of it; a symbol and a pair of FLAGs count once. Raises what ``word`` and ``run`` raise.
    """
    return _scan(text, classes, words, word, run, 1, 1)


def weigh_terms(
    text: str,
    classes: bytes,
    words: dict[str, WordTerms],
    word: Callable[[str], WordTerms],
    run: Callable[[str], RunTerms],
    single: float,
    /,
) -> dict[str, float]:
    """As ``count_terms``, but as floats, and a single unit of a run that has pairs adds ``single`` instead of 1."""
    return _scan(text, classes, words, word, run, 1.0, single)[0]


def find_term(mapped: Bytes, tables: bytes, field: bytes, term: str, /) -> tuple[int, int, int] | None:
    """(documents, offset, size) of a term's posting list, None when the dictionary does not hold it.

    ``mapped``: the file, Whoosh's ``OrderedHashWriter``'s; ``tables``: where each of its 256 hash tables begins and how
    many slots it has, native int64[512]; ``field``: what its keys begin with. Raises ValueError for a damaged one.
    """
    if len(tables) != 256 * _TABLE.size:
        raise ValueError("a dictionary has 256 tables")
    key = field + term.encode()
    if len(key) > LONGEST:
        return None
    try:
        return _find(mapped, tables, key)
    except struct.error as error:
        raise ValueError("the dictionary leads outside itself") from error


def _find(mapped: Bytes, tables: bytes, key: bytes) -> tuple[int, int, int] | None:
    wanted = int.from_bytes(md5(key, usedforsecurity=False).digest()[-4:], "big")
    start, slots = _TABLE.unpack_from(tables, (wanted & 255) * _TABLE.size)
    if start < 0 or slots < 0 or (slots and start + slots * _SLOT.size > len(mapped)):
        raise struct.error
    first = (wanted >> 8) % slots if slots else 0
    for step in range(slots):
        found, at = _SLOT.unpack_from(mapped, start + (first + step) % slots * _SLOT.size)
        if not at:
            return None
        if found != wanted:
            continue
        if at < 0:
            raise struct.error
        size, _ = _SIZES.unpack_from(mapped, at)
        at += _SIZES.size
        if size != len(key):
            continue
        if at + size > len(mapped):
            raise struct.error
        if mapped[at : at + size] == key:
            place: tuple[int, int, int] = _PLACE.unpack_from(mapped, at + size)
            return place
    return None


def _scan(
    text: str,
    classes: bytes,
    words: dict[str, WordTerms],
    word: Callable[[str], WordTerms],
    run: Callable[[str], RunTerms],
    one: N,
    single: N,
) -> tuple[dict[str, N], int]:
    sums: dict[str, N] = {}
    length = at = 0
    while at < len(text):
        kind = _class(text[at], classes) & KIND
        end = _end(text, at, kind, classes)
        token = text[at:end]
        at = end
        if kind == NOTHING:
            continue
        if kind == WORD:
            terms, positions = words.get(token) or word(token)
            _add(sums, terms, one)
        elif kind < FLAG:
            pairs, units, positions = _neighbours(token) if kind <= HANGUL else run(token)
            _add(sums, pairs, one)
            _add(sums, units, single if pairs else one)
        else:
            positions = 1
            _add(sums, (token,), one)
        length += positions
    return sums, length


def _add(sums: dict[str, N], terms: tuple[str, ...] | list[str], weight: N) -> None:
    for term in terms:
        sums[term] = sums[term] + weight if term in sums else weight


def _neighbours(token: str) -> RunTerms:
    return [token[i : i + 2] for i in range(len(token) - 1)], list(token), len(token)


def _class(char: str, classes: bytes) -> int:
    code = ord(char)
    return classes[code] if code < len(classes) else 0


def _end(text: str, at: int, kind: int, classes: bytes) -> int:
    """Where the token that begins at ``at`` ends."""
    if kind in (NOTHING, SYMBOL):
        return at + 1
    if kind == FLAG:
        return at + 1 + _is(text, at + 1, FLAG, classes)
    if kind != WORD:
        return _run_end(text, at, kind, classes)
    at = _run_end(text, at, WORD, classes)
    while joint := _joint(text, at, classes):
        at = _run_end(text, at + joint, WORD, classes)
    return at + (2 if text.startswith("++", at) else text.startswith("#", at))


def _run_end(text: str, at: int, kind: int, classes: bytes) -> int:
    while _is(text, at, kind, classes):
        at += 1
    return at


def _joint(text: str, at: int, classes: bytes) -> int:
    """How many characters at ``at`` join the word before to one behind them; 0 = none do."""
    signs = 0
    while signs < 3 and _has(text, at + signs, SIGN, classes):
        signs += 1
    while signs and not _is(text, at + signs, WORD, classes):
        signs -= 1
    if signs or not (text.startswith(",", at) and _is(text, at + 1, WORD, classes)):
        return signs
    digits = [_has(text, at + step, DIGIT, classes) for step in (-1, 1, 2, 3, 4)]
    return int(digits == [True, True, True, True, False])


def _is(text: str, at: int, kind: int, classes: bytes) -> bool:
    return at < len(text) and _class(text[at], classes) & KIND == kind


def _has(text: str, at: int, bit: int, classes: bytes) -> bool:
    return at < len(text) and bool(_class(text[at], classes) & bit)
