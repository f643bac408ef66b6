"""Deleting all that memxd keeps on this machine, for ``memx uninstall --purge``.

Owns the list of what is memxd's own in the data directory. Whatever else lies there makes it refuse before anything is
deleted: a data directory that somebody put into a folder of other things is emptied by hand.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from memxd.errors import ConfigError
from memxd.locks import FileLock

_FOLDERS = frozenset({"index", "log", "models"})
_LOCK = "memxd-data.lock"
#: How names of ours begin: the database and what belongs to it, copies that a restore or an update has left.
_OURS = ("memxd", "before-restore-", "before-migration-")


def strangers(data_dir: Path) -> list[str]:
    """Names in the data directory that are not memxd's, sorted."""
    return sorted(p.name for p in data_dir.iterdir() if p.name not in _FOLDERS and not p.name.startswith(_OURS))


def purge(data_dir: Path) -> bool:
    """Delete the data directory; False when there is none.

    Raises ConfigError when it holds what is not memxd's or is a symbolic link, AlreadyRunningError while a daemon holds
    it.
    """
    if not data_dir.exists():
        return False
    if data_dir.is_symlink() or not data_dir.is_dir():
        raise ConfigError(f"{data_dir} is not a directory of its own; delete by hand what it leads to")
    if others := strangers(data_dir):
        raise ConfigError(
            f"{data_dir} also holds {', '.join(others[:5])}, which is not memxd's; nothing was deleted: move that "
            "away, or delete by hand what you do not need"
        )
    with FileLock(data_dir / _LOCK, f"the data directory {data_dir}"):
        for path in sorted(data_dir.iterdir()):
            if path.name == _LOCK:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    (data_dir / _LOCK).unlink()
    data_dir.rmdir()
    return True
