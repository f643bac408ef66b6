"""The SentencePiece model file of a vocabulary, and the text normaliser that goes in front of it.

Owns both halves of one agreement: the file says "identity normalisation, add a leading space", because ``normalise``
does the rest in Python the way XLM-RoBERTa's tokenizer does (NFKC, controls dropped, every odd space a plain one).
Called by ``convert`` (file) and ``tokenizer`` (normaliser). Field numbers: sentencepiece_model.proto.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from memxd.embed.wire import bytes_field, float_field, int_field, text_field

_NORMAL, _UNKNOWN, _CONTROL = 1, 2, 3
_UNIGRAM = 1

_DROPPED = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]")
#: Lone surrogates cannot be encoded; they count as a space like U+FFFD does.
_SPACES = re.compile("[\t\n\x0c\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd\ud800-\udfff]")
_RUNS = re.compile(" {2,}")
#: The vocabulary keeps this one, NFKC would turn it into a plain tilde.
_WAVE, _WAVE_AWAY = "\uff5e", "\ue0ff"


def normalise(text: str) -> str:
    """The text as the vocabulary expects it: NFKC, single spaces, none at the ends, no control characters."""
    text = _SPACES.sub(" ", _DROPPED.sub("", text))
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.replace(_WAVE, _WAVE_AWAY)).replace(_WAVE_AWAY, _WAVE)
    return _RUNS.sub(" ", text).strip(" ")


def sentencepiece_model(
    pieces: Sequence[str], scores: Iterable[float], *, unk: int, bos: int, eos: int, pad: int, control: Iterable[int]
) -> bytes:
    """A unigram ModelProto. ``control`` are further ids that no text may produce (a literal "<mask>" stays text)."""
    kinds = dict.fromkeys((bos, eos, pad, *control), _CONTROL)
    kinds[unk] = _UNKNOWN
    out = [
        bytes_field(1, _piece(piece, score, kinds.get(number, _NORMAL)))
        for number, (piece, score) in enumerate(zip(pieces, scores, strict=True))
    ]
    trainer = int_field(3, _UNIGRAM) + int_field(40, unk) + int_field(41, bos) + int_field(42, eos) + int_field(43, pad)
    # name, precompiled map, add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces
    normaliser = text_field(1, "identity") + bytes_field(2, b"") + int_field(3, 1) + int_field(4, 0) + int_field(5, 1)
    return b"".join(out) + bytes_field(2, trainer) + bytes_field(3, normaliser)


def _piece(piece: str, score: float, kind: int) -> bytes:
    body = text_field(1, piece) + float_field(2, score)
    return body if kind == _NORMAL else body + int_field(3, kind)
