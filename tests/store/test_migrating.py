"""Older databases become newer ones: with a copy first, whole or not at all, by steps that were invented for the test.

The steps that shipped are tested in tests/compat, from databases of each released schema.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from memxd.errors import (
    DatabaseDamagedError,
    MigrationFailedError,
    SchemaTooNewError,
    StorageFailedError,
    StorageFullError,
)
from memxd.model import Scope
from memxd.store import migrating, restoring, schema

ROOT = Path(__file__).parents[2]
NOW = 1_800_000_000_000_000
NEWEST = len(schema.MIGRATIONS)
KEPT = f"before-migration-{NEWEST}-2027-01-15T080000"
MOOD = (
    "ALTER TABLE memories ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'; UPDATE meta SET value = 'x;y' WHERE key = 'z';"
)
NOTES = """CREATE TABLE notes(rid INTEGER PRIMARY KEY REFERENCES memories(rid), text TEXT NOT NULL) STRICT;
CREATE TRIGGER notes_short BEFORE INSERT ON notes WHEN length(new.text) > 9
BEGIN SELECT raise(ABORT, 'too long; shorten it'); END;
INSERT INTO notes SELECT rid, 'noted' FROM memories;"""


def anew(connection: sqlite3.Connection) -> None:
    """A table made anew under its old name, as changes that ALTER TABLE cannot do need it; others refer to it."""
    connection.execute("CREATE TABLE fresh(rid INTEGER PRIMARY KEY, text TEXT NOT NULL, loud INTEGER NOT NULL) STRICT")
    connection.execute("INSERT INTO fresh SELECT rid, upper(text), 1 FROM notes")
    connection.execute("DROP TABLE notes")
    connection.execute("ALTER TABLE fresh RENAME TO notes")


def migrate(directory: Path, *steps: schema.Migration, at: int = NOW) -> int:
    """Run the invented steps behind those that shipped; the version that is there then."""
    connection = sqlite3.connect(directory / "memxd.db", isolation_level=None)
    try:
        return migrating.migrate(connection, directory / "memxd.db", at, (*schema.MIGRATIONS, *steps))
    finally:
        connection.close()


def dump(path: Path) -> tuple[int, list[str]]:
    """The schema version and everything in a database."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA user_version").fetchone()[0], list(connection.iterdump())
    finally:
        connection.close()


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture
def data(bench: Any) -> Path:
    """A data directory with a few memories that nobody holds open."""
    rows = [bench.put(f"text {n}", tags=("t",)) for n in range(3)]
    bench.store.write(lambda txn: txn.delete([rows[1].rid]))
    bench.store.close()
    return Path(bench.directory)


def test_a_chain_of_steps_runs_in_order_and_the_copy_holds_the_database_as_it_was(
    data: Path, bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    before = dump(data / "memxd.db")
    caplog.set_level("INFO", "memxd")
    assert migrate(data, MOOD, NOTES, anew) == NEWEST + 3
    connection = sqlite3.connect(data / "memxd.db")
    assert connection.execute("SELECT text, loud, mood FROM notes JOIN memories USING (rid)").fetchall() == [
        ("NOTED", 1, "calm"),
        ("NOTED", 1, "calm"),
    ]
    connection.close()
    assert names(data) == [KEPT, "memxd.db"]
    assert dump(data / KEPT / "memxd.db") == before
    assert [oct(path.stat().st_mode & 0o777) for path in (data / KEPT, *(data / KEPT).iterdir())] == [
        "0o700",
        "0o600",
        "0o600",
    ]
    told = [record.fields for record in caplog.records if hasattr(record, "fields")]
    assert told[-1] == {"from": NEWEST, "to": NEWEST + 3, "copy": str(data / KEPT)}
    assert migrate(data, MOOD, NOTES, anew) == NEWEST + 3  # the next start has nothing to do
    assert names(data) == [KEPT, "memxd.db"]


def test_copies_of_one_second_do_not_overwrite_each_other(data: Path) -> None:
    migrate(data, MOOD)
    first = dump(data / KEPT / "memxd.db")
    restoring.restore(data / KEPT, data, NOW, move_aside=True)
    migrate(data, NOTES)
    assert [path.name for path in migrating.copies(data)] == [KEPT, f"{KEPT}-2"]
    assert dump(data / KEPT / "memxd.db") == first


def test_foreign_keys_are_enforced_again_afterwards(data: Path) -> None:
    connection = sqlite3.connect(data / "memxd.db", isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    migrating.migrate(connection, data / "memxd.db", NOW, (*schema.MIGRATIONS, MOOD, NOTES, anew))
    assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
    connection.close()


def test_the_copy_can_be_restored_by_the_memxd_of_before(data: Path, bench: Any) -> None:
    before = dump(data / "memxd.db")
    migrate(data, MOOD)
    with pytest.raises(SchemaTooNewError) as refused:
        bench.opened()
    assert refused.value.exit_code == 78
    command = f'memx restore "{data / KEPT}" --move-aside'
    assert command in refused.value.message
    assert f"install the memxd {migrating.__version__} that wrote it" in refused.value.message
    restored = restoring.restore(data / KEPT, data, NOW, move_aside=True)
    assert restored.manifest.memories == 2
    assert dump(data / "memxd.db")[0] == before[0]
    assert bench.opened().schema_version == NEWEST


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ("DROP TABLE links;\nSELECT nonsense;", "no such column: nonsense"),
        ("INSERT INTO notes VALUES (99, 'lost');", "a row of notes refers to one of memories that is not there"),
        ("INSERT INTO notes VALUES (1, 'much too long');", "UNIQUE|too long"),
    ],
)
def test_a_step_that_fails_leaves_the_database_as_it_was_before_the_first(
    data: Path, bench: Any, step: str, why: str
) -> None:
    """All steps are one transaction: what a failed update leaves is a database that the memxd of before opens, and not
    one of a schema that no release ever had."""
    before, files = dump(data / "memxd.db"), names(data)
    with pytest.raises(MigrationFailedError, match=why) as failed:
        migrate(data, NOTES, step, MOOD)
    assert failed.value.exit_code == 65
    assert failed.value.metadata["from"] == str(NEWEST)
    assert (dump(data / "memxd.db"), names(data)) == (before, files)
    assert bench.opened().schema_version == NEWEST


