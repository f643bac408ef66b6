"""What a text and a question are cut into."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memxd.index.lexical.analyzer import SINGLE_WEIGHT, document_terms, query_terms


def found(query: str, text: str) -> bool:
    return not set(query_terms(query).terms).isdisjoint(document_terms(text)[0])


def whole(query: str, text: str) -> bool:
    """Every term of the question is in the text."""
    terms = query_terms(query).terms
    return bool(terms) and set(terms) <= set(document_terms(text)[0])


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("cafe", "Le café est fermé"),
        ("CAFÉ", "cafe\u0301"),  # composed and decomposed
        ("strasse", "Straße"),
        ("ΑΛΦΑ", "άλφα"),
        ("smorrebrod", "Smørrebrød"),
        ("oeuvre", "œuvre"),
        ("istanbul", "İSTANBUL"),
        ("full width", "ＦＵＬＬ ｗｉｄｔｈ"),
        ("run", "she was running"),
        ("notice periods", "the notice period"),
        ("dont", "I don't know"),
        ("don’t", "I don't know"),
        ("user", "the user's choice"),
        ("O'Brien", "Mr OBrien"),
        ("homme", "l'homme"),
        ("JIRA-4711", "see JIRA-4711."),
        ("4711", "see JIRA-4711."),
        ("jira", "see JIRA-4711."),
        ("GB/s", "at 3 GB/s!"),
        ("v2.3", "since v2.3,"),
        ("2.3", "since v2.3"),
        ("foo_bar.py", "in foo_bar.py:12"),
        ("bar", "in foo_bar.py"),
        ("camelCase", "call camelCase()"),
        ("camel", "call camelCase()"),
        ("server", "HTTPServer"),
        ("a@b.c", "mail a@b.c today"),
        ("github.com", "https://github.com/x/y.py?q=1#top"),
        ("y.py", "https://github.com/x/y.py?q=1#top"),
        ("https://github.com/x/y.py", "see https://github.com/x/y.py."),
        ("C++", "I like C++."),
        ("C#", "and C#, too"),
        ("2024-10-15", "due 2024-10-15"),
        ("2024", "due 2024-10-15"),
        ("1000", "costs 1,000 EUR"),
        ("1,000", "costs 1,000 EUR"),
        ("USA", "in the U.S.A."),
        ("€", "5 €"),
        ("咖啡", "用户喜欢喝咖啡"),
        ("茶", "喝茶"),
        ("東京タワー", "昨日東京タワーに行った"),
        ("りと", "しりとり"),
        ("말잇", "끝말잇기"),
        ("カフェ", "ｶﾌｪ"),  # half width
        ("ไทย", "ภาษาไทย"),
        ("ລາວ", "ພາສາລາວ"),
        ("ភាសា", "ភាសាខ្មែរ"),
        ("မြန်မာ", "မြန်မာဘာသာ"),
        ("iPhone", "用户买了iPhone手机"),
        ("手机", "用户买了iPhone手机"),
        ("हिन्दी", "मेरी हिन्दी अच्छी है"),
        ("привет", "Привет, мир"),
        ("елка", "Ёлка"),  # Russian is mostly printed without the dots
        ("كتاب", "كِتَابٌ"),  # and Arabic and Hebrew without vowel signs
        ("שלום", "שָׁלוֹם"),
        ("🦊", "a 🦊 in the wood"),
        ("👍", "ok 👍🏽"),
        ("👩", "👨\u200d👩\u200d👧"),
        ("❤", "❤\ufe0f"),
        ("🇩🇪", "🇩🇪 wins"),
        ("123", "١٢٣"),
        ("hello", "hel\u200blo"),
    ],
)
def test_the_whole_question_is_in_the_text(query: str, text: str) -> None:
    assert whole(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("и", "й"),  # Cyrillic: another letter, not an accent
        ("і", "ї"),
        ("ы", "и"),
        ("C#", "C++"[1:]),
        ("🇩🇪", "🇫🇷"),
        ("कि", "की"),
        ("咖", "啡"),
    ],
)
def test_different_letters_stay_different(query: str, text: str) -> None:
    assert not found(query, text)


@pytest.mark.parametrize(
    "text", ["", "   ", "\u200b", "\u200b \u00ad", "...", "*", "(", '"', "[", "\\", "^", "~", "\x00"]
)
def test_nothing_to_look_for(text: str) -> None:
    assert len(query_terms(text)) == 0
    assert document_terms(text) == ({}, 0)


@pytest.mark.parametrize(
    "text", ["a:b", "AND", "a AND b OR NOT c", "field:", "~2", "x^2", "(a", 'say "a', "a*", "[a TO b]"]
)
def test_operators_are_text(text: str) -> None:
    assert whole(text, f"before {text} after") or "^" in text


@given(st.text(max_size=60))
def test_any_text_is_found_by_itself(text: str) -> None:
    counts, length = document_terms(text)
    terms = query_terms(text)
    assert set(terms.terms) == set(counts)
    assert list(terms.terms) == sorted(set(terms.terms), key=str.encode)
    assert all(weight > 0 for weight in terms.weights)
    assert (length > 0) == bool(counts)
    assert all(count > 0 for count in counts.values())
    assert not any(char.isspace() for term in counts for char in term)


def test_length_counts_words_and_characters_not_spellings() -> None:
    assert document_terms("the JIRA-4711 ticket")[1] == 4
    assert document_terms("喝咖啡")[1] == 3
    assert document_terms("don't 🦊")[1] == 2


def test_single_characters_of_a_longer_run_count_less() -> None:
    terms = query_terms("咖啡")
    assert dict(zip(terms.terms, terms.weights, strict=True)) == {"咖": SINGLE_WEIGHT, "咖啡": 1.0, "啡": SINGLE_WEIGHT}
    assert query_terms("茶").weights == (1.0,)


def test_frequencies() -> None:
    assert document_terms("to be or not to be")[0] == {"to": 2, "be": 2, "or": 1, "not": 1}
    assert query_terms("to be to").weights == (1.0, 2.0)


def test_endless_words_are_cut_and_still_found() -> None:
    text = "x" * 60_000
    assert all(len(term) <= 128 for term in document_terms(text)[0])
    assert found(text, text)


def test_threads_share_the_analyzer() -> None:
    words = [f"{a}{b}ning{'s' * c}" for a in "abcdef" for b in "uvwxyz" for c in (0, 1)]
    expected = [query_terms(word) for word in words]
    wrong: list[str] = []

    def work() -> None:
        wrong.extend(word for word, terms in zip(words, expected, strict=True) if query_terms(word.upper()) != terms)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
