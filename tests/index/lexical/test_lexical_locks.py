"""The folding thread, the applier and a rebuild never wait for each other in a circle."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from memxd.index.lexical import folding


def test_ending_an_idle_child_does_not_hold_up_the_applier(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "_IDLE_SECONDS", 0.3)
    bench.reopen()
    bench.put(1, "tea")
    bench.index.flush()
    assert bench.index._folding._child is not None
    with bench.index._folding._busy:  # as an exchange has it while it waits for the child's end
        time.sleep(0.7)
        applier = threading.Thread(target=bench.put, args=(2, "milk"), daemon=True)
        applier.start()
        applier.join(5)
        assert not applier.is_alive()
    bench.index.flush()
    assert bench.find("milk") == [2]


def test_a_change_in_the_moment_of_the_exchange_is_in_the_new_index(bench: Any) -> None:
    exchanged = threading.Event()

    class Slow(list[Any]):
        def append(self, entry: Any) -> None:
            exchanged.wait(10)
            super().append(entry)

    applier = threading.Thread(target=bench.index.apply, args=(bench.change(2, 2, "milk"),))

    def rows() -> Any:
        yield bench.change(1, 1, "tea")
        bench.index._journal = Slow()
        applier.start()
        time.sleep(0.2)

    bench.index.rebuild(rows(), 1, revision=1)
    exchanged.set()
    applier.join()
    assert bench.find("tea") == [1]
    assert bench.find("milk") == [2]
    assert bench.index.watermark == 2
