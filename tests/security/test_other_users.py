"""Other users of the machine: what they can reach, what they can plant, and what a start refuses because of them.

Where the tests run as root, a second user really tries; elsewhere those tests are left out with the reason.
"""

from __future__ import annotations

import os
import pickle
import shutil
import socket
import stat
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import casekit
from memxd.client import Client
from memxd.data_dir import prepare_data_dir
from memxd.errors import ConfigError, SocketPathError, StartupError
from memxd.locks import FileLock
from memxd.service.socket import SocketClaim, prepare_folder
from memxd.socket_path import client_socket
from memxd.tokens import TokenFile
from memxd.trust import unsafe_way

#: Users that no machine has.
ADA, EVE = 54_321, 54_322

root = pytest.mark.skipif(os.getuid() != 0, reason="only root can act as two users")


def acting_as(user: int, act: Callable[[], Any]) -> Any:
    """What ``act`` answers, or the exception that it raises, in a process of that user."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads: the child does no more than this
        child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            try:
                told: Any = act()
            except Exception as error:
                told = error
            os.write(writing, pickle.dumps(told))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        raw = answer.read()
    os.waitpid(child, 0)
    return pickle.loads(raw)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder like /tmp: everybody may write, nobody can touch what is another's. Every way to it is open."""
    with tempfile.TemporaryDirectory(prefix="mxs-", dir="/tmp") as folder:
        path = Path(folder)
        path.chmod(0o1777)
        yield path


@pytest.fixture
def place() -> Iterator[casekit.World]:
    with casekit.world() as made:
        made.folder.chmod(0o755)
        yield made


# -- what they can reach ----------------------------------------------------------------------------------------------


@root
def test_another_user_can_neither_call_nor_read(place: casekit.World) -> None:
    daemon = place.start("--auth", "token").daemon
    TokenFile(daemon.data_dir).create(1, scope=None)
    files = [path for path in daemon.data_dir.rglob("*") if path.is_file()]
    assert files

    def call() -> None:
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(str(daemon.socket))

    attempts: list[Callable[[], Any]] = [
        call,
        lambda: os.listdir(daemon.data_dir),
        lambda: os.listdir(daemon.socket.parent),
        lambda: os.link(daemon.data_dir / "memxd.db", place.folder / "mine"),
        lambda: os.rename(daemon.data_dir, place.folder / "gone"),
        lambda: os.symlink("/etc", daemon.socket.parent / "new"),
        lambda: Path(f"/proc/{daemon.pid}/environ").read_bytes(),
        lambda: os.kill(daemon.pid, 15),
        *[lambda path=path: path.read_bytes() for path in files],
        *[lambda path=path: path.open("ab").close() for path in files],
    ]
    for attempt in attempts:
        assert isinstance(acting_as(EVE, attempt), PermissionError)
    assert daemon.process.poll() is None


def test_every_file_is_the_users_alone_whatever_the_umask(place: casekit.World, tmp_path: Path) -> None:
    daemon = place.start(prefix=("/bin/sh", "-c", 'umask 0; exec "$@"', "sh")).daemon
    with Client(daemon.socket) as client:
        client.store("Ada likes tea.")
        client.flush()
        list(client.rebuild())
        list(client.backup(tmp_path / "copy"))
    daemon.stop()
    for folder in (place.data_dir, daemon.socket.parent, tmp_path / "copy"):
        for path in (folder, *folder.rglob("*")):
            assert not stat.S_IMODE(path.lstat().st_mode) & 0o077, path


# -- what a start refuses ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o711, 0o701, 0o770, 0o707])
def test_a_data_directory_that_others_can_look_into_is_refused(place: casekit.World, mode: int) -> None:
    place.data_dir.mkdir()
    place.data_dir.chmod(mode)
    daemon = place.start(wait=False).daemon
    assert daemon.wait() == 78
    assert f"run: chmod 700 {place.data_dir}" in daemon.log


@pytest.mark.parametrize("what", ["socket", "data"])
def test_a_folder_below_one_that_others_can_write_is_refused(place: casekit.World, what: str) -> None:
    """They could rename it away and put their own in its place, however private it is itself."""
    open_ = place.folder / "open"
    open_.mkdir()
    open_.chmod(0o777)
    given = {"socket": open_ / "run" / "memxd.sock"} if what == "socket" else {"data_dir": open_ / "data"}
    daemon = place.start(wait=False, **given).daemon
    assert daemon.wait() == (73 if what == "socket" else 78)
    assert f"others can write to {open_}" in daemon.log
    open_.chmod(0o1777)  # as /tmp is: there nobody can rename what is another's
    assert place.start(**given).daemon.stop() == 0


