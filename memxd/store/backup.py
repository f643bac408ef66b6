"""A copy of the whole database while it is in use, with a manifest that says what it must be.

Owns the rules for the target folder, the copying within one snapshot, the manifest's form and its reading. The copy is
made on a connection of its own and in steps, so writers go on; the manifest is written last, so a folder without one
is no backup. Indexes are not copied: they come back by themselves. Called by ``store.py`` and
``migrating.py``; ``restoring.py`` is the way back.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from memxd import __version__
from memxd.errors import BackupInvalidError, InvalidArgumentError, StorageFailedError
from memxd.failpoints import reach
from memxd.model import Deadline, Micros, to_rfc3339
from memxd.store.connection import DATABASE, connect
from memxd.store.schema import sync_file

MANIFEST = "MANIFEST.json"
_HALF = f"{MANIFEST}.partial"
FORMAT = "memxd-backup"
FORMAT_VERSION = 1
#: Pages copied between two looks at the deadline: 4 MiB, some milliseconds.
_STEP_PAGES = 1_024
_READ_BYTES = 1 << 20
#: Bytes by which the write-ahead log may grow before a copy is given up: its snapshot keeps the log from being folded.
_LOG_BYTES = 1 << 30
_MANIFEST_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup holds. ``bytes`` and ``sha256`` are of the database file; ``created_at`` is RFC 3339."""

    created_at: str
    memxd: str
    schema_version: int
    revision: int
    memories: int
    links: int
    bytes: int
    sha256: str


def back_up(
    path: Path,
    folder: Path,
    at: Micros,
    schema_version: int,
    progress: Callable[[int, int], None],
    deadline: Deadline,
) -> Manifest:
    """Copy the database at ``path`` into ``folder``; everything is on disk when this returns.

    Raises InvalidArgumentError for an unsafe folder, sqlite3.Error, OSError; then what was begun is gone.
    """
    made = _claim(folder, path.parent)
    try:
        manifest = copy_into(path, folder, at, schema_version, progress, deadline)
    except BaseException:
        if made:
            with suppress(OSError):  # somebody put a file there meanwhile: it is theirs
                folder.rmdir()
        raise
    if made:
        sync_file(folder.parent)
    return manifest


def copy_into(
    path: Path,
    folder: Path,
    at: Micros,
    schema_version: int,
    progress: Callable[[int, int], None],
    deadline: Deadline,
) -> Manifest:
    """As ``back_up``, into a folder that is there, is empty and is ours alone; its own name is not synced."""
    target = folder / DATABASE
    try:
        facts = _copy(path, target, progress, deadline)
        sync_file(target)
        reach("backup.copied")
        manifest = Manifest(
            to_rfc3339(at), __version__, schema_version, *facts, target.stat().st_size, file_hash(target, deadline)
        )
        _write_manifest(folder, manifest)
    except BaseException:
        clear(folder)
        raise
    return manifest


def clear(folder: Path) -> None:
    """Take away what a backup, whole or begun, consists of; nothing else."""
    for name in (MANIFEST, _HALF, DATABASE, f"{DATABASE}-journal", f"{DATABASE}-wal", f"{DATABASE}-shm"):
        (folder / name).unlink(missing_ok=True)


def _claim(folder: Path, data: Path) -> bool:
    """Make the folder, or take an empty one of our own; tell whether it was made."""
    if not folder.is_absolute():
        raise _refused("must be an absolute path")
    if data.resolve() == folder.resolve() or data.resolve() in folder.resolve().parents:
        raise _refused("must not lie within the data directory: a copy must outlive what it is a copy of")
    try:
        folder.mkdir(mode=0o700)
        return True
    except FileExistsError:
        info = folder.lstat()
    except OSError as error:
        raise _refused(f"cannot be made ({os.strerror(error.errno or 0)}); its parent must exist") from error
    if not stat.S_ISDIR(info.st_mode):
        raise _refused("is there and is no folder")
    if info.st_uid != os.getuid():
        raise _refused("belongs to another user")
    if info.st_mode & 0o022:
        raise _refused("can be written by others; chmod 700 it or name another")
    try:
        if any(folder.iterdir()):
            raise _refused(f"must be empty or not exist yet, and {folder} holds something; name a new folder")
        folder.chmod(0o700)
    except OSError as error:
        raise _refused(f"cannot be used ({os.strerror(error.errno or 0)})") from error
    return False


