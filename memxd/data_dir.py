"""The data directory: made for this user alone, or refused. Called by ``daemon.py`` and when a service is installed."""

from __future__ import annotations

import os
from pathlib import Path

from memxd.errors import ConfigError


def prepare_data_dir(folder: Path) -> None:
    """Make the data directory with mode 0700, or refuse one that is not this user's alone to write."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = folder.stat()
    except OSError as error:
        raise ConfigError(f"data_dir: cannot use {folder}: {error.strerror}; give another --data-dir") from error
    if info.st_uid != os.getuid():
        raise ConfigError(f"data_dir: {folder} belongs to user {info.st_uid}; give another --data-dir")
    if info.st_mode & 0o022:
        raise ConfigError(f"data_dir: others can write to {folder}; run: chmod 700 {folder}")
