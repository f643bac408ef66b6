"""An import waits for a search, a search for nobody, and nobody for ever."""

from __future__ import annotations

import threading
import time

import pytest

from memxd.engine.courtesy import Courtesy


def test_without_a_search_nobody_waits() -> None:
    courtesy = Courtesy()
    assert courtesy.first(lambda: 7)() == 7
    began = time.thread_time()
    for _ in range(1_000):
        courtesy.step_aside()
    assert time.thread_time() - began < 0.5


def test_an_import_waits_for_a_running_search_and_not_for_ever() -> None:
    courtesy, running, done = Courtesy(), threading.Event(), threading.Event()

    def search() -> None:
        running.set()
        assert done.wait(30)

    thread = threading.Thread(target=courtesy.first(search))
    thread.start()
    assert running.wait(30)
    began = time.monotonic()
    courtesy.step_aside()  # returns although the search goes on
    assert time.monotonic() - began >= 0.003
    done.set()
    thread.join()
    assert not courtesy._asking


def test_an_import_goes_on_as_soon_as_the_last_question_is_answered() -> None:
    courtesy = Courtesy()
    courtesy.come()
    courtesy.come()
    over = threading.Event()

    def answer() -> None:
        courtesy.go()  # another one is still asked
        over.set()
        courtesy.go()

    waiter = threading.Thread(target=answer)
    courtesy._mine.works_until = 0.0
    waiter.start()
    courtesy.step_aside()
    waiter.join()
    assert over.is_set()
    assert not courtesy._asking


def test_an_import_that_has_waited_works_for_a_part_of_that_time_before_it_waits_again() -> None:
    courtesy = Courtesy()
    courtesy.come()
    courtesy.step_aside()
    first = courtesy._mine.works_until
    assert first > time.monotonic()
    courtesy.step_aside()  # at once
    assert courtesy._mine.works_until == first
    time.sleep(max(0.0, first - time.monotonic()))
    courtesy.step_aside()
    assert courtesy._mine.works_until > first


def test_a_search_that_fails_is_over_too() -> None:
    courtesy = Courtesy()

    def search() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        courtesy.first(search)()
    assert not courtesy._asking
