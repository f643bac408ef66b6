"""Where sentences end, by script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memxd.embed.sentences import sentences


@pytest.mark.parametrize(
    "parts",
    [
        ["He left. ", "She stayed! ", "Why? ", "Nobody knows…"],
        ["他来了。", "她走了！", "为什么？", "「不知道。」", "好"],
        ["彼は行った。", "なぜ？", "知らない"],
        ["यह सच है। ", "क्या? ", "हाँ"],
        ["هل هذا صحيح؟ ", "نعم"],
        ["ሰላም። ", "ደህና"],
        ["សួស្តី។ ", "បាទ"],
        ["First line\n", "second line\r\n", "third"],
        ['He said "no." ', "Then he went."],
        ["Dr. Smith met Mr. J. Doe. ", "They talked."],
        ["It is No. 5 of ten. ", "Is it? ", "No. ", "Good."],
        ["Version 3.5 costs 1.50 now. ", "Good."],
        ["See e.g. the notes. ", "Done."],
        ["Wait... what is it? ", "Nothing."],
    ],
)
def test_ends(parts: list[str]) -> None:
    text = "".join(parts)
    assert [text[a:b] for a, b in sentences(text)] == parts


@given(st.text(max_size=200))
def test_cover_without_gaps(text: str) -> None:
    spans = sentences(text)
    assert "".join(text[a:b] for a, b in spans) == text
    assert all(a < b for a, b in spans)
