"""A machine that sleeps: a daemon that stood still for a while goes on where it was, with every timer."""

from __future__ import annotations

import signal
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from memxd.client import Client
from memxd.errors import DeadlineExceededError, MemxdError


def counted(path: Path, id: str) -> int:
    raw = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    [count] = raw.execute("SELECT access_count FROM memories WHERE id = ?", (id,)).fetchone()
    raw.close()
    return int(count)


def test_connections_timers_and_answers_go_on_after_it(daemon: Any) -> None:
    with Client(daemon.socket, timeout=30) as client:
        stored = client.store("The heron stands still in the reeds").memory
        client.get(stored.id)
        daemon.suspend()
        with pytest.raises((DeadlineExceededError, MemxdError)):
            client.count(timeout=0.5)
        time.sleep(3)  # longer than counters wait, and than the tail of an index does
        daemon.signal(signal.SIGCONT)
        assert client.count() == 1  # on the same connection
        client.get(stored.id)
        end = time.monotonic() + 20
        while counted(daemon.data_dir / "memxd.db", stored.id) < 2:
            assert time.monotonic() < end, "counters are not written any more"
            time.sleep(0.1)
        for mode in ("vector", "keyword"):
            answer = client.search("heron in the reeds", mode=mode)
            assert ([hit.memory.id for hit in answer.hits], answer.degraded) == ([stored.id], ())
        status = client.status()
        assert {index.watermark for index in status.engine.indexes} == {status.engine.revision}
    assert daemon.stop() == 0
    assert not [line for line in daemon.log_lines if line["level"] in ("warning", "error", "critical")]
