"""One token of a text -> its index terms.

A token is a word with everything written together with it (``v2.3``, ``GB/s``, ``foo_bar.py``, ``C++``, ``don't``, an
address), or a run of a script without spaces, or one emoji. Owns how a token is found whole and in parts. Pure; what
``analyzer`` calls for each token it has not met lately.

Words: the whole token, folded, when it has inner signs; its pieces between slashes and the like; its words between
dots, dashes and underscores, at camelCase humps and between letters and digits. Words of Latin letters alone are
stemmed (Snowball English, Porter 2); numbers with thousands separators are found without them too.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from itertools import groupby, pairwise

from Stemmer import Stemmer

from memxd.index.lexical.chars import KHMER, LAO, MYANMAR, THAI, alphabet, categories, fold, word_class

#: Longer terms are cut, in texts and questions alike: still findable, and no text fills the index with one word.
TERM_LIMIT = 128
#: What an apostrophe cuts off in English and Romance languages and what means nothing alone.
_CLITICS = frozenset(("s", "t", "d", "m", "l", "ll", "re", "ve", "n", "j", "qu", "c"))
_PIECE = re.compile(r"[^/:?=&@#+,\\%~|]+")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?\Z")
_SIGNS = re.compile(r"[\W_]+", re.ASCII)
# Humps: camelCase -> camel Case, ABCDef -> ABC Def; letters | digits.
_HUMP = re.compile(r"\d+|\D+")
_CAMEL = re.compile(r"(?<=[a-zà-öø-ÿ])(?=[A-ZÀ-ÖØ-Þ])|(?<=[A-ZÀ-ÖØ-Þ])(?=[A-ZÀ-ÖØ-Þ][a-zà-öø-ÿ])")
_ACRONYM = re.compile(r"[^\W\d_](?:\.[^\W\d_])+\Z")
_VERSION = re.compile(r"v(\d[\w.]*)\Z")
CATEGORIES = categories()
WORD, _MARKS = word_class(CATEGORIES)
_LETTERS = re.compile(f"(?:(?!_)[{WORD}])+")
_UNIT = re.compile(f"[{THAI}{LAO}{MYANMAR}{KHMER}](?:[{_MARKS}]|(?<=\u17d2)[{KHMER}]|(?<=\u1039)[{MYANMAR}])*")
_local = threading.local()


def stem(word: str) -> str:
    """The Snowball English stem of a folded word of ASCII letters; others unchanged."""
    return _stem_letters(word) if word.isascii() and word.isalpha() else word


def _stem_letters(word: str) -> str:
    """The same of ASCII letters alone."""
    if len(word) < 3:
        return word
    try:
        stemmer: Stemmer = _local.stemmer
    except AttributeError:  # one for each thread: a stemmer holds the word it works on
        stemmer = _local.stemmer = Stemmer("english", 0)  # no cache: the analyzer has one
    stemmed: str = stemmer.stemWord(word)
    return stemmed


def word_terms(token: str) -> tuple[list[str], int]:
    """Terms of a word token (NFKC, apostrophes straight) and its length in positions: its words, at least 1."""
    if token.isascii() and token.isalpha() and (token.islower() or token.istitle() or token.isupper()):
        return [_stem_letters(token.lower())[:TERM_LIMIT]], 1  # as below, for most words of most texts
    smallest: list[str] = []
    terms: list[str] = []
    for piece in _PIECE.findall(token):
        words = [word for apart in _apostrophes(piece) for word in _words(apart, terms)]
        smallest.extend(words)
        folded = fold(piece)
        if piece != token and not (len(words) == 1 and words[0] == folded):
            terms.append(folded.strip("._-'"))
    terms.extend(stem(word) for word in smallest)
    whole = fold(token)
    if "'" in token and all(char.isalpha() or char == "'" for char in token):
        terms.append(stem(whole.replace("'", "")))  # dont, users
    elif not whole.isalnum():
        terms.append(whole)
        terms.extend(_other_spellings(whole))
    return _unique(terms), max(1, len(smallest))


def run_terms(run: str) -> tuple[list[str], list[str], int]:
    """(bigrams, single units, length in units) of a run of one script without spaces, in order, repetitions kept."""
    units = _UNIT.findall(run) if _UNIT.match(run) else list(run)
    return [left + right for left, right in pairwise(units)], units, len(units)


def _apostrophes(piece: str) -> Iterator[str]:
    """The parts of don't, l'homme, user's, O'Brien that mean something."""
    parts = [part for part in piece.split("'") if part]
    if len(parts) == 1:
        yield parts[0]
        return
    yield from (part for part in parts if part.lower() not in _CLITICS)


def _words(apart: str, terms: list[str]) -> Iterator[str]:
    """The smallest words, folded; what lies between them and the whole goes to ``terms``."""
    for word in _by_alphabet(apart):
        humps = [hump for part in _CAMEL.split(word) for hump in _HUMP.findall(part)]
        if len(humps) > 1:
            terms.append(stem(fold(word)))
            yield from map(fold, humps)
        else:
            yield fold(word)


def _by_alphabet(apart: str) -> Iterator[str]:
    """Cut at signs and where the alphabet changes; digits go with what is before them."""
    for word in _SIGNS.split(apart) if apart.isascii() else _LETTERS.findall(apart):
        if word.isascii():
            if word:
                yield word
            continue
        previous = ""

        def script(char: str) -> str:
            nonlocal previous
            previous = alphabet(char) if char.isalpha() or not previous else previous
            return previous

        yield from ("".join(run) for _, run in groupby(word, script))


def _other_spellings(whole: str) -> Iterator[str]:
    """1,000 also as 1000; U.S.A. as USA; v2.3 as 2.3."""
    if _THOUSANDS.match(whole):
        yield whole.replace(",", "")
    if _ACRONYM.match(whole):
        yield whole.replace(".", "")
    version = _VERSION.match(whole)
    if version:
        yield version[1]


def _unique(terms: list[str]) -> list[str]:
    return list(dict.fromkeys(term[:TERM_LIMIT] for term in terms if term))
