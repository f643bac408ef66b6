"""The keyword index by its face: what is applied is found, in memory and on disk alike, and nothing else is."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memxd._fast import load_kernels
from memxd.errors import DeadlineExceededError, IndexUnavailableError
from memxd.index.lexical.analyzer import query_terms
from memxd.index.lexical.index import LexicalIndex
from memxd.model import NO_DEADLINE, Deadline, IndexState

TEXTS = [
    "notice period 2 months",
    "用户喜欢喝咖啡",
    "しりとりをする",
    "끝말잇기 놀이",
    "a 🦊 in the garden",
    "the café at the corner",
    "I don't like a:b",
    "see JIRA-4711 and v2.3",
]


@pytest.fixture(params=["in memory", "on disk", "reopened"])
def filled(request: pytest.FixtureRequest, bench: Any) -> Any:
    for rid, text in enumerate(TEXTS):
        bench.put(rid, text)
    if request.param != "in memory":
        bench.index.flush()
    if request.param == "reopened":
        bench.reopen()
    return bench


@pytest.fixture(scope="module", params=["in memory", "on disk", "reopened"])
def settled(request: pytest.FixtureRequest, open_bench: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same, for tests that change nothing."""
    bench = open_bench(tmp_path_factory.mktemp("settled"))
    for rid, text in enumerate(TEXTS):
        bench.put(rid, text)
    if request.param != "in memory":
        bench.index.flush()
    if request.param == "reopened":
        bench.reopen()
    yield bench
    bench.index.close()


def test_a_natural_question_finds_its_answer(settled: Any) -> None:
    assert settled.find("how long is the notice period")[0] == 0


@pytest.mark.parametrize(
    ("query", "rid"),
    [
        ("咖啡", 1),
        ("りとり", 2),
        ("말잇", 3),
        ("🦊", 4),
        ("cafe", 5),
        ("don't", 6),
        ("a:b", 6),
        ("4711", 7),
        ("JIRA-4711", 7),
    ],
)
def test_words_inside_any_script_are_found(settled: Any, query: str, rid: int) -> None:
    assert settled.find(query)[0] == rid


@pytest.mark.parametrize("query", ["(", "*", "AND", '"', "[", "\\", "field:", "~2", "^", "", "\u200b", "'", "a AND (b"])
def test_a_question_is_literal_text_and_never_an_error(settled: Any, query: str) -> None:
    hits = settled.hits(query)
    assert (hits.scores > 0).all()


def test_an_update_takes_effect_at_once(filled: Any) -> None:
    filled.put(0, "age 43")
    assert filled.find("notice period") == []
    assert filled.find("43") == [0]
    filled.put(0, None)  # something other than the text changed
    assert filled.find("43") == [0]
    filled.remove(0)
    assert filled.find("43") == []
    filled.put(0, "back again")
    assert filled.find("again") == [0]
    filled.reopen()
    assert filled.find("again") == [0]
    assert filled.find("43") == filled.find("notice") == []


def test_only_selected_rows_answer(filled: Any) -> None:
    assert filled.find("the", rids=[4]) == [4]
    assert filled.find("the", rids=[]) == []
    assert filled.find("the", rids=[1000, 100_000]) == []


def test_a_selection_changes_no_score_and_another_scope_changes_nothing(filled: Any) -> None:
    everywhere, alone = filled.hits("the garden"), filled.hits("the garden", rids=[4])
    assert alone.rows == everywhere.rows == 8
    assert alone.scores[0] == everywhere.scores[everywhere.rids.tolist().index(4)]
    filled.put(40, "the the the garden", scope=2)
    again = filled.hits("the garden")
    assert (again.rids.tolist(), again.scores.tobytes()) == (everywhere.rids.tolist(), everywhere.scores.tobytes())
    assert (again.rows, again.average_length) == (everywhere.rows, everywhere.average_length)
    other = filled.hits("the garden", scope=2)
    assert (other.rids.tolist(), other.rows, other.average_length) == ([40], 1, 4.0)


def test_scores_besides_and_explanations_are_the_same_bits(settled: Any) -> None:
    terms = query_terms("the café at the corner")
    selection = settled.rows(range(8))
    hits = settled.index.search(terms, selection, 2, np.array([5, 1, 4, 99, 6], np.int32))
    assert hits.rids.tolist() == [5, 4]
    assert hits.also_scores.tolist() == [hits.scores[0], 0.0, hits.scores[1], 0.0, 0.0]
    explained = settled.index.explain(terms, [5, 4, 1, 99], selection)
    for score, matches in zip(hits.scores.tolist(), explained, strict=False):
        total = 0.0
        for match in matches:
            total += match.score
        assert total == score
    assert [match.term for match in explained[0]] == ["at", "cafe", "corner", "the"]
    assert explained[0][3].frequency == 2
    assert explained[2:] == [(), ()]
    assert dict(zip(hits.matched_terms, hits.idf, strict=True))["cafe"] == explained[0][0].idf


