"""Earlier contents of memories.

Owns the history table: what a memory was before each change of its content, with the attributes of that time. Goes with
the memory when that is erased. Part of every transaction; ``records.py`` writes it.
"""

from __future__ import annotations

import json

from memxd.model import Memory, MemoryType, Micros
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
        return [version(*values) for values in found.fetchall()]


class HistoryWrites(HistoryReads, WriteBase):
    """Keeping a version that is about to be replaced."""

    def _keep_version(self, old: Row) -> None:
        self._add_version(old.rid, old.memory.revision, self._now(), old.memory)

    def _add_version(self, rid: int, revision: int, replaced_at: Micros, old: Memory | Version) -> None:
        attributes = {
            "type": int(old.type),
            "tags": old.tags,
            "metadata": old.metadata,
            "importance": old.importance,
            "event_at": old.event_at,
            "valid_until": old.valid_until,
            "private": old.private,
            "source": old.source,
            "updated_at": old.updated_at,
        }
        self._connection.execute(
            "INSERT INTO history(rid, revision, replaced_at, attributes, content) VALUES (?, ?, ?, ?, ?)",
            (rid, revision, replaced_at, codec.to_json(attributes), old.content),
        )


def version(content: str, attributes: str, revision: int, replaced_at: Micros) -> Version:
    """A row of the table as a version."""
    fields = json.loads(attributes)
    fields |= {"type": MemoryType(fields["type"]), "tags": tuple(fields["tags"])}
    return Version(content=content, revision=revision, replaced_at=replaced_at, **fields)
