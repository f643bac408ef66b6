"""What export and import hand out, and how import treats what is there already.

Frozen shapes without logic; field meanings are the proto's. Made by ``engine/``; the clients make them of messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Conflict(IntEnum):
    """What import does with a line whose id is taken by something else."""

    REFUSE = 1
    KEEP = 2
    REPLACE = 3


@dataclass(frozen=True, slots=True)
class ExportStep:
    """A part of an export: whole lines, each with its line feed, and how far it is, counted in memories."""

    lines: bytes
    done: int
    total: int
    finished: bool = False
    private_left_out: int = 0


@dataclass(frozen=True, slots=True)
class LineRefusal:
    """Why a line was not taken over. ``line`` counts from 1; ``kind`` and ``id`` are empty where it has none."""

    line: int
    kind: str
    id: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ImportStep:
    """How far an import is: what was sent up to line ``lines`` is on disk or refused. All counts are sums so far."""

    lines: int
    added: int = 0
    unchanged: int = 0
    replaced: int = 0
    kept: int = 0
    refused: int = 0
    refusals: tuple[LineRefusal, ...] = ()
    revision: int = 0
