"""The socket on disk: folders, modes, leftovers, locks, long paths."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from memxd.errors import AlreadyRunningError, SocketPathError, StartupError
from memxd.service.socket import SocketClaim, lock_path, prepare_folder, somebody_answers


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "run"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def listener(folder: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "memxd.sock"))
        server.listen()
        yield server


def test_the_folder_is_made_private(tmp_path: Path) -> None:
    with SocketClaim(tmp_path / "a" / "b" / "memxd.sock", {}):
        assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700


def test_the_socket_is_born_private_whatever_the_umask(folder: Path) -> None:
    before = os.umask(0)
    try:
        with SocketClaim(folder / "memxd.sock", {}) as claim, socket.socket(socket.AF_UNIX) as server:
            with claim.binding():
                server.bind(str(claim.path))
            assert stat.S_IMODE(claim.path.stat().st_mode) == 0o600
        assert os.umask(0) == 0, "the umask is back"
        assert not claim.path.exists(), "our socket is removed"
    finally:
        os.umask(before)


def test_a_folder_of_ours_by_the_rule_must_be_0700(tmp_path: Path) -> None:
    environ = {"XDG_RUNTIME_DIR": str(tmp_path)}
    folder = tmp_path / "memxd"
    folder.mkdir()
    folder.chmod(0o750)
    with pytest.raises(SocketPathError, match=f"chmod 700 {folder}"):
        prepare_folder(folder, environ)
    folder.chmod(0o700)
    prepare_folder(folder, environ)


@pytest.mark.parametrize(
    ("mode", "allowed"), [(0o755, True), (0o700, True), (0o775, False), (0o777, False), (0o1777, True)]
)
def test_a_chosen_folder_must_not_be_writable_by_others_unless_sticky(folder: Path, mode: int, allowed: bool) -> None:
    folder.chmod(mode)
    if allowed:
        prepare_folder(folder, {})
    else:
        with pytest.raises(SocketPathError, match="chmod go-w"):
            prepare_folder(folder, {})


def test_a_stale_socket_is_no_obstacle(folder: Path) -> None:
    path = folder / "memxd.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
    assert path.exists()
    with SocketClaim(path, {}):
        assert not path.exists()


def test_a_served_socket_is_not_taken(folder: Path, listener: socket.socket) -> None:
    assert somebody_answers(folder / "memxd.sock")
    with pytest.raises(SocketPathError, match="another program serves"), SocketClaim(folder / "memxd.sock", {}):
        pass
    assert (folder / "memxd.sock").exists()
    assert somebody_answers(folder / "memxd.sock")


@pytest.mark.parametrize("kind", ["file", "directory", "link", "dangling link"])
def test_what_is_not_a_socket_is_refused_and_left_alone(folder: Path, kind: str) -> None:
    path = folder / "memxd.sock"
    if kind == "file":
        path.write_text("mine")
    elif kind == "directory":
        path.mkdir()
    else:
        target = folder / "target"
        if kind == "link":
            target.write_text("mine")
        path.symlink_to(target)
    before = os.lstat(path)
    with pytest.raises(SocketPathError, match="not a socket"), SocketClaim(path, {}):
        pass
    assert os.lstat(path).st_ino == before.st_ino


def test_the_second_claim_names_the_first_ones_pid(folder: Path) -> None:
    with SocketClaim(folder / "memxd.sock", {}):
        with pytest.raises(AlreadyRunningError, match=f"pid {os.getpid()}") as caught:
            SocketClaim(folder / "memxd.sock", {}).__enter__()
        assert caught.value.metadata["pid"] == str(os.getpid())
    with SocketClaim(folder / "memxd.sock", {}):
        pass


def test_sockets_in_one_folder_have_locks_of_their_own(folder: Path) -> None:
    assert lock_path(folder / "memxd.sock") == folder / "memxd.lock"
    with SocketClaim(folder / "memxd.sock", {}), SocketClaim(folder / "other.sock", {}):
        assert (folder / "memxd.lock").exists()
        assert (folder / "other.lock").exists()


def test_a_planted_lock_file_is_not_followed(folder: Path) -> None:
    victim = folder / "victim"
    victim.write_text("precious")
    (folder / "memxd.lock").symlink_to(victim)
    with pytest.raises(StartupError, match="lock file"), SocketClaim(folder / "memxd.sock", {}):
        pass
    assert victim.read_text() == "precious"


def test_a_socket_that_replaced_ours_is_left_alone(folder: Path) -> None:
    path = folder / "memxd.sock"
    with socket.socket(socket.AF_UNIX) as ours, socket.socket(socket.AF_UNIX) as theirs:
        with SocketClaim(path, {}) as claim:
            with claim.binding():
                ours.bind(str(path))
            theirs.bind(str(folder / "new.sock"))
            os.replace(folder / "new.sock", path)
        assert path.exists()
