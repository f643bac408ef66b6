"""Case 8: kill -9 at random moments while storing; every acknowledged memory is found afterwards by both legs.

A round of the torture (tests/torture), at moments of chance and around the commit; ``make torture`` goes on for longer.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from torture_rounds import RANDOM, STARTING, Torture


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_whatever_was_acknowledged_before_a_kill_is_found_by_both_legs() -> None:
    points = [RANDOM, STARTING, "commit.before", "commit.after", "commit.index", "keyword.asked", "keyword.written"]
    with tempfile.TemporaryDirectory(prefix="mxc-") as folder:
        torture = Torture(Path(folder).resolve(), seed=8)
        try:
            torture.run(10, points)
        finally:
            torture.close()
    for point, row in torture.table.items():
        assert not row.verdict, (point, row.verdict)
    assert sum(row.kills for row in torture.table.values()) == 10
