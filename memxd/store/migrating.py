"""How an older database becomes a newer one.

Owns the run of the migrations (``schema.py`` has them): a copy of the database first, then all missing steps in one
transaction together with ``PRAGMA user_version``, which alone says what a database is. So a crash, a full disk or a
step that fails leaves the old schema or the newest, never one between, and the memxd of before still opens what a
failed update leaves. The copy is a backup like any other (``backup.py``), so ``memx restore`` takes it. It is made
under the name of an unfinished one and renamed once the new schema is committed: what a crash leaves is told apart at
the next start. Called by ``store.py`` at open, before any other connection exists.
"""

from __future__ import annotations

import logging
import re
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from memxd import __version__
from memxd.errors import BackupInvalidError, MigrationFailedError, SchemaTooNewError, StorageFullError
from memxd.failpoints import reach
from memxd.model import NO_DEADLINE, Micros
from memxd.store.backup import clear, copy_into, read_manifest
from memxd.store.schema import MIGRATIONS, Migration, sync_file

_log = logging.getLogger(__name__)

#: How the folders of finished copies begin; the schema version that they hold and the time follow.
KEPT = "before-migration-"
#: The one that is not finished, or whose migration is not committed.
UNFINISHED = "memxd.before-migration"
#: Free bytes beyond the copy itself, for what the migration writes.
_MARGIN = 32 << 20
_WRITTEN_BY = "schema_by"
#: What passes by itself or by making room: nothing is wrong with the step.
_TROUBLE = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
    }
)


def migrate(
    connection: sqlite3.Connection, path: Path, at: Micros, migrations: Sequence[Migration] = MIGRATIONS
) -> int:
    """Bring the database at ``path`` (open as ``connection``) to the newest schema and return its version.

    ``at``: now, in microseconds, for the copy's name. Raises SchemaTooNewError when a newer memxd wrote the database,
    StorageFullError when there is no room for the copy, MigrationFailedError, sqlite3.Error, OSError; the database is
    as it was then.
    """
    version, newest = _version(connection), len(migrations)
    if version > newest:
        raise _too_new(connection, path, version, newest)
    _settle(path.parent, version)
    if version == newest:
        return newest
    copied = _copied(connection, path, at, version, newest) if version else None
    try:
        _run(connection, migrations, version)
    except BaseException:
        if copied is not None and _version(connection) == version:
            _drop(copied)
        raise
    reach("migration.done")
    if copied is not None:
        kept = _keep(copied)
        facts = {"from": version, "to": newest, "copy": str(kept)}
        _log.info("the database has a newer schema; a copy of it as it was is kept", extra={"fields": facts})
    return newest


def copies(directory: Path) -> list[Path]:
    """The copies that migrations have left in a data directory, oldest first."""
    return sorted(directory.glob(f"{KEPT}*"), key=lambda folder: folder.name[len(KEPT) :].partition("-")[2])


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _too_new(connection: sqlite3.Connection, path: Path, version: int, newest: int) -> SchemaTooNewError:
    writer = ""
    with suppress(sqlite3.Error):  # a schema of the future need not have the table
        found = connection.execute("SELECT value FROM meta WHERE key = ?", (_WRITTEN_BY,)).fetchone()
        writer = f" {found[0]}" if found else ""
    message = (
        f"the database has schema version {version}, this memxd ({__version__}) knows versions up to {newest}, and "
        f"leaves it as it is: install the memxd{writer} that wrote it, or a newer one"
    )
    for copy in reversed(copies(path.parent)):
        with suppress(BackupInvalidError):
            manifest = read_manifest(copy)
            if manifest.schema_version <= newest:
                message += (
                    f"; or go back to {manifest.created_at} (what was stored since is put beside): "
                    f'memx restore "{copy}" --move-aside'
                )
                break
    return SchemaTooNewError(message, metadata={"found": str(version), "supported": str(newest)})


# -- the copy -----------------------------------------------------------------------------------------------------


