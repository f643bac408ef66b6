"""FEATURES X9: repetitions are folded by the chosen rule, counted and named; different facts never are."""

from __future__ import annotations

from typing import Any

import pytest

from featurekit import ask, contents, why
from memxd.client import Client, rank


def shown(client: Client, query: str, mode: str, **options: Any) -> Any:
    return ask(client, query, ranking=rank(dedup=mode), **options)


@pytest.fixture
def repeated(client: Client) -> Client:
    """Twice the same text, once nearly the same, and another one with the same tags."""
    client.store("Pasta needs ten minutes.", tags=["food", "kitchen"], importance=0.9)
    client.store("Pasta needs ten minutes.", tags=["food"], allow_duplicate=True)
    client.store("pasta  needs TEN minutes!", tags=["note"])
    client.store("Pasta needs salt, too.", tags=["kitchen", "food"])
    return client


@pytest.mark.parametrize(("mode", "count"), [("off", 4), ("content", 3), ("tags", 2), ("adaptive", 2)])
def test_x9_each_mode_folds_its_own_repetitions(repeated: Client, mode: str, count: int) -> None:
    """X9: off, content (equal text), tags (and one per type and tags), adaptive (equal but for case and signs)."""
    answer = shown(repeated, "pasta needs", mode)
    assert len(answer.hits) == count
    assert answer.folded == 4 - count
    assert answer.candidates == 4
    assert sum(why(h).folded for h in answer.hits) == answer.folded


def test_x9_the_best_is_kept_and_names_what_was_folded(repeated: Client) -> None:
    """X9: the suppressed ones are reported: how many, and their ids with the hit they repeat."""
    answer = shown(repeated, "pasta needs ten minutes", "adaptive")
    best = answer.hits[0]
    assert best.memory.importance == 0.9
    assert (why(best).folded, len(why(best).folded_ids)) == (2, 2)
    every = {m.id: m.content for m in repeated.list().memories}
    assert {every[i].casefold()[:5] for i in why(best).folded_ids} == {"pasta"}
    assert best.memory.id not in why(best).folded_ids


def test_x9_folding_leaves_room_for_k_different_answers(client: Client) -> None:
    """X9: folded ones do not use up k."""
    for n in range(6):
        client.store("alpha beta", allow_duplicate=True, source=str(n))
    for n in range(3):
        client.store(f"alpha beta gamma{n}")
    assert len(set(contents(ask(client, "alpha beta", k=4)))) == 4


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The dentist is on Oct 15.", "The dentist is on Oct 16."),
        ("The meeting is at 3 pm.", "The meeting is at 4 pm."),
        ("Ada eats fish.", "Ada does not eat fish."),
        ("The code is 0042.", "The code is 0043."),
        ("牙医预约在十月十五日。", "牙医预约在十月十六日。"),
        ("Balance: -5", "Balance: 5"),
        ("The price is 1.5 euro", "The price is 15 euro"),
    ],
)
def test_x9_facts_that_differ_are_both_shown(client: Client, one: str, other: str) -> None:
    """X9, better: near-duplicate filters drop "Oct 15" beside "Oct 16"; the default never does, equal tags or not."""
    client.store(one, tags=["calendar"])
    client.store(other, tags=["calendar"])
    assert set(contents(ask(client, one))) == {one, other}


def test_x9_defaults_of_the_profiles(client: Client) -> None:
    """X9: balanced adaptive, memx content and tags, memex off."""
    client.store("alpha")
    for profile, word in (("balanced", "adaptive"), ("memx", "tags"), ("memex", "off")):
        assert f"dedup={word}" in ask(client, "alpha", profile=profile).plan


def test_x9_memx_keeps_one_for_each_type_and_tags(client: Client) -> None:
    """X9, SEMANTICS memx: after equal content, at most one hit for each type with the same tags; untagged ones stay."""
    client.store("alpha one", tags=["x", "y"])
    client.store("alpha two", tags=["y", "x"])
    client.store("alpha three", tags=["x", "y"], type="episodic")
    client.store("alpha four")
    client.store("alpha five")
    answer = ask(client, "alpha", profile="memx")
    assert len(answer.hits) == 4
    assert {"alpha three", "alpha four", "alpha five"} < set(contents(answer))
