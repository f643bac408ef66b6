"""The hand-written SentencePiece file and the normaliser in front of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memxd.embed.e5_file import E5File
from memxd.embed.sentencepiece_model import normalise, sentencepiece_model
from memxd.embed.tokenizer import SentencePieceTokenizer, open_tokenizer
from memxd.errors import ModelFileError


@pytest.fixture
def tokenizer(tiny_e5: Path, tmp_path: Path) -> SentencePieceTokenizer:
    path = tmp_path / "sentencepiece.model"
    with E5File(tiny_e5) as model:
        path.write_bytes(
            sentencepiece_model(model.pieces(), model.scores().tolist(), unk=3, bos=0, eos=2, pad=1, control=[10])
        )
    return SentencePieceTokenizer(path)


def test_pieces_keep_their_ids(tokenizer: SentencePieceTokenizer) -> None:
    assert tokenizer.encode("ab b") == [5, 8]
    assert tokenizer.encode("") == []
    assert tokenizer.wrap([5]) == [0, 5, 2]
    assert tokenizer.count(["ab b", ""]) == [2, 0]


def test_text_cannot_produce_control_pieces(tokenizer: SentencePieceTokenizer) -> None:
    for text in ("<s>", "</s>", "<mask>", "<pad>"):
        assert not {0, 1, 2, 10} & set(tokenizer.encode(text))


def test_composed_and_decomposed_letters_are_one(tokenizer: SentencePieceTokenizer) -> None:
    assert tokenizer.encode("ä") == tokenizer.encode("a\u0308")
    assert 9 in tokenizer.encode("ä")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  a \t\n b  ", "a b"),
        ("a\u200bb\ufeffc\u2581d", "a b c d"),
        ("a\x00b\x07c", "abc"),
        ("\uff21\uff11", "A1"),
        ("10\uff5e20", "10\uff5e20"),
        ("\ud800x", "x"),
        ("", ""),
    ],
)
def test_normalises_like_the_vocabulary_expects(text: str, expected: str) -> None:
    assert normalise(text) == expected


@given(st.text(st.characters(), max_size=60))
def test_normalised_text_can_be_encoded_and_has_single_spaces(text: str) -> None:
    out = normalise(text)
    out.encode()
    assert "  " not in out
    assert out == out.strip(" ")


def test_a_damaged_or_missing_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="no tokenizer"):
        open_tokenizer(tmp_path)
    (tmp_path / "sentencepiece.model").write_bytes(b"\xff\xff damaged")
    with pytest.raises(ModelFileError, match="cannot read the tokenizer"):
        open_tokenizer(tmp_path)
