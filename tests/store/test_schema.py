"""Opening: new files, older ones, newer ones, unusable ones; crashes."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memxd.errors import DatabaseDamagedError, SchemaTooNewError, StorageReadOnlyError
from memxd.model import Filter, Scope, View
from memxd.store import Store, connection, schema

ROOT = Path(__file__).parents[2]


def modes(directory: Path) -> dict[str, str]:
    return {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in (directory, *directory.iterdir())}


def settings(txn: Any, *names: str) -> list[Any]:
    return [txn._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]


def test_files_are_for_their_owner_alone(tmp_path: Path, new_bench: Any) -> None:
    old = os.umask(0)
    try:
        bench = new_bench("deep")
        bench.put("x")
        assert modes(bench.directory) == {
            "deep": "0o700",
            "memxd.db": "0o600",
            "memxd.db-wal": "0o600",
            "memxd.db-shm": "0o600",
        }
        assert min(bench.store.sizes()) > 0
        bench.store.close()
        assert list(modes(bench.directory)) == ["deep", "memxd.db"]
        assert bench.store.sizes()[1] == 0
    finally:
        os.umask(old)


def test_commits_are_durable_and_erased_bytes_overwritten(bench: Any) -> None:
    names = ("journal_mode", "synchronous", "secure_delete", "foreign_keys", "trusted_schema")
    assert bench.store.write(lambda txn: settings(txn, *names)) == ["wal", 2, 1, 1, 0]
    with bench.store.read() as txn:
        assert settings(txn, "query_only", "trusted_schema") == [1, 0]


def test_every_table_is_strict(bench: Any) -> None:
    with bench.store.read() as txn:
        tables = txn._connection.execute(
            "SELECT name, strict FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite_%'"
        ).fetchall()
    assert {name for name, strict in tables if not strict} == set()
    assert len(tables) == 11


def test_a_newer_database_is_refused_with_both_versions(bench: Any) -> None:
    bench.store.close()
    with sqlite3.connect(bench.directory / "memxd.db") as raw:
        raw.execute("PRAGMA user_version = 99")
    raw.close()
    with pytest.raises(SchemaTooNewError) as refused:
        bench.opened()
    assert refused.value.metadata == {"found": "99", "supported": str(len(schema.MIGRATIONS))}
    assert "99" in refused.value.message


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "memxd.db"
    path.write_bytes(b"not a database, but somebody's file" * 100)
    with pytest.raises(DatabaseDamagedError, match=r"memxd\.db is damaged .*left as it is: put a backup"):
        Store.open(tmp_path, clock=lambda: 0, ids=str)
    assert path.read_bytes().startswith(b"not a database")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_without_write_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StorageReadOnlyError):
            Store.open(tmp_path, clock=lambda: 0, ids=str)
    finally:
        tmp_path.chmod(0o700)


def test_a_database_that_turns_read_only_refuses_writes_and_answers_reads(bench: Any) -> None:
    row = bench.put("kept")
    bench.store.write(lambda txn: txn._connection.execute("PRAGMA query_only = ON"))
    with pytest.raises(StorageReadOnlyError):
        bench.put("refused")
    assert bench.again(row) == row
    bench.store._writer._connection.execute("PRAGMA query_only = OFF")
    bench.put("works again")


@pytest.mark.parametrize(
    ("number", "refusal"),
    [
        ("EACCES", "STORAGE_READ_ONLY"),
        ("EROFS", "STORAGE_READ_ONLY"),
        ("ENOSPC", "STORAGE_FULL"),
        ("EIO", "STORAGE_FAILED"),
    ],
)
def test_errors_of_the_file_system_are_told_apart(number: str, refusal: str) -> None:
    assert connection.storage_error(OSError(getattr(errno, number), "/some/path")).reason == refusal


WRITER = """
import sys, uuid
from pathlib import Path
from memxd.model import Scope
from memxd.store import Store
store = Store.open(Path(sys.argv[1]), clock=lambda: 1_700_000_000_000_000, ids=lambda at: str(uuid.uuid4()))
while True:
    row = store.write(lambda txn: txn.insert(Scope(), content="x" * 500, type=2, chunks=((0, 1, b"v" * 768),)))
    print(row.memory.id, flush=True)
"""


@pytest.mark.parametrize("acknowledged", [1, 40, 150])
def test_what_was_acknowledged_survives_kill_9(tmp_path: Path, acknowledged: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        ids = [process.stdout.readline().strip() for _ in range(acknowledged)]
        process.send_signal(signal.SIGKILL)
        ids += [line.strip() for line in process.stdout if line.endswith("\n")]
    store = Store.open(tmp_path, clock=lambda: 1_700_000_000_000_001, ids=str)
    try:
        with store.read() as txn:
            assert set(txn.get_many(Scope(), ids)) == set(ids)
            assert txn.count(Scope(), View(Filter(), 0)) - len(ids) in (0, 1)
            assert txn.revision() == txn.totals().memories
            assert txn._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    finally:
        store.close()


def test_a_database_keeps_its_id_until_it_is_given_another(bench: Any, new_bench: Any) -> None:
    first = bench.store.identity
    assert len(first) == 32
    assert new_bench("another").store.identity not in ("", first)
    assert bench.reopened().identity == first
    bench.store.renew_identity()
    second = bench.store.identity
    assert second != first
    assert bench.reopened().identity == second


@pytest.mark.parametrize("page", [1, 2, 5, 12])
def test_a_damaged_page_is_noticed_at_the_start(bench: Any, page: int) -> None:
    for number in range(40):
        bench.put(f"memory {number} " * 40)
    bench.store.close()
    path = bench.directory / "memxd.db"
    whole = path.read_bytes()
    offset = (page - 1) * 4096
    path.write_bytes(whole[:offset] + b"\xa5" * 200 + whole[offset + 200 :])
    with pytest.raises(DatabaseDamagedError, match="is damaged"):
        bench.opened()
    path.write_bytes(whole)
    bench.opened()
