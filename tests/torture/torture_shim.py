"""The shim that makes calls of the file system fail, from the harness's side: compiled, loaded, switched.

Owns the layout that ``torture_shim.c`` has, too. A fault is on until it is switched off; the daemon runs on meanwhile.
"""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
WRITE, SYNC, SIZE, CREATE, RENAME = 1, 2, 4, 8, 16
ALL = WRITE | SYNC | SIZE | CREATE | RENAME
#: What a full disk refuses: data, longer files, new names.
FULL = WRITE | SIZE | CREATE
_CONTROL = struct.Struct("<6i104s")


def compiler() -> str | None:
    """A C compiler, or None."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def built(folder: Path) -> Path:
    """The shim, compiled into ``folder``."""
    target = folder / "torture_shim.so"
    command = [
        compiler() or "cc",
        "-O1",
        "-Wall",
        "-Werror",
        "-fPIC",
        "-shared",
        "-o",
        str(target),
        str(SOURCE),
        "-ldl",
    ]
    subprocess.run(command, check=True, capture_output=True)
    return target


class Faults:
    """The switch for one daemon, whose data directory is ``root``."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._file = folder / "faults"
        self._file.write_bytes(bytes(_CONTROL.size))
        with self._file.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _CONTROL.size)
        self.environ = {
            "LD_PRELOAD": str(built(folder)),
            "TORTURE_FAULT_ROOT": str(root.resolve()),
            "TORTURE_FAULT_CONTROL": str(self._file),
        }

    @contextmanager
    def failing(self, error: int, calls: int = ALL, part: str = "", after: int = 0, count: int = -1) -> Iterator[None]:
        """Calls of these kinds on files whose path holds ``part`` (with ``$`` at its end: ends with it) fail."""
        packed = _CONTROL.pack(0, error, calls, after, count, 0, part.encode())
        self._map[4:] = packed[4:]
        self._map[0:4] = struct.pack("<i", 1)
        try:
            yield
        finally:
            self._map[0:4] = bytes(4)

    @property
    def failed(self) -> int:
        """How many calls have failed under the last fault."""
        return int(_CONTROL.unpack(self._map[:])[5])

    def close(self) -> None:
        """Give the mapping back."""
        self._map.close()
