"""What is said to launchd, by a stand-in for its tool that keeps what it is told: the real one is on macOS only."""

from __future__ import annotations

import os
import plistlib
import stat
from pathlib import Path

import pytest

from memxd.errors import ServiceManagerError
from memxd.operation.launchctl import Launchd

TOOL = """#!/bin/sh
echo "$@" >> "$HOME/calls"
case $1 in
bootstrap) : > "$HOME/loaded" ;;
bootout) rm "$HOME/loaded" ;;
print) [ -e "$HOME/loaded" ] || { echo "Could not find service" >&2; exit 113; }
    printf 'gui/501/memxd = {\\n\\tstate = running\\n\\tpid = 4711\\n\\tlast exit code = 0\\n}\\n' ;;
esac
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    tool = tmp_path / "bin" / "launchctl"
    tool.parent.mkdir()
    tool.write_text(TOOL)
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    return {
        "HOME": str(tmp_path),
        "PATH": f"{tool.parent}{os.pathsep}{os.environ['PATH']}",
        "MEMXD_SOCKET": str(tmp_path / "m.sock"),
        "MEMXD_DATA_DIR": str(tmp_path / "data"),
    }


def calls(home: Path) -> list[str]:
    """What the tool was told, but for the questions."""
    lines = (home / "calls").read_text().splitlines() if (home / "calls").exists() else []
    return [line for line in lines if not line.startswith("print ")]


def test_its_life_in_launchctls_words(environ: dict[str, str], tmp_path: Path) -> None:
    agent, domain = Launchd(environ), f"gui/{os.getuid()}"
    assert not agent.state().installed
    path = agent.install()
    assert path == tmp_path / "Library" / "LaunchAgents" / "memxd.plist"
    assert plistlib.loads(path.read_bytes())["EnvironmentVariables"]["MEMXD_DATA_DIR"] == str(tmp_path / "data")
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    (tmp_path / "loaded").touch()
    state = agent.state()
    assert (state.installed, state.current, state.active, state.pid) == (True, True, True, 4711)
    agent.stop()
    assert agent.state().active is False
    assert agent.remove()
    assert not path.exists()
    assert calls(tmp_path) == [f"bootout {domain}/memxd"]


def test_one_that_does_not_come_up_is_told_with_its_log(environ: dict[str, str], tmp_path: Path) -> None:
    agent = Launchd(environ)
    agent.install()
    (tmp_path / "bin" / "launchctl").write_text(TOOL.replace('bootstrap) : > "$HOME/loaded"', "bootstrap) :"))
    with pytest.raises(ServiceManagerError, match=r"Library/Logs/memxd/memxd\.log"):
        agent.start()
    assert calls(tmp_path) == [f"bootstrap gui/{os.getuid()} {agent.file}"]


def test_a_file_for_other_settings_is_not_current(environ: dict[str, str]) -> None:
    Launchd(environ).install()
    assert not Launchd(environ | {"MEMXD_WORKERS": "3"}).state().current
    assert not Launchd(environ | {"MEMXD_WORKERZ": "3"}).state().current


def test_without_a_file_nothing_is_started(environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ServiceManagerError, match="memx service install"):
        Launchd(environ).start()
    assert not Launchd(environ).remove()
    assert calls(tmp_path) == []
