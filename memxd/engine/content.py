"""What a memory's text may be, and which part of it the indexes may see.

Owns the rules for content: Unicode form, trimming, invisible characters, ``<private>`` spans. Does not hash or split
(text.py and the embedder do). Called by validate.py and by the verbs that index text.
"""

from __future__ import annotations

import re
import unicodedata

_UNSEEN = "[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]*"
#: Around text that is stored and shown but neither embedded nor indexed. Read generously, because what a careless or
#: full-width spelling hides must stay hidden: spaces, attributes, a slash at the end, unseen characters in between.
_PRIVATE_TAG = re.compile(
    rf"[<\uff1c]\s*{_UNSEEN}(?P<close>[/\uff0f]?)\s*{_UNSEEN}{_UNSEEN.join('private')}{_UNSEEN}(?:[\s/\uff0f][^<>\uff1c\uff1e]*)?[>\uff1e]",
    re.IGNORECASE,
)

#: Unicode categories that print nothing by themselves.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp", "Mn", "Me"})

#: Letters and symbols by category but blank on every screen: the Hangul fillers and the blank Braille cell.
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")


def is_blank(text: str) -> bool:
    """True when nothing in ``text`` can be seen: white space, controls, zero-width characters, lone marks."""
    first = text[:1]
    if first.isascii() and first.isalnum():  # most texts
        return False
    return all(c in _BLANK_LETTERS or unicodedata.category(c) in _INVISIBLE for c in text)


def trim(text: str) -> str:
    """``text`` in NFC without white space, controls and zero-width characters at either end.

    Variation selectors, joiners and marks at the end belong to the character before them and stay.
    """
    text = unicodedata.normalize("NFC", text)
    start, end = 0, len(text)
    while start < end and _is_outer(text[start]):
        start += 1
    while end > start and _is_outer(text[end - 1]):
        end -= 1
    return text[start:end]


def _is_outer(char: str) -> bool:
    if char.isalnum() or char == ".":  # most texts begin and end so
        return False
    return char.isspace() or char in "\u200b\u2060\ufeff" or unicodedata.category(char) == "Cc"


def public_text(content: str) -> str:
    """``content`` with every private span blanked out by spaces, so that character offsets stay true.

    Spans nest, and an unclosed one runs to the end of the text: whoever forgets a closing tag has too much hidden
    rather than too little.
    """
    if "<" not in content and "\uff1c" not in content:
        return content
    shown: list[str] = []
    depth = at = 0
    for tag in _PRIVATE_TAG.finditer(content):
        piece = content[at : tag.start()]
        shown.append(" " * len(piece) if depth else piece)
        if tag["close"] and depth == 0:
            shown.append(tag[0])  # closes nothing: it is text like any other
        else:
            depth += -1 if tag["close"] else 1
            shown.append(" " * len(tag[0]))
        at = tag.end()
    rest = content[at:]
    shown.append(" " * len(rest) if depth else rest)
    return "".join(shown)
