"""Both legs of a search at once: the same answers as one after the other; what goes wrong in one of them is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from memxd._fast import load_kernels
from memxd.engine import Engine
from memxd.errors import DeadlineExceededError, IndexUnavailableError
from memxd.index.vector import Probe
from memxd.model import Deadline, DegradedCause, Mode, NewMemory, Profile, Ranking, Scope, SearchAnswer, SearchQuery

A = Scope("a")
WORDS = ("ferry", "harbour", "vet", "Marlow", "garden", "Tuesday", "violin", "bakery", "invoice", "tram")


def at_once(engine: Engine) -> Engine:
    """However small it is, its vectors are searched on another thread from now on."""
    index: Any = engine._indexes.vector
    index._renewal.tuning = replace(index._renewal.tuning, worth=1)
    index.helpers.close()
    index.helpers = load_kernels("c").dot.Helpers(2)
    index._bulk_until = 0.0  # what was stored is no import under way
    return engine


@pytest.fixture
def engine(open_engine: Callable[[], Engine]) -> Iterator[Engine]:
    engine = open_engine()
    texts = (f"{WORDS[n % 10]} and {WORDS[n // 10 % 10]} number {n} of the {WORDS[n * 7 % 10]}" for n in range(200))
    list(engine.store_many((A, NewMemory(text), "") for text in texts))
    yield engine
    engine._indexes.vector.helpers.close()


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each search so far was handed over."""
    told: list[bool] = []
    ordinary = Probe.hand_over

    def hand_over(self: Probe, helpers: Any, least: int) -> bool:
        end = time.monotonic() + 30  # the first time, threads may not wait for work yet
        while not (given := ordinary(self, helpers, least)) and least == 1 and time.monotonic() < end:
            time.sleep(0.001)
        told.append(given)
        return given

    monkeypatch.setattr(Probe, "hand_over", hand_over)
    return told


def plain(answer: SearchAnswer) -> list[Any]:
    return [(h.memory.id, h.rank, h.score, h.relevance, h.explanation) for h in answer.hits]


def test_answers_are_the_same_as_of_one_leg_after_the_other(engine: Engine, handed: list[bool]) -> None:
    questions = [
        SearchQuery(A, f"{one} {two}", mode=mode, ranking=Ranking(profile=p, reject=False), explain=True, exact=exact)
        for one, two in zip(WORDS, WORDS[3:], strict=False)
        for mode in (Mode.HYBRID, Mode.KEYWORD)
        for p, exact in ((Profile.BALANCED, False), (Profile.MEMX, True))
    ]
    before = [engine.search(question) for question in questions]
    assert not any(handed)
    at_once(engine)
    after = [engine.search(question) for question in questions]
    assert sum(handed) >= len(questions) // 2
    assert [plain(answer) for answer in after] == [plain(answer) for answer in before]
    assert all(answer.hits for answer in after)


def test_words_that_cannot_be_asked_are_told_and_meaning_answers(
    engine: Engine, handed: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once(engine)

    def damaged(*_: object) -> None:
        raise IndexUnavailableError("the keyword index is damaged")

    monkeypatch.setattr(engine._indexes.lexical, "ask", damaged)
    answer = engine.search(SearchQuery(A, "vet Marlow", ranking=Ranking(reject=False)))
    assert handed == [True]
    assert [d.cause for d in answer.degraded] == [DegradedCause.KEYWORD_INDEX_UNAVAILABLE]
    assert answer.hits


def test_vectors_that_turn_out_impossible_are_told_and_words_answer(
    engine: Engine, handed: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once(engine)
    monkeypatch.setattr(Probe, "plausible", lambda *_: False)
    answer = engine.search(SearchQuery(A, "vet Marlow"))
    assert handed == [True]
    assert [d.cause for d in answer.degraded] == [DegradedCause.VECTOR_INDEX_UNAVAILABLE]
    assert "Marlow" in answer.hits[0].memory.content


def test_an_error_among_the_words_ends_the_search_and_leaves_nothing_running(
    engine: Engine, handed: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once(engine)

    def late(*_: object) -> None:
        raise DeadlineExceededError("too late")

    with monkeypatch.context() as patch:
        patch.setattr(engine._indexes.lexical, "ask", late)
        for _ in range(20):
            with pytest.raises(DeadlineExceededError):
                engine.search(SearchQuery(A, "vet Marlow"))
    assert engine.search(SearchQuery(A, "vet Marlow")).hits
    assert all(handed)


def test_a_deadline_that_has_passed_hands_nothing_over(engine: Engine, handed: list[bool]) -> None:
    at_once(engine)
    with pytest.raises(DeadlineExceededError):
        engine.search(SearchQuery(A, "vet Marlow"), Deadline(0.0))
    assert not any(handed)


def test_closing_while_searches_run_neither_hangs_nor_crashes(engine: Engine) -> None:
    at_once(engine)
    seen: list[BaseException] = []
    ready = threading.Barrier(3)

    def ask() -> None:
        ready.wait()
        while not seen:
            try:
                engine.search(SearchQuery(A, "vet Marlow"))
            except Exception as error:  # what closing says is not the question here
                seen.append(error)

    asking = [threading.Thread(target=ask) for _ in range(2)]
    for thread in asking:
        thread.start()
    ready.wait()
    time.sleep(0.05)
    engine.close()
    for thread in asking:
        thread.join(30)
    assert not any(thread.is_alive() for thread in asking)
    assert seen
