"""Both kernels cut texts by the rules: as the pattern says, as the vectors say, and they refuse what is none."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memxd._fast import load_kernels
from memxd._fast.text_py import TextKernel
from memxd.index.lexical import analyzer
from memxd.index.lexical.analyzer import SINGLE_WEIGHT, document_terms, query_terms
from memxd.index.lexical.chars import (
    EMOJI,
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
from memxd.index.lexical.classes import table
from memxd.index.lexical.tokens import WORD, run_terms, word_terms

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "text_terms.json").read_text("utf-8"))
TABLE = table()
TELLING = "aZ09_-.,/:+#@'`\u2019 é中字カ한ไทยກໍမြខ្🇩🇪👍🏽\u200d€→Ж١ﬁＡ，½\u0301\u00ad\ud800ß"


# A word token: words joined by inner signs (at most three in a row, as in ://), C++ and C#; a comma only in 1,000.
_INNER = r"(?:[-._/:?=&@#+'~%\\|]{1,3}|(?<=\d),(?=\d{3}(?!\d)))"
_TOKEN = re.compile(
    f"(?P<word>[{WORD}]+(?:{_INNER}[{WORD}]+)*(?:\\+\\+|#)?)"
    f"|(?P<run>[{HAN_KANA}]+|[{HANGUL}]+|[{THAI}]+|[{LAO}]+|[{MYANMAR}]+|[{KHMER}]+)"
    f"|(?P<sign>[{FLAG_LETTER}]{{2}}|[{EMOJI}]|[^\\s\\x00-\\x7f])"
)
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\uff07\u0060\u00b4\u2032", "'"))
_IGNORED = re.compile(f"[{IGNORED}]+")


def expected(text: str) -> tuple[dict[str, int], int, dict[str, float]]:
    """(term -> frequency, length, term -> weight in a question) of a text: the rules as a regular expression."""
    counts: Counter[str] = Counter()
    weights: dict[str, float] = {}
    length = 0
    text = text.encode("utf-8", "replace").decode()
    text = unicodedata.normalize("NFKC", _IGNORED.sub("", text)).translate(_APOSTROPHES)
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup, match[0]
        pairs: list[str] = []
        if kind == "word":
            terms, positions = word_terms(token)
        elif kind == "run":
            pairs, terms, positions = run_terms(token)
        elif len(token) == 2 or is_symbol(token):
            terms, positions = [token], 1
        else:
            continue
        counts.update(pairs)
        counts.update(terms)
        for term in pairs:
            weights[term] = weights.get(term, 0.0) + 1.0
        for term in terms:
            weights[term] = weights.get(term, 0.0) + (SINGLE_WEIGHT if pairs else 1.0)
        length += positions
    return dict(counts), length, weights


def word(token: str) -> tuple[tuple[str, ...], int]:
    terms, positions = word_terms(token)
    return tuple(terms), positions


@pytest.fixture(params=["c", "py"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> TextKernel:
    chosen = load_kernels(request.param).text
    monkeypatch.setattr(analyzer, "_kernel", chosen)
    return chosen


def compare(text: str) -> None:
    counts, length, weights = expected(text)
    assert document_terms(text) == (counts, length)
    assert list(document_terms(text)[0]) == list(counts)
    found = query_terms(text)
    assert dict(zip(found.terms, found.weights, strict=True)) == weights
    assert list(found.terms) == sorted(weights, key=str.encode)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["text"][:20])
def test_the_vectors_hold(kernel: TextKernel, vector: dict[str, Any]) -> None:
    counts, length = document_terms(vector["text"])
    assert (counts, length) == (vector["counts"], vector["length"])
    compare(vector["text"])


@pytest.mark.parametrize("choice", ["c", "py"])
@given(text=st.text(st.sampled_from(TELLING), max_size=30) | st.text(max_size=30))
@settings(max_examples=300, deadline=None)
def test_any_text_is_cut_as_the_pattern_says(choice: str, text: str) -> None:
    kernel, former = load_kernels("c" if choice == "c" else "py").text, analyzer._kernel
    analyzer._kernel = kernel
    try:
        compare(text)
    finally:
        analyzer._kernel = former


@pytest.mark.parametrize("choice", ["c", "py"])
@given(text=st.text(st.sampled_from("ab1,23-._/+# '"), max_size=24))
@settings(max_examples=300, deadline=None)
def test_signs_and_commas_join_as_the_pattern_says(choice: str, text: str) -> None:
    kernel, former = load_kernels("c" if choice == "c" else "py").text, analyzer._kernel
    analyzer._kernel = kernel
    try:
        compare(text)
    finally:
        analyzer._kernel = former


def test_a_text_without_ignored_characters_is_not_copied(kernel: TextKernel) -> None:
    text = "nothing to drop é"
    assert kernel.without_ignored(text, TABLE) is text
    assert kernel.without_ignored("a\u00adb\U000e0041c", TABLE) == "abc"


def test_code_points_beyond_the_table_are_nothing(kernel: TextKernel) -> None:
    assert kernel.count_terms("a\U0010ffffb", TABLE[:128], {}, word, run_terms) == ({"a": 1, "b": 1}, 2)
    assert kernel.count_terms("abc", b"", {}, word, run_terms) == ({}, 0)


def test_words_are_asked_of_the_caller_only_when_they_are_not_known(kernel: TextKernel) -> None:
    asked: list[str] = []

    def ask(token: str) -> tuple[tuple[str, ...], int]:
        asked.append(token)
        return word(token)

    known: dict[str, tuple[tuple[str, ...], int]] = {"known": (("other", "term"), 3)}
    assert kernel.count_terms("known new", TABLE, known, ask, run_terms) == ({"other": 1, "term": 1, "new": 1}, 4)
    assert asked == ["new"]


def test_what_the_caller_raises_comes_through(kernel: TextKernel) -> None:
    def refuse(token: str) -> Any:
        raise KeyError(token)

    with pytest.raises(KeyError):
        kernel.count_terms("word", TABLE, {}, refuse, run_terms)
    with pytest.raises(KeyError):
        kernel.weigh_terms("ไทย", TABLE, {}, word, refuse, 0.5)
