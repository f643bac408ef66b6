"""What every part of a transaction stands on: the connection, the clock, scopes and the revision.

Owns ``ReadBase`` and ``WriteBase``, which the modules records, listing, links, changes and so on extend by the
operations of one concept each; ``transactions.py`` puts them together. ``WriteBase`` gives out revisions and gathers
the changes that the indexes are told of after COMMIT.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from memxd.model import Change, Chunk, Clock, IdFactory, Micros, RowFeatures, Scope
from memxd.store import codec
from memxd.store.counters import Counters
from memxd.store.identity import renew
from memxd.store.late import Late
from memxd.store.recent import Recent
from memxd.store.types import Row, ScopeTotals, Terms, Totals

_SURVIVORS = f"""SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'changes'),
 '[' || coalesce(group_concat(r), '') || ']' FROM (SELECT {codec.ROW} AS r FROM memories AS m
 WHERE m.rid IN (SELECT value FROM json_each(?)) AND +m.scope_no = ?)"""
#: Bits of changes.parts: what a change touched besides the row's features.
TEXT = 1
CHUNKS = 2


def _nothing() -> None:
    pass


@dataclass(slots=True)
class Context:
    """What all transactions of a store share. ``scopes`` holds committed scopes by number, ``numbers`` their numbers:
    a scope is never removed and its number never given to another. ``between`` is called on the writer thread between
    two of many new rows; it may wait for a few milliseconds."""

    clock: Clock
    ids: IdFactory
    counters: Counters
    scopes: dict[int, Scope] = field(default_factory=dict)
    numbers: dict[Scope, int] = field(default_factory=dict)
    recent: Recent = field(default_factory=Recent)
    between: Callable[[], None] = _nothing


class ReadBase:
    """A snapshot's connection and the facts about the whole store."""

    def __init__(self, connection: sqlite3.Connection, context: Context) -> None:
        self._connection = connection
        self._context = context

    def revision(self) -> int:
        """The newest revision of this snapshot; 0 = nothing was ever stored. Inside a WriteTxn: the one last taken."""
        found = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").fetchone()
        return int(found[0]) if found else 0

    def write_late(self) -> None:
        """Only a writing transaction keeps rows for its end."""

    def scope_no(self, scope: Scope) -> int | None:
        """The number of a scope, or None when nothing was ever stored in it."""
        known = self._context.numbers.get(scope)
        if known is not None:
            return known
        found = self._connection.execute(
            "SELECT scope_no FROM scopes WHERE agent_id = ? AND user_id = ?", (scope.agent_id, scope.user_id)
        ).fetchone()
        if not found:
            return None
        self._remember_scope(found[0], scope)
        return int(found[0])

    def scopes(self, limit: int) -> list[ScopeTotals]:
        """The ``limit`` largest scopes that hold memories, largest first, ties by name."""
        found = self._connection.execute(
            "SELECT s.agent_id, s.user_id, count(*) AS total, sum(m.state = 1) FROM memories AS m "
            "INDEXED BY memories_state JOIN scopes AS s USING (scope_no) "
            "GROUP BY m.scope_no ORDER BY total DESC, s.agent_id, s.user_id LIMIT ?",
            (limit,),
        )
        return [ScopeTotals(Scope(agent, user), total, active) for agent, user, total, active in found.fetchall()]

    def is_empty(self) -> bool:
        """Whether there are no memories at all."""
        [found] = self._connection.execute("SELECT EXISTS(SELECT 1 FROM memories)").fetchone()
        return not found

    def holds_more_than(self, rows: int) -> bool:
        """Whether there are more memories than this; takes time by that number only."""
        [found] = self._connection.execute(
            "SELECT count(*) FROM (SELECT 1 FROM memories LIMIT ?)", (rows + 1,)
        ).fetchone()
        return bool(found > rows)

    def totals(self) -> Totals:
        """Counts over all scopes."""
        return Totals(
            *self._connection.execute(
                "SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM links), "
                "(SELECT count(*) FROM memories WHERE vector_pending = 1), "
                "(SELECT count(*) FROM scopes AS s WHERE EXISTS (SELECT 1 FROM memories WHERE scope_no = s.scope_no))"
            ).fetchone()
        )

    def meta_get(self, key: str) -> str | None:
        """A fact about the database (model id, dimension, prefix), or None."""
        found = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(found[0]) if found else None

    def survivors(self, scope_no: int, rids: Sequence[int]) -> tuple[dict[int, Row], int]:
        """The rows of ``rids`` by rid, without those that are gone or of another scope, and the newest revision.

        All of one moment, also outside of a transaction: what is not among the recent rows is read by one statement
        that answers with one row, and all of it when something was committed meanwhile.
        """
        recent = self._context.recent
        known, revision, ticket = recent.get(rids)
        if len(known) < len(rids):
            lacking = [rid for rid in rids if rid not in known]
            read, size, revision = self._read_survivors(scope_no, lacking)
            if recent.is_valid(ticket):
                recent.put(read, size, ticket)
            elif known:
                known = {}
                read, _, revision = self._read_survivors(scope_no, rids)
            known |= {values[0]: values for values in read}
        return {rid: self._decode(values) for rid, values in known.items() if values[1] == scope_no}, revision

    def _read_survivors(self, scope_no: int, rids: Sequence[int]) -> tuple[list[list[Any]], int, int]:
        [revision, text] = self._connection.execute(_SURVIVORS, (f"[{','.join(map(str, rids))}]", scope_no)).fetchone()
        return json.loads(text), len(text), revision or 0

    def _scope(self, number: int) -> Scope:
        known = self._context.scopes.get(number)
        if known is None:
            known = Scope(
                *self._connection.execute(
                    "SELECT agent_id, user_id FROM scopes WHERE scope_no = ?", (number,)
                ).fetchone()
            )
            self._remember_scope(number, known)
        return known

    def _remember_scope(self, number: int, scope: Scope) -> None:
        self._context.scopes[number] = scope
        self._context.numbers[scope] = number

    def _values(self, rest: str, parameters: Iterable[Any]) -> list[list[Any]]:
        """All rows of ``SELECT <ROW> FROM memories AS m <rest>``, as ROW arrays, in one step."""
        found = self._connection.execute(
            f"SELECT '[' || coalesce(group_concat(r), '') || ']' FROM "
            f"(SELECT {codec.ROW} AS r FROM memories AS m {rest})",
            tuple(parameters),
        ).fetchone()
        values: list[list[Any]] = json.loads(found[0])
        return values

    def _decode(self, values: list[Any]) -> Row:
        return codec.row(values, self._scope, self._context.counters)

    def _rows(self, rest: str, parameters: Iterable[Any]) -> list[Row]:
        return [self._decode(values) for values in self._values(rest, parameters)]


