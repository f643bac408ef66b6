"""The unit files and the property list: what stands in them, and what systemd's own judges say of them."""

from __future__ import annotations

import plistlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memxd.errors import ConfigError
from memxd.operation.launchd import property_list
from memxd.operation.plan import Plan
from memxd.operation.systemd import SANDBOX, system_template, user_unit

#: A template's score by `systemd-analyze security`, at most; 0 is the safest.
SCORE = 2.0


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    return {
        "HOME": str(tmp_path),
        "XDG_RUNTIME_DIR": str(runtime),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }


def lines(unit: str, key: str) -> list[str]:
    """The values of a key, in order."""
    return re.findall(rf"^{key}=(.*)$", unit, re.MULTILINE)


def user(environ: dict[str, str], version: int = 252, *, sandbox: bool = True) -> str:
    return user_unit(Plan.of(environ), version=version, sandbox=SANDBOX if sandbox else ())


def analyze(*words: str) -> subprocess.CompletedProcess[str]:
    """systemd-analyze; skipped where the machine is not systemd's."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("this machine has no systemd-analyze (it comes with systemd)")
    return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=False, timeout=60)


def installed_version() -> int:
    found = re.match(r"systemd (\d+)", analyze("--version").stdout)
    assert found is not None
    return int(found[1])


def test_restarts_follow_a_crash_and_never_a_wrong_setting(environ: dict[str, str]) -> None:
    unit = user(environ)
    assert lines(unit, "Restart") == ["on-failure"]
    assert {"64", "65", "69", "72", "73", "78"} == set(lines(unit, "RestartPreventExitStatus")[0].split())
    assert lines(unit, "StartLimitBurst"), "an old systemd has no growing delay: the number of tries is bounded"


def test_the_delay_grows_and_reloading_is_the_managers_where_it_can(environ: dict[str, str]) -> None:
    unit = user(environ, 254)
    assert lines(unit, "RestartSteps")
    assert lines(unit, "RestartMaxDelaySec")
    assert lines(unit, "Type") == ["notify-reload"]
    assert not lines(unit, "ExecReload")
    assert lines(user(environ, 252), "Type") == ["notify"]


def test_settings_of_the_environment_go_along_but_never_a_secret(environ: dict[str, str]) -> None:
    environ |= {"MEMXD_WORKERS": "3", "MEMXD_OPENAI_MODEL": 'a "b" 100%\\', "OTHER": "x"}
    told = lines(user(environ), "Environment")
    assert "MEMXD_WORKERS=3" in told
    assert '"MEMXD_OPENAI_MODEL=a \\"b\\" 100%%\\\\"' in told
    assert not [line for line in told if "OTHER" in line]
    with pytest.raises(ConfigError, match="MEMXD_OPENAI_KEY is set"):
        user(environ | {"MEMXD_OPENAI_KEY": "sk-1"})


def test_the_network_is_open_only_for_an_endpoint_or_a_port(environ: dict[str, str]) -> None:
    assert lines(user(environ), "RestrictAddressFamilies") == ["AF_UNIX"]
    endpoint = environ | {"MEMXD_EMBEDDER": "openai", "MEMXD_OPENAI_PRESET": "ollama"}
    assert lines(user(endpoint), "RestrictAddressFamilies") == ["AF_UNIX AF_INET AF_INET6"]
    port = environ | {"MEMXD_LISTEN": "127.0.0.1:7077", "MEMXD_AUTH": "token"}
    assert lines(user(port), "RestrictAddressFamilies") == ["AF_UNIX AF_INET AF_INET6"]


def test_what_needs_namespaces_is_left_out_where_there_are_none(environ: dict[str, str]) -> None:
    without = user(environ, sandbox=False)
    assert not lines(without, "ProtectSystem")
    assert not lines(without, "PrivateUsers")
    assert lines(without, "NoNewPrivileges") == ["yes"]
    assert str(environ["XDG_DATA_HOME"]) in " ".join(lines(user(environ), "ReadWritePaths"))


def test_the_usual_sockets_folder_comes_with_the_service(environ: dict[str, str], tmp_path: Path) -> None:
    assert lines(user(environ), "RuntimeDirectory") == ["memxd"]
    elsewhere = user(environ | {"MEMXD_SOCKET": str(tmp_path / "other" / "m.sock")})
    assert not lines(elsewhere, "RuntimeDirectory")
    assert str(tmp_path / "other") in " ".join(lines(elsewhere, "ReadWritePaths"))


@pytest.mark.parametrize("sandbox", [True, False])
def test_systemd_finds_nothing_wrong_with_the_users_unit(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: bool
) -> None:
    path = tmp_path / "memxd.service"
    path.write_text(user(environ, installed_version(), sandbox=sandbox))
    monkeypatch.setenv("XDG_RUNTIME_DIR", environ["XDG_RUNTIME_DIR"])
    done = analyze("verify", "--user", str(path))
    if "Failed to initialize manager" in done.stderr:
        pytest.skip(f"systemd-analyze cannot verify user units here: {done.stderr.strip()}")
    assert (done.returncode, done.stderr) == (0, "")


def test_systemd_finds_nothing_wrong_with_the_template(environ: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "memxd@.service"
    path.write_text(system_template(Plan.of(environ), version=installed_version()))
    done = analyze("verify", str(path))
    told = [line for line in done.stderr.splitlines() if "memxd" in line]
    assert (done.returncode, told) == (0, [])


def test_the_template_scores_as_safe(environ: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "memxd@.service"
    path.write_text(system_template(Plan.of(environ), version=installed_version()))
    done = analyze("security", "--offline=true", "--no-pager", str(path))
    if "--offline" in done.stderr:
        pytest.skip(f"this systemd cannot judge a file: {done.stderr.strip()}")
    found = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
    assert found is not None, done.stdout + done.stderr
    assert float(found[1]) <= SCORE


def test_the_property_list_restarts_after_a_crash_only(environ: dict[str, str], tmp_path: Path) -> None:
    agent = plistlib.loads(property_list(Plan.of(environ | {"MEMXD_WORKERS": "3"}), tmp_path))
    assert agent["KeepAlive"] == {"Crashed": True}
    assert agent["RunAtLoad"] is True
    assert agent["ProgramArguments"] == [sys.executable, "-m", "memxd", "serve"]
    assert agent["EnvironmentVariables"]["MEMXD_WORKERS"] == "3"
    assert agent["StandardErrorPath"] == str(tmp_path / "Library" / "Logs" / "memxd" / "memxd.log")
    assert agent["Umask"] == 0o077
