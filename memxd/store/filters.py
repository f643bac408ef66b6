"""A ``model.View`` as SQL.

Owns the translation of filter, expiry, ``as_of`` and states into a WHERE clause over ``memories AS m``, and the choice
of the index that should drive it: SQLite keeps no statistics here, so a unary plus takes the conditions out of its
choice that are not to lead. ``index/columns`` answers the same views from arrays; a test compares both with a plain
Python model. Called by ``listing.py``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, cast

from memxd.model import Filter, State, TimeRange, View
from memxd.store import codec

#: What leads: an order's index, the created or event index, a set of rids, or scope and state.
Lead = Literal["order", "created", "began", "rids", "state"]
_TAGGED = "SELECT rid FROM memory_tags WHERE scope_no = ? AND tag IN (SELECT value FROM json_each(?))"


@dataclass(frozen=True, slots=True)
class Where:
    """Conditions joined by AND, and their parameters in order."""

    sql: str
    parameters: tuple[Any, ...]


class _Builder:
    """Gathers conditions and parameters."""

    def __init__(self) -> None:
        self.conditions: list[str] = []
        self.parameters: list[Any] = []

    def add(self, condition: str, *parameters: Any) -> None:
        self.conditions.append(condition)
        self.parameters.extend(parameters)

    def done(self) -> Where:
        return Where(" AND ".join(self.conditions), tuple(self.parameters))


def where(scope_no: int, view: View, lead: Lead) -> Where:
    """The condition under which ``view`` shows a memory ``m`` of a scope."""
    out = _Builder()
    out.add(("+" if lead == "rids" else "") + "m.scope_no = ?", scope_no)
    _add_visibility(out, view, "m.state" if lead == "state" else "+m.state")
    _add_attributes(out, view.filter)
    # Where an order leads, a page is full soon: look each row up instead of gathering all that a tag or key selects.
    member = "EXISTS ({} AND rid = m.rid)" if lead == "order" else "m.rid IN ({})"
    for narrowing in narrowings(scope_no, view.filter):
        out.add(member.format(narrowing.sql), *narrowing.parameters)
    if view.filter.tags_none:
        out.add("NOT " + member.format(_TAGGED), scope_no, _listed(view.filter.tags_none))
    return out.done()


def spans(scope_no: int, view: View) -> list[tuple[Lead, str, Where]]:
    """Conditions that an index can find rows by, other than the narrowings: (what leads, index, query for the rows)."""
    conditions = view.filter
    out: list[tuple[Lead, str, Where]] = []
    for lead, column, index, span in (
        ("created", "m.created_at", "memories_created", conditions.created),
        ("began", "m.began_at", "memories_began", conditions.event),
    ):
        if span is not None:
            build = _Builder()
            build.add("m.scope_no = ?", scope_no)
            _add_range(build, column, span)
            out.append((cast("Lead", lead), index, _from(index, build)))
    if conditions.states and view.as_of is None:
        build = _Builder()
        build.add("m.scope_no = ?", scope_no)
        build.add(_state_among(conditions.states, "m.state"))
        out.append(("state", "memories_state", _from("memories_state", build)))
    return out


def _from(index: str, build: _Builder) -> Where:
    found = build.done()
    return Where(f"SELECT m.rid FROM memories AS m INDEXED BY {index} WHERE {found.sql}", found.parameters)


def _state_among(states: frozenset[State], column: str) -> str:
    return f"{column} IN ({', '.join(str(int(s)) for s in sorted(states))})"


def lead_of(view: View) -> Lead:
    """What should lead where no order is asked for."""
    conditions = view.filter
    if conditions.ids or conditions.tags_any or conditions.tags_all or conditions.metadata:
        return "rids"
    if conditions.created is not None:
        return "created"
    if conditions.event is not None:
        return "began"
    return "state"


def narrowings(scope_no: int, conditions: Filter) -> list[Where]:
    """Queries for rids, each of which a row must be in: ids, tags, metadata. The likely smallest come first."""
    out: list[Where] = []
    if conditions.ids:
        out.append(
            Where(
                "SELECT rid FROM memories WHERE scope_no = ? AND id IN (SELECT value FROM json_each(?))",
                (scope_no, _listed(conditions.ids)),
            )
        )
    out += [
        Where("SELECT rid FROM memory_facts WHERE scope_no = ? AND fact = ?", (scope_no, fact))
        for fact in sorted(codec.facts(conditions.metadata))
    ]
    out += [
        Where("SELECT rid FROM memory_tags WHERE scope_no = ? AND tag = ?", (scope_no, tag))
        for tag in sorted(conditions.tags_all)
    ]
    if conditions.tags_any:
        out.append(Where(_TAGGED, (scope_no, _listed(conditions.tags_any))))
    return out


def _add_visibility(out: _Builder, view: View, state: str) -> None:
    """State, expiry and validity: ``as_of`` first, then named states, then the flags, then the default."""
    if view.as_of is not None:
        out.add("m.began_at <= ?", view.as_of)
        out.add("(m.valid_until IS NULL OR m.valid_until > ?)", view.as_of)
        out.add(f"{state} <> {State.ARCHIVED:d}")
    elif view.filter.states:
        out.add(_state_among(view.filter.states, state))
    elif view.every_state:
        return
    elif view.include_superseded:
        out.add(
            f"({state} = {State.SUPERSEDED:d} OR {state} = {State.ACTIVE:d} "
            "AND (m.valid_until IS NULL OR m.valid_until > ?))",
            view.now,
        )
    else:
        out.add(f"{state} = {State.ACTIVE:d}")
        out.add("(m.valid_until IS NULL OR m.valid_until > ?)", view.now)


def _add_attributes(out: _Builder, conditions: Filter) -> None:
    if conditions.types:
        out.add(f"m.type IN ({', '.join(str(int(t)) for t in sorted(conditions.types))})")
    if conditions.created is not None:
        _add_range(out, "m.created_at", conditions.created)
    if conditions.event is not None:
        out.add("m.event_at IS NOT NULL")
        _add_range(out, "m.began_at", conditions.event)  # equals event_at here, and has an index
    if conditions.importance_min is not None:
        out.add("+m.importance_bits >= ?", codec.to_bits(min(1.0, max(0.0, conditions.importance_min))))
    if conditions.importance_below is not None:
        out.add("+m.importance_bits < ?", codec.to_bits(min(1.0, max(0.0, conditions.importance_below))))
    if conditions.valid_until is not None:
        out.add("m.valid_until IS NOT NULL")
        _add_range(out, "m.valid_until", conditions.valid_until)
    if conditions.unused_since is not None:
        out.add("+m.created_at < ?", conditions.unused_since)
        for column in ("m.last_accessed_at", "m.last_retrieved_at"):
            out.add(f"({column} IS NULL OR {column} < ?)", conditions.unused_since)


def _add_range(out: _Builder, column: str, span: TimeRange) -> None:
    if span.start is not None:
        out.add(f"{column} >= ?", span.start)
    if span.end is not None:
        out.add(f"{column} < ?", span.end)


def _listed(values: frozenset[str]) -> str:
    return json.dumps(sorted(values))
