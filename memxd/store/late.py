"""Rows that a transaction writes only at its end, many in one statement.

Owns the rows of ``changes`` and of answered requests that the functions of a group have made: nothing else of the same
transaction reads them but through here, and a statement for each of them would cost more than the row. ``write`` puts
them into the database; whoever is about to read or change those tables calls it first. Going back to a mark (the
database goes back to its savepoint then) takes written rows along. Part of ``WriteTxn``.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from memxd.model import Micros
from memxd.store.rows import insert_rows
from memxd.store.types import Remembered

_CHANGE = "INSERT INTO changes(revision, rid, at, parts, dead_vids)"
# An older answer to the same id has expired, or it would have been found.
_REQUEST = """INSERT OR REPLACE INTO requests(request_no, scope_no, rpc, request_id, body_hash, answer, created_at)"""
_RID = "INSERT INTO request_rids(rid, request_no)"

#: scope_no, rpc, request_id.
Key = tuple[int, str, str]


class Request(NamedTuple):
    """One answered request. ``rids``: the memories whose text the answer holds."""

    key: Key
    body_hash: bytes
    answer: str
    at: Micros
    rids: tuple[int, ...]


class Late:
    """See the module. One transaction's."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._changes: list[tuple[int, int, Micros, int, str | None]] = []
        self._requests: list[Request] = []
        self._by_key: dict[Key, Remembered] = {}  # of those that are not written yet
        self._written = (0, 0)

    def add_change(self, revision: int, rid: int, at: Micros, parts: int, dead_vids: str | None) -> None:
        """A row of ``changes``."""
        self._changes.append((revision, rid, at, parts, dead_vids))

    def add_request(self, request: Request) -> None:
        """An answer, for ``requests``."""
        self._requests.append(request)
        self._by_key[request.key] = Remembered(request.body_hash, request.answer)

    def recall(self, key: Key) -> Remembered | None:
        """An answer that is not written yet."""
        return self._by_key.get(key)

    def mark(self) -> tuple[int, int, tuple[int, int]]:
        """A place to go back to."""
        return len(self._changes), len(self._requests), self._written

    def back_to(self, mark: tuple[int, int, tuple[int, int]]) -> None:
        """Forget what was added since; what was written since is no longer in the database."""
        changes, requests, self._written = mark
        del self._changes[changes:]
        del self._requests[requests:]
        waiting = self._requests[self._written[1] :]
        self._by_key = {r.key: Remembered(r.body_hash, r.answer) for r in waiting}

    def write(self) -> None:
        """Put what waits into the database."""
        changes, requests = self._changes[self._written[0] :], self._requests[self._written[1] :]
        if changes:
            insert_rows(self._connection, _CHANGE, changes)
        if requests:
            self._write_requests(requests)
        self._written = len(self._changes), len(self._requests)
        self._by_key.clear()

    def _write_requests(self, requests: list[Request]) -> None:
        [last] = self._connection.execute("SELECT coalesce(max(request_no), 0) FROM requests").fetchone()
        numbered = list(enumerate(requests, last + 1))
        rows = [(number, *r.key, r.body_hash, r.answer, r.at) for number, r in numbered]
        insert_rows(self._connection, _REQUEST, rows)
        insert_rows(self._connection, _RID, [(rid, number) for number, r in numbered for rid in set(r.rids)])
