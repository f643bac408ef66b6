"""A call for which imports step aside counts from its submission to its end, however it ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from memxd.engine.courtesy import Courtesy
from memxd.service.ahead import Ahead
from memxd.service.pool import Pool


@pytest.fixture
def pool() -> Iterator[Pool]:
    pool = Pool(1, 4, "test-ahead")
    yield pool
    pool.shutdown()


def test_a_call_counts_while_it_waits_for_a_thread_and_while_it_runs(pool: Pool) -> None:
    courtesy, begin, begun, end = Courtesy(), threading.Event(), threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        assert end.wait(30)

    pool.submit(begin.wait, 30)  # the only thread is busy
    Ahead(pool, lambda: courtesy).submit(call)
    assert courtesy._asking == 1
    begin.set()
    assert begun.wait(30)
    assert courtesy._asking == 1
    end.set()
    assert pool.wait_idle(30, lambda: False)
    assert courtesy._asking == 0


def test_a_call_that_fails_or_is_not_taken_counts_no_longer(pool: Pool) -> None:
    courtesy = Courtesy()
    ahead = Ahead(pool, lambda: courtesy)
    ahead.submit(lambda: 1 // 0)
    assert pool.wait_idle(30, lambda: False)
    assert courtesy._asking == 0
    pool.shutdown()
    with pytest.raises(RuntimeError, match="shut down"):
        ahead.submit(lambda: None)
    assert courtesy._asking == 0
