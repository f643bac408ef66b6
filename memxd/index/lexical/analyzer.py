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

import unicodedata

import Stemmer

from memxd._fast import load_kernels
from memxd.index.lexical.classes import table
from memxd.index.lexical.hits import QueryTerms
from memxd.index.lexical.tokens import run_terms, word_terms

__all__ = ["ANALYZER_VERSION", "document_terms", "query_terms"]

#: In the index's stamp; with the versions of what decides what a letter and a stem is.
ANALYZER_VERSION = f"2/unicode-{unicodedata.unidata_version}/snowball-{Stemmer.version()}"
#: What a single character of a longer run counts in a question: enough to find a text of one character, too little
#: to outvote the bigrams.
SINGLE_WEIGHT = 0.25

#: Whichever kernels the daemon was told to use: these two answer the same, and a child process is told nothing.
_kernel = load_kernels().text
_CLASSES = table()
_APOSTROPHES = "\u2018\u2019\u02bc\uff07\u0060\u00b4\u2032"
_CACHED_LENGTH = 48
#: Two generations of so many words: when one is full the older goes, so that frequent words are never all forgotten.
_CACHE_SIZE = 40_000
_cache: dict[str, tuple[tuple[str, ...], int]] = {}
_older: dict[str, tuple[tuple[str, ...], int]] = {}


def document_terms(text: str) -> tuple[dict[str, int], int]:
    """(term -> frequency, length in positions) of a text to be indexed."""
    return _kernel.count_terms(_normal(text), _CLASSES, _cache, _word, run_terms)


def query_terms(text: str) -> QueryTerms:
    """What to look for, unique and in the order of the terms' bytes; empty for a text without words."""
    weights = _kernel.weigh_terms(_normal(text), _CLASSES, _cache, _word, run_terms, SINGLE_WEIGHT)
    ordered = sorted(weights)  # by code points, which is the order of their bytes
    return QueryTerms(tuple(ordered), tuple([weights[term] for term in ordered]))


def _normal(text: str) -> str:
    """NFKC, apostrophes straight, without what is nothing by itself."""
    if text.isascii():
        return text.replace("`", "'")
    text = text.encode("utf-8", "replace").decode()  # lone surrogates become question marks
    text = unicodedata.normalize("NFKC", _kernel.without_ignored(text, _CLASSES))
    for sign in _APOSTROPHES:
        text = text.replace(sign, "'")
    return text


def _word(token: str) -> tuple[tuple[str, ...], int]:
    """``word_terms`` for a word that is not in the cache, which then holds it: most words were met before."""
    global _cache, _older
    known = _older.get(token)
    if known is None:
        terms, positions = word_terms(token)
        known = tuple(terms), positions
    if len(token) <= _CACHED_LENGTH:
        if len(_cache) >= _CACHE_SIZE:
            _older, _cache = _cache, {}
        _cache[token] = known
    return known
