"""The calls that link memories and walk the links.

Owns the Python signature and documentation of these verbs; both clients take them from here (see ``call.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from memxd import model
from memxd.client import convert, values
from memxd.client.call import MEMORY_SERVICE, Bound, Call, fresh_request_id
from memxd.model import Direction, LinkType
from memxd.v1 import memory_service_pb2 as pb


def _types(types: Iterable[LinkType | str]) -> Any:
    return [values.number(f"types[{i}]", LinkType, t) for i, t in enumerate(types)]


def create_link(
    scope: Bound,
    source_id: str,
    target_id: str,
    type: LinkType | str,
    *,
    strength: float | None = None,
    bidirectional: bool = False,
    metadata: Mapping[str, Any] | None = None,
    request_id: str | None = None,
    timeout: float | None = None,
) -> Call[model.Link]:
    """Link two memories of the scope: "similar", "related", "contradicts", "extends", "supersedes", "caused_by" or
    "temporal". ``strength`` 0..1 (absent: .7). Raises DuplicateLinkError when it exists already."""
    identity = fresh_request_id(request_id)
    request = pb.CreateLinkRequest(
        scope=scope.message(),
        source_id=values.text("source_id", source_id),
        target_id=values.text("target_id", target_id),
        type=values.number("type", LinkType, type),
        strength=strength,
        bidirectional=bidirectional,
        metadata=None if metadata is None else values.json_object("metadata", metadata),
        request_id=identity,
    )
    return Call(
        MEMORY_SERVICE + "CreateLink", request, pb.CreateLinkResponse, lambda a: convert.link(a.link), timeout,
        bool(identity),
    )  # fmt: skip


def delete_link(scope: Bound, id: str, *, request_id: str | None = None, timeout: float | None = None) -> Call[int]:
    """Remove a link (removing a supersedes link restores its target); answers the revision."""
    identity = fresh_request_id(request_id)
    request = pb.DeleteLinkRequest(scope=scope.message(), id=values.text("id", id), request_id=identity)
    return Call(
        MEMORY_SERVICE + "DeleteLink", request, pb.DeleteLinkResponse, lambda a: int(a.revision), timeout,
        bool(identity),
    )  # fmt: skip


def list_links(
    scope: Bound,
    memory_id: str,
    *,
    direction: Direction | str | None = None,
    types: Iterable[LinkType | str] = (),
    strength_min: float | None = None,
    page_size: int | None = None,
    page_token: str = "",
    timeout: float | None = None,
) -> Call[model.LinkPage]:
    """One page of a memory's links, strongest first; ``direction`` "outgoing", "incoming" or "both" (default)."""
    request = pb.ListLinksRequest(
        scope=scope.message(),
        memory_id=values.text("memory_id", memory_id),
        direction=values.number("direction", Direction, direction),
        types=_types(types),
        strength_min=strength_min,
        page_size=values.whole("page_size", page_size),
        page_token=values.text("page_token", page_token),
    )
    return Call(MEMORY_SERVICE + "ListLinks", request, pb.ListLinksResponse, convert.link_page, timeout)


def traverse(
    scope: Bound,
    start_id: str,
    *,
    max_depth: int | None = None,
    max_nodes: int | None = None,
    types: Iterable[LinkType | str] = (),
    direction: Direction | str | None = None,
    strength_min: float | None = None,
    timeout: float | None = None,
) -> Call[model.Traversal]:
    """Walk links outward from one memory, breadth first; ``max_depth`` 1..6 (2), ``max_nodes`` 1..500 (50)."""
    request = pb.TraverseRequest(
        scope=scope.message(),
        start_id=values.text("start_id", start_id),
        max_depth=values.whole("max_depth", max_depth),
        max_nodes=values.whole("max_nodes", max_nodes),
        types=_types(types),
        direction=values.number("direction", Direction, direction),
        strength_min=strength_min,
    )
    return Call(MEMORY_SERVICE + "Traverse", request, pb.TraverseResponse, convert.traversal, timeout)
