"""Links between memories, and walking them.

Owns CreateLink, DeleteLink, ListLinks, Traverse and the expansion of search hits along links. The store keeps the edges
and their rules (no self link, no duplicate, one scope, superseding); this module validates, pages and bounds the walk.
Called by the engine's face and by search.py.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from memxd.engine import paging, validate
from memxd.engine.canonical import digest
from memxd.engine.idempotency import Retry
from memxd.engine.records import not_found
from memxd.errors import MemoryNotFoundError
from memxd.model import (
    NO_DEADLINE,
    Deadline,
    Direction,
    Json,
    Limits,
    Link,
    LinkPage,
    LinkType,
    Scope,
    Traversal,
    Traversed,
)
from memxd.store import Cursor, Edge, ReadTxn, Store, WriteTxn

#: Links looked at from one front of the walk; the strongest ones come first.
FRONT_EDGES = 10_000


@dataclass(frozen=True, slots=True)
class Reached:
    """Where a walk came: steps, product of strengths along the best path, and that path's links."""

    rid: int
    depth: int
    strength: float
    link_ids: tuple[str, ...]
    origin: int


class Links:
    """The verbs on links."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create(
        self,
        scope: Scope,
        source_id: str,
        target_id: str,
        type: LinkType | None,
        strength: float | None = None,
        bidirectional: bool = False,
        metadata: Json | None = None,
        request_id: str = "",
        deadline: Deadline = NO_DEADLINE,
    ) -> tuple[Link, int]:
        """Link two memories; a supersedes link changes the target's state."""
        clean = validate.scope(scope)
        source = validate.identifier("source_id", source_id)
        target = validate.identifier("target_id", target_id)
        if type is None:
            raise validate.fail("type", "is required")
        if source == target:
            raise validate.fail("target_id", "must differ from source_id")
        if bidirectional and type is LinkType.SUPERSEDES:
            raise validate.fail("bidirectional", "a supersedes link has one direction")
        weight = validate.ratio("strength", strength, 0.7)
        extra = validate.metadata("metadata", metadata or {})
        retry = Retry.of(clean, "CreateLink", request_id, source, target, type, weight, bidirectional, extra)

        def work(txn: WriteTxn) -> tuple[tuple[Link, int], list[int]]:
            ends = txn.get_many(clean, [source, target])
            for field, id in (("source_id", source), ("target_id", target)):
                if id not in ends:
                    raise MemoryNotFoundError(f"{field}: no memory with this id in this scope", metadata={"id": id})
            link = txn.insert_link(
                ends[source].rid,
                ends[target].rid,
                type,
                strength=weight,
                bidirectional=bidirectional,
                metadata=extra,
            )
            return (link, txn.revision()), [ends[source].rid, ends[target].rid]

        return self._store.write(lambda txn: retry.once(txn, lambda: work(txn)), deadline)

    def delete(self, scope: Scope, id: str, request_id: str = "", deadline: Deadline = NO_DEADLINE) -> int:
        """Remove a link; returns the revision at which it was gone."""
        clean = validate.scope(scope)
        wanted = validate.identifier("id", id)
        retry = Retry.of(clean, "DeleteLink", request_id, wanted)

        def work(txn: WriteTxn) -> tuple[int, list[int]]:
            txn.delete_link(clean, wanted)
            return txn.revision(), []

        return self._store.write(lambda txn: retry.once(txn, lambda: work(txn)), deadline)

    def list(
        self,
        scope: Scope,
        memory_id: str,
        direction: Direction | None = None,
        types: Collection[LinkType] = (),
        strength_min: float | None = None,
        page_size: int | None = None,
        page_token: str = "",
        deadline: Deadline = NO_DEADLINE,
    ) -> LinkPage:
        """One page of a memory's links, strongest first."""
        clean = validate.scope(scope)
        wanted = validate.identifier("memory_id", memory_id)
        way = direction or Direction.BOTH
        kinds = tuple(sorted(set(types)))
        least = validate.ratio("strength_min", strength_min, 0.0)
        size = validate.integer("page_size", page_size, Limits.PAGE_DEFAULT, 1, Limits.PAGE)
        bound = digest("links", clean, wanted, way, kinds, least)
        token = paging.decode(bound, page_token, (int | float, str))
        after = None if token is None else Cursor(token[0], token[1])
        with self._store.read(deadline) as read:
            row = read.get(clean, wanted)
            if row is None:
                raise not_found(wanted)
            found = read.list_links(row.rid, way, kinds, least, after, size + 1)
            total = read.count_links(row.rid, way, kinds, least)
            revision = read.revision()
        following = ""
        if len(found) > size:
            following = paging.encode(bound, list(Cursor.of_link(found[size - 1])))
        return LinkPage(tuple(found[:size]), following, total, revision)

    def traverse(
        self,
        scope: Scope,
        start_id: str,
        max_depth: int | None = None,
        max_nodes: int | None = None,
        types: Collection[LinkType] = (),
        direction: Direction | None = None,
        strength_min: float | None = None,
        deadline: Deadline = NO_DEADLINE,
    ) -> Traversal:
        """Walk outward from a memory, breadth first."""
        clean = validate.scope(scope)
        start = validate.identifier("start_id", start_id)
        depth = validate.integer("max_depth", max_depth, 2, 1, Limits.TRAVERSE_DEPTH)
        nodes = validate.integer("max_nodes", max_nodes, 50, 1, Limits.TRAVERSE_NODES)
        least = validate.ratio("strength_min", strength_min, 0.0)
        with self._store.read(deadline) as read:
            row = read.get(clean, start)
            if row is None:
                raise not_found(start)
            reached, links, cut = walk(
                read, [row.rid], depth, nodes, types, direction or Direction.BOTH, least, deadline
            )
            rows = {r.rid: r.memory for r in read.fetch(clean, [n.rid for n in reached])}
            revision = read.revision()
        found = [Traversed(rows[n.rid], n.depth, n.strength, n.link_ids) for n in reached if n.rid in rows]
        found.sort(key=lambda t: (t.depth, -t.path_strength, t.memory.id))
        return Traversal(tuple(found), tuple(links), cut, revision)


