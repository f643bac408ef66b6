"""A backup is one moment of the store, whole or not there; a restore never leaves less than there was."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from memxd.errors import (
    BackupInvalidError,
    CancelledError,
    InvalidArgumentError,
    StorageFailedError,
    StorageFullError,
    StoreExistsError,
)
from memxd.model import NO_DEADLINE, Deadline, Scope
from memxd.store import Manifest, backup, writer
from memxd.store.restoring import restore, verify

NOW = 1_700_000_000_000_000


def back_up(bench: Any, folder: Path, deadline: Deadline = NO_DEADLINE) -> Manifest:
    made = bench.store.back_up(folder, lambda _done, _total: None, deadline)
    assert isinstance(made, Manifest)
    return made


def test_the_copy_is_private_and_its_manifest_tells_what_it_is(bench: Any, tmp_path: Path) -> None:
    bench.put("black coffee")
    folder = tmp_path / "copy"
    made = back_up(bench, folder)
    assert (made.revision, made.memories, made.links) == (1, 1, 0)
    assert sorted(p.name for p in folder.iterdir()) == ["MANIFEST.json", "memxd.db"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()} == {0o600}
    facts = json.loads((folder / "MANIFEST.json").read_text())
    assert (facts["format"], facts["version"], facts["files"][0]["sha256"]) == ("memxd-backup", 1, made.sha256)
    assert verify(folder) == made


def test_writers_go_on_and_the_copy_is_of_one_moment(bench: Any, tmp_path: Path) -> None:
    for number in range(300):
        bench.put(f"{number} " + "long " * 4_000)
    done = threading.Event()
    steps = []

    def write() -> None:
        while not done.is_set():
            bench.put("meanwhile")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        made = bench.store.back_up(tmp_path / "copy", lambda *step: steps.append(step), NO_DEADLINE)
    finally:
        done.set()
        writer.join()
    assert steps[-1][0] == steps[-1][1]
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)  # it did not begin anew
    copy = sqlite3.connect(tmp_path / "copy" / "memxd.db")
    count, newest, logged = copy.execute(
        "SELECT count(*), max(revision), (SELECT max(revision) FROM changes) FROM memories"
    ).fetchone()
    copy.close()
    assert (count, newest, logged) == (made.memories, made.revision, made.revision)
    assert bench.store.revision > made.revision


def test_a_backup_that_is_broken_off_leaves_nothing(bench: Any, tmp_path: Path) -> None:
    bench.put("black coffee")
    with pytest.raises(CancelledError):
        back_up(bench, tmp_path / "copy", Deadline(is_cancelled=lambda: True))
    assert not (tmp_path / "copy").exists()
    assert back_up(bench, tmp_path / "copy").memories == 1


def test_unsafe_folders_are_refused_and_left_as_they_are(bench: Any, tmp_path: Path) -> None:
    full, open_to_all, file = tmp_path / "full", tmp_path / "open", tmp_path / "file"
    full.mkdir(0o700)
    (full / "mine").touch()
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    file.touch()
    link = tmp_path / "link"
    link.symlink_to(full)
    inside = bench.directory / "copy"
    for folder in (full, open_to_all, file, link, inside, bench.directory, Path("relative"), tmp_path / "a" / "b"):
        with pytest.raises(InvalidArgumentError, match="directory"):
            back_up(bench, folder)
    assert [p.name for p in full.iterdir()] == ["mine"]
    assert not inside.exists()


def test_a_restored_store_is_the_old_one_with_an_identity_of_its_own(
    bench: Any, new_bench: Any, tmp_path: Path
) -> None:
    row = bench.put("black coffee", tags=("drink",))
    bench.store.count_access(row.rid)
    bench.store.flush_counters()
    back_up(bench, tmp_path / "copy")
    data = tmp_path / "restored"
    data.mkdir(0o700)
    done = restore(tmp_path / "copy", data, NOW, move_aside=False)
    assert (done.manifest.memories, done.aside) == (1, None)
    again = new_bench("restored")
    with again.store.read() as read:
        assert read.get(Scope(), row.memory.id).memory == bench.again(row).memory
    assert again.store.identity != bench.store.identity


def test_a_store_that_is_there_is_kept_beside_or_not_touched(bench: Any, new_bench: Any, tmp_path: Path) -> None:
    bench.put("of the backup")
    back_up(bench, tmp_path / "copy")
    other = new_bench("other")
    other.put("of the other store")
    other.store.close()
    (other.directory / "index").mkdir()
    with pytest.raises(StoreExistsError):
        restore(tmp_path / "copy", other.directory, NOW, move_aside=False)
    done = restore(tmp_path / "copy", other.directory, NOW, move_aside=True)
    again = restore(tmp_path / "copy", other.directory, NOW, move_aside=True)
    assert done.aside is not None
    assert again.aside is not None
    assert done.aside != again.aside
    assert (done.aside / "index").is_dir()
    assert not (other.directory / "index").exists()
    assert contents(done.aside) == ["of the other store"]
    assert contents(other.directory) == contents(again.aside) == ["of the backup"]


def test_when_moving_aside_fails_the_old_store_stands_as_it_was(
    bench: Any, new_bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.put("of the backup")
    back_up(bench, tmp_path / "copy")
    other = new_bench("other")
    other.put("of the other store")
    other.store.close()
    (other.directory / "index").mkdir()
    before = sorted(p.name for p in other.directory.iterdir())

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    for broken in ("link", "rename", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(os if broken == "link" else Path, broken, refuse)
            with pytest.raises(StorageFailedError):
                restore(tmp_path / "copy", other.directory, NOW, move_aside=True)
        if broken != "replace":
            assert sorted(p.name for p in other.directory.iterdir()) == before
        assert contents(other.directory) == ["of the other store"]


def test_a_manifest_that_cannot_be_written_leaves_nothing(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.put("black coffee")
    folder = tmp_path / "copy"
    folder.mkdir(0o700)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", refuse)
        with pytest.raises(StorageFullError):
            back_up(bench, folder)
    assert list(folder.iterdir()) == []
    assert back_up(bench, folder).memories == 1


def contents(folder: Path) -> list[str]:
    connection = sqlite3.connect(folder / "memxd.db")
    found = [text for (text,) in connection.execute("SELECT content FROM memories")]
    connection.close()
    return found


@pytest.mark.parametrize("damage", ["no manifest", "no json", "other format", "shorter", "one byte", "no database"])
def test_a_damaged_backup_is_refused_before_anything_is_touched(bench: Any, tmp_path: Path, damage: str) -> None:
    bench.put("black coffee")
    folder, data = tmp_path / "copy", tmp_path / "restored"
    data.mkdir(0o700)
    back_up(bench, folder)
    manifest, database = folder / "MANIFEST.json", folder / "memxd.db"
    raw = bytearray(database.read_bytes())
    if damage == "no manifest":
        manifest.unlink()
    elif damage == "no json":
        manifest.write_text("[]")
    elif damage == "other format":
        manifest.write_text(manifest.read_text().replace("memxd-backup", "tar"))
    elif damage == "shorter":
        database.write_bytes(raw[:-1])
    elif damage == "no database":
        database.unlink()
    else:
        raw[len(raw) // 2] ^= 1
        database.write_bytes(raw)
    with pytest.raises(BackupInvalidError):
        restore(folder, data, NOW, move_aside=True)
    assert list(data.iterdir()) == []


def test_a_copy_that_holds_up_too_much_of_the_log_is_given_up(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its snapshot keeps the log from being folded: a slow disk must not let it fill the fast one."""
    monkeypatch.setattr(backup, "_STEP_PAGES", 1)
    monkeypatch.setattr(backup, "_LOG_BYTES", 4 << 20)
    bench.put("z" * 800_000)
    sizes: list[int] = []

    def storing(_done: int, _total: int) -> None:
        bench.put("x" * 50_000)
        sizes.append(bench.store.sizes()[1])

    with pytest.raises(StorageFailedError, match="4 MiB were stored while the copy was made"):
        bench.store.back_up(tmp_path / "copy", storing)
    assert max(sizes) < 8 << 20
    assert not (tmp_path / "copy").exists()
    bench.store.back_up(tmp_path / "copy", lambda _done, _total: None)


def test_a_log_that_a_long_reader_let_grow_is_cut_though_nothing_more_is_stored(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LOG_BYTES", 1 << 20)
    monkeypatch.setattr(writer, "_TICK_SECONDS", 0.05)
    with bench.store.read() as read:
        read.revision()
        for _ in range(10):
            bench.put("x" * 200_000)
        grown = bench.store.sizes()[1]
    assert grown > 2 << 20
    end = time.monotonic() + 10
    while bench.store.sizes()[1]:
        assert time.monotonic() < end
        time.sleep(0.02)
