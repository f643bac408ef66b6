"""FEATURES E3: the question of the parent service (query, k, type, alpha), without its starving filter."""

from __future__ import annotations

import pytest

from featurekit import ask, ids
from memxd.client import Client, Item, Question, rank, where
from memxd.errors import InvalidArgumentError, MemxdError
from memxd.model import MemoryType, SearchAnswer, StoreAnswer


@pytest.mark.parametrize("query", ["", "  \n ", "\u200b", "x" * 2_001])
def test_e3_query_is_1_to_2000_characters(client: Client, query: str) -> None:
    """E3: blank, invisible and longer questions are refused by name."""
    with pytest.raises(InvalidArgumentError) as caught:
        client.search(query)
    assert caught.value.violations[0].field == "query"


def test_e3_the_longest_question_is_answered(client: Client) -> None:
    """E3: 2,000 characters are read to the end."""
    id = client.store("the codeword is heliotrope").memory.id
    query = ("so " * 660 + "which heliotrope codeword")[-2_000:]
    assert ids(ask(client, query, ranking=rank(reject=False))) == [id]


def test_e3_k_is_10_by_default_and_1_to_200(client: Client) -> None:
    """E3, SEMANTICS Sizes: k absent = 10, at most 200; anything else is refused, not clamped."""
    assert all(isinstance(a, StoreAnswer) for a in client.store_many([Item(f"alpha {n}") for n in range(210)]))
    assert len(ask(client, "alpha").hits) == 10
    for k in (1, 7, 200):
        assert len(ask(client, "alpha", k=k, explain=False).hits) == k
    for k in (0, -1, 201):
        with pytest.raises(InvalidArgumentError) as caught:
            client.search("alpha", k=k)
        assert caught.value.violations[0].field == "k"


def test_e3_filter_by_type_does_not_starve_a_small_kind(client: Client) -> None:
    """E3, better: the filter works before the candidates are taken, in each mode and profile."""
    for _ in client.store_many([Item(f"alpha beta number {n}") for n in range(300)]):
        pass
    rare = {client.store(f"alpha beta rare {n}", type="procedural").memory.id for n in range(3)}
    only = where(types=["procedural"])
    for mode in ("hybrid", "vector", "keyword"):
        assert set(ids(ask(client, "alpha beta number", k=3, mode=mode, filter=only))) == rare
    for profile in ("balanced", "memx", "memex"):
        wish = rank(profile, dedup="off")
        hits = ask(client, "alpha beta number", k=3, filter=only, ranking=wish).hits
        assert {h.memory.id for h in hits} == rare
        assert {h.memory.type for h in hits} == {MemoryType.PROCEDURAL}


def test_e3_a_small_user_beside_a_large_one_is_not_starved(client: Client) -> None:
    """E3, better: many near memories of another user do not hide one's own."""
    small = client.scope(user_id="small")
    for _ in client.store_many([Item(f"alpha beta {n}") for n in range(300)]):
        pass
    mine = small.store("alpha beta of my own").memory.id
    assert ids(ask(small, "alpha beta")) == [mine]
    small.delete_many()


def test_e3_filters_hold_in_search(client: Client) -> None:
    """E3: every condition of the filter narrows a search as it narrows a list."""
    day = 86_400_000_000
    rows = {
        name: client.store(f"alpha {name}", **fields).memory  # type: ignore[arg-type]
        for name, fields in {
            "a": {"tags": ["x"], "importance": 0.9, "metadata": {"k": 1, "deep": {"l": [1]}}, "event_at": 10 * day},
            "b": {"tags": ["x", "y"], "importance": 0.2, "metadata": {"k": "1"}, "event_at": 20 * day},
            "c": {"tags": ["z"], "type": "episodic", "metadata": {"k": 1.0}},
        }.items()
    }
    cases = [
        (where(tags_any=["x"]), "ab"), (where(tags_all=["x", "y"]), "b"), (where(tags_none=["x"]), "c"),
        (where(importance_min=0.5), "ac"), (where(importance_min=0.9), "a"), (where(metadata={"k": 1}), "ac"),
        (where(metadata={"deep": {"l": [1]}}), "a"), (where(event=(10 * day, 20 * day)), "a"),
        (where(event=(None, 20 * day + 1)), "ab"), (where(created=(rows["b"].created_at, None)), "bc"),
        (where(ids=[rows["a"].id, rows["c"].id], types=["episodic"]), "c"),
    ]  # fmt: skip
    for condition, expected in cases:
        wanted = {rows[name].id for name in expected}
        assert set(ids(ask(client, "alpha", filter=condition))) == wanted, condition
        assert {m.id for m in client.list(filter=condition).memories} == wanted
        assert client.count(condition) == len(wanted)


def test_e3_many_questions_each_on_its_own(client: Client) -> None:
    """E3, SEMANTICS Sizes: SearchMany takes 1..32 questions; a bad one does not spoil the rest."""
    id = client.store("alpha").memory.id
    answers = client.search_many([Question("alpha"), Question(""), Question("alpha", k=0), Question("zyzzyva")])
    assert [type(a).__name__ for a in answers] == [
        "SearchAnswer", "InvalidArgumentError", "InvalidArgumentError", "SearchAnswer",
    ]  # fmt: skip
    first = answers[0]
    assert isinstance(first, SearchAnswer)
    assert ids(first) == [id]
    for count in (0, 33):
        with pytest.raises(MemxdError) as caught:
            client.search_many([Question("alpha")] * count)
        assert caught.value.reason == "INVALID_ARGUMENT"
    assert len(client.search_many([Question("alpha")] * 32)) == 32


def test_e3_alpha_belongs_to_memex(client: Client) -> None:
    """E3, SEMANTICS: alpha 0..1 with profile memex (default .7), refused elsewhere."""
    client.store("alpha")
    assert "semantic 0.7, recency 0.3" in ask(client, "alpha", profile="memex").plan
    for ranking in (rank(alpha=0.5), rank("memx", alpha=0.5), rank("memex", alpha=1.01), rank("memex", alpha=-0.1)):
        with pytest.raises(InvalidArgumentError) as caught:
            client.search("alpha", ranking=ranking)
        assert caught.value.violations[0].field == "ranking.alpha"