def walk(
    read: ReadTxn,
    start: list[int],
    max_depth: int,
    max_nodes: int,
    types: Collection[LinkType],
    direction: Direction,
    strength_min: float,
    deadline: Deadline,
) -> tuple[list[Reached], list[Link], bool]:
    """Breadth-first walk from ``start`` (rids): what was reached, the links among it, and whether max_nodes cut it.

    Each memory is reached once, by a shortest path; among those the strongest, ties by link ids. When max_nodes does
    not suffice for a step, the strongest of that step are kept.
    """
    seen = {rid: Reached(rid, 0, 1.0, (), rid) for rid in start}
    reached: list[Reached] = []
    edges: dict[str, Edge] = {}
    front = list(start)
    cut = False
    for depth in range(1, max_depth + 1):
        deadline.check()
        step: dict[int, Reached] = {}
        found = read.neighbours(front, types, direction, strength_min, FRONT_EDGES)
        cut = cut or len(found) >= FRONT_EDGES
        for edge in found:
            edges[edge.link.id] = edge
            for here, there in _ways(edge, direction):
                if here in seen and seen[here].depth == depth - 1 and there not in seen:
                    _keep_better(step, _step(seen[here], there, edge))
        room = max_nodes - len(reached)
        best = sorted(step.values(), key=lambda n: (-n.strength, n.link_ids))
        cut = cut or len(best) > room
        for node in best[:room]:
            seen[node.rid] = node
            reached.append(node)
        front = [node.rid for node in best[:room]]
        if not front:
            break
    among = [e.link for e in edges.values() if e.source_rid in seen and e.target_rid in seen]
    return reached, sorted(among, key=lambda link: (-link.strength, link.id)), cut


def _ways(edge: Edge, direction: Direction) -> list[tuple[int, int]]:
    """(from, to) pairs in which the edge may be walked."""
    forth = (edge.source_rid, edge.target_rid)
    back = (edge.target_rid, edge.source_rid)
    if direction is Direction.BOTH or edge.link.bidirectional:
        return [forth, back]
    return [forth] if direction is Direction.OUTGOING else [back]


def _step(before: Reached, rid: int, edge: Edge) -> Reached:
    return Reached(
        rid,
        before.depth + 1,
        before.strength * edge.link.strength,
        (*before.link_ids, edge.link.id),
        before.origin,
    )


def _keep_better(step: dict[int, Reached], node: Reached) -> None:
    other = step.get(node.rid)
    if other is None or (-node.strength, node.link_ids) < (-other.strength, other.link_ids):
        step[node.rid] = node
