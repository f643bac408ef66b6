"""``memx bench speed --quick`` works from the command line to the pictures. For function: no time is looked at."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memxd.bench.registry import QUESTIONS
from memxd.bench.report import Report

# The daemons, children and peers of every question: some minutes on two cores.
pytestmark = [pytest.mark.slow, pytest.mark.model, pytest.mark.timeout(900)]
STRICT = os.environ.get("CI_REQUIRE_TOOLS") == "1"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The folder of the report, and the finished process."""
    folder = tmp_path_factory.mktemp("bench")
    command = [sys.executable, "-m", "memxd.bench", "speed", "--quick", "--work", str(folder / "work")]
    command += ["--out", str(folder / "out"), *(["--strict"] if STRICT else [])]
    return folder / "out", subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def report(done: tuple[Path, subprocess.CompletedProcess[str]]) -> Report:
    out, process = done
    assert process.returncode == 0, process.stderr
    return Report.read(out)


def test_every_question_is_answered(report: Report) -> None:
    assert [part.question for part in report.parts] == [question.name for question in QUESTIONS]
    empty = [part.question for part in report.parts if not part.result.measurements and not part.result.skipped]
    assert not empty


def test_the_report_is_plain_json_with_its_schema(done: tuple[Path, Any], report: Report) -> None:
    value = json.loads((done[0] / "report.json").read_text(encoding="utf-8"))
    assert value["schema"] == 1
    assert value["run"]["quick"] is True
    for part in value["parts"]:
        for row in part["result"]["measurements"]:
            assert {"question", "stage", "size", "variant", "unit", "n", "p50", "p90", "p95", "p99", "min"} <= set(row)
            assert row["question"] == part["question"]
        for row in part["result"]["budgets"]:
            assert {"name", "measured", "budget", "unit", "peer", "ratio", "met"} <= set(row)
    names = [(m.question, m.stage, m.size, m.variant) for m in report.measurements if "share_of" not in m.extra]
    assert len(names) == len(set(names))  # two reports can be laid side by side


def test_every_question_holds_something_against_a_budget(report: Report) -> None:
    without = [p.question for p in report.parts if not p.result.budgets and not p.result.skipped]
    assert not without


def test_what_does_not_depend_on_time_holds_even_in_a_quick_run(report: Report) -> None:
    assert not report.missed
    assert any(budget.met for budget in report.budgets)


def test_tables_and_pictures_are_there(done: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    out, process = done
    text = (out / "report.md").read_text(encoding="utf-8")
    assert "| budget | records | measured | allowed |" in text
    assert process.stdout.startswith("| budget |")
    pytest.importorskip("matplotlib")
    page = (out / "report.html").read_text(encoding="utf-8")
    pictures = sorted((out / "plots").glob("*.png"))
    assert pictures
    assert all(f"plots/{path.name}" in page and path.stat().st_size > 2_000 for path in pictures)
    assert "http" not in page  # nothing is fetched from elsewhere
