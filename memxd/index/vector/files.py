"""The names in the vector index's directory, and what belongs to which generation.

Owns names only; ``rows``, ``manifest`` and ``upkeep`` own the contents. Everything but the manifest carries the number
of its generation, and a graph also how many rows it covers, so that what a crash left over can be told and removed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

__all__ = [
    "GRAPH",
    "LINKS",
    "MANIFEST",
    "RECORDS",
    "VECTORS",
    "disk_bytes",
    "free_number",
    "is_new",
    "remove",
    "remove_older",
    "remove_others",
]

MANIFEST = "manifest.bin"
VECTORS = "vectors-{:06d}.f16"
RECORDS = "rows-{:06d}.bin"
GRAPH = "graph-{:06d}-{}.usearch"
LINKS = "links-{:06d}-{}.bin"
#: Graphs of former formats (without a number of rows) are known, so that they are removed.
_NAME = re.compile(
    r"(?:vectors-(\d{6,})\.f16|rows-(\d{6,})\.bin|graph-(\d{6,})(?:-\d+)?\.usearch|links-(\d{6,})-\d+\.bin)"
)
_OF_GRAPH = ("graph-", "links-")


def _numbered(directory: Path) -> Iterator[tuple[int, Path]]:
    for path in sorted(directory.iterdir()):
        match = _NAME.fullmatch(path.name)
        if match is not None:
            yield int(next(filter(None, match.groups()))), path


def free_number(directory: Path) -> int:
    """A generation number above all that have files."""
    return 1 + max((number for number, _ in _numbered(directory)), default=0)


def is_new(directory: Path) -> bool:
    """True when no index was ever saved here."""
    return not (directory / MANIFEST).exists()


def remove(directory: Path, generation: int) -> None:
    """Remove the files of one generation."""
    for number, path in _numbered(directory):
        if number == generation:
            path.unlink(missing_ok=True)


def remove_older(directory: Path, generation: int) -> None:
    """Remove the files of former generations: what a start found and did not believe. Of a later one, which may be in
    the making, nothing."""
    for number, path in _numbered(directory):
        if number < generation:
            path.unlink(missing_ok=True)


def remove_others(directory: Path, generation: int, graph: Collection[str]) -> None:
    """Remove the files of every other generation, graphs of this one whose files are not ``graph``, and a manifest that
    was never finished."""
    (directory / f"{MANIFEST}.new").unlink(missing_ok=True)
    for number, path in _numbered(directory):
        if number != generation or (path.name.startswith(_OF_GRAPH) and path.name not in graph):
            path.unlink(missing_ok=True)


def disk_bytes(directory: Path) -> int:
    """Bytes taken on disk (holes do not count); 0 when somebody removed the directory."""
    total = 0
    with suppress(FileNotFoundError):  # of the directory: somebody removed it
        for path in directory.iterdir():
            with suppress(FileNotFoundError):  # swapped away while we looked
                total += path.stat().st_blocks * 512
    return total
