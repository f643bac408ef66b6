"""Earlier contents of memories.

Owns the history table: what a memory was before each change of its content, with the attributes of that time. Goes with
the memory when that is erased. Part of every transaction; ``records.py`` writes it.
"""

from __future__ import annotations

import json

from memxd.model import MemoryType, Micros
from memxd.store import codec
from memxd.store.base import ReadBase, WriteBase
from memxd.store.types import Row, Version


class HistoryReads(ReadBase):
    """Reading earlier versions."""

    def history(self, rid: int) -> list[Version]:
        """Earlier versions of a memory, newest first."""
        found = self._connection.execute(
            "SELECT content, attributes, revision, replaced_at FROM history WHERE rid = ? ORDER BY revision DESC",
            (rid,),
        )
        return [_version(*values) for values in found.fetchall()]


class HistoryWrites(HistoryReads, WriteBase):
    """Keeping a version that is about to be replaced."""

    def _keep_version(self, old: Row) -> None:
        memory = old.memory
        attributes = {
            "type": int(memory.type),
            "tags": memory.tags,
            "metadata": memory.metadata,
            "importance": memory.importance,
            "event_at": memory.event_at,
            "valid_until": memory.valid_until,
            "private": memory.private,
            "source": memory.source,
            "updated_at": memory.updated_at,
        }
        self._connection.execute(
            "INSERT INTO history(rid, revision, replaced_at, attributes, content) VALUES (?, ?, ?, ?, ?)",
            (old.rid, memory.revision, self._now(), codec.to_json(attributes), memory.content),
        )


def _version(content: str, attributes: str, revision: int, replaced_at: Micros) -> Version:
    fields = json.loads(attributes)
    fields |= {"type": MemoryType(fields["type"]), "tags": tuple(fields["tags"])}
    return Version(content=content, revision=revision, replaced_at=replaced_at, **fields)