#: A place in a transaction: revision, changes, rows kept for its end.
Mark = tuple[int, int, tuple[int, int, tuple[int, int]]]


class WriteBase(ReadBase):
    """A transaction on the writer thread."""

    def __init__(self, connection: sqlite3.Connection, context: Context) -> None:
        super().__init__(connection, context)
        self.changes: list[Change] = []
        self._late = Late(connection)
        self.erased = False
        self.sealed = False  # nothing else may join this commit
        #: Called on the writer thread after COMMIT, before the indexes are told of the changes. Must not raise.
        self.committed: Callable[[], None] | None = None
        self._numbers: dict[Scope, int] = {}  # of scopes that stood there when a function of this transaction asked
        self._revision = super().revision()

    def revision(self) -> int:
        """The newest revision, those taken in this transaction included."""
        return self._revision

    def mark(self) -> Mark:
        """A place to go back to."""
        return self._revision, len(self.changes), self._late.mark()

    def back_to(self, mark: Mark) -> None:
        """Forget what was done since ``mark``; the savepoint has been rolled back."""
        self._numbers.clear()
        self.sealed, self.committed = False, None
        self._revision = mark[0]
        del self.changes[mark[1] :]
        self._late.back_to(mark[2])

    def write_late(self) -> None:
        """Put into the database what was kept for the end; the last thing before COMMIT."""
        self._late.write()

    def scope_no(self, scope: Scope, create: bool = True) -> int:
        """The number of a scope, made when it is new (``create`` False: 0 for none, numbers start at 1)."""
        number = self._numbers.get(scope) or super().scope_no(scope)
        if number is not None:
            self._numbers[scope] = number
        elif create:  # not remembered: this function may yet be undone
            number = self._connection.execute(
                "INSERT INTO scopes(agent_id, user_id) VALUES (?, ?)", (scope.agent_id, scope.user_id)
            ).lastrowid
        return number or 0

    def meta_set(self, key: str, value: str) -> None:
        """Set a fact about the database."""
        self._connection.execute("INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)", (key, value))

    def renew_identity(self) -> str:
        """Give the database another id and return it."""
        return renew(self._connection)

    def _remember_scope(self, number: int, scope: Scope) -> None:
        """Not here: the scope may still be rolled back and its number given to another."""

    def _now(self) -> Micros:
        return self._context.clock()

    def _last(self, table: str) -> int:
        """The highest number that a row of the table ever had."""
        found = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
        return int(found[0]) if found else 0

    def _next_revision(self) -> int:
        self._revision += 1
        return self._revision

    def _log(
        self,
        revision: int,
        rid: int,
        features: RowFeatures | None,
        *,
        text: str | None = None,
        chunks: tuple[Chunk, ...] | None = None,
        dead_vids: tuple[int, ...] = (),
        at: Micros | None = None,
        terms: Terms | None = None,
    ) -> None:
        """Write the row of ``changes`` that belongs to ``revision`` and keep the change for the indexes."""
        parts = (TEXT if text is not None else 0) | (CHUNKS if chunks is not None else 0)
        self._late.add_change(
            revision, rid, self._now() if at is None else at, parts, codec.to_json(dead_vids) if dead_vids else None
        )
        self.changes.append(Change(revision, rid, features, text, chunks, dead_vids, terms))

    def _log_row(
        self,
        revision: int,
        rid: int,
        *,
        text: bool = False,
        chunks: tuple[Chunk, ...] | None = None,
        dead_vids: tuple[int, ...] = (),
    ) -> Row:
        """As ``_log``, for a row as it stands now; returns it."""
        [values] = self._values("WHERE m.rid = ?", (rid,))
        row = self._decode(values)
        self._log(
            revision,
            rid,
            codec.features(row, codec.unsigned(values[22]), codec.unsigned(values[23])),
            text=row.memory.content if text else None,
            chunks=chunks,
            dead_vids=dead_vids,
        )
        return row

    def _touch(self, rid: int) -> Row:
        """Give a row whose derived columns changed a new revision, and tell the indexes."""
        revision = self._next_revision()
        self._connection.execute(
            "UPDATE memories SET revision = ?, updated_at = max(?, updated_at) WHERE rid = ?",  # a clock may go back
            (revision, self._now(), rid),
        )
        return self._log_row(revision, rid)
