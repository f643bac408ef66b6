"""Text -> index terms: the one analyzer of the keyword leg, for texts and questions alike.

Owns how a text is cut into tokens, the length of a document and the weights of a question's terms. Every text is
literal: there are no operators, and any input gives terms or none, never an error. Changing what comes out changes
``ANALYZER_VERSION``, which is part of the index's stamp: an index of another version is built anew. The engine calls
``query_terms``; the index calls ``document_terms``.

Length of a document, in positions: one for each smallest word, each character (base with marks) of a script without
spaces, each emoji or symbol. Wholes of identifiers, bigrams and other spellings are further terms at the same place
and do not count.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version

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
from memxd.index.lexical.hits import QueryTerms
from memxd.index.lexical.tokens import WORD, run_terms, word_terms

__all__ = ["ANALYZER_VERSION", "document_terms", "query_terms"]

#: In the index's stamp; with the versions of what decides what a letter and a stem is.
ANALYZER_VERSION = f"2/unicode-{unicodedata.unidata_version}/snowball-{version('snowballstemmer')}"
#: What a single character of a longer run counts in a question: enough to find a text of one character, too little
#: to outvote the bigrams.
SINGLE_WEIGHT = 0.25

# A word token: words joined by inner signs (at most three in a row, as in ://), C++ and C#; a comma only in 1,000.
_INNER = r"(?:[-._/:?=&@#+'~%\\|]{1,3}|(?<=\d),(?=\d{3}(?!\d)))"
_TOKEN = re.compile(
    f"(?P<word>[{WORD}]+(?:{_INNER}[{WORD}]+)*(?:\\+\\+|#)?)"
    f"|(?P<run>[{HAN_KANA}]+|[{HANGUL}]+|[{THAI}]+|[{LAO}]+|[{MYANMAR}]+|[{KHMER}]+)"
    f"|(?P<sign>[{FLAG_LETTER}]{{2}}|[{EMOJI}]|[^\\s\\x00-\\x7f])"
)
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\uff07\u0060\u00b4\u2032", "'"))
_IGNORED = re.compile(f"[{IGNORED}]+")
_CACHED_LENGTH = 48
_CACHE_SIZE = 100_000
_cache: dict[str, tuple[tuple[str, ...], int]] = {}


def document_terms(text: str) -> tuple[dict[str, int], int]:
    """(term -> frequency, length in positions) of a text to be indexed."""
    counts: Counter[str] = Counter()
    length = 0
    for kind, token in _tokens(text):
        if kind == "word":
            terms, positions = _word(token)
            counts.update(terms)
        elif kind == "run":
            bigrams, singles, positions = run_terms(token)
            counts.update(bigrams)
            counts.update(singles)
        else:
            counts[token] += 1
            positions = 1
        length += positions
    return dict(counts), length


def query_terms(text: str) -> QueryTerms:
    """What to look for, unique and in the order of the terms' bytes; empty for a text without words."""
    weights: dict[str, float] = {}
    for kind, token in _tokens(text):
        if kind == "word":
            found = [(term, 1.0) for term in _word(token)[0]]
        elif kind == "run":
            bigrams, singles, _ = run_terms(token)
            found = [(term, 1.0) for term in bigrams]
            found += [(term, SINGLE_WEIGHT if bigrams else 1.0) for term in singles]
        else:
            found = [(token, 1.0)]
        for term, weight in found:
            weights[term] = weights.get(term, 0.0) + weight
    ordered = sorted(weights, key=str.encode)
    return QueryTerms(tuple(ordered), tuple(weights[term] for term in ordered))


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """(kind, token) in order; kinds are the groups of the pattern."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()  # lone surrogates become question marks
        text = unicodedata.normalize("NFKC", _IGNORED.sub("", text)).translate(_APOSTROPHES)
    else:
        text = text.replace("`", "'")
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup or "", match[0]
        if kind != "sign" or len(token) == 2 or is_symbol(token):
            yield kind, token


def _word(token: str) -> tuple[tuple[str, ...], int]:
    """``word_terms`` with a cache: most words of a text were met before."""
    known = _cache.get(token)
    if known is None:
        terms, positions = word_terms(token)
        known = tuple(terms), positions
        if len(token) <= _CACHED_LENGTH:
            if len(_cache) >= _CACHE_SIZE:
                _cache.clear()
            _cache[token] = known
    return known
