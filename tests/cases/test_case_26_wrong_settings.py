"""Case 26: a service that is set wrongly ends once, names the key, and is not started over and over.

Other programs' services restart in a loop on a configuration error. The real systemd is asked in
tests/operation/test_service_systemd.py; here the two sides must agree wherever the tests run.
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from memxd.operation.plan import Plan
from memxd.operation.systemd import SANDBOX, system_template, user_unit


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MEMX", "XDG_", "NOTIFY_"))}
    return kept | {
        "HOME": str(tmp_path),
        "MEMXD_DATA_DIR": str(tmp_path / "data"),
        "MEMXD_SOCKET": str(tmp_path / "run" / "m.sock"),
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
    }


def refused_codes(environ: dict[str, str]) -> list[set[str]]:
    """The exit codes after which each unit forbids a restart."""
    plan = Plan.of(environ)
    units = [user_unit(plan, version=254, sandbox=SANDBOX), system_template(plan, version=254)]
    return [set(re.findall(r"^RestartPreventExitStatus=(.*)$", unit, re.MULTILINE)[0].split()) for unit in units]


@pytest.mark.parametrize(
    ("file", "variables", "key"),
    [
        ("workres = 3\n", {}, "workres"),
        ("workers = 0\n", {}, "workers"),
        ("workers = \n", {}, "not valid TOML"),
        ("", {"MEMXD_TIME_ZONE": "Mars/Olympus"}, "time_zone"),
        ("", {"MEMXD_MODEL": "none-such"}, "none-such"),
    ],
)
def test_it_ends_with_a_code_that_forbids_a_restart_and_names_the_key(
    environ: dict[str, str], tmp_path: Path, file: str, variables: dict[str, str], key: str
) -> None:
    forbidden = refused_codes(environ)
    path = tmp_path / "config.toml"
    path.write_text(file)
    path.chmod(0o600)
    done = subprocess.run(
        [sys.executable, "-m", "memxd", "serve"],
        env=environ | {"MEMXD_CONFIG": str(path)} | variables,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert all(str(done.returncode) in codes for codes in forbidden), done
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("memxd: ")]
    assert key in said


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ("PRAGMA user_version = 99", "install the memxd"),
        ("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'nonsense'", "is damaged"),
    ],
    ids=["newer schema", "damaged"],
)
def test_a_database_that_no_restart_mends_is_left_alone_too(
    environ: dict[str, str], tmp_path: Path, spoil: str, said: str
) -> None:
    """It is a restart that such a service must not try over and over: nothing is changed, and the message says what
    to do."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    database = sqlite3.connect(data / "memxd.db", isolation_level=None)
    database.executescript(f"PRAGMA journal_mode = WAL; CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT); {spoil};")
    database.close()
    before = (data / "memxd.db").read_bytes()
    done = subprocess.run(
        [sys.executable, "-m", "memxd", "serve", "--embedder", "hashing"],
        env=environ, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert all(str(done.returncode) in codes for codes in refused_codes(environ)), done
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("memxd: ")]
    assert said in line
    assert (data / "memxd.db").read_bytes() == before
