"""make audit: a finding is an error, and what could not be looked at is never told as clean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scripts import audit


def answer(*packages: dict[str, Any]) -> str:
    return json.dumps({"dependencies": packages, "fixes": []})


CLEAN = {"name": "numpy", "version": "2.4.6", "vulns": []}
BAD = {"name": "old", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"], "description": "x"}]}
UNKNOWN = {"name": "strange", "skip_reason": "Dependency not found on PyPI and could not be audited: strange (1)"}


def test_a_vulnerability_is_a_finding_with_its_way_out() -> None:
    verdict = audit.judged_audit(answer(CLEAN, BAD), "")
    assert verdict.findings == ("old 1.0: PYSEC-1, mended in 1.1",)
    assert verdict.lines() == ["vulnerabilities: FOUND old 1.0: PYSEC-1, mended in 1.1"]


def test_a_clean_environment_says_how_much_was_looked_at() -> None:
    assert audit.judged_audit(answer(CLEAN, CLEAN), "").lines() == ["vulnerabilities: nothing found (2 packages)"]


def test_a_database_that_knows_nothing_is_told_as_skipped() -> None:
    [line] = audit.judged_audit(answer(UNKNOWN), "").lines()
    assert "SKIPPED, so this says nothing: the database does not know 1 packages, such as strange" in line


@pytest.mark.parametrize("said", ["", "no json", "[]"])
def test_no_network_is_told_as_skipped(said: str) -> None:
    verdict = audit.judged_audit(said, "Traceback\nrequests.exceptions.ConnectionError: no route")
    assert (verdict.findings, verdict.checked) == ((), "")
    assert "no route" in verdict.skipped
    assert audit.judged_scan(said, "boom", 3).skipped == "the scan failed: boom"


def test_a_secret_is_a_finding_unless_it_is_known_to_be_none() -> None:
    known, kind = next(iter(audit.KNOWN))
    found = {known: [{"type": kind, "line_number": 3}], "a.py": [{"type": "AWS Access Key", "line_number": 7}]}
    verdict = audit.judged_scan(json.dumps({"results": found}), "", 9)
    assert verdict.findings == ("a.py:7: AWS Access Key",)
    assert audit.judged_scan(json.dumps({"results": {}}), "", 9).lines() == ["secrets: nothing found (9 files)"]


def test_what_is_known_to_be_no_secret_still_exists() -> None:
    for name, _ in audit.KNOWN:
        assert (audit.ROOT / name).is_file()


def test_without_the_tools_it_is_skipped_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit, "install", lambda folder: "pip could not install (no network?): no route")
    assert audit.main(["--tools", str(tmp_path)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split(": SKIPPED")[0] for line in told] == ["vulnerabilities", "secrets"]


@pytest.mark.parametrize(("findings", "code"), [((), 0), (("one",), 1)])
def test_only_a_finding_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, findings: tuple[str, ...], code: int
) -> None:
    monkeypatch.setattr(audit, "install", lambda folder: "")
    monkeypatch.setattr(audit, "secrets", lambda tools: audit.Verdict("secrets", findings, "1 files"))
    monkeypatch.setattr(audit, "vulnerabilities", lambda tools, python: audit.Verdict("v", skipped="no network"))
    assert audit.main(["--tools", str(tmp_path)]) == code
