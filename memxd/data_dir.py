"""The data directory: made for this user alone, or refused; and the key that hides names in the log.

Owns that rule (mode 0700, this user's, on a way that nobody else can bend) and the key's file. Called by ``daemon.py``,
when a service is installed, and by the verbs that work on the files without a daemon.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from memxd.errors import ConfigError
from memxd.trust import unsafe_way

_KEY_BYTES = 32


def prepare_data_dir(folder: Path) -> None:
    """Make the data directory with mode 0700, or refuse one that is not this user's alone."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = folder.stat()
    except OSError as error:
        raise ConfigError(f"data_dir: cannot use {folder}: {error.strerror}; give another --data-dir") from error
    if info.st_uid != os.getuid():
        raise ConfigError(f"data_dir: {folder} belongs to user {info.st_uid}; give another --data-dir")
    if info.st_mode & 0o077:
        what = "write to" if info.st_mode & 0o022 else "look into"
        raise ConfigError(f"data_dir: others can {what} {folder}; run: chmod 700 {folder}")
    way = unsafe_way(folder)
    if way:
        raise ConfigError(
            f"data_dir: {way}, so that they could put another folder in the place of {folder}; take that permission "
            "away, or give another --data-dir"
        )


def log_key(folder: Path) -> bytes:
    """The 32 bytes that hash scopes in the log: this data directory's own, made at the first start, so that lines of
    different days can be compared, and nobody who has only the log can try names against it."""
    path = folder / "memxd-log.key"
    try:
        key = path.read_bytes()
        if len(key) == _KEY_BYTES:
            return key
        path.unlink()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ConfigError(f"data_dir: cannot read {path}: {error.strerror}") from error
    key = secrets.token_bytes(_KEY_BYTES)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(key)
    except OSError:
        return key  # a full or read-only disk: lines of this run can be compared with each other, and that must do
    return key
