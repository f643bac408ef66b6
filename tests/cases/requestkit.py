"""A valid request for every RPC that names a scope, for tests that spoil one field of it.

``Seed`` stores what they need: two memories and a link. ``KINDS`` maps an RPC to a function (seed) -> valid request;
``make`` sets fields of one by their paths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from casekit import Case
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb

Make = Callable[["Seed"], Any]


@dataclass
class Seed:
    """What a scope holds for the requests to refer to."""

    scope: mem.Scope
    first: str
    second: str
    link: str

    @classmethod
    def into(cls, case: Case, scope: mem.Scope) -> Seed:
        """Store it."""
        one = case.store(scope, "Anna drinks green tea", tags=["tea"]).id
        two = case.store(scope, "Ben drinks black coffee", tags=["coffee"]).id
        link = case.memory.CreateLink(
            pb.CreateLinkRequest(scope=scope, source_id=two, target_id=one, type=mem.LINK_TYPE_RELATED), timeout=20
        )
        return cls(scope, one, two, link.link.id)


def update(seed: Seed, *paths: str, **patch: Any) -> pb.UpdateRequest:
    """An Update of the fields given."""
    return pb.UpdateRequest(
        scope=seed.scope,
        id=seed.first,
        update_mask=FieldMask(paths=paths or list(patch)),
        memory=pb.MemoryPatch(**patch),
    )


KINDS: dict[str, Make] = {
    "Store": lambda s: pb.StoreRequest(scope=s.scope, memory=pb.NewMemory(content="something new")),
    "StoreMany": lambda s: pb.StoreManyRequest(scope=s.scope, memory=pb.NewMemory(content="something new")),
    "Get": lambda s: pb.GetRequest(scope=s.scope, id=s.first),
    "List": lambda s: pb.ListRequest(scope=s.scope),
    "Update": lambda s: update(s, importance=0.5),
    "Delete": lambda s: pb.DeleteRequest(scope=s.scope, id=s.first),
    "DeleteMany": lambda s: pb.DeleteManyRequest(scope=s.scope, dry_run=True),
    "Count": lambda s: pb.CountRequest(scope=s.scope),
    "Search": lambda s: pb.SearchRequest(scope=s.scope, query="tea"),
    "SearchMany": lambda s: pb.SearchManyRequest(searches=[pb.SearchRequest(scope=s.scope, query="tea")]),
    "CreateLink": lambda s: pb.CreateLinkRequest(
        scope=s.scope, source_id=s.first, target_id=s.second, type=mem.LINK_TYPE_EXTENDS
    ),
    "DeleteLink": lambda s: pb.DeleteLinkRequest(scope=s.scope, id=s.link),
    "ListLinks": lambda s: pb.ListLinksRequest(scope=s.scope, memory_id=s.first),
    "Traverse": lambda s: pb.TraverseRequest(scope=s.scope, start_id=s.first),
}

WRITES = ("Store", "StoreMany", "Update", "Delete", "DeleteMany", "CreateLink", "DeleteLink")
FILTERED = ("List", "DeleteMany", "Count", "Search", "SearchMany")
SEARCHES = ("Search", "SearchMany")
NEW = ("Store", "StoreMany")
TEXTS = ("Store", "StoreMany", "Update")


def body(request: Any) -> Any:
    """The message that holds the fields of one search: the request itself, or the only one of a SearchMany."""
    return request.searches[0] if isinstance(request, pb.SearchManyRequest) else request


def make(rpc: str, seed: Seed, **fields: Any) -> Any:
    """A request whose fields (dotted paths as ``memory__content``) are set; masks follow in Updates."""
    request = KINDS[rpc](seed)
    for path, value in fields.items():
        *parents, name = path.split("__")
        target = body(request)
        for parent in parents:
            target = getattr(target, parent)
        _set(target, name, value)
        if rpc == "Update" and parents == ["memory"]:
            request.update_mask.CopyFrom(FieldMask(paths=[*request.update_mask.paths, name]))
    return request


def _set(target: Any, name: str, value: Any) -> None:
    field = getattr(target, name)
    if isinstance(value, list):
        del field[:]
        field.extend(value)
    elif isinstance(value, dict):
        field.Clear()
        field.update(value)
    elif hasattr(value, "DESCRIPTOR"):
        field.CopyFrom(value)
        field.SetInParent()
    else:
        setattr(target, name, value)
