"""Case 10: every character of a query is literal text; none is an operator, none is ever an error."""

from __future__ import annotations

import random
import unicodedata

import pytest

from casekit import MODES, Case, Refusal, fresh_scope
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb

OPERATORS = [
    "don't", "a:b", "(", ")", "()", "*", "?", "AND", "OR", "NOT", "AND AND", "NOT NOT", "a AND (b OR", '"', '""', '"a',
    "'", "''", "[", "]", "[a TO b]", "[TO]", "{", "}", "\\", "\\\\", "field:", "content:x", ":", "::", "~2", "a~2", "^",
    "a^2", "^^", "+", "-", "--", "-a", "+a", "!", "!!", "&&", "||", "/", "//", "/x/", "a*", "*a", "a?", "%", "_", "%s",
    "%00", "$", "${x}", "`", "`id`", "@", "#", ";", "';--", "' OR 1=1 --", "NEAR(a b)", "NEAR/2", "<", ">", "<a>",
    "</private>", "=", ">=", "|", ",", ".", "...", "\t\tx", "a\nb", "a\r\nb", "a\0b", "\x1bx",
    "id:1", "rid:", "..", "../..", "\\u0000", "\\x00", "null", "None", "NaN", "true", "0", "-1", "1e999", "🦊", "☃",
    "\u202ex\u202c", "a\u0300\u0301\u0302", "\u0301", "x\ufffd", "\ufffe", "\U0010ffff", "ﷺ", "İ", "ß", "ſ", "ﬁ",
    "e\u200db", "query: x", "passage: x", "C++", "C#", ".NET", "a.b.c", "a-b", "a_b", "user@example.org", "10%", "50 €",
]  # fmt: skip


@pytest.fixture(scope="module")
def stocked(hashing: Case) -> mem.Scope:
    """Every one of them, stored in a sentence (NUL, which no content may hold, left out)."""
    scope = fresh_scope("operators")
    contents = [f"the sign {text} is number {n}".replace("\0", "") for n, text in enumerate(OPERATORS)]
    hashing.store_all(scope, [pb.NewMemory(content=content) for content in contents])
    return scope


def is_visible(text: str) -> bool:
    return any(unicodedata.category(c)[0] in "LNPS" for c in text)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", OPERATORS, ids=ascii)
def test_no_query_is_an_error(hashing: Case, stocked: mem.Scope, query: str, mode: str) -> None:
    answer = hashing.call("Search", pb.SearchRequest(scope=stocked, query=query, mode=MODES[mode], explain=True))
    if isinstance(answer, Refusal):
        assert answer.field == "query", answer
        assert not is_visible(query) or "\0" in query, "only what nobody can see or write is refused"
        return
    assert not answer.degraded
    assert answer.rejected == (not answer.hits)


@pytest.mark.parametrize("query", [q for q in OPERATORS if is_visible(q) and "\0" not in q], ids=ascii)
def test_a_sentence_that_holds_them_is_found_by_its_words(hashing: Case, stocked: mem.Scope, query: str) -> None:
    number = OPERATORS.index(query)
    for mode in ("keyword", "hybrid"):
        found = hashing.found(stocked, f"the sign {query} is number {number}", mode=MODES[mode], k=5)
        assert any(f"number {number}" in text for text in found), (mode, found)


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("don't feed the cat", "don't"),
        ("don't feed the cat", "dont"),
        ("don’t feed the cat", "don't"),
        ("the ratio a:b is three", "a:b"),
        ("AND gates are taught first", "AND"),
        ("to be OR not to be", "OR"),
        ("do NOT press the button", "NOT"),
        ("he writes C++ at work", "C++"),
        ("the array[3] is out of bounds", "array[3]"),
        ("path is C:\\temp\\new", "C:\\temp\\new"),
        ("see field: title", "field:"),
        ("call f(x) twice", "f(x)"),
        ("version ~2.3 is required", "~2.3"),
        ("the power 2^10 is 1024", "2^10"),
        ("ask user@example.org", "user@example.org"),
        ("ticket JIRA-4711 is open", "JIRA-4711"),
        ("ticket JIRA-4711 is open", "jira 4711"),
        ("the disk does 3 GB/s", "GB/s"),
        ("we run v2.3 now", "v2.3"),
    ],
)
def test_literal_text_is_found_by_words_alone(hashing: Case, scope: mem.Scope, content: str, query: str) -> None:
    hashing.store(scope, content)
    for n in range(5):
        hashing.store(scope, f"something else entirely, remark {'abcde'[n]}")
    assert hashing.found(scope, query, mode=MODES["keyword"], k=1) == [content]


def test_a_minus_or_not_excludes_nothing(hashing: Case, scope: mem.Scope) -> None:
    hashing.store(scope, "likes black tea")
    for query in (
        "-tea",
        "NOT tea",
        "!tea",
        "black -tea",
        "+coffee +tea",
        '"tea black"',
        "tea AND coffee",
        "te?",
        "content:tea",
    ):
        found = hashing.found(scope, query, mode=MODES["keyword"], ranking={"reject": False})
        assert (found == ["likes black tea"]) is (query != "te?"), query


def test_a_star_finds_no_more_than_its_letters(hashing: Case, scope: mem.Scope) -> None:
    hashing.store(scope, "teapots everywhere")
    assert hashing.found(scope, "zzz*", mode=MODES["keyword"]) == []
    assert hashing.found(scope, "*", mode=MODES["keyword"]) == []


@pytest.mark.parametrize(
    "char", ["(", '"', "\\", "*", "~", "^", "[", "'", ":", "a", "é", "日", "🦊", "-", "a ", "( "], ids=ascii
)
def test_two_thousand_of_one_character(hashing: Case, stocked: mem.Scope, char: str) -> None:
    query = (char * 2_000)[:1_999] + "x"
    for mode in MODES:
        assert not isinstance(
            hashing.call("Search", pb.SearchRequest(scope=stocked, query=query, mode=MODES[mode])), Refusal
        )


def test_random_characters_of_all_of_unicode(hashing: Case, stocked: mem.Scope) -> None:
    random_ = random.Random(10)
    letters = [c for c in map(chr, range(1, 0x110000)) if unicodedata.category(c) != "Cs"]
    queries = ["x" + "".join(random_.choices(letters, k=random_.randint(1, 60))) for _ in range(320)]
    for start in range(0, len(queries), 32):
        searches = [pb.SearchRequest(scope=stocked, query=q) for q in queries[start : start + 32]]
        answer = hashing.memory.SearchMany(pb.SearchManyRequest(searches=searches), timeout=60)
        assert [r.WhichOneof("result") for r in answer.results] == ["response"] * 32
    for content in queries[:64]:
        memory = hashing.store(stocked, content, tags=["random"])
        assert (
            hashing.memory.Get(pb.GetRequest(scope=stocked, id=memory.id), timeout=20).memory.content == memory.content
        )


def test_the_same_characters_are_literal_in_every_other_field(hashing: Case, scope: mem.Scope) -> None:
    for n, text in enumerate(t for t in OPERATORS if is_visible(t) and t.isprintable() and len(t) <= 64):
        memory = pb.NewMemory(content=f"entry number {n}", tags=[text], source=text)
        memory.metadata.update({text: text})
        hashing.call("Store", pb.StoreRequest(scope=scope, memory=memory))
        clean = unicodedata.normalize("NFC", text)
        by_metadata = mem.Filter()
        by_metadata.metadata.update({text: text})
        for filter in (mem.Filter(tags_any=[text]), mem.Filter(tags_all=[text]), by_metadata):
            listed = hashing.memory.List(pb.ListRequest(scope=scope, filter=filter), timeout=20).memories
            assert [m.content for m in listed] == [f"entry number {n}"], (text, filter)
            assert listed[0].tags == [clean]
            found = hashing.found(scope, "entry", filter=filter, ranking={"reject": False})
            assert found == [f"entry number {n}"], (text, filter)
        of_its_own = mem.Scope(agent_id=text, user_id=scope.agent_id)
        hashing.store(of_its_own, f"inside {n}")
        assert hashing.found(of_its_own, "inside", ranking={"reject": False}) == [f"inside {n}"]
