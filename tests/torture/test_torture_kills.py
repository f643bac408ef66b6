"""A round of the torture for every run of the tests: twenty kills at places that between them come by every one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memxd import failpoints
from torture_model import Facts, Model, Verdict, between, compare
from torture_rounds import Torture, all_points

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="mxt-") as made:
        yield Path(os.path.realpath(made))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_kills_lose_nothing_and_bring_nothing_back(folder: Path) -> None:
    torture = Torture(folder, seed=7)
    try:
        torture.run(20, all_points())
    finally:
        torture.close()
    found = Verdict()
    for row in torture.table.values():
        found.add(row.verdict)
    assert found == Verdict()
    assert sum(row.kills for row in torture.table.values()) == 20
    assert torture.process.reached() == set(failpoints.POINTS), "a declared point that nobody reaches, or the reverse"
    assert sum(client.calls for client in torture.clients) > 500


def test_every_point_of_the_table_stands_in_the_code_and_no_other() -> None:
    named: set[str] = set()
    for path in (ROOT / "memxd").rglob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if (text := line.strip()).startswith('reach("'):
                named.add(text.split('"')[1])
    assert named == set(failpoints.POINTS)


def test_a_place_does_nothing_in_a_process_that_nobody_armed() -> None:
    assert failpoints._act is None
    failpoints.reach("commit.before")
    failpoints.reach("a name that is not in the table")


FACTS = Facts("about zqone green tea", 1, ("a",), "{}", 0.5, 1, "", 7, 3)
OTHER = Facts("about zqtwo green tea", 1, ("a",), "{}", 0.5, 1, "", 8, 4)


def test_the_comparison_tells_lost_from_resurrected_from_different() -> None:
    model = Model({"1": FACTS, "2": OTHER}, gone={"3": FACTS})
    verdict = Verdict()
    compare(model, {"2": FACTS, "3": FACTS, "4": FACTS}, verdict)
    assert (len(verdict.lost), len(verdict.resurrected), len(verdict.mismatches)) == (1, 1, 2)


def test_an_open_call_may_have_happened_or_not_but_not_by_halves() -> None:
    before, after = Model({"1": FACTS}), Model({"1": OTHER, "2": FACTS})
    for found in (before.records, after.records):
        verdict = Verdict()
        between(before, after, found, True, verdict)
        assert not verdict
    between(before, after, {"1": FACTS, "2": FACTS}, True, half := Verdict())
    assert half
    between(before, after, {"1": FACTS, "2": FACTS}, False, part := Verdict())
    assert not part
