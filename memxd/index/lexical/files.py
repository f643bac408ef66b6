"""Files of the keyword index: made durable in order, and checked before anything in them is believed.

Owns the manifest (which Whoosh generation counts, what revision it reflects, by which analyzer), fsync and the folder's
lock. Knows nothing of postings. Order of a commit: segment files, TOC, manifest, each synced before the next; the
rename of the manifest is the commit, so a crash anywhere leaves the state before or after. Used by the writing child
process and by ``store`` in the daemon.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path

from memxd.failpoints import reach

MANIFEST = "manifest.json"
#: The folder, beside the index's own, of what was found damaged last.
SET_ASIDE = "broken"
LOCK = "writer.lock"
_CHUNK = 1 << 22


class DamagedError(Exception):
    """A file of the index is not what was written, or of another version; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What counts: ``generation`` of Whoosh's TOC (with its size and CRC-32), revision ``watermark``, by ``stamp``."""

    stamp: str
    watermark: int
    generation: int
    toc_size: int
    toc_crc: int


def checksum(path: Path) -> tuple[int, int]:
    """(size in bytes, CRC-32) of a file."""
    size = crc = 0
    with path.open("rb") as file:
        while block := file.read(_CHUNK):
            size += len(block)
            crc = zlib.crc32(block, crc)
    return size, crc


def verify(path: Path, size: int, crc: int) -> None:
    """Raise DamagedError unless the file is there, of this size and sum."""
    try:
        found = checksum(path)
    except OSError as error:
        raise DamagedError(f"{path.name} cannot be read ({error.strerror})") from error
    if found != (size, crc):
        raise DamagedError(f"{path.name} is damaged (size or checksum differ)")


def sync(path: Path) -> None:
    """fsync a file or a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest atomically and durably."""
    body = json.dumps(asdict(manifest), sort_keys=True)
    text = json.dumps({"manifest": asdict(manifest), "crc": zlib.crc32(body.encode())}, sort_keys=True)
    fresh = folder / f"{MANIFEST}.new"
    with fresh.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(folder / MANIFEST)
    sync(folder)


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest, None where there is none. Raises DamagedError when it is not one."""
    try:
        text = (folder / MANIFEST).read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DamagedError(f"{MANIFEST} cannot be read") from error
    try:
        outer = json.loads(text)
        manifest = Manifest(**outer["manifest"])
        crc = zlib.crc32(json.dumps(asdict(manifest), sort_keys=True).encode())
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedError(f"{MANIFEST} is damaged") from error
    if crc != outer.get("crc"):
        raise DamagedError(f"{MANIFEST} is damaged (checksum differs)")
    return manifest


def set_aside(folder: Path, aside: Path) -> None:
    """Move a broken folder away for a look at it later; only the newest is kept."""
    shutil.rmtree(aside, ignore_errors=True)
    folder.replace(aside)


def exchange(folder: Path, fresh: Path, old: Path) -> None:
    """Put a new index in the place of the one in ``folder``, which goes to ``old``. A crash between leaves neither in
    place: the next start builds it from the store."""
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():  # somebody may have removed it
        folder.replace(old)
    reach("keyword.moved")
    fresh.replace(folder)
    sync(folder.parent)
    reach("keyword.replaced")


def await_unlocked(folder: Path, seconds: float) -> None:
    """Wait until no writer has the folder: one whose daemon was killed may live for a moment longer."""
    end = time.monotonic() + seconds
    while (held := lock(folder)) is None and time.monotonic() < end:
        time.sleep(0.02)
    if held is not None:
        os.close(held)


def lock(folder: Path) -> int | None:
    """Take the folder's writer lock: a descriptor to keep open (it goes with its process), or None when taken."""
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle
