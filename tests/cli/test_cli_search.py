"""memx search: tables, explanations, JSON, and honesty when nothing is known."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from memxd.v1 import memory_pb2, memory_service_pb2, search_pb2

EVIL = "red \x1b[31mred\x1b]0;title\x07 [bold]not bold[/bold] :smile: \u202egnp"
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def memory(number: int, content: str, **more: Any) -> memory_pb2.Memory:
    return memory_pb2.Memory(
        id=f"0190c2d0-0000-7000-8000-00000000000{number}",
        scope=memory_pb2.Scope(agent_id="default", user_id="default"),
        content=content,
        type=2,
        state=1,
        importance=0.5,
        created_at=Timestamp(seconds=1_700_000_000),
        updated_at=Timestamp(seconds=1_700_000_000),
        **more,
    )


def factor(value: float, weight: float) -> search_pb2.Factor:
    return search_pb2.Factor(value=value, weight=weight, contribution=value * weight)


EXPLANATION = search_pb2.Explanation(
    cosine=0.9, vector_rank=1, keyword_score=3.5, rrf=0.03, semantic=factor(0.75, 1), recency=factor(0.5, 0.1),
    frequency=factor(0, 0.05), importance=factor(1, 0.1), raw_score=0.9, z_score=1.5, folded=1, folded_ids=["x"],
    terms=[search_pb2.TermMatch(term="coffee", idf=1.5, frequency=2, score=3.5)],
    notes=["private: [b]by words only[/b]"],
)  # fmt: skip
ANSWER = memory_service_pb2.SearchResponse(
    hits=[
        search_pb2.Hit(memory=memory(1, EVIL), rank=1, score=0.9, relevance=0.8, explanation=EXPLANATION),
        search_pb2.Hit(memory=memory(2, "用户喜欢喝咖啡" * 20), rank=2, score=0.5, relevance=0.4),
        search_pb2.Hit(
            memory=memory(3, "plain\nin two lines"), rank=3, score=0.1, relevance=0.1, expanded=True, expanded_from="x"
        ),
    ],
    best_relevance=0.8, candidates=3, folded=1, revision=7, plan="hybrid",
    degraded=[memory_service_pb2.Degradation(cause=1, message="no embedder")],
    timings=[search_pb2.StageTiming(stage="embed", micros=4000)],
)  # fmt: skip
NOTHING = memory_service_pb2.SearchResponse(rejected=True, reject_reason=3, best_relevance=0.12, revision=7)


@pytest.fixture
def found(server: Any) -> Any:
    server.on("Search", lambda r, c: ANSWER)
    return server


def cells(text: str) -> int:
    """Columns that a terminal needs."""
    wide = (2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text if not unicodedata.combining(c))
    return sum(wide)


def test_piped_hits_are_tab_separated_with_nothing_cut(found: Any, memx: Callable[..., Any]) -> None:
    done = memx("search", "coffee")
    assert done.code == 0
    head, first, second, third = done.out.splitlines()
    assert head.split("\t") == ["#", "score", "relevance", "age", "type", "id", "content"]
    assert first.split("\t")[:3] == ["1", "0.900", "0.80"]
    assert second.split("\t")[-1] == "用户喜欢喝咖啡" * 20
    assert third.split("\t")[0] == "+3"
    assert third.split("\t")[-1] == "plain in two lines"
    assert "\x1b" not in done.out
    assert "degraded (embedder_unavailable): no embedder" in done.err
    assert "embed 4.00 ms" in done.err


def test_a_table_fits_the_terminal_also_with_wide_characters(found: Any, memx_tty: Callable[..., Any]) -> None:
    for width in (60, 100, 160):
        done = memx_tty("search", "coffee", width=width)
        assert done.code == 0
        lines = ANSI.sub("", done.out).splitlines()
        assert max(cells(line) for line in lines[:6]) <= width
        assert any("…" in line and "用户" in line for line in lines)


def test_ids_are_whole_at_every_width(found: Any, memx_tty: Callable[..., Any]) -> None:
    for width in (60, 80, 110, 160):
        shown = ANSI.sub("", memx_tty("search", "coffee", width=width).out)
        assert shown.count("0190c2d0-0000-7000-8000-00000000000") == 3, width
        assert max(cells(line) for line in shown.splitlines()[:9]) <= width


def test_a_superseded_hit_is_marked(server: Any, memx: Callable[..., Any]) -> None:
    old = memory(1, "coffee, once")
    old.state = 2
    hit = search_pb2.Hit(memory=old, rank=1, score=0.5, relevance=0.5, explanation=EXPLANATION)
    server.on("Search", lambda r, c: memory_service_pb2.SearchResponse(hits=[hit], best_relevance=0.5))
    assert "\t[superseded] coffee, once" in memx("search", "coffee", "--superseded").out
    assert "semantic, superseded, 2023" in memx("search", "coffee", "--superseded", "--explain").out


def test_alpha_without_its_profile_is_told_in_flags(found: Any, memx: Callable[..., Any]) -> None:
    done = memx("search", "q", "--alpha", "0.5")
    assert done.code == 2
    assert "--profile memex" in done.err
    assert not found.requests("Search")


def test_json_on_a_terminal_is_harmless_and_the_same_document(found: Any, memx: Any, memx_tty: Any) -> None:
    shown = memx_tty("search", "coffee", "--json").out
    piped = memx("search", "coffee", "--json").out
    assert "\u202e" not in shown
    assert "\u202e" in piped
    assert json.loads(shown) == json.loads(piped)


def test_stored_escape_sequences_and_markup_do_nothing_on_a_terminal(found: Any, memx_tty: Callable[..., Any]) -> None:
    for words in (["search", "coffee"], ["search", "coffee", "--explain"]):
        done = memx_tty(*words, width=200)
        assert "\x1b[31m" not in done.out
        assert "\x1b]0;" not in done.out
        assert "\x07" not in done.out
        assert "\u202e" not in done.out
        assert "\\x1b[31mred" in done.out
        assert "[bold]not bold[/bold] :smile:" in done.out


def test_no_color_is_respected(found: Any, memx_tty: Callable[..., Any]) -> None:
    assert re.search(r"\x1b\[[0-9;]*3[0-9]", memx_tty("search", "coffee").out)
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", memx_tty("search", "coffee", env={"NO_COLOR": "1"}).out)


def test_explain_draws_the_factors(found: Any, memx: Callable[..., Any]) -> None:
    done = memx("search", "coffee", "--explain")
    assert found.requests("Search")[0].explain
    assert "semantic   ███████████████····· 0.750 x 1     = 0.7500" in done.out
    assert "cosine 0.900, vector rank 1, BM25 3.50, not among the keyword candidates" in done.out
    assert "words: coffee x2 (3.50)" in done.out
    assert "1 repetitions folded into it" in done.out
    assert "reached by a link from x" in done.out
    assert "note: private: [b]by words only[/b]" in done.out


def test_json_has_the_documented_shape(found: Any, memx: Callable[..., Any]) -> None:
    done = memx("search", "coffee", "--json")
    answer = json.loads(done.out)
    assert list(answer) == [
        "hits", "revision", "rejected", "reject_reason", "best_relevance", "candidates", "folded",
        "below_min_relevance", "degraded", "timings", "plan",
    ]  # fmt: skip
    hit = answer["hits"][0]
    assert list(hit) == ["memory", "rank", "score", "relevance", "explanation", "expanded", "expanded_from"]
    assert hit["memory"] == {
        "id": "0190c2d0-0000-7000-8000-000000000001",
        "scope": {"agent_id": "default", "user_id": "default"},
        "content": EVIL,
        "type": "semantic",
        "tags": [],
        "metadata": {},
        "importance": 0.5,
        "created_at": "2023-11-14T22:13:20Z",
        "updated_at": "2023-11-14T22:13:20Z",
        "event_at": None,
        "valid_until": None,
        "state": "active",
        "private": False,
        "source": "",
        "revision": 0,
        "access_count": 0,
        "last_accessed_at": None,
        "retrieval_count": 0,
        "last_retrieved_at": None,
        "vector_pending": False,
        "superseded_by": "",
        "content_truncated": False,
    }
    assert hit["explanation"]["semantic"] == {"value": 0.75, "weight": 1.0, "contribution": 0.75}
    assert hit["explanation"]["keyword_rank"] is None
    assert hit["explanation"]["terms"] == [{"term": "coffee", "idf": 1.5, "frequency": 2, "score": 3.5}]
    assert answer["hits"][1]["explanation"] is None
    assert answer["degraded"] == [{"cause": "embedder_unavailable", "message": "no embedder"}]
    assert answer["timings"] == [{"stage": "embed", "micros": 4000}]


def test_nothing_known_says_why_and_exits_1(server: Any, memx: Callable[..., Any]) -> None:
    server.on("Search", lambda r, c: NOTHING)
    done = memx("search", "what is the capital of Mongolia?")
    assert done.code == 1
    assert done.out == ""
    assert done.err.startswith("Nothing known:")
    assert "best relevance 0.12" in done.err
    done = memx("search", "x", "--json")
    assert done.code == 1
    assert json.loads(done.out)["reject_reason"] == "low_relevance"


def test_hits_below_the_wanted_relevance_are_told_apart(server: Any, memx: Callable[..., Any]) -> None:
    few = memory_service_pb2.SearchResponse(below_min_relevance=4, best_relevance=0.3)
    server.on("Search", lambda r, c: few)
    done = memx("search", "x", "--min-relevance", "0.9")
    assert done.code == 1
    assert "4 hits are below --min-relevance" in done.err


def test_every_flag_arrives(found: Any, memx: Callable[..., Any]) -> None:
    memx(
        "search", "q", "-k", "3", "--mode", "keyword", "--profile", "memex", "--alpha", ".5", "--dedup", "off",
        "--no-reject", "--min-relevance", "0.2", "--no-trace", "--as-of", "2026-01-01T00:00:00Z", "--superseded",
        "--exact", "--expand", "1", "--timings", "--type", "episodic", "--type", "semantic", "--tag", "a", "--all-tags",
        "b", "--not-tag", "c", "--since", "2026-01-01", "--event-until", "2026-02-01T00:00+02:00",
        "--min-importance", "0.1",
        "--meta", "year=2026", "--meta", "name=Bob", "--state", "archived", "--agent", "a", "--user", "u",
    )  # fmt: skip
    (sent,) = found.requests("Search")
    assert (sent.k, sent.mode, sent.ranking.profile, sent.ranking.dedup, sent.ranking.alpha) == (3, 3, 3, 1, 0.5)
    assert sent.ranking.HasField("reject")
    assert not sent.ranking.reject
    assert not sent.record_retrieval
    assert sent.exact
    assert sent.expand_links == 1
    assert list(sent.filter.types) == [1, 2]
    assert (list(sent.filter.tags_any), list(sent.filter.tags_all), list(sent.filter.tags_none)) == (
        ["a"],
        ["b"],
        ["c"],
    )
    assert sent.filter.created.start.seconds == 1_767_225_600
    assert sent.filter.event.end.seconds == 1_769_896_800
    assert dict(sent.filter.metadata.items()) == {"year": 2026.0, "name": "Bob"}
    assert (sent.scope.agent_id, sent.scope.user_id) == ("a", "u")


def test_the_question_may_be_piped(found: Any, memx: Callable[..., Any]) -> None:
    memx("search", stdin=b"wie trinkt Ada Kaffee?\n")
    assert found.requests("Search")[0].query == "wie trinkt Ada Kaffee?"