def _refused(description: str) -> InvalidArgumentError:
    return InvalidArgumentError.field("directory", description)


def _copy(path: Path, target: Path, progress: Callable[[int, int], None], deadline: Deadline) -> tuple[int, int, int]:
    """Copy one snapshot; answers its revision, memories and links."""
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
    with closing(connect(path, writer=False)) as source, closing(sqlite3.connect(target)) as copy:
        [page] = source.execute("PRAGMA page_size").fetchone()

        log = path.with_name(f"{path.name}-wal")
        before = _size(log)

        def step(_status: int, remaining: int, total: int) -> None:
            deadline.check()
            reach("backup.copying")
            if _size(log) - before > _LOG_BYTES:
                raise StorageFailedError(
                    f"more than {_LOG_BYTES >> 20:,} MiB were stored while the copy was made, which holds up the log "
                    "of the database; nothing was copied: try again when less is stored, or on a faster disk"
                )
            progress((total - remaining) * page, total * page)

        # Without a snapshot of its own the copying would begin anew at every commit.
        source.execute("BEGIN")
        facts = source.execute(
            "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'changes'), 0), "
            "(SELECT count(*) FROM memories), (SELECT count(*) FROM links)"
        ).fetchone()
        source.backup(copy, pages=_STEP_PAGES, progress=step, sleep=0)
        source.execute("ROLLBACK")
        copy.execute("PRAGMA journal_mode = DELETE").close()  # one file, without a log that must go with it
    return int(facts[0]), int(facts[1]), int(facts[2])


def _size(path: Path) -> int:
    """Bytes of a file, 0 when it is not there."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def file_hash(path: Path, deadline: Deadline) -> str:
    """SHA-256 of a file, as hexadecimal digits. Raises OSError and what ``deadline.check`` raises."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_READ_BYTES):
            deadline.check()
            digest.update(block)
    return digest.hexdigest()


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    facts = asdict(manifest)
    file = {"name": DATABASE, "bytes": facts.pop("bytes"), "sha256": facts.pop("sha256")}
    text = json.dumps({"format": FORMAT, "version": FORMAT_VERSION, **facts, "files": [file]}, indent=2) + "\n"
    partial = folder / _HALF
    descriptor = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    partial.replace(folder / MANIFEST)
    sync_file(folder)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a backup. Raises BackupInvalidError when it is missing, damaged or of a newer memxd."""
    try:
        with (folder / MANIFEST).open("rb") as file:
            raw = file.read(_MANIFEST_BYTES)
    except OSError as error:
        raise BackupInvalidError(
            f"{folder} holds no {MANIFEST} that can be read ({os.strerror(error.errno or 0)}): it is no backup, or one "
            "that was broken off"
        ) from error
    try:
        facts = json.loads(raw)
        if facts.pop("format") != FORMAT:
            raise ValueError("another format")
        version = facts.pop("version")
        [file] = facts.pop("files")
        manifest = Manifest(**facts, bytes=file["bytes"], sha256=file["sha256"])
        known = file["name"] == DATABASE and all(isinstance(v, int | str) for v in asdict(manifest).values())
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BackupInvalidError(f"{folder / MANIFEST} is damaged or no manifest of memxd") from error
    if version != FORMAT_VERSION or not known:
        raise BackupInvalidError(f"{folder / MANIFEST} is of another version of memxd; use the one that wrote it")
    return manifest
