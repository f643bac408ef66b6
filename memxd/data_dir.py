"""The data directory: made for this user alone, or refused.

Owns that rule: mode 0700, this user's, on a way that nobody else can bend. Called by ``daemon.py``, when a service is
installed, and by the verbs that work on the files without a daemon.
"""

from __future__ import annotations

import os
from pathlib import Path

from memxd.errors import ConfigError
from memxd.trust import unsafe_way


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
