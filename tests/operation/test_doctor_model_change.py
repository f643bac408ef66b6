"""The doctor on a change of the embedding model: a note while it goes on, a problem while something holds it up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from memxd.config import Config
from memxd.model import ChangePhase, ModelChange
from memxd.operation.check_model import check_model

CHANGE = ModelChange("old-384", "new-768", 768, ChangePhase.EMBEDDING, 250, 1_000, True)


def _config(tmp_path: Path) -> Config:
    return Config.load({"data_dir": tmp_path, "socket": tmp_path / "s"}, {"HOME": str(tmp_path)})


def test_a_change_under_way_is_a_note(tmp_path: Path) -> None:
    found = check_model(_config(tmp_path), None, CHANGE)[-1]
    assert (found.state, found.command) == ("note", "memx models")
    assert "250 of 1,000" in found.text
    assert "the former model answers" in found.reason


def test_what_holds_it_up_is_a_problem(tmp_path: Path) -> None:
    held = replace(CHANGE, message="the endpoint is down", former_serves=False)
    found = check_model(_config(tmp_path), None, held)[-1]
    assert found.state == "problem"
    assert "the endpoint is down" in found.text
    assert "by words only" in found.reason
