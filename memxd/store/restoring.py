"""Putting a backup in the place of the store, while no daemon runs.

Owns the checks before anything is touched (manifest, size, SHA-256, SQLite's own checks, schema), the moving aside of
what is there, and the order of steps: at every moment the data directory holds the old database or the new one, never
neither. Deletes nothing. The restored database gets an identity of its own, so no index of the old one is believed; the
daemon builds them anew. The caller holds the lock on the data directory. Called by ``memx restore``.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from memxd.errors import BackupInvalidError, SchemaTooNewError, StorageFullError, StoreExistsError
from memxd.failpoints import reach
from memxd.model import NO_DEADLINE, Micros, to_rfc3339
from memxd.store.backup import Manifest, file_hash, read_manifest
from memxd.store.connection import DATABASE, connect, storage_error
from memxd.store.identity import renew
from memxd.store.schema import MIGRATIONS, sync_file

#: What makes up a store, in the order in which it is moved aside; the database itself is linked, then replaced.
_BESIDE = ("index", f"{DATABASE}-wal", f"{DATABASE}-shm")
#: What SQLite says of a file that is no sound database, or lies on a disk that is none.
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR})


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put in place, and where the old store is now; None = there was none."""

    manifest: Manifest
    aside: Path | None


def verify(folder: Path) -> Manifest:
    """Check a backup without touching it: manifest, size and SHA-256. Raises BackupInvalidError."""
    manifest = read_manifest(folder)
    path = folder / DATABASE
    try:
        size = path.stat().st_size
        found = file_hash(path, NO_DEADLINE) if size == manifest.bytes else ""
    except OSError as error:
        raise BackupInvalidError(f"{path} cannot be read: {os.strerror(error.errno or 0)}") from error
    if size != manifest.bytes:
        raise BackupInvalidError(f"{path} has {size:,} bytes, its manifest says {manifest.bytes:,}: it is damaged")
    if found != manifest.sha256:
        raise BackupInvalidError(f"{path} is not what its manifest says (SHA-256 differs): it is damaged")
    if manifest.schema_version > len(MIGRATIONS):
        raise SchemaTooNewError(
            f"the backup has schema version {manifest.schema_version}, this memxd knows versions up to "
            f"{len(MIGRATIONS)}: install memxd {manifest.memxd} or newer"
        )
    return manifest


def restore(folder: Path, data: Path, now: Micros, *, move_aside: bool) -> Restored:
    """Put the backup in ``folder`` into ``data``, which exists and is locked by the caller.

    A store that is there is refused (StoreExistsError) unless ``move_aside``; then it is kept in a folder beside.
    Raises BackupInvalidError, SchemaTooNewError, StorageFullError, StorageReadOnlyError, StorageFailedError; the old
    store then stands as it was.
    """
    manifest = verify(folder)
    present = [name for name in (DATABASE, *_BESIDE) if os.path.lexists(data / name)]
    if present and not move_aside:
        raise StoreExistsError(
            f"{data} holds a store already ({', '.join(present)}); --move-aside keeps it beside and puts the backup in "
            "its place"
        )
    try:
        fresh = _prepare(folder / DATABASE, data, manifest)
        reach("restore.checked")
        try:
            aside = _move_aside(data, now) if present else None
            fresh.replace(data / DATABASE)
            reach("restore.replaced")
        finally:
            fresh.unlink(missing_ok=True)
        sync_file(data)
    except (sqlite3.Error, OSError) as error:
        raise storage_error(error) from error
    return Restored(manifest, aside)


def _prepare(source: Path, data: Path, manifest: Manifest) -> Path:
    """The backup's database within the data directory, checked and with an identity of its own."""
    if shutil.disk_usage(data).free < manifest.bytes:
        raise StorageFullError(f"the backup needs {manifest.bytes:,} bytes of free space; nothing was changed")
    fresh = data / f"{DATABASE}.restoring"
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with source.open("rb") as old, os.fdopen(descriptor, "wb") as new:
            shutil.copyfileobj(old, new, 1 << 20)
        _check(fresh)
        sync_file(fresh)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    return fresh


def _check(path: Path) -> None:
    """SQLite's own checks, and another identity."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA trusted_schema = OFF").close()
        try:
            problems = [row[0] for row in connection.execute("PRAGMA integrity_check(1)").fetchall()]
            dangling = connection.execute("PRAGMA foreign_key_check").fetchone()
            [version] = connection.execute("PRAGMA user_version").fetchone()
            if problems != ["ok"] or dangling is not None or version < 1:
                raise BackupInvalidError("the backup's database is not sound; nothing was changed")
            renew(connection)
        except sqlite3.DatabaseError as error:
            raise BackupInvalidError("the backup's database cannot be read; nothing was changed") from error


def _move_aside(data: Path, now: Micros) -> Path:
    """Keep the old store in a folder within the data directory: on one file system every step is a rename."""
    _fold_log(data / DATABASE)
    stamp = to_rfc3339(now)[:19].replace(":", "")
    aside = data / f"before-restore-{stamp}"
    number = 1
    while os.path.lexists(aside):
        number += 1
        aside = data / f"before-restore-{stamp}-{number}"
    aside.mkdir(mode=0o700)
    moved: list[str] = []
    try:
        if (data / DATABASE).exists():
            # A second name: the first one is given to the new database in one step.
            os.link(data / DATABASE, aside / DATABASE, follow_symlinks=False)
        for name in _BESIDE:
            if os.path.lexists(data / name):
                (data / name).rename(aside / name)
                moved.append(name)
                reach("restore.moving")
        sync_file(aside)
        sync_file(data)
    except OSError:
        for name in moved:
            (aside / name).rename(data / name)
        (aside / DATABASE).unlink(missing_ok=True)
        aside.rmdir()
        raise
    return aside


def _fold_log(path: Path) -> None:
    """Put what stands in the log into the old database, so that it is one file; of a damaged one the log goes along.
    Raises sqlite3.Error when a sound one cannot be written: without its log it would lack the newest memories."""
    if not path.exists():
        return
    try:
        with closing(connect(path, writer=True)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in _DAMAGED:
            raise
        # Damaged, perhaps the reason for the restore: it is kept as it is.
