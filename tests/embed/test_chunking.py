"""Chunks cover the whole text, fit the window, and end where sentences end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memxd.embed.chunking import ChunkRule, split_text
from memxd.embed.sentences import sentences

RULE = ChunkRule.for_window(500)


def _words(texts: Sequence[str]) -> list[int]:
    """A stand-in tokenizer: a word or one wide character is a token."""
    return [len(re.findall(r"[\u3000-\uffff]|[^\s\u3000-\uffff]+", text)) for text in texts]


def _assert_covers(text: str, spans: list[tuple[int, int]]) -> None:
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    for (a, b), (c, d) in pairwise(spans):
        assert a < c <= b < d


_SHORT = ["Anna likes tea. ", "She moved to Bern in 2019! ", "他喜欢喝咖啡。", "なぜですか？", "कहाँ है। ", "هل هذا؟ "]
_ODD = ["\n", "\n\n", "   ", "\u200b", "👩\u200d👩\u200d👧", "Dr. Smith, i.e. him, "]
_LONG = ["word " * 30, "x" * 700, "字" * 300, "e\u0301" * 50]
_PIECES = st.sampled_from([*_SHORT, *_ODD, *_LONG])


@settings(max_examples=60, deadline=None)
@given(st.lists(_PIECES, max_size=60).map("".join))
def test_chunks_cover_the_text_and_fit_the_window(text: str) -> None:
    spans = split_text(text, _words, RULE)
    if not text:
        assert spans == []
        return
    _assert_covers(text, spans)
    assert max(_words([text[a:b] for a, b in spans])) <= 500


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=400), st.integers(8, 40))
def test_any_text_is_covered_by_any_window(text: str, window: int) -> None:
    def characters(texts: Sequence[str]) -> list[int]:
        return [len(t) for t in texts]

    spans = split_text(text, characters, ChunkRule.for_window(window))
    if text:
        _assert_covers(text, spans)
        assert max(b - a for a, b in spans) <= window


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["Anna likes tea. ", "他喜欢喝咖啡。", "なぜですか？", "It rained.\n"]), min_size=60))
def test_every_chunk_starts_and_ends_at_a_sentence_when_sentences_are_short(parts: list[str]) -> None:
    text = "".join(parts)
    starts = {a for a, _ in sentences(text)}
    for a, b in split_text(text, _words, RULE):
        assert a in starts
        assert b == len(text) or b in starts


def test_neighbours_share_one_short_sentence() -> None:
    text = "".join(f"This is the sentence that carries number {i}. " for i in range(100))
    spans = split_text(text, _words, RULE)
    assert len(spans) > 2
    for (_, end), (start, _) in pairwise(spans):
        assert text[start:end].count("sentence") == 1


def test_a_short_text_stays_whole() -> None:
    assert split_text("Anna likes tea. She moved to Bern.", _words, RULE) == [(0, 34)]


def test_the_last_line_of_the_longest_text_is_covered() -> None:
    text = ("The meeting was about nothing in particular. " * 2000)[:65_500] + "\nThe door code is 4711."
    spans = split_text(text, _words, RULE)
    assert "The door code is 4711." in text[slice(*spans[-1])]
    _assert_covers(text, spans)


@pytest.mark.parametrize("filler", ["x" * 65_536, "字" * 65_536, "\u200b" * 65_536, "a " * 32_768, "e\u0301" * 30_000])
def test_text_without_sentence_ends_is_cut_hard(filler: str) -> None:
    def characters(texts: Sequence[str]) -> list[int]:
        return [len(t.strip("\u200b ")) for t in texts]

    spans = split_text(filler, characters, RULE)
    _assert_covers(filler, spans)
    assert max(characters([filler[a:b] for a, b in spans])) <= 500


def test_a_hard_cut_prefers_commas_and_spaces_and_keeps_letters_whole() -> None:
    words = " ".join(["lorem"] * 2000)
    for _, b in split_text(words, lambda ts: [len(t) for t in ts], RULE)[:-1]:
        assert words[b - 1] == " "
    marked = "e\u0301" * 2000
    for a, _ in split_text(marked, lambda ts: [len(t) for t in ts], RULE):
        assert marked[a] == "e"
