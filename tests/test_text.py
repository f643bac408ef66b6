"""When two texts count as the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memxd.text import content_hash, fold_hash, fold_text

SAME = [
    ("Hello, World!", "hello world"),
    ("  tea \n time  ", "Tea time."),
    ("don't", "DON’T"),
    ("e-mail", "E mail"),
    ("Straße", "STRASSE"),
    ("ＡＢＣ", "abc"),
    ("用户喜欢，喝咖啡。", "用户喜欢 喝咖啡"),
    ("用 Python 写", "用Python写"),
    ("❤\ufe0f", "❤"),
    ("(see p. 5)", "see p 5"),
    ("cafe\u0301", "café"),
]
DIFFERENT = [
    ("due Oct 15", "due Oct 16"),
    ("likes tea", "does not like tea"),
    ("not able", "notable"),
    ("1.5 litres", "15 litres"),
    ("1 5", "15"),
    ("12:30", "1230"),
    ("2024-01-02", "2024-0102"),
    ("-5 degrees", "5 degrees"),
    ("5%", "5"),
    ("C# and C++", "C and C"),
    ("10² people", "102 people"),
    ("1½ cups", "11/2 cups"),
    ("👍", "👎"),
    ("$5", "€5"),
    ("कि", "का"),
    ("!!!", "???"),
    ("がく", "かく"),
]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_case_punctuation_and_spacing_do_not_count(left: str, right: str) -> None:
    assert fold_text(left) == fold_text(right)
    assert fold_hash(left) == fold_hash(right)


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_numbers_negations_and_symbols_count(left: str, right: str) -> None:
    assert fold_text(left) != fold_text(right)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_folding_is_total_and_hashes_have_64_bits(text: str) -> None:
    assert fold_text(text)
    assert 0 <= fold_hash(text) < 1 << 64
    assert 0 <= content_hash(text) < 1 << 64


@given(st.text(st.characters(categories=["L", "N"]), min_size=1))
def test_letters_and_digits_never_vanish(text: str) -> None:
    assert len(fold_text(text)) >= 1
    assert fold_text(text + "7") != fold_text(text)


def test_hashes_are_pinned() -> None:
    assert content_hash("tea") == 10431608578837538234
    assert fold_hash("Tea, at 5.30!") == 18159299035151129358
