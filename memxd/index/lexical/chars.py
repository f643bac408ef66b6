"""What kind of character is it: script, folding and the classes the analyzer's patterns are made of.

Owns the tables of scripts written without spaces, of emoji and of characters that are nothing by themselves, and the
folding of case and accents. Pure functions over the Unicode data of the interpreter; used by ``tokens`` and
``analyzer`` only.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right

import numpy as np
import numpy.typing as npt

#: Han, kana and bopomofo: Chinese and Japanese mix them inside a word, so they form one run.
HAN_KANA = (
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff"
#: Scripts without spaces whose vowels and tones are marks on a base: a unit is a base with its marks.
THAI, LAO, MYANMAR, KHMER = (
    "\u0e01-\u0e3a\u0e40-\u0e4e",
    "\u0e81-\u0ebd\u0ec0-\u0ece\u0edc-\u0edf",
    "\u1000-\u103f\u1050-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f",
    "\u1780-\u17dd",
)
#: Emoji that mean something alone. Skin tones, variation selectors, joiners and tags are not among them.
EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
)
FLAG_LETTER = "\U0001f1e6-\U0001f1ff"
#: Removed before anything else: soft hyphen, joiners, marks of direction, variation selectors, skin tones, tags.
IGNORED = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20e3\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff9-\ufffb\U0001f3fb-\U0001f3ff\U000e0000-\U000e0fff"
)

#: Categories of signs that stand for something.
SYMBOLS = ("Sc", "Sm", "So")
#: Symbols, digits and words are made of code points below it; among the ideographs beyond there are none.
ASSIGNED = 0x20000

# First code points of alphabets that never mix within a word; what lies between belongs to the block before it.
_ALPHABETS = (
    (0x0000, "latin"), (0x0370, "greek"), (0x0400, "cyrillic"), (0x0530, "armenian"), (0x0590, "hebrew"),
    (0x0600, "arabic"), (0x0700, "syriac"), (0x0750, "arabic"), (0x0780, "thaana"), (0x07C0, "nko"),
    (0x0800, "samaritan"), (0x0840, "mandaic"), (0x0860, "syriac"), (0x0870, "arabic"), (0x0900, "devanagari"),
    (0x0980, "bengali"), (0x0A00, "gurmukhi"), (0x0A80, "gujarati"), (0x0B00, "oriya"), (0x0B80, "tamil"),
    (0x0C00, "telugu"), (0x0C80, "kannada"), (0x0D00, "malayalam"), (0x0D80, "sinhala"), (0x0E00, "thai"),
    (0x0E80, "lao"), (0x0F00, "tibetan"), (0x1000, "myanmar"), (0x10A0, "georgian"), (0x1100, "hangul"),
    (0x1200, "ethiopic"), (0x13A0, "cherokee"), (0x1400, "other"), (0x1780, "khmer"), (0x1800, "mongolian"),
    (0x18B0, "other"), (0x1C80, "cyrillic"), (0x1C90, "georgian"), (0x1CC0, "other"), (0x1D00, "latin"),
    (0x1D26, "greek"), (0x1D2B, "cyrillic"), (0x1D2C, "latin"), (0x1F00, "greek"), (0x2000, "latin"),
    (0x2C00, "glagolitic"), (0x2C60, "latin"), (0x2C80, "coptic"), (0x2D00, "georgian"), (0x2D30, "tifinagh"),
    (0x2D80, "ethiopic"), (0x2DE0, "cyrillic"), (0x2E00, "other"), (0xA640, "cyrillic"), (0xA6A0, "other"),
    (0xA720, "latin"), (0xA800, "other"), (0xA8E0, "devanagari"), (0xA900, "other"), (0xAB30, "latin"),
    (0xAB70, "cherokee"), (0xABC0, "other"), (0xFB00, "latin"), (0xFB13, "armenian"), (0xFB1D, "hebrew"),
    (0xFB50, "arabic"), (0xFE00, "other"), (0xFE70, "arabic"), (0xFF00, "latin"), (0x10000, "other"),
)  # fmt: skip
_STARTS = [start for start, _ in _ALPHABETS]
_NAMES = [name for _, name in _ALPHABETS]

#: Letters with a stroke and ligatures, which have no decomposition but are written without it on other keyboards.
_PLAIN = str.maketrans({
    "ø": "o", "đ": "d", "ð": "d", "ł": "l", "ħ": "h", "ı": "i", "ŧ": "t", "æ": "ae", "œ": "oe", "þ": "th",
    "ŋ": "n", "ƀ": "b", "ɨ": "i", "ʉ": "u", "ɍ": "r", "ȼ": "c", "ɇ": "e", "ɉ": "j", "ɏ": "y", "ƶ": "z",
})  # fmt: skip


def alphabet(char: str) -> str:
    """Name of the alphabet a letter belongs to, for example "latin" or "cyrillic"."""
    return _NAMES[bisect_right(_STARTS, ord(char)) - 1]


#: Marks that a reader may leave out without writing another letter, by alphabet: accents of Latin and Greek, Hebrew
#: points, Arabic vowel signs (and the lengthening stroke, which is no mark to Unicode).
_OPTIONAL = {
    "latin": re.compile(r"."),
    "greek": re.compile(r"."),
    "hebrew": re.compile("[\u0591-\u05c7]"),
    "arabic": re.compile("[\u0610-\u061a\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06ed]"),
}
#: The same for single letters: Russian ё, which is mostly printed as е, and the hamza on an Arabic alef.
_OPTIONAL_ON = {"\u0435": "\u0308", "\u0627": "\u0653\u0654\u0655"}
_TATWEEL = "\u0640"


def fold(text: str) -> str:
    """Case folded, digits as 0-9, without the marks that are often left out.

    Elsewhere a mark makes another letter and stays (й is not и).
    """
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFD", text.casefold())
    kept: list[str] = []
    base, optional = "", None
    for char in folded:
        if unicodedata.combining(char):
            if not (optional and optional.match(char)) and char not in _OPTIONAL_ON.get(base, ""):
                kept.append(char)
        elif char != _TATWEEL:
            base, optional = char, _OPTIONAL.get(alphabet(char)) if char.isalpha() else None
            kept.append(str(unicodedata.decimal(char)) if char.isdecimal() else char)
    return unicodedata.normalize("NFKC", "".join(kept)).translate(_PLAIN).replace("ς", "σ")


def is_symbol(char: str) -> bool:
    """A sign that stands for something (€, ∑, →), other than punctuation."""
    return unicodedata.category(char) in SYMBOLS


def spans(inside: str) -> list[tuple[int, int]]:
    """The half-open ranges of code points that the inside of a character class names."""
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(inside):
        wide = inside[at + 1 : at + 2] == "-"
        last = inside[at + 2] if wide else inside[at]
        found.append((ord(inside[at]), ord(last) + 1))
        at += 3 if wide else 1
    return found


def categories() -> npt.NDArray[np.bytes_]:
    """The category of each code point below 0x20000, S2[131072], but "Lo" for all Han, kana and hangul, none of which
    is a digit, a mark or a symbol that counts: asking for each code point is what takes the time here."""
    asked = np.ones(ASSIGNED, np.bool_)
    for start, stop in spans(HAN_KANA + HANGUL):
        asked[start:stop] = False
    found = np.full(ASSIGNED, b"Lo", "S2")
    chars = np.flatnonzero(asked).astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    found[asked] = np.frombuffer("".join(map(unicodedata.category, chars)).encode(), "S2")
    return found


def word_class(found: npt.NDArray[np.bytes_]) -> tuple[str, str]:
    """(letters, digits and marks of scripts with spaces; combining marks) as insides of character classes; ``found``:
    the ``categories``.

    ``\\w`` does not serve: it leaves combining marks out, which cuts Indic words apart, and takes Han and kana in.
    """
    kinds = found.astype("S1")
    kinds[:0x30] = kinds[0xD800:0xF900] = b""  # no letters, surrogates, for private use
    combining = kinds == b"M"
    words = combining | (kinds == b"L") | (kinds == b"N")
    for start, stop in spans(HAN_KANA + HANGUL + THAI + LAO + MYANMAR + KHMER + EMOJI + FLAG_LETTER):
        words[start:stop] = False
    return "_" + _ranges(words), _ranges(combining)


def _ranges(inside: npt.NDArray[np.bool_]) -> str:
    edges = np.flatnonzero(np.diff(inside, prepend=False, append=False)).tolist()
    return "".join(f"{chr(low)}-{chr(high - 1)}" for low, high in zip(edges[::2], edges[1::2], strict=True))
