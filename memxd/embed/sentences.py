"""Where sentences end, in any script.

Owns one rule set, used to cut long texts before embedding; nothing else depends on it. A wrong guess costs a slightly
worse chunk border, never a lost character: the sentences of a text always cover it without gaps.

Ends are: a newline; a full-width or other script's terminal (the CJK, Indic, Arabic, Ethiopic, Khmer, Burmese,
Tibetan... members of Unicode's Sentence_Terminal property) wherever it stands; and ``. ! ? …`` before white space,
unless an abbreviation, an initial or a lower-case continuation shows that the sentence goes on.
"""

from __future__ import annotations

import re

from memxd.embed.base import Span

#: Terminals that need no white space after them.
_HARD = (
    "\u3002\uff0e\uff01\uff1f\uff61\uff1b"  # CJK and half-width kana full stops, full-width ! ? ;
    "\u0964\u0965\u0589\u061d\u061e\u061f\u06d4\u0700\u0701\u0702"  # Devanagari, Armenian, Arabic, Urdu, Syriac
    "\u1362\u1367\u1368\u17d4\u17d5\u104a\u104b\u0f0d\u0f0e"  # Ethiopic, Khmer, Burmese, Tibetan
    "\u1803\u1809\u166e\u1b5a\u1b5b\u1c7e\u1c7f\ua4ff\ua60e\ua60f"  # Mongolian, Cree, Balinese, Ol Chiki, Lisu, Vai
    "\ua92f\uaaf0\uabeb\ua9c8\ua9c9\u0df4\u037e"  # Kayah Li, Meetei Mayek, Javanese, Sinhala, Greek question mark
)
_CLOSERS = "\"'\u2019\u201d\u00bb\u203a)\\]}\u300d\u300f\u3011\u300b\u3009\u3015\uff09\uff3d\uff5d\uff63"
_BREAKS = "\n\r\x0b\x0c\x85\u2028\u2029"
_END = re.compile(
    rf"[{_BREAKS}]+\s*"
    rf"|[{_HARD}]+[{_HARD}.!?\u2026]*[{_CLOSERS}]*\s*"
    rf"|(?P<soft>[.!?\u2026\u203c-\u203d\u2047-\u2049]+)[{_CLOSERS}]*(?:\s+|$)"
)
_ABBREVIATIONS = frozenset(
    {
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "sr",
        "jr",
        "st",
        "vs",
        "dept",
        "approx",
        "inc",
        "ltd",
        "corp",
        "e.g",
        "i.e",
        "cf",
    }
)
#: These only before a number ("No. 5"): alone they may well end a sentence.
_NUMBERED = frozenset({"no", "nos", "fig", "figs", "eq", "vol", "pp", "ed"})
_WORD_BEFORE = 24


def sentences(text: str) -> list[Span]:
    """Consecutive spans that cover ``text`` without gaps, one per sentence; white space belongs to the one before it.

    Empty text: no spans.
    """
    spans: list[Span] = []
    start = 0
    for match in _END.finditer(text):
        if match["soft"] is not None and _goes_on(text, match):
            continue
        spans.append((start, match.end()))
        start = match.end()
    if start < len(text):
        spans.append((start, len(text)))
    return spans


def _goes_on(text: str, match: re.Match[str]) -> bool:
    """Whether a full stop belongs to an abbreviation, or a lower-case word continues the sentence."""
    following = text[match.end() : match.end() + 1]
    if following.islower():
        return True
    if match["soft"] != "." or "\n" in match.group():
        return False
    before = text[max(0, match.start() - _WORD_BEFORE) : match.start()].split()
    word = before[-1].lstrip("(\"'[\u201c") if before else ""
    if word.lower() in _NUMBERED:
        return following.isdecimal()
    return word.lower() in _ABBREVIATIONS or (len(word) == 1 and word.isupper() and word.isascii())
