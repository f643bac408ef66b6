"""What counts as text, and what the indexes may see of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memxd.engine.content import is_blank, public_text, trim


@pytest.mark.parametrize(
    "text", ["", "   ", "\u200b", "\ufeff\u2060", "\n\t\r", "\u3000", "\u3164", "\u0301", "\x00\x1f", "\u2800"]
)
def test_invisible_text_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["a", "é", "咖", "🦊", "👩\u200d🚀", "(", "-", "0", "\u200ba"])
def test_visible_text_is_not_blank(text: str) -> None:
    assert not is_blank(text)


def test_trim_composes_and_strips_the_outside_only() -> None:
    assert trim("\u200b  cafe\u0301 au  lait \ufeff\n") == "café au  lait"


def test_trim_leaves_an_emoji_sequence_whole() -> None:
    assert trim(" ❤\ufe0f ") == "❤\ufe0f"


@given(st.text())
def test_trim_is_idempotent(text: str) -> None:
    assert trim(trim(text)) == trim(text)


def test_private_spans_are_blanked_at_the_same_offsets() -> None:
    content = "The code is <private>4711</private>, the door is green."
    public = public_text(content)
    assert len(public) == len(content)
    assert "4711" not in public
    assert public.index("door") == content.index("door")


def test_an_unclosed_private_span_hides_the_rest() -> None:
    assert public_text("open <PRIVATE>secret to the end").strip() == "open"


def test_text_without_spans_is_the_same_object() -> None:
    content = "a < b and nothing to hide"
    assert public_text(content) == content


def test_nested_private_spans_hide_everything_inside_the_outer_one() -> None:
    assert public_text("a <private>b<private>c</private>SECRET</private> d").split() == ["a", "d"]


def test_a_closing_tag_alone_hides_nothing() -> None:
    assert public_text("a </private> b") == "a </private> b"


@pytest.mark.parametrize(
    "opening",
    [
        "<private>",
        "<PRIVATE >",
        "< private>",
        '<private reason="x">',
        "<private/>",
        "\uff1cprivate\uff1e",
        "<priv\u200bate>",
    ],
)
def test_careless_spellings_of_the_tag_hide_as_well(opening: str) -> None:
    content = f"before {opening}secret</private> after"
    public = public_text(content)
    assert public.split() == ["before", "after"]
    assert len(public) == len(content)


@pytest.mark.parametrize("text", ["<privateer> sails", "a <private", "if a < private_key > b", "<privately>"])
def test_other_words_are_no_tags(text: str) -> None:
    assert public_text(text) == text
