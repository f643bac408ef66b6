"""The tables of characters, made at once for the start's sake, are what asking for each character gives."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import pytest

from memxd._fast import text_py as kind
from memxd.index.lexical import chars
from memxd.index.lexical.classes import SIGNS, table
from memxd.index.lexical.tokens import WORD

_APART = re.compile(
    f"[{chars.HAN_KANA}{chars.HANGUL}{chars.THAI}{chars.LAO}{chars.MYANMAR}{chars.KHMER}{chars.EMOJI}"
    f"{chars.FLAG_LETTER}]"
)


def codes() -> list[int]:
    return [*range(0x30, 0xD800), *range(0xF900, chars.ASSIGNED)]


@pytest.fixture(scope="module")
def made() -> bytes:
    return table()


def test_words_are_letters_digits_and_marks_of_scripts_with_spaces() -> None:
    named = {code for start, stop in chars.spans(WORD) for code in range(start, stop)}
    wanted = {c for c in codes() if unicodedata.category(chr(c))[0] in "LMN" and not _APART.match(chr(c))}
    assert named == wanted | {ord("_")}


def test_combining_marks_are_those_of_every_script() -> None:
    _, marks = chars.word_class(chars.categories())
    named = {code for start, stop in chars.spans(marks) for code in range(start, stop)}
    assert named == {c for c in codes() if unicodedata.category(chr(c))[0] == "M"}


def test_every_digit_is_one_in_the_table(made: bytes) -> None:
    digits = {code for code in range(chars.ASSIGNED) if unicodedata.category(chr(code)) == "Nd"}
    assert set(np.flatnonzero(np.frombuffer(made, np.uint8) & kind.DIGIT).tolist()) == digits


def test_symbols_are_what_no_other_kind_claims(made: bytes) -> None:
    for code in range(0x80, chars.ASSIGNED):
        if made[code] & kind.KIND == kind.SYMBOL:
            assert chars.is_symbol(chr(code))
        elif chars.is_symbol(chr(code)):
            assert made[code] & kind.KIND != kind.NOTHING


def test_signs_and_ignored_characters_have_their_bits(made: bytes) -> None:
    bits = np.frombuffer(made, np.uint8)
    assert set(np.flatnonzero(bits & kind.SIGN).tolist()) == set(map(ord, SIGNS))
    ignored = {code for start, stop in chars.spans(chars.IGNORED) for code in range(start, stop)}
    assert set(np.flatnonzero(bits & kind.IGNORED).tolist()) == ignored
