"""When two texts count as the same.

Owns ``content_hash`` (equal text) and ``fold_text``, ``fold_hash`` (equal but for case, punctuation, spacing: adaptive
deduplication). Called by the store when it writes a row, and by the engine's backfill. Hashes are kept in the database:
a change of the rules here needs a migration that computes them anew. Imports only the standard library; tokens and
stems are the keyword index's affair.
"""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b

#: Punctuation that distinguishes facts ("5 %", "C#", "a & b") and is kept.
_TELLING = frozenset("%#&@*")
#: Dropped without leaving a gap, so that "don't" equals "dont" and an emoji equals itself with a variation selector.
_APOSTROPHES = frozenset("'\u2019\u2018\u02bc`\u00b4")
#: Where the kept copy of a number's own punctuation is parked while the rest is dropped (plane 15, private use).
_PARKED = 0xF0000
# Each pattern begins with what it looks for, since a search that begins with a look behind tries every character.
_IN_NUMBER = re.compile(r"[^\w\s](?=\d)(?:(?<=\d.)|(?<=[-\u2212])(?<![^\s(\[].))", re.DOTALL)
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_NEEDLESS_GAP = re.compile(f" (?:(?<=[{_UNSPACED}] )|(?=[{_UNSPACED}]))")
#: Raised or lowered figures and fractions become ordinary digits under NFKC and would melt into the number before.
_MARKS = {"<super>": "^", "<sub>": "_", "<fraction>": " "}


class _Fold(dict[int, str | None]):
    """Translation table that learns each character's class when it first meets it."""

    def __missing__(self, code: int) -> str | None:
        char = chr(code)
        category = unicodedata.category(char)
        if char in _APOSTROPHES or category == "Cf" or 0xFE00 <= code <= 0xFE0F:
            folded: str | None = None
        elif (category[0] in "PZ" and char not in _TELLING) or category == "Cc":
            folded = " "
        else:
            folded = char
        if len(self) < 10_000:
            self[code] = folded
        return folded


_FOLD = _Fold()
#: The same for ASCII as bytes, which are translated many times as fast.
_ASCII_FOLD = bytes(ord(_FOLD[code] or " ") for code in range(128)).ljust(256)
_ASCII_DROPPED = bytes(code for code in range(128) if _FOLD[code] is None)
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
_LETTER = re.compile(r"[^\W\d_]")


def _marked(text: str) -> str:
    parts = [_MARKS.get(unicodedata.decomposition(c).partition(" ")[0], "") + c if not c.isascii() else c for c in text]
    return "".join(parts)


def _park(match: re.Match[str]) -> str:
    code = ord(match.group())
    return chr(_PARKED + (0x2D if code == 0x2212 else code & 0xFFFF))


def _without_punctuation(text: str) -> str:
    """Piece by piece between the parked ones, because ASCII is translated many times as fast."""
    pieces: list[str] = []
    at = 0
    for match in _IN_NUMBER.finditer(text):
        pieces += _translated(text[at : match.start()]), _park(match)
        at = match.end()
    pieces.append(_translated(text[at:]))
    return "".join(pieces)


def _translated(piece: str) -> str:
    if piece.isascii():
        return piece.encode().translate(_ASCII_FOLD, _ASCII_DROPPED).decode()
    return piece.translate(_FOLD)


def fold_text(text: str) -> str:
    """``text`` without what does not change its meaning: NFKC, case, punctuation, spacing, variation selectors.

    Letters and symbols stay, so do numbers with the punctuation and gaps inside them and their sign ("1.5", "15",
    "1 5", "-5" all differ), and so do gaps between words ("not able" is not "notable"), except next to scripts that are
    written without spaces. A text of nothing but punctuation is returned as it is.
    """
    folded = text.lower() if text.isascii() else unicodedata.normalize("NFKC", _marked(text)).casefold()
    folded = " ".join(_without_punctuation(folded).split())
    if not folded.isascii():
        folded = _NEEDLESS_GAP.sub("", folded)
    return folded or text


def content_hash(text: str) -> int:
    """Unsigned 64-bit BLAKE2b of the UTF-8 of ``text``, which is NFC and trimmed already."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def fold_hash(text: str) -> int:
    """Unsigned 64-bit BLAKE2b of ``fold_text(text)``."""
    return content_hash(fold_text(text))


def cjk_share(text: str) -> int:
    """How much of a text is Chinese characters, kana or hangul: 0 = none, 1 = some, 2 = most of it.

    Its first 2,000 characters tell; one such character says about as much as two letters of an alphabet. Cosines of one
    embedding model lie at different heights for two texts of one script, of the other, and of both
    (``engine/relevance.py``).
    """
    head = text[:2_000]
    if head.isascii():
        return 0
    dense = len(_CJK.findall(head))
    if not dense:
        return 0
    letters = len(_LETTER.findall(head)) - dense
    return 2 if 2 * dense >= letters else 1
