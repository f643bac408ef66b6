"""Answers kept so that a retry is answered instead of done again.

Owns request ids for 24 hours: per scope and RPC, with the hash of the request's body and the answer as JSON. When a
memory whose text the answer holds is erased, the answer goes and the id stays: a late retry then learns that the
memory is gone, instead of storing it anew. Part of every transaction; the writer forgets expired ids now and then.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from memxd.model import Limits
from memxd.store.base import ReadBase, WriteBase
from memxd.store.late import Request
from memxd.store.types import Remembered


class RequestReads(ReadBase):
    """Looking a request id up."""

    def recall(self, scope_no: int, rpc: str, request_id: str) -> Remembered | None:
        """What was answered to this request id within the last 24 h, or None."""
        found = self._connection.execute(
            "SELECT body_hash, answer FROM requests "
            "WHERE scope_no = ? AND rpc = ? AND request_id = ? AND created_at > ?",
            (scope_no, rpc, request_id, self._context.clock() - Limits.REQUEST_ID_TTL),
        ).fetchone()
        return Remembered(*found) if found else None

    def requests_among(self, scope_no: int, rpc: str, ids: Collection[str]) -> set[str]:
        """Those of the request ids ``ids`` to which ``recall`` has an answer."""
        found = self._connection.execute(
            "SELECT request_id FROM requests WHERE scope_no = ? AND rpc = ? AND +created_at > ? "
            "AND request_id IN (SELECT value FROM json_each(?))",
            (scope_no, rpc, self._context.clock() - Limits.REQUEST_ID_TTL, json.dumps(list(ids))),
        )
        return {request_id for (request_id,) in found.fetchall()}


class RequestWrites(RequestReads, WriteBase):
    """Keeping answers."""

    def remember(
        self, scope_no: int, rpc: str, request_id: str, body_hash: bytes, answer: str, rids: Collection[int] = ()
    ) -> None:
        """Keep an answer (JSON) for 24 h. ``rids``: the memories whose text it holds; erasing one erases the answer."""
        key = scope_no, rpc, request_id
        self._late.add_request(Request(key, body_hash, answer, self._now(), tuple(rids)))

    def recall(self, scope_no: int, rpc: str, request_id: str) -> Remembered | None:
        """As that of a snapshot; sees what this transaction keeps."""
        return self._late.recall((scope_no, rpc, request_id)) or super().recall(scope_no, rpc, request_id)

    def requests_among(self, scope_no: int, rpc: str, ids: Collection[str]) -> set[str]:
        """As that of a snapshot; sees what this transaction keeps."""
        kept = {id for id in ids if self._late.recall((scope_no, rpc, id))}
        return kept | super().requests_among(scope_no, rpc, ids)

    def forget_requests(self) -> int:
        """Drop request ids older than 24 h; return how many."""
        self.write_late()
        return self._connection.execute(
            "DELETE FROM requests WHERE created_at <= ?", (self._now() - Limits.REQUEST_ID_TTL,)
        ).rowcount
