"""FEATURES X4: recall by words. The query is plain text in any script; no character in it is an operator."""

from __future__ import annotations

import pytest

from featurekit import ask, contents, ids, why
from memxd.client import Client


def test_x4_one_absent_word_does_not_hide_the_answer(client: Client) -> None:
    """X4, better: words are not all required, and the query is not one phrase."""
    id = client.store("Ada keeps her passport in the blue drawer.").memory.id
    client.store("The garden needs water twice a week.")
    answer = ask(client, "drawer passport zyzzyva of Ada", mode="keyword")
    assert ids(answer)[0] == id


def test_x4_bm25_is_explained_term_by_term(client: Client) -> None:
    """X4: keyword score = sum of the terms' scores; the rarer word says more."""
    for n in range(8):
        client.store(f"Meeting note {n}: the budget stays as it is.")
    id = client.store("Meeting note: the budget for falcons was refused.").memory.id
    hit = ask(client, "budget falcons", mode="keyword").hits[0]
    explanation = why(hit)
    assert hit.memory.id == id
    assert explanation.keyword_rank == 1
    assert explanation.keyword_score == pytest.approx(sum(t.score for t in explanation.terms))
    idf = {t.term: t.idf for t in explanation.terms}
    assert idf["falcon"] > idf["budget"] > 0
    assert all(t.frequency == 1 for t in explanation.terms)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Сергей любит гречневую кашу", "гречневую"),
        ("王伟每周三晚上七点在人民公园跑步。", "人民公园"),
        ("会議は木曜日の午後三時からです", "木曜日"),
        ("カタカナのメモ帳を買う", "メモ帳"),
        ("서울역에서 기차를 탄다", "기차"),
        ("ฉันชอบกินข้าวผัดกุ้ง", "ข้าวผัด"),
        ("Le café près de l'hôtel à Göteborg", "cafe goteborg"),
        ("Running through the fields, she ran daily", "run field"),
        ("I don't eat peanuts", "don't peanuts"),
        ("He didn’t sign", "didn't sign"),
        ("Ticket JIRA-4711 is closed", "JIRA-4711"),
        ("Ticket JIRA-4712 is closed", "4712"),
        ("The disk reads 3 GB/s", "GB/s"),
        ("Released as v2.3 yesterday", "v2.3"),
        ("The ratio a:b is 3:2", "a:b"),
        ("Likes 🍕 on Fridays", "🍕"),
        ("ＦＵＬＬ　ｗｉｄｔｈ", "full width"),
    ],
)
def test_x4_every_script_folding_and_identifiers(client: Client, text: str, query: str) -> None:
    """X4, better: kana, hangul, Thai are split, accents folded, Latin stemmed, identifiers found whole and in parts."""
    id = client.store(text).memory.id
    client.store("Something else entirely, about nothing")
    assert ids(ask(client, query, mode="keyword")) == [id]


@pytest.mark.parametrize(
    "query",
    [
        "budget (", ")budget", '"budget', "budget AND NOT OR", "budget*", "*budget", "budget~2", "title:budget",
        "budget^5", "[budget TO", "{budget}", "bud\\get budget", "-budget", "+budget", "budget'; DROP TABLE x;--",
        "%budget_", "(((((budget", "budget\x00\x07", "budget && || !",
    ],
)  # fmt: skip
def test_x4_no_character_is_an_operator(client: Client, query: str) -> None:
    """X4, better: what crashes or empties other systems is literal text here."""
    id = client.store("The budget was refused.").memory.id
    assert ids(ask(client, query, mode="keyword")) == [id]


@pytest.mark.parametrize("query", ["()", "***", "…", "AND", "-", "' or 1=1"])
def test_x4_a_question_without_a_known_word_finds_nothing_and_breaks_nothing(client: Client, query: str) -> None:
    """X4: punctuation alone has no terms: the answer is honest, not an error."""
    client.store("The budget was refused.")
    answer = ask(client, query, mode="keyword")
    assert answer.rejected
    assert contents(answer) == []


def test_x4_a_new_text_is_found_at_once_and_an_old_one_no_more(client: Client) -> None:
    """X4: Store, Update and Delete reach the keyword leg before they are answered."""
    id = client.store("The codeword is heliotrope.").memory.id
    assert ids(ask(client, "heliotrope", mode="keyword")) == [id]
    client.update(id, content="The codeword is marmalade.")
    assert ids(ask(client, "marmalade", mode="keyword")) == [id]
    assert ask(client, "heliotrope", mode="keyword").rejected
    client.delete(id)
    assert ask(client, "marmalade", mode="keyword").rejected
