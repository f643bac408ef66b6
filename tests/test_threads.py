"""Threads say what they do, how long for, and how they died."""

from __future__ import annotations

import logging
import sys
import threading
import time
from typing import Any

import pytest

from memxd import threads


def test_a_thread_is_told_of_with_its_role_its_state_and_its_time() -> None:
    go, end = threading.Event(), threading.Event()

    def work() -> None:
        threads.at_rest()
        go.wait()
        threads.at_work()
        end.wait()

    thread = threads.Steady(work, "memxd-test-worker", "does as it is told")
    assert not told("memxd-test-worker"), "one that has not begun is nobody's business"
    thread.start()
    until(lambda: [t.working for t in told("memxd-test-worker")] == [False])
    go.set()
    until(lambda: [t.working for t in told("memxd-test-worker")] == [True])
    [facts] = told("memxd-test-worker")
    assert (facts.role, facts.alive, facts.message) == ("does as it is told", True, "")
    assert facts.age is not None
    assert 0 <= facts.age < 60
    assert facts.cpu is None if sys.platform != "linux" else facts.cpu is not None
    end.set()
    thread.join()
    assert not told("memxd-test-worker"), "one that ended as it should is gone"


def test_a_dead_thread_stays_known_and_its_exceptions_text_does_not(caplog: pytest.LogCaptureFixture) -> None:
    heard = threading.Event()
    threads.on_vital_death(heard.set)

    secret = " ".join(("the", "secret", "text"))  # the log shows lines of source

    def fail() -> None:
        raise ValueError(secret)

    try:
        vital = threads.Steady(fail, "memxd-test-vital", "fails", vital=True)
        other = threads.Steady(fail, "memxd-test-other", "fails as well")
        with caplog.at_level(logging.ERROR, "memxd.threads"):
            other.start()
            other.join()
            assert not heard.is_set()
            vital.start()
            vital.join()
        assert heard.is_set()
    finally:
        threads.on_vital_death()
    [facts] = told("memxd-test-vital")
    assert not facts.alive
    assert facts.message.startswith("ValueError at test_threads.py:")
    lines = [str(vars(record)) for record in caplog.records]
    assert len(lines) == 2
    assert not any(secret in line for line in lines)


def test_queues_are_told_for_as_long_as_they_live() -> None:
    class Line:
        waiting = 3

    line: Any = Line()
    threads.watch(line, "test line", 7)
    assert [(q.depth, q.limit) for q in threads.queues() if q.name == "test line"] == [(3, 7)]
    del line
    until(lambda: not [q for q in threads.queues() if q.name == "test line"])


def told(name: str) -> list[Any]:
    return [t for t in threads.overview() if t.name == name]


def until(condition: Any) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
