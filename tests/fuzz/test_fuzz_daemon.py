"""Thousands of random and damaged requests: nothing breaks, nothing leaks, nothing guarded changes.

The same steps every time; ``make fuzz`` goes on for as long as one likes, with other seeds.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fuzz_generate import Generator
from fuzz_pool import Pool
from fuzz_run import report, run
from fuzz_session import SERVICES
from memxd.errors import BY_REASON


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_fixed_attack_breaks_nothing(tmp_path: Path) -> None:
    session = run(tmp_path, seed=20_240_607, count=3_000, seconds=0)
    told = report(session, 0)
    print(told)
    assert not session.judge.findings, told
    assert session.steps >= 3_000
    for method in (m.name for service in SERVICES for m in service.methods):
        outcomes = {outcome.removeprefix("item ") for what, outcome in session.judge.tally if what == method}
        assert "OK" in outcomes, f"{method} was never answered: the attack stays on the surface\n{told}"
        # These are called seldom and ask for next to nothing: a run may well find nothing to refuse.
        assert method in ("Flush", "Rebuild", "Verify", "Compact") or outcomes & set(BY_REASON), (
            f"{method} was never refused\n{told}"
        )


def test_every_request_message_can_be_generated_twice_alike() -> None:
    for service in SERVICES:
        for method in service.methods:
            for wild in (0.0, 0.3, 1.0):
                one, two = (Generator(random.Random(7), Pool()).request(method.input_type, wild) for _ in range(2))
                raw = one.SerializeToString(deterministic=True)
                assert raw == two.SerializeToString(deterministic=True)
                assert len(raw) < 4 * 1024 * 1024
