"""The service under a real `systemd --user`: installed, crashed, hung, wrongly set, reloaded, removed.

Skipped with the reason where none can be started: it needs root, cgroup v2, systemd and a D-Bus daemon, which no tool
of ours can fetch, so that is no error under CI_REQUIRE_TOOLS either.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

#: Log to a file, as there is no journal; be quick about a restart and about a hung process.
DROP_IN = """[Service]
StandardError=append:{log}
RestartSec=0.2
WatchdogSec=3
"""

SCRIPT = r"""
set -u
memx() { "$PYTHON" -m memxd.cli --no-start "$@"; }
show() { systemctl --user show memxd.service --property "$1" --value; }
told() { echo "$1=$2"; }
until_other() { # a new main process, of which systemd says that it runs
    for _ in $(seq 200); do
        now=$(show MainPID)
        [ "$now" != "$1" ] && [ "$now" != 0 ] && [ "$(show ActiveState)" = active ] && return 0
        sleep 0.1
    done
    return 1
}
systemctl --user set-environment PYTHONPATH="$PYTHONPATH"

told install "$(memx service install >/dev/null 2>"$HOME/err" && echo ok || cat "$HOME/err")"
told status "$(memx service status --json | tr -d '\n')"
told add "$(memx add 'Ada drinks tea.' >/dev/null && echo ok)"
told notified "$(show StatusText)"

pid=$(show MainPID); kill -SEGV "$pid"
told after_crash "$(until_other "$pid" && memx count)"

pid=$(show MainPID); kill -STOP "$pid"
told after_hang "$(until_other "$pid" && memx count)"

mkdir -p "$XDG_CONFIG_HOME/memxd"; echo 'log_level = "debug"' > "$XDG_CONFIG_HOME/memxd/config.toml"
pid=$(show MainPID); systemctl --user reload memxd.service
told reloaded "$([ "$(show MainPID)" = "$pid" ] && show StatusText)"

echo 'workres = 3' > "$XDG_CONFIG_HOME/memxd/config.toml"
memx service stop >/dev/null
rm "$XDG_CONFIG_HOME/memxd/config.toml"
systemctl --user set-environment MEMXD_WORKERZ=3
told refused "$(memx service start 2>&1 | tr '\n' ' ')"
sleep 1
told restarts "$(show NRestarts)"
told exit_code "$(show ExecMainStatus)"
systemctl --user unset-environment MEMXD_WORKERZ

memx service stop >/dev/null
told by_itself "$("$PYTHON" -m memxd.cli count) $(show ActiveState)"
told mended "$(memx service restart >/dev/null && memx count)"
told remove "$(memx service remove)"
told left "$(ls "$XDG_CONFIG_HOME/systemd/user" | grep -c 'memxd.service$')"
told status_code "$(memx service status >/dev/null; echo $?)"
"""


@pytest.fixture(scope="module")
def told() -> Iterator[dict[str, str]]:
    """What one session under systemd printed, and the service's log."""
    # Not in the temporary folder of the tests: its path is longer than a socket's may be.
    with tempfile.TemporaryDirectory(prefix="memx-") as folder:
        home = Path(folder)
        drop_in = home / "config" / "systemd" / "user" / "memxd.service.d" / "test.conf"
        drop_in.parent.mkdir(parents=True)
        drop_in.write_text(DROP_IN.format(log=home / "log"))
        # Nothing that measures coverage comes along: the sandbox lets no process of the service write by the sources.
        strange = ("MEMX", "XDG_", "DBUS_", "NOTIFY_", "COV")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(strange)}
        environ = kept | {
            "HOME": folder,
            "XDG_CONFIG_HOME": f"{folder}/config",
            "XDG_DATA_HOME": f"{folder}/data",
            "PYTHONPATH": os.pathsep.join(p for p in [str(ROOT), *sys.path] if p),
            "PYTHON": sys.executable,
            "MEMXD_EMBEDDER": "hashing",
        }
        done = subprocess.run(
            [str(HERE / "systemd_user.sh"), "bash", "-c", SCRIPT],
            env=environ, capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip
        if done.returncode == 77:
            pytest.skip(done.stderr.strip().splitlines()[-1])
        facts = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
        log = home / "log"
        yield facts | {"log": log.read_text(errors="replace") if log.exists() else "", "stderr": done.stderr}


pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_it_is_installed_and_serves(told: dict[str, str]) -> None:
    assert told["install"] == "ok", told
    state = json.loads(told["status"])
    assert state["active"]
    assert state["enabled"]
    assert state["current"]
    assert state["pid"] > 0
    assert told["notified"] == "serving"
    assert told["add"] == "ok", told["log"]


def test_a_crash_starts_it_again_with_every_memory(told: dict[str, str]) -> None:
    assert told["after_crash"] == "1", told


def test_a_hung_process_is_replaced_by_the_watchdog(told: dict[str, str]) -> None:
    assert told["after_hang"] == "1", told


def test_reloading_keeps_the_process(told: dict[str, str]) -> None:
    assert told["reloaded"] == "serving", told
    assert '"message": "settings reloaded", "changed": ["log_level"]' in told["log"]


def test_a_wrong_setting_is_told_and_not_tried_again(told: dict[str, str]) -> None:
    assert "exit code 78" in told["refused"], told
    assert (told["exit_code"], told["restarts"]) == ("78", "0")
    assert "MEMXD_WORKERZ (environment): no such setting; did you mean MEMXD_WORKERS?" in told["log"]
    assert told["mended"] == "1", told


def test_a_command_that_finds_no_daemon_starts_the_installed_service(told: dict[str, str]) -> None:
    assert told["by_itself"] == "1 active", told


def test_it_is_removed_and_the_memories_stay(told: dict[str, str]) -> None:
    assert told["remove"] == "removed; the memories stay"
    assert (told["left"], told["status_code"]) == ("0", "4")


def test_nothing_of_the_sandbox_hinders_the_daemon(told: dict[str, str]) -> None:
    assert "PermissionError" not in told["log"], told["log"]
    assert "Read-only file system" not in told["log"], told["log"]
