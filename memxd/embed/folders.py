"""Putting a model folder in place so that it is whole or not there.

Owns the lock, the temporary folder, the flushes and the rename under ``<data_dir>/models``; ``convert`` and ``models``
fill the folder. Knows nothing of models. A crash leaves a dot-folder that the next installation removes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from memxd.errors import ModelFileError

_LOCK = ".lock"
_NEW, _OLD = ".new-", ".old-"


def models_root(data_dir: Path) -> Path:
    """Where installed models live."""
    return data_dir / "models"


@contextmanager
def models_lock(root: Path) -> Iterator[None]:
    """Hold ``root`` (made when it lacks) for one process and thread; others wait. Freed by a crash."""
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ModelFileError(f"cannot write to the model folder {root}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def install_folder(root: Path, name: str, fill: Callable[[Path], None]) -> Path:
    """Have ``fill`` write the files of ``root/name`` and put them in place, replacing what is there.

    The caller holds ``models_lock``. ModelFileError when the disk refuses; then nothing changed.
    """
    try:
        _sweep(root)
        fresh, target, old = root / (_NEW + name), root / name, root / (_OLD + name)
        fresh.mkdir(mode=0o700)
        fill(fresh)
        for path in sorted(fresh.iterdir()):
            _flush(path)
        _flush(fresh)
        if target.exists():
            target.rename(old)
        fresh.rename(target)
        _flush(root)
        _sweep(root)
    except OSError as error:
        raise ModelFileError(f"cannot install the model {name} in {root}: {error.strerror or error}") from error
    return target


def _sweep(root: Path) -> None:
    """Remove what an interrupted installation left."""
    for path in root.iterdir():
        if path.name.startswith((_NEW, _OLD)):
            shutil.rmtree(path)


def _flush(path: Path) -> None:
    """fsync a file or folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