def test_a_step_that_ends_the_transaction_is_noticed(data: Path) -> None:
    with pytest.raises(RuntimeError, match="ended the transaction"):
        migrate(data, lambda connection: connection.execute("COMMIT") and None)


def test_without_room_for_the_copy_nothing_is_changed(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate(data, MOOD)
    before, files = dump(data / "memxd.db"), names(data)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, 20_000_000))
    with pytest.raises(StorageFullError) as refused:
        migrate(data, MOOD, NOTES)
    for word in ("20,000,000 are free", "nothing was changed", "Make room", str(data / KEPT)):
        assert word in refused.value.message
    assert (dump(data / "memxd.db"), names(data)) == (before, files)


def test_a_copy_that_cannot_be_made_stops_the_update(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, files = dump(data / "memxd.db"), names(data)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(migrating, "copy_into", full)
    with pytest.raises(OSError, match="No space left"):
        migrate(data, MOOD)
    assert (dump(data / "memxd.db"), names(data)) == (before, files)


def test_a_failing_disk_is_not_called_a_failing_step(bench: Any, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_: sqlite3.Connection) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
        raise error

    monkeypatch.setattr(migrating.migrate, "__defaults__", ((*schema.MIGRATIONS, failing),))
    with pytest.raises(StorageFailedError):
        bench.opened()
    assert names(data) == ["memxd.db"]


def test_a_damaged_database_is_neither_copied_nor_changed(
    bench: Any, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = (data / "memxd.db").read_bytes()
    (data / "memxd.db").write_bytes(whole[: 5 * 4096] + b"\xa5" * 4096 + whole[6 * 4096 :])
    damaged = (data / "memxd.db").read_bytes()
    monkeypatch.setattr(migrating.migrate, "__defaults__", ((*schema.MIGRATIONS, MOOD),))
    with pytest.raises(DatabaseDamagedError, match="is damaged"):
        bench.opened()
    assert names(data) == ["memxd.db"]
    assert (data / "memxd.db").read_bytes() == damaged


KILLED = """
import os, signal, sqlite3, sys
from pathlib import Path
from memxd.store import migrating, schema

data, where = Path(sys.argv[1]), sys.argv[2]
die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
steps = ["CREATE TABLE one(x INTEGER) STRICT", "CREATE TABLE two AS SELECT * FROM memories", "CREATE TABLE three(x)"]
if where == "copying":
    migrating.copy_into.__globals__["_write_manifest"] = die
elif where == "copied":
    migrating._run = die
elif where == "between":
    steps.insert(2, die)
elif where == "committed":
    migrating._keep = die
connection = sqlite3.connect(data / "memxd.db", isolation_level=None)
connection.execute("PRAGMA cache_size = 2")  # so that uncommitted pages reach the disk
connection.execute("PRAGMA wal_autocheckpoint = 1")
migrating.migrate(connection, data / "memxd.db", 1_800_000_000_000_000, (*schema.MIGRATIONS, *steps))
"""


@pytest.mark.parametrize(
    ("where", "committed"), [("copying", False), ("copied", False), ("between", False), ("committed", True)]
)
def test_killed_at_any_moment_the_schema_is_the_old_or_the_newest(
    bench: Any, data: Path, where: str, committed: bool
) -> None:
    before = dump(data / "memxd.db")
    done = subprocess.run([sys.executable, "-c", KILLED, str(data), where], cwd=ROOT, env=os.environ, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert migrating.UNFINISHED in names(data)
    found = dump(data / "memxd.db")
    if committed:
        assert found[0] == NEWEST + 3
        assert migrate(data, "SELECT 1", "SELECT 1", "SELECT 1") == NEWEST + 3
    else:
        assert found == before
        assert migrate(data, MOOD, at=NOW) == NEWEST + 1  # begins anew
    assert names(data) == [KEPT, "memxd.db"]
    assert dump(data / KEPT / "memxd.db") == before


def test_the_memxd_of_before_clears_up_after_an_update_that_was_killed(bench: Any, data: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(data), "copied"], cwd=ROOT, env=os.environ, timeout=60)
    assert bench.opened().schema_version == NEWEST
    bench.store.close()
    assert names(data) == ["memxd.db"]


def test_what_stood_in_the_log_only_is_in_the_copy(bench: Any) -> None:
    row = bench.put("only in the log")
    crashed = bench.directory.with_name("crashed")
    shutil.copytree(bench.directory, crashed)
    assert (crashed / "memxd.db-wal").stat().st_size > 0
    migrate(crashed, MOOD)
    copy = sqlite3.connect(crashed / KEPT / "memxd.db")
    assert copy.execute("SELECT content FROM memories WHERE rid = ?", (row.rid,)).fetchone() == ("only in the log",)
    assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    copy.close()


def test_a_new_database_needs_no_copy_and_says_who_made_it(bench: Any) -> None:
    assert names(bench.directory) == ["memxd.db", "memxd.db-shm", "memxd.db-wal"]
    with bench.store.read() as read:
        assert read.meta_get("schema_by") == migrating.__version__
    assert bench.put("x", Scope()).rid == 1