@root
def test_the_way_is_judged_by_owner_and_mode(shared: Path) -> None:
    home = shared / "home"
    home.mkdir(mode=0o755)
    os.chown(home, ADA, ADA)

    def judged() -> str:
        return str(acting_as(ADA, lambda: unsafe_way(home / "a" / "b")))

    assert judged() == ""
    inner = home / "a"
    inner.mkdir()
    os.chown(inner, EVE, EVE)
    assert "belongs to another user" in judged()
    os.chown(inner, ADA, ADA)
    inner.chmod(0o777)
    assert "others can write" in judged()
    inner.chmod(0o775)
    assert judged() == "", "a group of the user's own"
    os.chown(inner, ADA, EVE)
    assert "others can write" in judged()


@root
def test_a_link_that_another_user_planted_is_not_followed(shared: Path) -> None:
    real = shared / "real"
    real.mkdir(mode=0o700)
    os.chown(real, ADA, ADA)
    link = shared / "link"
    acting_as(EVE, lambda: link.symlink_to(real))
    for act in (lambda: prepare_data_dir(link), lambda: prepare_folder(link, {})):
        told = acting_as(ADA, act)
        assert isinstance(told, ConfigError | SocketPathError), told
        assert "symbolic link" in told.message
    mine = shared / "mine"
    acting_as(ADA, lambda: mine.symlink_to(real))
    assert acting_as(ADA, lambda: prepare_data_dir(mine)) is None, "her own may lead to another disk"


@root
@pytest.mark.parametrize("kind", ["folder", "link", "open folder"])
def test_a_folder_of_last_resort_that_another_user_made_first_is_refused(shared: Path, kind: str) -> None:
    environ = {"TMPDIR": str(shared)}
    folder = shared / f"memxd-{ADA}"

    def plant() -> None:
        if kind == "link":
            folder.symlink_to("/tmp")
        else:
            folder.mkdir()
            folder.chmod(0o777 if kind == "open folder" else 0o700)

    acting_as(EVE, plant)

    def claim() -> None:
        with SocketClaim(folder / "memxd.sock", environ):
            pass

    assert isinstance(acting_as(ADA, claim), SocketPathError)
    if kind != "folder":
        assert isinstance(acting_as(ADA, lambda: client_socket(None, environ)), SocketPathError)
    assert isinstance(acting_as(ADA, lambda: client_socket(None, environ)), SocketPathError | PermissionError)


@root
@pytest.mark.parametrize("kind", ["socket", "file", "link"])
def test_what_another_user_put_at_the_sockets_path_is_never_served_or_removed(shared: Path, kind: str) -> None:
    path = shared / "memxd.sock"

    def plant() -> None:
        if kind == "socket":
            with socket.socket(socket.AF_UNIX) as trap:
                trap.bind(str(path))
        elif kind == "file":
            path.write_text("theirs")
        else:
            path.symlink_to("/etc/passwd")

    acting_as(EVE, plant)

    def claim() -> None:
        with SocketClaim(path, {}):
            pass

    assert isinstance(acting_as(ADA, claim), SocketPathError | PermissionError)
    assert os.lstat(path).st_uid == EVE


@root
def test_a_lock_file_that_another_user_made_first_is_refused(shared: Path) -> None:
    lock = shared / "memxd.lock"
    acting_as(EVE, lambda: lock.write_text("theirs"))
    acting_as(EVE, lambda: lock.chmod(0o666))
    told = acting_as(ADA, lambda: FileLock(lock, "the socket").acquire())
    assert isinstance(told, StartupError)
    assert lock.read_text() == "theirs"


@root
def test_a_client_does_not_talk_to_another_users_socket(shared: Path) -> None:
    path = shared / "memxd.sock"
    with socket.socket(socket.AF_UNIX) as trap:
        trap.bind(str(path))
        trap.listen()
        path.chmod(0o777)
        os.chown(path, EVE, EVE)
        told = acting_as(ADA, lambda: client_socket(path, {}))
        assert isinstance(told, SocketPathError)
        assert f"belongs to user {EVE}" in told.message
        os.chown(path, ADA, ADA)
        assert acting_as(ADA, lambda: client_socket(path, {})) == path


def test_a_data_directory_reached_by_a_link_of_the_users_own_works(place: casekit.World) -> None:
    real = place.folder / "disk"
    real.mkdir(mode=0o700)
    place.data_dir.symlink_to(real)
    assert place.start().daemon.stop() == 0
    assert (real / "memxd.db").exists()


def test_ways_that_do_not_exist_yet_are_judged_by_what_does(tmp_path: Path) -> None:
    assert unsafe_way(tmp_path / "a" / "b" / "c") == ""
    tmp_path.chmod(0o777)
    assert "others can write" in unsafe_way(tmp_path / "a" / "b" / "c")
    shutil.rmtree(tmp_path / "a", ignore_errors=True)
