"""What kind of character each code point is, as the table that the text kernel reads.

Owns the making of the table from the character classes of ``chars``; once for each process. Used by ``analyzer`` only.
"""

from __future__ import annotations

import unicodedata

from memxd._fast import text_py as kind
from memxd.index.lexical.chars import (
    FLAG_LETTER,
    HAN_KANA,
    HANGUL,
    IGNORED,
    KHMER,
    LAO,
    MYANMAR,
    THAI,
    is_symbol,
)
from memxd.index.lexical.tokens import WORD

#: Signs that hold a word together when they stand inside it; ``_`` is a letter besides.
SIGNS = "-._/:?=&@#+'~%\\|"
#: Beyond it nothing is a character of any kind: unassigned, and for private use.
_SIZE = 0xE1000
#: Symbols and digits of these code points; none stand among the ideographs beyond.
_LETTERS = 0x20000


def _spans(inside: str) -> list[tuple[int, int]]:
    """The half-open ranges of code points that the inside of a character class names."""
    spans: list[tuple[int, int]] = []
    at = 0
    while at < len(inside):
        wide = inside[at + 1 : at + 2] == "-"
        last = inside[at + 2] if wide else inside[at]
        spans.append((ord(inside[at]), ord(last) + 1))
        at += 3 if wide else 1
    return spans


def table() -> bytes:
    """One byte for each code point below 0xE1000: ``text_py``'s kind and bits."""
    made = bytearray(_SIZE)
    for code in range(0x80, _LETTERS):
        if is_symbol(chr(code)):
            made[code] = kind.SYMBOL
    # The later wins: a word's character is never anything else.
    for inside, which in (
        (FLAG_LETTER, kind.FLAG), (KHMER, kind.KHMER), (MYANMAR, kind.MYANMAR), (LAO, kind.LAO), (THAI, kind.THAI),
        (HANGUL, kind.HANGUL), (HAN_KANA, kind.HAN_KANA), (WORD, kind.WORD),
    ):  # fmt: skip
        for start, stop in _spans(inside):
            made[start:stop] = bytes((which,)) * (stop - start)
    for code in range(_LETTERS):
        if unicodedata.category(chr(code)) == "Nd":
            made[code] |= kind.DIGIT
    for sign in SIGNS:
        made[ord(sign)] |= kind.SIGN
    for start, stop in _spans(IGNORED):
        for code in range(start, stop):
            made[code] |= kind.IGNORED
    return bytes(made)
