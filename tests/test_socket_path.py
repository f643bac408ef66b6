"""The socket rule: the vectors that every client runs, and the check of a folder others could have prepared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memxd.errors import SocketPathError
from memxd.socket_path import check_private_folder, client_socket, resolve_socket, temporary_folder

VECTORS = Path(__file__).parents[1] / "clients" / "conformance" / "socket_path.json"
CASES: list[dict[str, Any]] = json.loads(VECTORS.read_text(encoding="utf-8"))["cases"]


@pytest.mark.parametrize("case", CASES, ids=[c["name"] for c in CASES])
def test_conformance_vector(case: dict[str, Any]) -> None:
    def resolve() -> str:
        return str(resolve_socket(case["explicit"], case["environ"], uid=case["uid"], cwd=case["cwd"]))

    if case.get("error"):
        with pytest.raises(SocketPathError):
            resolve()
    else:
        assert resolve() == case["path"]


def test_a_zero_byte_is_refused() -> None:
    with pytest.raises(SocketPathError, match="zero byte"):
        resolve_socket("/srv/a\0b.sock", {})


def test_a_private_folder_passes(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir(mode=0o700)
    check_private_folder(folder)


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o777, 0o701, 0o1777])
def test_a_folder_open_to_others_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(SocketPathError, match=f"chmod 700 {folder}"):
        check_private_folder(folder)


def test_a_symbolic_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(SocketPathError, match="symbolic link"):
        check_private_folder(tmp_path / "link")


def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o700)
    with pytest.raises(SocketPathError, match="belongs to user"):
        check_private_folder(folder, uid=folder.stat().st_uid + 1)


def test_a_client_does_not_trust_a_planted_folder(tmp_path: Path) -> None:
    environ = {"TMPDIR": str(tmp_path)}
    assert client_socket(None, environ) == temporary_folder(environ) / "memxd.sock"  # not there yet: no harm
    temporary_folder(environ).mkdir(mode=0o755)
    temporary_folder(environ).chmod(0o755)
    with pytest.raises(SocketPathError):
        client_socket(None, environ)
