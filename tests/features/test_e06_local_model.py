"""FEATURES E6 and E2: the local model, 384 dimensions, no key and no silent cut of long texts or questions."""

from __future__ import annotations

import pytest

from featurekit import ask, contents, ids, why
from memxd.client import Client, rank

pytestmark = pytest.mark.model


def test_e6_the_default_model_is_local_and_told_in_status(real: Client) -> None:
    """E6: onnxruntime, bundled, 384 dimensions, nothing leaves the machine, window told."""
    model = real.status().engine.model
    assert (model.backend, model.dimension, model.remote, model.available) == ("onnx", 384, False, True)
    assert model.id.startswith("multilingual-e5-small")
    assert model.variant in ("i8", "q4")
    assert model.window_tokens == 512


def test_e6_meaning_without_a_common_word_and_across_languages(real: Client) -> None:
    """E6: found by meaning: no word in common, and another language."""
    for text in (
        "Joris repairs bicycles in his garage.",
        "我对青霉素过敏。",
        "The concert hall in Utrecht seats nine hundred people.",
    ):
        real.store(text)
    for question, expected in (
        ("Who mends bikes?", "Joris repairs bicycles in his garage."),
        ("I must not take penicillin", "我对青霉素过敏。"),
    ):
        assert contents(ask(real, question, mode="vector", ranking=rank(reject=False)))[0] == expected


@pytest.mark.timeout(300)
def test_e6_a_fact_in_the_last_line_of_a_long_text_is_found(real: Client) -> None:
    """E6, E2, better: no 512-token cut without a word: the last line of 20,000 characters is found by meaning."""
    filler = "The minutes of the meeting record that the committee discussed the ordinary business of the month. "
    long = (filler * 210)[:20_000] + " Zoë is allergic to penicillin."
    id = real.store(long).memory.id
    real.store(filler)
    answer = ask(real, "Which medicine must Zoë not be given?", mode="vector")
    assert ids(answer)[0] == id
    chunk = why(answer.hits[0]).chunk
    assert chunk is not None
    assert chunk >= 5


def test_e6_a_question_beyond_the_window_is_not_cut(real: Client) -> None:
    """SEMANTICS Rejection: questions beyond the model's window are windowed: what stands last still counts."""
    id = real.store("Zoë is allergic to penicillin.").memory.id
    real.store("The minutes record the ordinary business of the month.")
    lead = "委员会讨论了本月的日常事务。" * 120  # over a thousand tokens
    about, other = "Which medicine is Zoë allergic to? " * 8, "How far away is the moon from here? " * 8

    def cosine(last: str) -> float:
        hits = ask(real, lead + last, mode="vector", profile="memex").hits
        return next(why(h).cosine or 0.0 for h in hits if h.memory.id == id)

    assert cosine(about) > cosine(other) + 0.01


def test_e6_the_same_text_has_the_same_vector_alone_and_in_company(real: Client) -> None:
    """E6: one text per run: what is stored beside it does not change a memory's cosine."""
    from memxd.client import Item
    from memxd.model import StoreAnswer

    text = "The spare key hangs behind the boiler."
    alone = real.scope(user_id="alone")
    alone.store(text)
    items = [Item(f"Filler sentence number {n} of the batch.") for n in range(5)]
    assert all(isinstance(a, StoreAnswer) for a in real.store_many([*items[:2], Item(text), *items[2:]]))
    one = ask(alone, "where is the spare key").hits[0]
    other = ask(real, "where is the spare key").hits[0]
    assert one.memory.content == other.memory.content == text
    assert why(one).cosine == why(other).cosine
