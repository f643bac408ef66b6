"""Links between memories of one scope.

Owns the links table: what counts as the same link, which way a link leads, and the order of lists (strongest first).
A SUPERSEDES link changes its target as ``supersession.py`` says. Part of every transaction; called by the engine for
CreateLink, DeleteLink, ListLinks, Traverse and Store.supersedes.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from memxd.errors import DuplicateLinkError, InvalidArgumentError, LinkNotFoundError, MemoryNotFoundError
from memxd.model import Direction, Json, Link, LinkType, Micros, Scope
from memxd.store import codec
from memxd.store.supersession import SupersessionReads, SupersessionWrites
from memxd.store.types import Cursor, Edge

_FROM = "links AS l JOIN memories AS s ON s.rid = l.source_rid JOIN memories AS t ON t.rid = l.target_rid"
#: The id of a link that counts as the same: ?1 source, ?2 target, ?3 type, ?4 bidirectional.
SAME = """SELECT id FROM links WHERE source_rid = ?1 AND target_rid = ?2 AND type = ?3
 UNION ALL SELECT id FROM links WHERE source_rid = ?2 AND target_rid = ?1 AND type = ?3 AND (bidirectional OR ?4)"""


class LinkReads(SupersessionReads):
    """Reading links."""

    def get_link(self, scope: Scope, id: str) -> Link | None:
        """The link of this id in this scope, or None."""
        found = self._connection.execute(
            f"SELECT {codec.LINK} FROM {_FROM} WHERE l.scope_no = ? AND l.id = ?", (self.scope_no(scope), id)
        ).fetchone()
        return codec.link(found, scope) if found else None

    def list_links(
        self,
        rid: int,
        direction: Direction = Direction.BOTH,
        types: Collection[LinkType] = (),
        strength_min: float = 0.0,
        after: Cursor | None = None,
        limit: int = 50,
    ) -> list[Link]:
        """Links of a memory, strongest first, ties by id ascending, from behind ``after`` (``Cursor.of_link``).

        A bidirectional link counts both ways. Empty ``types`` = every type. Ask for one more than the page to learn
        whether there are more.
        """
        clause, parameters = _leading([rid], direction, types, strength_min)
        if after is not None:
            clause += " AND (l.strength < ? OR l.strength = ? AND l.id > ?)"
            parameters += [after.value, after.value, after.id]
        return [edge.link for edge in self._edges(clause, [*parameters, limit])]

    def count_links(
        self,
        rid: int,
        direction: Direction = Direction.BOTH,
        types: Collection[LinkType] = (),
        strength_min: float = 0.0,
    ) -> int:
        """How many links ``list_links`` would list in all."""
        clause, parameters = _leading([rid], direction, types, strength_min)
        [total] = self._connection.execute(f"SELECT count(*) FROM links AS l WHERE {clause}", parameters).fetchone()
        return int(total)

    def neighbours(
        self,
        rids: Collection[int],
        types: Collection[LinkType] = (),
        direction: Direction = Direction.BOTH,
        strength_min: float = 0.0,
        limit: int = 10_000,
    ) -> list[Edge]:
        """The links that lead away from any of ``rids`` in ``direction``, each once, strongest first, ties by id.

        A bidirectional link leads both ways, whichever end is among ``rids``.
        """
        clause, parameters = _leading(rids, direction, types, strength_min)
        return self._edges(clause, [*parameters, limit])

    def _edges(self, clause: str, parameters: list[Any]) -> list[Edge]:
        found = self._connection.execute(
            f"SELECT l.source_rid, l.target_rid, l.scope_no, {codec.LINK} FROM {_FROM} WHERE {clause} "
            "ORDER BY l.strength DESC, l.id LIMIT ?",
            parameters,
        )
        return [
            Edge(codec.link(tuple(values), self._scope(number)), source, target)
            for source, target, number, *values in found.fetchall()
        ]


class LinkWrites(LinkReads, SupersessionWrites):
    """Making and removing links."""

    def insert_link(
        self,
        source_rid: int,
        target_rid: int,
        type: LinkType,
        *,
        strength: float = 0.7,
        bidirectional: bool = False,
        metadata: Json | None = None,
        created_at: Micros | None = None,
    ) -> Link:
        """Link two memories of one scope. SUPERSEDES supersedes the target (see ``supersede``).

        Raises MemoryNotFoundError (either end missing, or not of one scope), InvalidArgumentError (self link),
        DuplicateLinkError (same source, target and type; or reversed when either of the two is bidirectional),
        LinkCycleError.
        """
        number, scope, ends = self._ends(source_rid, target_rid)
        same = self._connection.execute(SAME, (source_rid, target_rid, int(type), int(bidirectional))).fetchone()
        if same is not None:
            raise DuplicateLinkError("these memories are linked in this way already", metadata={"id": same[0]})
        if type == LinkType.SUPERSEDES:
            if bidirectional:
                raise InvalidArgumentError.field("bidirectional", "a supersedes link leads one way only")
            self._refuse_circle(source_rid, target_rid)
        at = self._now() if created_at is None else created_at
        link = Link(
            id=self._context.ids(at),
            scope=scope,
            source_id=ends[0],
            target_id=ends[1],
            type=LinkType(type),
            strength=strength + 0.0,
            bidirectional=bidirectional,
            metadata=dict(metadata or {}),
            created_at=at,
        )
        self._insert_link(number, source_rid, target_rid, link)
        self._log_row(self._next_revision(), source_rid)
        if type == LinkType.SUPERSEDES:
            self._refresh([target_rid])
        return link

    def supersede(self, old_rids: Collection[int], new_rid: int, at: Micros | None = None) -> list[Link]:
        """Let ``new_rid`` supersede each of ``old_rids``: a SUPERSEDES link (strength 1) each, made ``at``, else now.

        The old ones become SUPERSEDED until the last such link (or the newer row) goes; their end is the earliest
        "event_at, else created_at" among those that supersede them, their own valid_until is remembered. An archived
        one stays ARCHIVED, and becomes SUPERSEDED when it is un-archived. Raises MemoryNotFoundError (missing or of
        another scope), LinkCycleError, DuplicateLinkError.
        """
        return [
            self.insert_link(new_rid, old, LinkType.SUPERSEDES, strength=1.0, created_at=at)
            for old in dict.fromkeys(old_rids)
        ]

    def delete_link(self, scope: Scope, id: str) -> Link:
        """Remove a link and return what it was; a superseded target is restored. Raises LinkNotFoundError."""
        link = self.get_link(scope, id)
        if link is None:
            raise LinkNotFoundError("there is no such link in this scope")
        source, target = self._connection.execute(
            "DELETE FROM links WHERE scope_no = ? AND id = ? RETURNING source_rid, target_rid",
            (self.scope_no(scope), id),
        ).fetchall()[0]
        self.erased = True
        self._log_row(self._next_revision(), source)
        if link.type == LinkType.SUPERSEDES:
            self._refresh([target])
        return link

    def _ends(self, source_rid: int, target_rid: int) -> tuple[int, Scope, tuple[str, str]]:
        """Scope number, scope and the ids of both ends, which must be two memories of one scope."""
        if source_rid == target_rid:
            raise InvalidArgumentError.field("target_id", "a memory cannot be linked to itself")
        found = {
            rid: (number, identity)
            for rid, number, identity in self._connection.execute(
                "SELECT rid, scope_no, id FROM memories WHERE rid IN (?, ?)", (source_rid, target_rid)
            )
        }
        if len(found) < 2 or found[source_rid][0] != found[target_rid][0]:
            raise MemoryNotFoundError("there is no such memory in this scope")
        number = found[source_rid][0]
        return number, self._scope(number), (found[source_rid][1], found[target_rid][1])

    def _insert_link(self, number: int, source_rid: int, target_rid: int, link: Link) -> None:
        self._connection.execute(
            "INSERT INTO links(scope_no, id, source_rid, target_rid, type, strength, bidirectional, created_at, "
            "metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number,
                link.id,
                source_rid,
                target_rid,
                int(link.type),
                link.strength,
                int(link.bidirectional),
                link.created_at,
                codec.to_json(link.metadata),
            ),
        )


def _leading(
    rids: Collection[int], direction: Direction, types: Collection[LinkType], strength_min: float
) -> tuple[str, list[Any]]:
    """The condition under which a link ``l`` leads away from one of ``rids``."""
    listed = json.dumps(list(rids))
    among = "SELECT value FROM json_each(?)"
    ways = [
        f"SELECT lid FROM links WHERE source_rid IN ({among})"
        + ("" if direction != Direction.INCOMING else " AND bidirectional"),
        f"SELECT lid FROM links WHERE target_rid IN ({among})"
        + ("" if direction != Direction.OUTGOING else " AND bidirectional"),
    ]
    clause = f"l.lid IN ({' UNION '.join(ways)}) AND l.strength >= ?"
    parameters: list[Any] = [listed, listed, strength_min]
    if types:
        clause += f" AND l.type IN ({', '.join(str(int(t)) for t in sorted(types))})"
    return clause, parameters