def test_compiled_and_python_kernels_answer_alike(filled: Any) -> None:
    filled.index.flush()
    compiled = filled.hits("the garden café")
    filled.kernel = load_kernels("py").bm25
    filled.reopen()
    plain = filled.hits("the garden café")
    assert plain.rids.tolist() == compiled.rids.tolist()
    assert plain.scores.tobytes() == compiled.scores.tobytes()


def test_folding_and_merging_change_no_bit(bench: Any) -> None:
    rng = random.Random(5)
    words = [f"w{i}" for i in range(20)]
    for rid in range(60):
        bench.put(rid, " ".join(rng.choices(words, k=rng.randint(1, 12))))
    before = bench.hits("w1 w2 w3 w4 w5")
    for start in range(0, 60, 6):
        for rid in range(start, start + 6, 2):
            bench.put(rid, " ".join(rng.choices(words, k=rng.randint(1, 12))))
        bench.index.flush()
    segments = len(list((bench.directory / "current").glob("*.pst")))
    assert segments <= 9  # merged now and then
    texts = bench.hits("w1 w2 w3 w4 w5")
    fresh = LexicalIndex.open(bench.directory.parent / "other", kernel=bench.kernel)
    rng = random.Random(5)
    texts_now: dict[int, str] = {rid: " ".join(rng.choices(words, k=rng.randint(1, 12))) for rid in range(60)}
    for start in range(0, 60, 6):
        for rid in range(start, start + 6, 2):
            texts_now[rid] = " ".join(rng.choices(words, k=rng.randint(1, 12)))
    for rid in range(60):
        fresh.apply(bench.change(rid + 1, rid, texts_now[rid]))
    expected = fresh.search(query_terms("w1 w2 w3 w4 w5"), bench.rows(range(64)), 50)
    fresh.close()
    assert before.rows == texts.rows == 60
    assert texts.rids.tolist() == expected.rids.tolist()
    assert texts.scores.tobytes() == expected.scores.tobytes()


def test_watermarks_and_status(bench: Any) -> None:
    assert (bench.index.watermark, bench.index.durable_watermark) == (0, 0)
    bench.put(1, "one")
    bench.put(2, None)
    status = bench.index.status()
    assert (status.watermark, status.durable_watermark, status.entries, status.tail_entries) == (2, 0, 1, 1)
    bench.index.flush()
    status = bench.index.status()
    assert (status.watermark, status.durable_watermark, status.entries, status.tail_entries) == (2, 2, 1, 0)
    assert status.state is IndexState.READY
    assert status.size_bytes > 0
    bench.put(2, None)  # a revision without any text becomes durable too
    bench.index.flush()
    assert bench.reopen().durable_watermark == 3


def test_the_tail_is_folded_by_itself(bench: Any) -> None:
    bench.reopen(fold_rows=5, fold_seconds=3600.0)
    for rid in range(5):
        bench.put(rid, f"text {rid}")
    _until(lambda: bench.index.durable_watermark == 5)
    bench.reopen(fold_rows=1000, fold_seconds=0.05)
    bench.put(9, "late")
    _until(lambda: bench.index.durable_watermark == 6)


def test_a_document_without_words_is_held(bench: Any) -> None:
    bench.put(0, "...")
    bench.put(1, "word")
    assert bench.hits("word").rows == 2
    bench.index.flush()
    bench.reopen()
    assert bench.hits("word").rows == 2


