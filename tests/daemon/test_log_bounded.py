"""The write-ahead log stays small whatever somebody reads meanwhile, however slowly. Its bounds: docs/OPERATIONS.md."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memxd.client import Client, Item

#: What docs/OPERATIONS.md promises for everything but a backup that is being made.
BOUND = 32 << 20
#: Not indexed, so that it is stored fast.
WEIGHT = {"weight": "x" * 15_000}


def store_much(client: Client, mark: str) -> None:
    """About 24 MB."""
    answers = list(client.store_many(Item(f"{mark} number {n}", metadata=WEIGHT) for n in range(1_600)))
    assert len(answers) == 1_600
    assert all(hasattr(answer, "memory") for answer in answers)


class Watch:
    """The largest size that the log has had."""

    def __init__(self, log: Path) -> None:
        self.peak = 0
        self._log, self._done = log, threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._done.wait(0.01):
            self.peak = max(self.peak, self._log.stat().st_size)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def exporting(client: Client) -> Callable[[], None]:
    """An export of which somebody has read a little."""
    steps = client.export(include_private=True)
    next(steps), next(steps)

    def rest() -> None:
        lines = b"".join(step.lines for step in steps).splitlines()
        assert len(lines) > 1_000

    return rest


def listing(client: Client) -> Callable[[], None]:
    """A list of which somebody has read a page."""
    memories = client.iter_list(page_size=50)
    next(memories)
    return lambda: None if sum(1 for _ in memories) > 1_000 else pytest.fail("the list ended early")


def verifying(client: Client) -> Callable[[], None]:
    """A Verify that goes on meanwhile, again and again."""
    done = threading.Event()
    found: list[Any] = []

    def look() -> None:
        while not done.is_set():
            found.append(list(client.verify())[-1].problems)

    thread = threading.Thread(target=look)
    thread.start()

    def end() -> None:
        done.set()
        thread.join()
        assert set(found) == {()}

    return end


@pytest.mark.parametrize("reading", [exporting, listing, verifying], ids=lambda r: r.__name__)
def test_a_slow_reader_does_not_let_the_log_grow(daemon: Any, reading: Callable[[Client], Callable[[], None]]) -> None:
    log = daemon.data_dir / "memxd.db-wal"
    with Client(daemon.socket, timeout=100) as slow, Client(daemon.socket, timeout=100) as client:
        store_much(client, "before")
        rest = reading(slow)
        with Watch(log) as watch:
            store_much(client, "meanwhile")
        rest()
        assert watch.peak < BOUND
        assert client.count() == 3_200
