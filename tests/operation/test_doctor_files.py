"""The doctor without a daemon: what it finds on disk, what it mends, and that it deletes no data."""

from __future__ import annotations

import socket as sockets
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memxd.errors import StorageFailedError
from memxd.operation.doctor import diagnose, mend
from memxd.operation.findings import Finding, problem
from memxd.store.schema import MIGRATIONS

Look = Callable[[], dict[str, Finding]]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A home whose socket path is short enough."""
    return {
        "HOME": str(tmp_path),
        "PATH": str(tmp_path / "no tools"),
        "TMPDIR": str(tmp_path),
        "MEMXD_SOCKET": str(tmp_path / "run" / "m.sock"),
        "MEMXD_DATA_DIR": str(tmp_path / "data"),
        "MEMXD_EMBEDDER": "hashing",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    return folder


def by_check(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.check: finding for finding in findings}


def database(folder: Path, version: int) -> Path:
    path = folder / "memxd.db"
    connection = sqlite3.connect(path)
    connection.executescript(f"CREATE TABLE t(x); PRAGMA user_version = {version};")
    connection.close()
    path.chmod(0o600)
    return path


def test_a_fresh_machine_has_no_problem_and_stays_untouched(environ: dict[str, str], tmp_path: Path) -> None:
    found = diagnose(environ | {"MEMXD_EMBEDDER": "onnx"})
    assert [f for f in found if f.state == "problem"] == []
    assert {"config", "socket", "permissions", "disk", "schema", "indexes", "model", "kernels", "service"} == {
        f.check for f in found
    }
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_setting_is_named_with_the_nearest_name(environ: dict[str, str]) -> None:
    found = by_check(diagnose(environ | {"MEMXD_WORKERZ": "3"}))["config"]
    assert found.state == "problem"
    assert "did you mean MEMXD_WORKERS" in found.text
    assert found.command == "memx config check"


def test_modes_that_let_others_in_are_mended(environ: dict[str, str], data: Path, tmp_path: Path) -> None:
    path = database(data, len(MIGRATIONS))
    path.chmod(0o644)
    data.chmod(0o755)
    config = tmp_path / "config" / "memxd" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("workers = 3\n")
    config.chmod(0o644)
    found = by_check(diagnose(environ))
    assert found["permissions"].command == f"chmod -R go-rwx {data}"
    assert found["config"].command == f"chmod 600 {config}"
    mended = by_check(mend(list(found.values())))
    assert (mended["permissions"].state, mended["config"].state) == ("fixed", "fixed")
    assert [p.stat().st_mode & 0o777 for p in (data, path, config)] == [0o700, 0o600, 0o600]
    assert by_check(diagnose(environ))["permissions"].state == "ok"


def test_a_newer_schema_and_a_damaged_database_are_told_and_left_alone(environ: dict[str, str], data: Path) -> None:
    path = database(data, 99)
    newer = by_check(diagnose(environ))["schema"]
    assert (newer.state, newer.mend) == ("problem", None)
    assert "99" in newer.text
    path.write_bytes(b"not a database, whatever it is called" * 300)
    before = path.read_bytes()
    damaged = by_check(mend(diagnose(environ)))["schema"]
    assert damaged.state == "problem"
    assert "damaged" in damaged.text
    assert path.read_bytes() == before


def test_a_socket_that_nobody_serves_is_removed_and_any_other_file_is_not(environ: dict[str, str]) -> None:
    path = Path(environ["MEMXD_SOCKET"])
    path.parent.mkdir(mode=0o700)
    with sockets.socket(sockets.AF_UNIX) as left:
        left.bind(str(path))
    assert by_check(mend(diagnose(environ)))["socket"].state == "fixed"
    assert not path.exists()
    path.write_text("precious")
    found = by_check(mend(diagnose(environ)))["socket"]
    assert found.state == "problem"
    assert path.read_text() == "precious"


def test_a_socket_folder_open_to_others_is_told(environ: dict[str, str]) -> None:
    folder = Path(environ["MEMXD_SOCKET"]).parent
    folder.mkdir()
    folder.chmod(0o777)
    assert by_check(diagnose(environ))["socket"].command == f"chmod 700 {folder}"


def test_an_endpoint_that_does_not_answer_is_told(environ: dict[str, str]) -> None:
    with sockets.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/v1"
        found = by_check(diagnose(environ | {"MEMXD_EMBEDDER": "openai", "MEMXD_OPENAI_BASE_URL": url}))["embedder"]
    assert found.state == "problem"
    assert url in found.text
    assert "embedder=onnx" in found.command


def test_an_endpoint_that_wants_a_key_is_told(environ: dict[str, str]) -> None:
    found = by_check(diagnose(environ | {"MEMXD_EMBEDDER": "openai", "MEMXD_OPENAI_PRESET": "openai"}))["embedder"]
    assert "wants a key" in found.text


def test_a_damaged_model_is_told(environ: dict[str, str], data: Path) -> None:
    found = by_check(diagnose(environ | {"MEMXD_EMBEDDER": "onnx", "MEMXD_MODEL": "none-such"}))["model"]
    assert (found.state, found.command) == ("problem", "memx models use default")


def test_what_cannot_be_mended_stays_a_problem_and_says_why() -> None:
    def refuse() -> None:
        raise StorageFailedError("the disk said no")

    (left,) = mend([problem("disk", "x", "it is so", "do this", mend=refuse)])
    assert left.state == "problem"
    assert left.reason == "it is so; mending failed: the disk said no"


@pytest.mark.skipif(sys.platform == "darwin", reason="launchd is always there")
def test_a_machine_without_a_service_manager_is_no_problem(environ: dict[str, str], tmp_path: Path) -> None:
    unit = tmp_path / "config" / "systemd" / "user" / "memxd.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\n")
    found = by_check(diagnose(environ))["service"]
    assert found.state == "note"
    assert "no systemctl" in found.text


def test_copies_from_before_an_update_are_named_with_their_size_and_left(environ: dict[str, str], data: Path) -> None:
    database(data, len(MIGRATIONS))
    assert "copies" not in by_check(diagnose(environ))
    kept = data / "before-migration-1-2027-01-15T080000"
    kept.mkdir(mode=0o700)
    (kept / "memxd.db").write_bytes(b"x" * 3 * 1024**2)
    found = by_check(mend(diagnose(environ)))["copies"]
    assert (found.state, found.command) == ("note", f"rm -r {kept}")
    assert "3.0 MiB" in found.text
    assert "erased" in found.reason
    assert kept.is_dir()
