"""Real refusals of a real file system: a small one that is full, a folder whose permission is taken away."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from memxd.v1 import admin_service_pb2 as admin_pb
from torture_faults import RECOVERY, Under
from torture_process import Process

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
SIZE_MIB = 24


def can(*command: str) -> bool:
    """Whether this machine lets us."""
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run([*command, "true"], capture_output=True).returncode == 0


NAMESPACE = ("unshare", "--mount", "--propagation", "private")
BOUND = ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner")


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mxd-") as made:
        yield Path(os.path.realpath(made))


def started(folder: Path, prefix: Sequence[str]) -> Iterator[Under]:
    process = Process(folder, prefix=prefix)
    process.data_dir.mkdir(mode=0o700)
    try:
        process.start()
        under = Under(process, None)
        for _ in range(30):
            assert under.store() == ("", "")
        yield under
    finally:
        process.kill()


@pytest.fixture
def small(folder: Path) -> Iterator[tuple[Under, Path]]:
    """A daemon whose data lies on a tmpfs of its own, and that folder as it is seen from here."""
    if not can(*NAMESPACE, "sh", "-c", f'mount -t tmpfs tmpfs {folder} && exec "$@"', "sh"):
        pytest.skip("no mount namespace may be made here: that needs root")
    mount = f'mount -t tmpfs -o size={SIZE_MIB}m,mode=700 tmpfs {folder / "data"} && exec "$@"'
    for under in started(folder, [*NAMESPACE, "sh", "-c", mount, "sh"]):
        assert under.process.process is not None
        yield under, Path(f"/proc/{under.process.process.pid}/root{folder / 'data'}")


def fill(inside: Path) -> Path:
    """Take all the room there is."""
    ballast = inside / "memxd.ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return ballast


def recovers(under: Under, before: list[str]) -> None:
    """Stores at once, and both legs find what came before and what comes now."""
    end = time.monotonic() + RECOVERY
    assert under.store() == ("", "")
    while wrong := under.missing([*before, *list(under.held.values())[-3:]]):
        assert time.monotonic() < end, wrong
        time.sleep(0.05)
    assert under.flush() == ("", "")
    assert under.whole() == []


def test_a_full_disk_refuses_stores_serves_searches_and_heals_by_itself(small: tuple[Under, Path]) -> None:
    under, inside = small
    before = list(under.held.values())
    ballast = fill(inside)
    reasons = {under.store()[0] for _ in range(400)}  # the log has some room left that it has taken before
    assert reasons <= {"", "STORAGE_FULL"}
    assert "STORAGE_FULL" in reasons
    assert "free some space" in under.store()[1]
    assert all(under.seen(3, text) for text in before[:5])
    status = under.process.admin.Status(admin_pb.StatusRequest(), timeout=30)
    assert status.memories == len(under.held)
    assert under.flush()[0] in ("", "STORAGE_FULL")
    ballast.unlink()
    recovers(under, before[:5])
    assert under.process.stop() == 0


def test_a_full_disk_does_not_spoil_a_backup_or_a_rebuild(small: tuple[Under, Path]) -> None:
    under, inside = small
    before = list(under.held.values())
    ballast = fill(inside)
    for stream in (
        lambda: list(under.process.admin.Rebuild(admin_pb.RebuildRequest(), timeout=60)),
        lambda: list(under.process.admin.Compact(admin_pb.CompactRequest(), timeout=60)),
    ):
        with pytest.raises(Exception, match="full"):
            stream()
    assert under.missing(before[:5]) == []
    ballast.unlink()
    recovers(under, before[:5])


def test_a_permission_that_is_lost_and_given_back(folder: Path) -> None:
    """The database is open and goes on; nothing new can be made, so what needs that is refused until it can again."""
    if os.geteuid() == 0 and not can(*BOUND):
        pytest.skip("root may write everywhere, and cannot be made to lose that here")
    for under in started(folder, BOUND if os.geteuid() == 0 else ()):
        data = under.process.data_dir
        before = list(under.held.values())
        folders = [data, *(path for path in data.rglob("*") if path.is_dir())]
        for path in folders:
            path.chmod(0o500)
        assert under.store() == ("", ""), "its files are open already"
        reason, message = under.flush()
        assert reason == "STORAGE_READ_ONLY", message
        assert under.missing(before[:5]) == []
        data.chmod(0o000)
        reason, message = under.store()
        assert reason == "STORAGE_READ_ONLY"
        assert "check its owner, mode and mount" in message
        for path in folders:
            path.chmod(0o700)
        recovers(under, before[:5])