def _copied(connection: sqlite3.Connection, path: Path, at: Micros, version: int, newest: int) -> Path:
    """A copy of the database under the unfinished name, whole and on disk."""
    [pages], [size] = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
    needed, free = pages * size + _MARGIN, shutil.disk_usage(path.parent).free
    if free < needed:
        older = [str(copy) for copy in copies(path.parent)]
        raise StorageFullError(
            f"the database must be brought from schema version {version} to {newest}, and a copy of it made first: "
            f"that needs {needed:,} bytes, {free:,} are free in {path.parent}; nothing was changed. Make room and "
            "start again" + (f"; copies of earlier updates, if you need them no more: {', '.join(older)}" * bool(older))
        )
    facts = {"from": version, "to": newest, "bytes": pages * size}
    _log.info("the database has an older schema; it is copied, then brought up to date", extra={"fields": facts})
    folder = path.parent / UNFINISHED
    folder.mkdir(mode=0o700)
    try:
        copy_into(path, folder, at, version, lambda _done, _total: None, NO_DEADLINE)
        sync_file(path.parent)
    except BaseException:
        _drop(folder)
        raise
    return folder


def _settle(directory: Path, version: int) -> None:
    """What a crash left of a copy is kept when the database was migrated since, and else not needed: the database is
    still what it was copied from."""
    folder = directory / UNFINISHED
    if not folder.is_dir():
        return
    try:
        kept = read_manifest(folder).schema_version < version
    except BackupInvalidError:
        kept = False
    if kept:
        facts = {"copy": str(_keep(folder)), "to": version}
        _log.info("an update of the database was interrupted after it was done; its copy is kept", extra=facts)
    else:
        _drop(folder)
        _log.info("an update of the database was interrupted before it was done, and begins anew")


def _keep(folder: Path) -> Path:
    """Give a finished copy the name under which it stays."""
    manifest = read_manifest(folder)
    stamp = re.sub(r"[^0-9T-]", "", manifest.created_at[:19])
    name = f"{KEPT}{manifest.schema_version}-{stamp}"
    target, number = folder.with_name(name), 1
    while target.exists():
        number += 1
        target = folder.with_name(f"{name}-{number}")
    folder.rename(target)
    sync_file(folder.parent)
    return target


def _drop(folder: Path) -> None:
    clear(folder)
    folder.rmdir()


# -- the steps ----------------------------------------------------------------------------------------------------


def _run(connection: sqlite3.Connection, migrations: Sequence[Migration], version: int) -> None:
    """All steps behind ``version`` in one transaction."""
    number, missing = version, migrations[version:]
    connection.execute("PRAGMA foreign_keys = OFF")  # has no effect within a transaction
    try:
        connection.execute("BEGIN IMMEDIATE")
        for step in missing:
            number += 1
            _step(connection, step)
            reach("migration.step")
        dangling = connection.execute("PRAGMA foreign_key_check").fetchone()
        if dangling is not None:
            raise sqlite3.IntegrityError(f"a row of {dangling[0]} refers to one of {dangling[2]} that is not there")
        connection.execute("INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)", (_WRITTEN_BY, __version__))
        connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
    except BaseException as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF not in _TROUBLE:
            raise MigrationFailedError(
                f"bringing the database from schema version {version} to {len(migrations)} failed in step {number} "
                f"({error}) and was undone: the database is as it was, and the memxd of before opens it. Please report "
                "this, with this line",
                metadata={"from": str(version), "step": str(number)},
            ) from error
        raise
    finally:
        connection.execute("PRAGMA foreign_keys = ON")


def _step(connection: sqlite3.Connection, step: Migration) -> None:
    if isinstance(step, str):
        for statement in _statements(step):
            connection.execute(statement)
        return
    step(connection)
    if not connection.in_transaction:
        raise RuntimeError("a migration ended the transaction that it runs in")


def _statements(script: str) -> Iterator[str]:
    """The statements of a script; ``executescript`` would commit first."""
    statement = ""
    for piece in re.split(r"(?<=;)", script):
        statement += piece
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement
