"""What kind of character each code point is, as the table that the text kernel reads.

Owns the making of the table from the character classes of ``chars``; once for each process. Used by ``analyzer`` only.
"""

from __future__ import annotations

import numpy as np

from memxd._fast import text_py as kind
from memxd.index.lexical.chars import (
    FLAG_LETTER,
    HAN_KANA,
    HANGUL,
    IGNORED,
    KHMER,
    LAO,
    MYANMAR,
    SYMBOLS,
    THAI,
    spans,
)
from memxd.index.lexical.tokens import CATEGORIES, WORD

#: Signs that hold a word together when they stand inside it; ``_`` is a letter besides.
SIGNS = "-._/:?=&@#+'~%\\|"
#: Beyond it nothing is a character of any kind: unassigned, and for private use.
_SIZE = 0xE1000


def table() -> bytes:
    """One byte for each code point below 0xE1000: ``text_py``'s kind and bits."""
    made = np.zeros(_SIZE, np.uint8)
    low = made[: len(CATEGORIES)]
    low[np.isin(CATEGORIES, [name.encode() for name in SYMBOLS])] = kind.SYMBOL
    low[:0x80] = 0
    # The later wins: a word's character is never anything else.
    for inside, which in (
        (FLAG_LETTER, kind.FLAG), (KHMER, kind.KHMER), (MYANMAR, kind.MYANMAR), (LAO, kind.LAO), (THAI, kind.THAI),
        (HANGUL, kind.HANGUL), (HAN_KANA, kind.HAN_KANA), (WORD, kind.WORD),
    ):  # fmt: skip
        for start, stop in spans(inside):
            made[start:stop] = which
    low[CATEGORIES == b"Nd"] |= kind.DIGIT
    for sign in SIGNS:
        made[ord(sign)] |= kind.SIGN
    for start, stop in spans(IGNORED):
        made[start:stop] |= kind.IGNORED
    return made.tobytes()
