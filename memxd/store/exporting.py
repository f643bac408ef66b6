"""Reading a scope whole, in pages, in a form that another store can take over.

Owns what "whole" means: each memory as its callers made it (``own_state``, ``own_valid_until``; what superseding makes
of them follows from the links), with its vectors and earlier versions; then the links between memories that were read.
Pages are short, so that a long export keeps no snapshot open. Part of every transaction; called by the engine's
export and, for one memory, by its import.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from memxd.model import Link, LinkType, Memory, Micros, Scope, State
from memxd.store import codec
from memxd.store.history import HistoryReads, version
from memxd.store.supersession import SupersessionReads
from memxd.store.types import NewChunk, Row, Version

_SUPERSEDES = int(LinkType.SUPERSEDES)
_SHOWN_SUPERSEDERS = f"""SELECT DISTINCT l.target_rid FROM links AS l JOIN memories AS n ON n.rid = l.source_rid
 WHERE l.type = {_SUPERSEDES} AND n.private = 0 AND l.target_rid IN (SELECT value FROM json_each(?))"""
_LINKS = f"""SELECT {codec.LINK} FROM links AS l JOIN memories AS s ON s.rid = l.source_rid
 JOIN memories AS t ON t.rid = l.target_rid WHERE l.scope_no = ? AND l.id > ? AND max(s.private, t.private) <= ?
 AND (s.created_at, s.id) <= (?, ?) AND (t.created_at, t.id) <= (?, ?) ORDER BY l.id LIMIT ?"""


class Place(NamedTuple):
    """How far an export has come: creation and id of its last memory."""

    created_at: Micros
    id: str


#: Before every memory.
BEGINNING = Place(-(1 << 62), "")


class Whole(NamedTuple):
    """A memory as its callers made it, with earlier versions (oldest first) and its vectors (empty when not read)."""

    rid: int
    memory: Memory
    versions: tuple[Version, ...] = ()
    chunks: tuple[NewChunk, ...] = ()


class ExportReads(HistoryReads, SupersessionReads):
    """Reading in order of creation."""

    def export_total(self, scope_no: int) -> tuple[int, int]:
        """How many memories the scope holds, and how many of them are private."""
        [total, private] = self._connection.execute(
            "SELECT count(*), coalesce(sum(private), 0) FROM memories WHERE scope_no = ?", (scope_no,)
        ).fetchone()
        return int(total), int(private)

    def export_memories(self, scope_no: int, after: Place, limit: int, *, private: bool, vectors: bool) -> list[Whole]:
        """The next memories behind ``after``, in every state; ``private`` False leaves private ones out."""
        rows = self._rows(
            "WHERE m.scope_no = ? AND (m.created_at, m.id) > (?, ?) AND m.private <= ? ORDER BY m.created_at, m.id "
            "LIMIT ?",
            (scope_no, *after, int(private), limit),
        )
        rows.sort(key=lambda row: (row.memory.created_at, row.memory.id))
        return self._whole(rows, private=private, vectors=vectors)

    def export_memory(self, scope: Scope, id: str) -> Whole | None:
        """One memory in that form, without vectors; None when the scope has no such memory."""
        rows = self._rows("WHERE m.scope_no = ? AND m.id = ?", (self.scope_no(scope), id))
        return self._whole(rows, private=True, vectors=False)[0] if rows else None

    def export_links(self, scope_no: int, after_id: str, upto: Place, limit: int, *, private: bool) -> list[Link]:
        """The next links by id between memories created no later than ``upto``."""
        found = self._connection.execute(_LINKS, (scope_no, after_id, int(private), *upto, *upto, limit)).fetchall()
        scope = self._scope(scope_no)
        return [codec.link(values, scope) for values in found]

    def _whole(self, rows: Sequence[Row], *, private: bool, vectors: bool) -> list[Whole]:
        rids = json.dumps([row.rid for row in rows])
        among = "IN (SELECT value FROM json_each(?))"
        execute = self._connection.execute
        own = {
            rid: (state, end)
            for rid, state, end in execute(
                f"SELECT rid, own_state, own_valid_until FROM memories WHERE rid {among}", (rids,)
            ).fetchall()
        }
        versions: dict[int, list[Version]] = {}
        for rid, *values in execute(
            "SELECT rid, content, attributes, revision, replaced_at FROM history "
            f"WHERE rid {among} ORDER BY rid, revision",
            (rids,),
        ).fetchall():
            versions.setdefault(rid, []).append(version(*values))
        chunks: dict[int, list[NewChunk]] = {}
        if vectors:
            for rid, *chunk in execute(
                f"SELECT rid, start, stop, vector FROM chunks WHERE rid {among} ORDER BY rid, number", (rids,)
            ).fetchall():
                chunks.setdefault(rid, []).append((chunk[0], chunk[1], chunk[2]))
        told = None if private else {rid for (rid,) in execute(_SHOWN_SUPERSEDERS, (rids,)).fetchall()}
        return [
            Whole(
                row.rid,
                _own(row.memory, *own[row.rid], ends=told is not None and row.rid not in told),
                tuple(versions.get(row.rid, ())),
                tuple(chunks.get(row.rid, ())),
            )
            for row in rows
        ]


def _own(memory: Memory, state: int, end: Micros | None, *, ends: bool) -> Memory:
    """As its callers made it. ``ends``: what superseded it is left out, so that its end must be told here."""
    if ends and memory.state is State.SUPERSEDED:
        end = memory.valid_until
    return replace(memory, state=State(state), valid_until=end, superseded_by="", revision=0, vector_pending=False)
