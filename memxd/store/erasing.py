"""Erasing memories for good.

Owns ``delete``: rows with vectors, history, tags, facts, links and the answers kept for retries, one or a whole scope
at a time. Works on sets, because a scope may hold hundreds of thousands. SQLite overwrites what is freed
(secure_delete), and the writer empties the write-ahead log soon after. Part of a write transaction.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from memxd.model import Change, LinkType
from memxd.store.supersession import SupersessionWrites

_SUPERSEDES = int(LinkType.SUPERSEDES)
_DOOMED = "SELECT rid FROM temp.doomed"


class ErasingWrites(SupersessionWrites):
    """Removing memories."""

    def delete(self, rids: Collection[int]) -> int:
        """Erase memories with vectors, history, links and remembered answers; what they superseded is restored.

        Returns how many there were.
        """
        execute = self._connection.execute
        execute("CREATE TEMP TABLE IF NOT EXISTS doomed(rid INTEGER PRIMARY KEY)")
        execute("DELETE FROM temp.doomed")
        execute(
            "INSERT INTO temp.doomed SELECT rid FROM memories WHERE rid IN (SELECT value FROM json_each(?))",
            (json.dumps(list(rids)),),
        )
        freed = [rid for (rid,) in execute(f"{_DOOMED} ORDER BY rid").fetchall()]
        if not freed:
            return 0
        restored = execute(
            f"SELECT DISTINCT target_rid FROM links WHERE type = {_SUPERSEDES} AND source_rid IN ({_DOOMED}) "
            f"AND target_rid NOT IN ({_DOOMED}) ORDER BY target_rid"
        ).fetchall()
        self.write_late()  # answers of this transaction may tell of them
        self._log_erased(freed)
        self._erase()
        self._refresh(target for (target,) in restored)
        self.erased = True
        return len(freed)

    def _log_erased(self, rids: list[int]) -> None:
        """One revision and change for each, with the vectors it leaves behind."""
        vids = dict(
            self._connection.execute(
                f"SELECT rid, '[' || group_concat(vid) || ']' FROM chunks WHERE rid IN ({_DOOMED}) GROUP BY rid"
            ).fetchall()
        )
        at = self._now()
        first = self._revision + 1
        self._revision += len(rids)
        self._connection.executemany(
            "INSERT INTO changes(revision, rid, at, parts, dead_vids) VALUES (?, ?, ?, 0, ?)",
            [(revision, rid, at, vids.get(rid)) for revision, rid in enumerate(rids, start=first)],
        )
        self.changes += [
            Change(revision, rid, None, dead_vids=tuple(sorted(json.loads(vids[rid]))) if rid in vids else ())
            for revision, rid in enumerate(rids, start=first)
        ]

    def _erase(self) -> None:
        for statement in (
            f"UPDATE requests SET answer = NULL WHERE request_no IN "
            f"(SELECT request_no FROM request_rids WHERE rid IN ({_DOOMED}))",
            f"DELETE FROM request_rids WHERE rid IN ({_DOOMED})",
            f"DELETE FROM links WHERE source_rid IN ({_DOOMED}) OR target_rid IN ({_DOOMED})",
            f"DELETE FROM history WHERE rid IN ({_DOOMED})",
            f"DELETE FROM memory_facts WHERE rid IN ({_DOOMED})",
            f"DELETE FROM memory_tags WHERE rid IN ({_DOOMED})",
            f"DELETE FROM chunks WHERE rid IN ({_DOOMED})",
            f"DELETE FROM memories WHERE rid IN ({_DOOMED})",
            "DELETE FROM temp.doomed",
        ):
            self._connection.execute(statement)
