"""memx config, setup, uninstall, doctor: what they print, their exit codes, and what they leave on disk."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memxd.__main__ import main

Memx = Callable[..., Any]


def config(home: Path) -> Path:
    return home / "config" / "memxd" / "config.toml"


def test_config_path_is_printed_whether_it_exists_or_not(memx: Memx, home: Path) -> None:
    assert memx("config", "path").out == f"{config(home)}\n"
    assert json.loads(memx("config", "path", "--json").out) == {"path": str(config(home)), "exists": False}
    named = memx("config", "path", env={"MEMXD_CONFIG": "/somewhere/c.toml"})
    assert named.out == "/somewhere/c.toml\n"


def test_config_show_lists_value_and_origin(memx: Memx) -> None:
    lines = [line.split("\t") for line in memx("config", "show", env={"MEMXD_WORKERS": "3"}).out.splitlines()]
    assert lines[0] == ["setting", "value", "from"]
    assert ["workers", "3", "MEMXD_WORKERS"] in lines
    assert ["rrf_k", "60", "default"] in lines


def test_config_check_names_the_wrong_key_and_the_nearest_name(memx: Memx, home: Path) -> None:
    assert memx("config", "check").code == 0
    config(home).parent.mkdir(parents=True)
    config(home).write_text("workres = 3\n")
    config(home).chmod(0o600)
    refused = memx("config", "check")
    assert refused.code == 2
    assert f"workres ({config(home)}): no such setting; did you mean workers?" in refused.err
    other = home / "other.toml"
    other.write_text("rrf_k = 0\n")
    other.chmod(0o600)
    assert "rrf_k" in memx("config", "check", str(other)).err


def test_memxd_has_the_same_verbs(environment: dict[str, str], monkeypatch: Any, capsys: Any, home: Path) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert main(["config", "path"]) == 0
    assert capsys.readouterr().out == f"{config(home)}\n"
    assert main(["config", "nonsense"]) == 2
    assert capsys.readouterr().err.startswith("memxd: ")


def test_setup_without_questions_writes_what_is_said(memx: Memx, home: Path) -> None:
    done = memx("setup", "--non-interactive", "--set", "workers=3", "--set", "time_zone=Europe/Berlin")
    assert (done.code, done.out) == (0, f"wrote {config(home)}\n")
    assert tomllib.loads(config(home).read_text()) == {"workers": 3, "time_zone": "Europe/Berlin"}
    assert config(home).stat().st_mode & 0o777 == 0o600
    assert memx("setup", "--non-interactive", "--set", "workers=4").code == 0
    assert tomllib.loads(config(home).read_text())["workers"] == 4
    assert memx("setup", "--non-interactive", "--set", "workers=0").code == 2
    assert memx("setup").code == 2, "nobody is there to ask"


def test_setup_asks_on_a_terminal(memx_tty: Memx, home: Path) -> None:
    keys = b"nowhere\nollama\nMars/Olympus\nEurope/Paris\n\nn\n"
    done = memx_tty("setup", keys=keys)
    assert done.code == 0, done.out
    assert "'nowhere' is not one of them" in done.out
    assert tomllib.loads(config(home).read_text()) == {
        "embedder": "openai",
        "openai_preset": "ollama",
        "time_zone": "Europe/Paris",
    }


def test_a_key_comes_by_standard_input_and_is_never_shown(memx: Memx, home: Path) -> None:
    words = ("--set", "embedder=openai", "--set", "openai_preset=openai", "--set", "openai_key=-")
    done = memx("setup", "--non-interactive", *words, stdin=b"sk-secret\n")
    assert done.code == 0, done.err
    assert tomllib.loads(config(home).read_text())["openai_key"] == "sk-secret"
    assert "sk-secret" not in done.out + done.err + memx("config", "show").out


def test_setup_with_nothing_but_enter_keeps_every_default(memx_tty: Memx, home: Path) -> None:
    done = memx_tty("setup", keys=b"\n\n\nn\n")
    assert done.code == 0, done.out
    assert tomllib.loads(config(home).read_text()) == {}


def memories(home: Path) -> Path:
    folder = home / "data" / "memxd"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "memxd.db").write_text("")
    return folder


def test_uninstall_keeps_the_memories_and_says_where(memx: Memx, home: Path) -> None:
    folder = memories(home)
    done = memx("uninstall")
    assert done.code == 0, done.err
    assert str(folder) in done.out
    assert (folder / "memxd.db").exists()


def test_purging_wants_a_yes(memx: Memx, memx_tty: Memx, home: Path) -> None:
    folder = memories(home)
    assert memx("setup", "--non-interactive").code == 0
    assert memx("uninstall", "--purge").code == 2
    assert memx_tty("uninstall", "--purge", keys=b"yes\n").code != 0
    assert (folder / "memxd.db").exists()
    done = memx("uninstall", "--purge", "--yes", "--json")
    assert json.loads(done.out)["purged"] is True
    assert not folder.exists()
    assert not config(home).exists()


def test_doctor_tells_reason_fix_and_command(memx: Memx, home: Path) -> None:
    hashing = {"MEMXD_EMBEDDER": "hashing"}
    folder = memories(home)
    (folder / "memxd.db").chmod(0o644)
    done = memx("doctor", env=hashing)
    assert done.code == 5
    assert "PROBLEM permissions: others may look into 1 files or folders" in done.out
    assert "why: they hold memories" in done.out
    assert f"fix: take their permission away: chmod -R go-rwx {folder}" in done.out
    report = json.loads(memx("doctor", "--json", env=hashing).out)
    assert report["sound"] is False
    assert {"check", "state", "text", "reason", "fix", "command", "mendable"} == set(report["findings"][0])
    assert "FIXED   permissions" in memx("doctor", "--fix", env=hashing).out
    assert (folder / "memxd.db").stat().st_mode & 0o777 == 0o600
