"""memx doctor beside a running daemon, and beside one that is suspended."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from memxd.operation.doctor import diagnose
from memxd.operation.service import end_daemon, socket_holder


@pytest.fixture
def here(environ: dict[str, str], daemon: Any) -> dict[str, str]:
    """The environment that names the daemon's socket and data."""
    return environ | {
        "MEMXD_SOCKET": str(daemon.socket),
        "MEMXD_DATA_DIR": str(daemon.data_dir),
        "MEMXD_EMBEDDER": "hashing",
    }


def test_a_sound_daemon_has_no_problem_but_the_test_embedder(here: dict[str, str], daemon: Any) -> None:
    found = diagnose(here)
    assert [f.check for f in found if f.state == "problem"] == ["model"]
    texts = {f.check: f.text for f in found}
    assert f"pid {daemon.pid}" in texts["daemon"]
    assert texts["indexes"].startswith("ready: ")
    assert texts["schema"].startswith("schema version")


def test_other_settings_than_the_daemons_are_told(here: dict[str, str], tmp_path: Any) -> None:
    found = {f.check: f for f in diagnose(here | {"MEMXD_DATA_DIR": str(tmp_path / "elsewhere")})}
    assert "the settings say" in found["daemon"].text


def test_a_suspended_daemon_is_told_and_left_alone(here: dict[str, str], daemon: Any) -> None:
    daemon.suspend()
    found = {f.check: f for f in diagnose(here)}
    daemon.signal(signal.SIGCONT)
    assert found["socket"].state == "problem"
    assert found["socket"].mend is None
    assert daemon.stop() == 0


def test_a_daemon_in_the_background_gives_its_place_to_the_service(daemon: Any) -> None:
    assert socket_holder(daemon.socket) == daemon.pid
    assert end_daemon(daemon.socket, 30, but=daemon.pid) == 0, "the service's own is left alone"
    os.kill(daemon.pid, 0)
    assert end_daemon(daemon.socket, 30) == daemon.pid
    assert socket_holder(daemon.socket) is None
    assert daemon.wait() == 0