def test_searches_run_while_changes_and_folds_go_on(bench: Any) -> None:
    stop = threading.Event()
    failures: list[BaseException] = []

    def search() -> None:
        try:
            while not stop.is_set():
                hits = bench.hits("common word", rids=range(400), k=400)
                assert np.isfinite(hits.scores).all()
                assert len(set(hits.rids.tolist())) == hits.rids.shape[0]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for rid in range(300):
            bench.put(rid, f"common word number {rid}")
            if rid % 3 == 0:
                bench.put(rid // 2, f"common again {rid}")
            if rid % 5 == 0:
                bench.remove(rid // 3)
            if rid % 100 == 99:
                bench.index.flush()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []


def test_a_closed_index_says_so(bench: Any) -> None:
    bench.put(0, "text")
    bench.index.close()
    bench.index.close()
    with pytest.raises(IndexUnavailableError):
        bench.find("text")
    assert bench.index.status().state is IndexState.FAILED


def test_a_passed_deadline_ends_the_search(bench: Any) -> None:
    with pytest.raises(DeadlineExceededError):
        bench.index.search(query_terms("x"), bench.rows([1]), 5, None, Deadline(0.0))


@pytest.mark.parametrize(("k1", "b"), [(-0.1, 0.5), (1.2, 1.1), (1.2, -0.1), (float("nan"), 0.5), (float("inf"), 0.5)])
def test_impossible_parameters_are_refused(tmp_path: Path, kernel: Any, k1: float, b: float) -> None:
    with pytest.raises(ValueError, match="BM25"):
        LexicalIndex.open(tmp_path / "x", kernel=kernel, k1=k1, b=b)


def test_rebuild_takes_all_rows_and_what_came_meanwhile(filled: Any) -> None:
    seen: list[tuple[int, int]] = []

    def rows() -> Any:
        yield filled.change(101, 1, "rebuilt one")
        filled.put(50, "came meanwhile")
        filled.remove(2)
        yield filled.change(102, 2, "rebuilt two")
        yield filled.change(103, 3, "rebuilt three")

    filled.index.rebuild(rows(), 3, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (3, 3)
    assert sorted(filled.find("rebuilt")) == [1, 3]
    assert filled.find("meanwhile") == [50]
    assert filled.find("notice period") == []
    assert filled.index.watermark == 103
    filled.reopen()
    assert sorted(filled.find("rebuilt")) == [1, 3]
    assert filled.find("meanwhile") == [50]
    assert filled.find("café") == []


def test_what_was_applied_is_found_throughout_a_rebuild(filled: Any) -> None:
    """Also while the new index takes the place of the old one, and although changes come at that very moment."""
    poured, done = threading.Event(), threading.Event()
    problems: list[str] = []

    def rows() -> Any:
        for rid in range(100, 2_100):
            filled.put(rid, f"steady {rid}")
        poured.set()
        yield filled.change(10_000, 1, "rebuilt one")

    def look() -> None:
        poured.wait(20)
        while not done.is_set():
            if not filled.find("steady", (100, 2_099)):
                problems.append("what came during the rebuild was lost for a moment")

    def change() -> None:
        poured.wait(20)
        version = 0
        while not done.is_set():
            version += 1
            word = "w" + "".join("bcdfghjkmv"[int(digit)] for digit in str(version)) + "q"
            filled.put(50, f"version {word}")
            if filled.find(word) != [50]:
                problems.append(f"version {version} was not found")

    threads = [threading.Thread(target=look), threading.Thread(target=change)]
    for thread in threads:
        thread.start()
    filled.index.rebuild(rows())
    done.set()
    for thread in threads:
        thread.join()
    assert not problems, problems[:5]
    filled.index.flush()
    filled.reopen()
    assert filled.find("steady", (100, 2_099))


def test_no_thread_or_process_is_left_behind(tmp_path: Path, kernel: Any) -> None:
    before = threading.active_count()
    for _ in range(3):
        index = LexicalIndex.open(tmp_path / "lexical", kernel=kernel)
        index.flush()
        index.close()
    assert threading.active_count() == before


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_rebuild_goes_back_to_the_revision_of_the_store(bench: Any) -> None:
    for revision in range(1, 9):
        bench.put(revision, "tea")
    bench.index.rebuild(iter([bench.change(3, 1, "milk")]), 1, revision=3)
    assert (bench.index.watermark, bench.index.durable_watermark) == (3, 3)
    bench.reopen()
    assert bench.index.watermark == 3
    assert (bench.find("tea"), bench.find("milk")) == ([], [1])


def test_a_resting_index_writes_nothing_until_it_is_asked(open_bench: Any, tmp_path: Path) -> None:
    bench = open_bench(tmp_path)
    bench.reopen(fold_rows=1, fold_seconds=0.0)
    bench.index.rest(600.0)
    bench.put(1, "the cores are wanted elsewhere")
    time.sleep(0.2)
    assert (bench.index.durable_watermark, bench.find("cores")) == (0, [1])
    bench.index.flush()
    assert bench.index.durable_watermark == bench.revision
    bench.index.close()


def test_a_rest_that_is_over_is_made_up_for(open_bench: Any, tmp_path: Path) -> None:
    bench = open_bench(tmp_path)
    bench.reopen(fold_rows=1, fold_seconds=600.0)
    bench.index.rest(0.3)
    bench.put(1, "written when the rest is over")
    until = time.monotonic() + 60
    while bench.index.durable_watermark < bench.revision and time.monotonic() < until:
        time.sleep(0.02)
    assert bench.index.durable_watermark == bench.revision
    bench.index.close()


def test_rows_asked_for_later_score_as_at_once_whatever_was_folded_meanwhile(bench: Any) -> None:
    for rid in range(20):
        bench.put(rid, f"coffee number {rid} " + "tea " * (rid % 3))
    bench.index.flush()
    terms, chosen, rows = query_terms("coffee tea 7"), bench.rows(range(64)), np.arange(20, dtype=np.int32)
    wanted = bench.index.search(terms, chosen, 5, rows).also_scores.tolist()
    assert all(score > 0 for score in wanted)

    def later(meanwhile: Callable[[], None]) -> list[float]:
        _, asked = bench.index.ask(terms, chosen, 5, rows[:0], NO_DEADLINE, None)
        meanwhile()
        scores, _ = bench.index.also(asked, rows)
        return list(scores.tolist())

    def fold() -> None:  # other scopes' rows, several times: segments come, are put together, and go
        for rid in range(30, 60):
            bench.put(rid, f"milk {rid}", scope=2)
            if rid % 6 == 0:
                bench.index.flush()

    assert later(lambda: None) == wanted
    assert later(fold) == wanted
    bench.put(3, "another text now")
    assert later(lambda: bench.put(4, "and another"))[4] == 0.0
    assert later(lambda: bench.index.rebuild(iter([bench.change(200, rid, "coffee") for rid in range(20)])))[19] > 0
