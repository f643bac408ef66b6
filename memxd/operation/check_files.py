"""The doctor's look at what lies on disk: config file, data directory, modes of its files, space, schema, kept copies.

Owns those checks and their limits. Reads only; what may be mended without loss (modes) is offered as ``mend``. Called
by ``doctor.py``.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from memxd.config import Config, chosen_file
from memxd.errors import ConfigError, MemxdError, StartupError
from memxd.operation.findings import Finding, note, ok, problem

#: Free bytes below which the disk is worth a word, and below which stores are soon refused.
_LITTLE, _HARDLY_ANY = 2 * 1024**3, 200 * 1024**2


def check_config(environ: Mapping[str, str]) -> tuple[Config | None, list[Finding]]:
    """The settings when they are sound, and what was found."""
    try:
        path = chosen_file(None, environ)
        config = Config.load({}, environ)
    except (ConfigError, StartupError) as error:
        reason = "the daemon does not start with it (exit code 78)"
        return None, [problem("config", error.message, reason, "correct that setting", "memx config check")]
    if path is None:
        return config, [ok("config", "no config file; the defaults hold")]
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        found = problem(
            "config",
            f"others can read {path} (mode {mode:04o})",
            "it may come to hold a key",
            "take their permission away",
            f"chmod 600 {shlex.quote(str(path))}",
            lambda: path.chmod(0o600),
        )
        return config, [found]
    return config, [ok("config", f"{path} is sound")]


def check_permissions(data_dir: Path) -> list[Finding]:
    """The data directory and everything in it are this user's alone."""
    try:
        info = data_dir.stat()
    except FileNotFoundError:
        return [ok("permissions", f"{data_dir} does not exist yet; the first start makes it")]
    except OSError as error:
        reason = "the daemon cannot start"
        return [problem("permissions", f"{data_dir}: {error.strerror}", reason, "make it readable, or set data_dir")]
    shown = shlex.quote(str(data_dir))
    if info.st_uid != os.getuid():
        text = f"{data_dir} belongs to user {info.st_uid}"
        fix, command = "give it to this user (as root), or set data_dir", f"chown -R {os.getuid()} {shown}"
        return [problem("permissions", text, "the daemon refuses to use it", fix, command)]
    wrong = list(_too_open(data_dir))
    if wrong:
        return [
            problem(
                "permissions",
                f"others may look into {len(wrong)} files or folders, such as {wrong[0]}",
                "they hold memories",
                "take their permission away",
                f"chmod -R go-rwx {shown}",
                lambda: _close(wrong),
            )
        ]
    if not os.access(data_dir, os.W_OK | os.X_OK):
        text, reason = f"{data_dir} cannot be written", "nothing can be stored"
        return [problem("permissions", text, reason, "make it writable", f"chmod u+rwx {shown}")]
    return [ok("permissions", f"{data_dir} is this user's alone")]


def _too_open(folder: Path) -> Iterator[Path]:
    """What others may read, write or enter; symbolic links have no mode of their own and are not followed."""
    if folder.lstat().st_mode & 0o077:
        yield folder
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            try:
                info = path.lstat()
            except FileNotFoundError:
                continue  # an index file that a running daemon has just replaced
            if info.st_mode & 0o077 and not stat.S_ISLNK(info.st_mode):
                yield path


def _close(paths: Sequence[Path]) -> None:
    for path in paths:
        if path.exists():
            path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o700)


def check_disk(data_dir: Path) -> list[Finding]:
    """Room on the disk of the data directory."""
    place = next(path for path in (data_dir, *data_dir.parents) if path.exists())
    free = shutil.disk_usage(place).free
    text = f"{free / 1024**3:.1f} GiB free at {place}"
    if free < _HARDLY_ANY:
        reason = "stores are soon refused with STORAGE_FULL; what was acknowledged stays"
        return [problem("disk", text, reason, "make room on this disk, or set data_dir to another", f"df -h {place}")]
    if free < _LITTLE:
        reason = "a rebuild of the indexes needs about their size again"
        return [note("disk", text, reason, "make room on this disk")]
    return [ok("disk", text)]


def check_schema(data_dir: Path, running: int | None) -> list[Finding]:
    """The database's version and a look at its soundness; ``running`` is the version that a daemon reports."""
    from memxd.store.connection import DATABASE
    from memxd.store.schema import MIGRATIONS
    from memxd.store.soundness import look_at

    newest, path = len(MIGRATIONS), data_dir / DATABASE
    if running is None and not path.exists():
        return [ok("schema", "no database yet")]
    try:
        version = look_at(path) if running is None else running
    except MemxdError as error:
        reason = "the daemon does not start on a damaged database; it is left as it is"
        command = "memx restore FOLDER --move-aside"
        return [problem("schema", error.message, reason, "restore a backup; what is there is kept beside", command)]
    if version > newest:
        text = f"the database has schema version {version}, this memxd knows {newest}"
        reason = "a newer memxd wrote it; this one does not touch it"
        return [problem("schema", text, reason, "install that memxd, or a newer one", "pip install --upgrade memxd")]
    if version < newest:
        text = f"schema version {version} of {newest}"
        return [note("schema", text, "the next start brings it up to date, after copying the database")]
    return [ok("schema", f"schema version {version}, sound as far as a look tells")]


def check_copies(data_dir: Path) -> list[Finding]:
    """Earlier states of the database that an update or a restore has kept: they take room and hold what was erased."""
    found = sorted(path for kind in ("before-migration-*", "before-restore-*") for path in data_dir.glob(kind))
    if not found:
        return []
    size = sum(file.stat().st_size for folder in found for file in folder.rglob("*") if file.is_file())
    names = " ".join(shlex.quote(str(folder)) for folder in found)
    text = f"{len(found)} kept from before an update or a restore, {size / 1024**2:,.1f} MiB: {names}"
    reason = "the way back to how it was then; they also hold what was erased since"
    return [note("copies", text, reason, "delete them when you need them no more", f"rm -r {names}")]
