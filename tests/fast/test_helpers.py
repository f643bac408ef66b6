"""Searches of vectors on another thread: the same answers, no thread left, nothing waits for one that is not there."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memxd._fast import dot_py, load_kernels
from memxd._fast.dot_py import Effort, GraphArrays

_dot: Any = load_kernels("c").dot
ROWS, WIDTH = 4_000, 32


def world(seed: int = 3) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Arguments of ``search_graph`` and of ``search_rids`` over the same rows."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((ROWS, WIDTH)).astype(np.float16)
    links = rng.integers(0, ROWS, (ROWS, 16)).astype(np.int32)
    graph = GraphArrays(links, np.full(ROWS, -1, np.int32), np.empty((0, 2), np.int32), 0, 0)
    head, after = np.arange(ROWS, dtype=np.int32), np.full(ROWS, -1, np.int32)
    rids = np.flatnonzero(rng.random(ROWS) < 0.7).astype(np.int32)
    mask = np.zeros(ROWS, np.uint8)
    mask[rids] = 1
    query = rng.standard_normal(WIDTH).astype(np.float32)
    effort = Effort(64, 64, 64, 30, 10**9, 0.7)
    return (query, matrix, head, after, head, graph, mask, rids, ROWS, 20, effort), (
        query,
        matrix,
        head,
        after,
        rids,
        20,
    )


def begun(helpers: Any, asked: tuple[Any, ...], *, scan: bool = False) -> Any:
    """A look that was handed over: the first time, threads may not wait for work yet."""
    end = time.monotonic() + 30
    while (look := (helpers.begin_rids if scan else helpers.begin_graph)(*asked)) is None:
        assert time.monotonic() < end
        time.sleep(0.001)
    return look


def lists(found: tuple[Any, ...]) -> list[Any]:
    return [part.tolist() for part in found[:3]]


def threads() -> int:
    """Threads of the process, those that Python does not know included."""
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.exists() else threading.active_count()


@pytest.mark.parametrize("scan", [False, True])
def test_another_thread_answers_the_same(scan: bool) -> None:
    helpers = _dot.Helpers(2)
    for seed in range(20):
        asked = world(seed)[scan]
        found = begun(helpers, asked, scan=scan).result()
        direct = (_dot.search_rids if scan else _dot.search_graph)(*asked)
        assert lists(found) == lists(direct)
        assert found[3] == (0 if scan else direct[3])
    helpers.close()


def test_an_answer_can_be_asked_for_twice_and_survives_its_arrays() -> None:
    helpers = _dot.Helpers(2)
    look = begun(helpers, world()[0])  # nobody but the look holds the arrays
    assert lists(look.result()) == lists(look.result()) == lists(_dot.search_graph(*world()[0]))
    helpers.close()


def test_what_is_dropped_or_forgotten_ends_before_its_arrays_do() -> None:
    helpers = _dot.Helpers(2)
    for _ in range(50):
        begun(helpers, world()[1], scan=True).drop()
        begun(helpers, world()[0])  # forgotten
    assert lists(begun(helpers, world()[0]).result()) == lists(_dot.search_graph(*world()[0]))
    helpers.close()


def test_no_thread_is_left_after_close_and_nothing_is_taken_over() -> None:
    before = threads()
    helpers = _dot.Helpers(8)
    look = begun(helpers, world()[0])
    assert threads() > before
    helpers.close()
    helpers.close()
    assert lists(look.result()) == lists(_dot.search_graph(*world()[0]))
    assert helpers.begin_graph(*world()[0]) is None
    assert threads() == before


def test_close_waits_for_what_is_under_way() -> None:
    helpers = _dot.Helpers(2)
    asked = world()[1]
    looks = [begun(helpers, asked, scan=True)]
    closing = threading.Thread(target=helpers.close)
    closing.start()
    assert lists(looks[0].result()) == lists(_dot.search_rids(*asked))
    closing.join(30)
    assert not closing.is_alive()


def test_with_as_many_searches_as_processors_nobody_helps() -> None:
    helpers = _dot.Helpers(2)
    helpers.enter()
    begun(helpers, world()[0]).result()
    helpers.enter()
    assert helpers.begin_graph(*world()[0]) is None
    helpers.leave()
    begun(helpers, world()[0]).result()
    helpers.leave()
    helpers.close()
    alone = _dot.Helpers(1)
    assert alone.begin_graph(*world()[0]) is None
    alone.close()


def test_bad_arrays_are_refused_before_anything_is_handed_over() -> None:
    helpers = _dot.Helpers(2)
    begun(helpers, world()[0]).result()
    asked = world()[0]
    with pytest.raises(ValueError, match="length"):
        helpers.begin_graph(asked[0][:3], *asked[1:])
    with pytest.raises(ValueError, match="beam"):
        helpers.begin_graph(*asked[:-1], asked[-1]._replace(near=0))
    helpers.close()


def test_many_threads_share_one_set_of_helpers() -> None:
    helpers, wrong = _dot.Helpers(4), []
    expected = lists(_dot.search_graph(*world()[0]))

    def ask() -> None:
        for _ in range(100):
            helpers.enter()
            look = helpers.begin_graph(*world_asked)
            found = look.result() if look is not None else _dot.search_graph(*world_asked)
            helpers.leave()
            if lists(found) != expected:
                wrong.append(found)

    world_asked = world()[0]
    asking = [threading.Thread(target=ask) for _ in range(3)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    helpers.close()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
def test_a_forked_process_has_no_helpers_and_waits_for_none() -> None:
    helpers = _dot.Helpers(2)
    begun(helpers, world()[0]).result()
    child = os.fork()
    if child == 0:
        none = helpers.begin_graph(*world()[0]) is None
        helpers.close()
        os._exit(0 if none else 1)
    assert os.waitpid(child, 0)[1] == 0
    helpers.close()


def test_the_plain_twin_hands_nothing_over() -> None:
    helpers = dot_py.Helpers(8)
    helpers.enter()
    assert helpers.begin_graph(*world()[0]) is None
    assert helpers.begin_rids(*world()[1]) is None
    helpers.leave()
    helpers.close()
