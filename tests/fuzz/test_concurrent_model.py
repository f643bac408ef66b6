"""Sixteen agents at once, index rebuilds and flushes under them, stopped and killed in the middle, against a model.

What each has been told is true at once, by both legs, and is still true after SIGTERM and after kill -9; nothing is
lost, nothing comes back, nothing happens by halves. ``make fuzz ARGS=--agents`` goes on for longer.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from fuzz_agents import AGENTS, play


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_what_was_acknowledged_is_true_at_once_and_after_every_end(tmp_path: Path) -> None:
    phases = ((400, signal.SIGTERM), (400, signal.SIGKILL), (400, signal.SIGKILL), (300, None))
    actors = play(tmp_path, seed=7, phases=phases)
    assert sum(len(actor.model.records) for actor in actors) > 3 * AGENTS, "the agents have stored next to nothing"
