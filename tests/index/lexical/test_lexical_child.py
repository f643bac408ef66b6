"""The pipe to the writing child process: nobody waits for ever at its other end."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memxd.index.lexical.child import Child, ChildError
from memxd.index.lexical.stamp import stamp


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    """A worker of an empty folder that has answered once and may be silent for 1.5 seconds."""
    child = Child(tmp_path, stamp())
    child.ask({"op": "hello"})
    child.silence = 1.5
    yield child
    child.close()


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_silent_child_is_killed(child: Child) -> None:
    os.kill(child.pid, signal.SIGSTOP)
    with pytest.raises(ChildError, match="no sign of life"):
        child.ask({"op": "hello"})
    assert _gone(child.pid)


def test_a_child_that_does_not_read_is_killed(child: Child) -> None:
    os.kill(child.pid, signal.SIGSTOP)
    with pytest.raises(ChildError, match="no sign of life"):
        child.ask({"op": "texts"}, [b" " * (1 << 22)])
    assert _gone(child.pid)


def test_a_child_at_work_for_longer_than_the_silence_is_left_alone(child: Child) -> None:
    rows = [(number, 1, "some words " * 2_000 + str(number)) for number in range(25)]
    seconds = 0.0
    while seconds < child.silence + 0.5:
        began = time.monotonic()
        assert child.ask({"op": "texts"}, [json.dumps(rows).encode()])["ok"]
        seconds = time.monotonic() - began
        rows *= 2


def test_whoever_asks_may_lose_interest(child: Child) -> None:
    os.kill(child.pid, signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(ChildError, match="ended before"):
        child.ask({"op": "hello"}, ended=lambda: time.monotonic() - began > 0.2)
    assert time.monotonic() - began < 1.9
    assert _gone(child.pid)


def test_another_thread_may_kill_it(child: Child) -> None:
    os.kill(child.pid, signal.SIGSTOP)
    threading.Timer(0.2, child.kill).start()
    with pytest.raises(ChildError, match="died"):
        child.ask({"op": "hello"})


def test_an_answer_comes_back_whole_and_a_refusal_with_its_words(child: Child) -> None:
    assert child.ask({"op": "texts"}, [json.dumps([(1, 1, "tea")]).encode()]) == {"ok": True}
    with pytest.raises(ChildError, match="unknown request"):
        child.ask({"op": "dance"})
