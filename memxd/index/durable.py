"""Files that are either whole or not there, and the checks that tell.

Owns writing beside and swapping by rename, the checksum of large arrays, and how an operating system's refusal
becomes a MemxdError. Knows no format. Used by the indexes under this package.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import weakref
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memxd.errors import MemxdError, StorageFailedError, StorageFullError, StorageReadOnlyError
from memxd.failpoints import reach

__all__ = ["Watched", "add_sums", "block_sums", "clear_way", "fsync_directory", "storage_error", "write_whole"]

_log = logging.getLogger(__name__)

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}


def storage_error(error: OSError, what: str) -> MemxdError:
    """The refusal to raise for ``error``; ``what`` names the index, never a path."""
    if error.errno in _FULL:
        return StorageFullError(f"the disk is full: {what} was not written")
    if error.errno in _READ_ONLY:
        return StorageReadOnlyError(f"the data directory cannot be written: {what} was not saved")
    if error.errno == errno.ENOENT:  # no index asks for a file that it did not make
        return StorageFailedError(
            f"the folder of {what} was removed: memx rebuild makes it again, nothing stored is lost"
        )
    return StorageFailedError(f"the disk refused to write {what}: {error.strerror or type(error).__name__}")


# As os.lseek, but without giving the interpreter's lock away: a search asks for some twenty files, and would have to
# win the lock back each time from whoever is busy. Answers -1 for an error, which counts as cut short.
_seek = ctypes.PyDLL(None).lseek
_seek.argtypes, _seek.restype = (ctypes.c_int, ctypes.c_long, ctypes.c_int), ctypes.c_long


class Watched:
    """A mapped file's size, asked anew before the map is read: reading beyond the end of a file that somebody cut short
    kills the process. Its handle stays open as long as the object lives, so a name that goes to another file does not
    matter. Raises OSError when the file is not there."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._file)
        self.size = os.fstat(self._file).st_size

    def holds(self, size: int | None = None) -> bool:
        """True while the file has at least ``size`` bytes (None: what it had at first)."""
        end: int = _seek(self._file, 0, os.SEEK_END)
        return end >= (self.size if size is None else size)


def fsync_directory(directory: Path) -> None:
    """Make renames in ``directory`` durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def clear_way(folder: Path) -> None:
    """Remove what stands in the place of an index's folder and is none: indexes are disposable."""
    if not folder.is_dir() and (folder.exists() or folder.is_symlink()):
        _log.warning("%s is no folder and is removed: that index is built anew", folder.name)
        folder.unlink()


def write_whole(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Replace ``path`` by the concatenated parts: a reader, also after a crash, sees the old file or the new one.

    Mode 0600. Raises OSError; the old file is untouched then.
    """
    beside = path.with_name(path.name + ".new")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb", buffering=0) as file:
        for part in parts:
            rest = memoryview(part).cast("B")
            while rest:  # an unbuffered write may take less than asked
                rest = rest[file.write(rest) or 0 :]
        os.fsync(file.fileno())
    reach("file.written")
    os.replace(beside, path)
    reach("file.replaced")
    fsync_directory(path.parent)


def block_sums(data: npt.NDArray[np.uint8]) -> tuple[int, int]:
    """(xor, sum modulo 2**64) of the bytes (uint8[n], contiguous) read as 64-bit words, the last one padded by zeros.

    Finds every single flipped byte and any realistic damage at memory speed (a CRC takes twice as long); not made
    against forgery.
    """
    whole = data.shape[0] // 8 * 8
    words = data[:whole].view(np.uint64)
    last = int.from_bytes(data[whole:].tobytes(), "little")
    total = int(np.add.reduce(words, dtype=np.uint64)) + last
    return int(np.bitwise_xor.reduce(words)) ^ last, total % 2**64


def add_sums(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    """The sums of two pieces of data that lie behind each other, the first one padded to 8 bytes."""
    return first[0] ^ second[0], (first[1] + second[1]) % 2**64
