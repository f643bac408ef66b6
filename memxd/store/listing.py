"""Which memories a view shows: lists page by page, counts, sets of rids.

Owns orders, cursors and page limits. Never loads what it does not hand out. Part of every transaction; called by the
engine for List, Count and DeleteMany, and for the parts of a filter that the column index cannot answer (ids,
metadata).
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from memxd.model import Filter, Json, Order, Scope, View
from memxd.store import codec
from memxd.store.base import ReadBase
from memxd.store.filters import Lead, Where, lead_of, narrowings, spans, where
from memxd.store.types import Cursor, Row, RowPage

_ORDERS = {
    Order.CREATED_AT_DESC: ("created_at", "memories_created", "DESC", "<"),
    Order.CREATED_AT_ASC: ("created_at", "memories_created", "ASC", ">"),
    Order.EVENT_AT_DESC: ("began_at", "memories_began", "DESC", "<"),
    Order.EVENT_AT_ASC: ("began_at", "memories_began", "ASC", ">"),
    Order.IMPORTANCE_DESC: ("importance_bits", "memories_importance", "DESC", "<"),
    Order.IMPORTANCE_ASC: ("importance_bits", "memories_importance", "ASC", ">"),
}
#: Up to so many rows it is cheaper to fetch all that a condition selects and sort them than to walk the order's index.
_FEW = 4_000


class ListReads(ReadBase):
    """Reading by view."""

    def list_rows(
        self,
        scope: Scope,
        view: View,
        order: Order = Order.CREATED_AT_DESC,
        after: Cursor | None = None,
        limit: int = 50,
        *,
        max_bytes: int | None = None,
    ) -> RowPage:
        """Up to ``limit`` rows that the view shows, in order, from behind ``after``.

        ``max_bytes``: stop before what is handed out passes that many bytes of JSON (the first row always comes);
        ``more`` is then True.
        """
        number = self.scope_no(scope)
        if number is None:
            return RowPage([], False)
        column, _, direction, beyond = _ORDERS[order]
        lead, index = self._lead(number, view, order)
        shown = where(number, view, lead)
        clause, parameters = shown.sql, list(shown.parameters)
        if after is not None:
            clause += f" AND (m.{column}, m.id) {beyond} (?, ?)"
            parameters += [codec.to_bits(after.value) if column == "importance_bits" else int(after.value), after.id]
        rest = f"FROM memories AS m {index} WHERE {clause} ORDER BY m.{column} {direction}, m.id {direction}"
        if lead != "order":  # many rows are sorted: without their contents
            rest = f"FROM memories AS m WHERE m.rid IN (SELECT m.rid {rest} LIMIT ?) {rest[rest.rindex('ORDER BY') :]}"
            parameters.append(limit + 1)
        found = self._connection.execute(f"SELECT {codec.ROW} {rest} LIMIT ?", (*parameters, limit + 1))
        rows: list[Row] = []
        size = 0
        for (text,) in found:
            size += len(text) if text.isascii() else len(text.encode())
            if len(rows) == limit or (rows and max_bytes is not None and size > max_bytes):
                found.close()
                return RowPage(rows, True)
            rows.append(self._decode(json.loads(text)))
        return RowPage(rows, False)

    def count(self, scope: Scope, view: View) -> int:
        """How many rows the view shows."""
        number = self.scope_no(scope)
        if number is None:
            return 0
        shown = where(number, view, lead_of(view))
        [total] = self._connection.execute(
            f"SELECT count(*) FROM memories AS m WHERE {shown.sql}", shown.parameters
        ).fetchone()
        return int(total)

    def select_rids(self, scope: Scope, view: View) -> list[int]:
        """The rids that the view shows, ascending."""
        number = self.scope_no(scope)
        if number is None:
            return []
        shown = where(number, view, lead_of(view))
        return self._rids(f"SELECT m.rid FROM memories AS m WHERE {shown.sql}", shown.parameters)

    def rids_matching(
        self, scope: Scope, *, ids: Collection[str] | None = None, metadata: Json | None = None
    ) -> list[int]:
        """The scope's rids with one of ``ids`` and with every key of ``metadata`` equal, ascending, in every state.

        None = no condition; both None is refused (ValueError): use ``select_rids``.
        """
        if ids is None and not metadata:
            raise ValueError("rids_matching needs ids or metadata")
        number = self.scope_no(scope)
        if number is None or (ids is not None and not ids):
            return []
        parts = narrowings(number, Filter(ids=frozenset(ids or ()), metadata=metadata or {}))
        return self._rids(
            " INTERSECT ".join(part.sql for part in parts), [value for part in parts for value in part.parameters]
        )

    def rids_with(self, number: int, metadata: Json, among: Collection[int]) -> list[int]:
        """Those of the few rids ``among`` that are of the scope and have every key of ``metadata`` equal, ascending, in
        every state."""
        listed = json.dumps(sorted(among))
        found = set(among)
        for fact in sorted(codec.facts(metadata)):
            query = "SELECT rid FROM memory_facts WHERE scope_no = ? AND fact = ?"
            query += " AND rid IN (SELECT value FROM json_each(?))"
            found &= set(self._rids(query, (number, fact, listed)))
        return sorted(found)

    def _lead(self, number: int, view: View, order: Order) -> tuple[Lead, str]:
        """What finds the rows of a list, and the index to name: few rows that a condition selects, else the order."""
        _, ordered, _, _ = _ORDERS[order]
        if any(self._selects_few(part) for part in narrowings(number, view.filter)):
            return "rids", ""
        for lead, index, part in spans(number, view):
            if index != ordered and self._selects_few(part):
                return lead, f"INDEXED BY {index}"
        return "order", f"INDEXED BY {ordered}"

    def _selects_few(self, part: Where) -> bool:
        [total] = self._connection.execute(
            f"SELECT count(*) FROM ({part.sql} LIMIT {_FEW + 1})", part.parameters
        ).fetchone()
        return bool(total <= _FEW)

    def _rids(self, query: str, parameters: Collection[Any]) -> list[int]:
        """The rids that ``query`` selects, ascending, read in one step."""
        [listed] = self._connection.execute(
            f"SELECT '[' || coalesce(group_concat(rid), '') || ']' FROM ({query})", tuple(parameters)
        ).fetchone()
        rids: list[int] = json.loads(listed)
        rids.sort()
        return rids
