"""The calls that store, read, list, correct and forget memories.

Owns the Python signature and documentation of these verbs; both clients take them from here (see ``call.py``).
``scope`` is bound by the client, every other argument is the caller's. ``timeout`` is in seconds; None = the client's
default. Each raises a subclass of ``memxd.errors.MemxdError``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from google.protobuf.field_mask_pb2 import FieldMask

from memxd import model
from memxd.client import convert, values
from memxd.client.call import MEMORY_SERVICE, Bound, Call, fresh_request_id
from memxd.client.packing import fill_floats
from memxd.client.values import When
from memxd.errors import InvalidArgumentError
from memxd.model import Filter, MemoryType, Order, State
from memxd.v1 import memory_service_pb2 as pb


class _Unset(Enum):
    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


#: "Leave this field as it is" in ``update``.
UNSET: Final = _Unset.UNSET


@dataclass(frozen=True, slots=True)
class Item:
    """A memory to be stored, for ``store_many``; the same fields as the arguments of ``store``.

    ``agent_id`` and ``user_id`` override the client's scope for this item. ``request_id`` is made once, so that sending
    the same Item again is safe. ``vector`` is cheapest as a float32 array.
    """

    content: str
    type: MemoryType | str | None = None
    tags: Iterable[str] = ()
    metadata: Mapping[str, Any] | None = None
    importance: float | None = None
    event_at: When | None = None
    valid_until: When | None = None
    private: bool = False
    source: str = ""
    supersedes: Iterable[str] = ()
    allow_duplicate: bool = False
    vector: Iterable[float] = ()
    model_id: str = ""
    agent_id: str | None = None
    user_id: str | None = None
    request_id: str = field(default_factory=lambda: fresh_request_id(None))


def new_memory(item: Item) -> pb.NewMemory:
    """The item for the wire, without its scope."""
    message = pb.NewMemory(
        content=values.text("memory.content", item.content),
        type=values.number("memory.type", MemoryType, item.type),
        tags=values.texts("memory.tags", item.tags),
        metadata=None if item.metadata is None else values.json_object("memory.metadata", item.metadata),
        importance=item.importance,
        event_at=values.maybe_timestamp("memory.event_at", item.event_at),
        valid_until=values.maybe_timestamp("memory.valid_until", item.valid_until),
        private=item.private,
        source=values.text("memory.source", item.source),
        supersedes=values.texts("memory.supersedes", item.supersedes),
        allow_duplicate=item.allow_duplicate,
        model_id=values.text("memory.model_id", item.model_id),
    )
    fill_floats(message, pb.NewMemory.VECTOR_FIELD_NUMBER, message.vector, item.vector)
    return message


def stream_request(scope: Bound, item: Item | str) -> pb.StoreManyRequest:
    """One message of a StoreMany stream."""
    if isinstance(item, str):
        item = Item(item)
    bound = scope.override(item.agent_id, item.user_id)
    return pb.StoreManyRequest(
        scope=bound.message(), memory=new_memory(item), request_id=values.text("request_id", item.request_id)
    )


def store(
    scope: Bound,
    content: str,
    *,
    type: MemoryType | str | None = None,
    tags: Iterable[str] = (),
    metadata: Mapping[str, Any] | None = None,
    importance: float | None = None,
    event_at: When | None = None,
    valid_until: When | None = None,
    private: bool = False,
    source: str = "",
    supersedes: Iterable[str] = (),
    allow_duplicate: bool = False,
    vector: Iterable[float] = (),
    model_id: str = "",
    request_id: str | None = None,
    timeout: float | None = None,
) -> Call[model.StoreAnswer]:
    """Store one memory and answer it as it now stands; the next search finds it.

    ``content`` 1..65,536 characters; ``type`` such as "episodic" (absent: semantic); ``importance`` 0..1 (absent: .5);
    ``supersedes`` ids of memories that this one replaces. An equal active memory is answered with ``deduplicated``
    unless ``allow_duplicate``. ``request_id`` absent: a new one, so that a retry cannot store twice.
    """
    identity = fresh_request_id(request_id)
    item = Item(
        content, type, tags, metadata, importance, event_at, valid_until, private, source, supersedes,
        allow_duplicate, vector, model_id, request_id=identity,
    )  # fmt: skip
    request = pb.StoreRequest(scope=scope.message(), memory=new_memory(item), request_id=identity)
    return Call(MEMORY_SERVICE + "Store", request, pb.StoreResponse, convert.stored, timeout, bool(identity))


def get(scope: Bound, id: str, *, record_access: bool = True, timeout: float | None = None) -> Call[model.Memory]:
    """One memory in whatever state; raises MemoryNotFoundError. Counts one access unless ``record_access`` is False."""
    request = pb.GetRequest(
        scope=scope.message(), id=values.text("id", id), record_access=None if record_access else False
    )
    return Call(MEMORY_SERVICE + "Get", request, pb.GetResponse, lambda answer: convert.memory(answer.memory), timeout)


def list_page(
    scope: Bound,
    *,
    filter: Filter | None = None,
    order: Order | str | None = None,
    page_size: int | None = None,
    page_token: str = "",
    as_of: When | None = None,
    include_superseded: bool = False,
    timeout: float | None = None,
) -> Call[model.Page]:
    """One page of memories, newest first unless ``order`` ("importance_desc", "event_at_asc", ...) says otherwise.

    ``page_size`` 1..500 (absent: 50). Ask with ``next_page_token`` and the same scope, filter and order for the next
    page; ``iter_list`` does so by itself. ``as_of``: what was valid at that moment.
    """
    request = pb.ListRequest(
        scope=scope.message(),
        filter=values.filter_message(filter),
        order=values.number("order", Order, order),
        page_size=values.whole("page_size", page_size),
        page_token=values.text("page_token", page_token),
        as_of=values.maybe_timestamp("as_of", as_of),
        include_superseded=include_superseded,
    )
    return Call(MEMORY_SERVICE + "List", request, pb.ListResponse, convert.page, timeout)


def update(
    scope: Bound,
    id: str,
    *,
    content: str | _Unset = UNSET,
    type: MemoryType | str | _Unset | None = UNSET,
    tags: Iterable[str] | _Unset | None = UNSET,
    metadata: Mapping[str, Any] | _Unset | None = UNSET,
    importance: float | _Unset | None = UNSET,
    event_at: When | _Unset | None = UNSET,
    valid_until: When | _Unset | None = UNSET,
    private: bool | _Unset = UNSET,
    source: str | _Unset | None = UNSET,
    state: State | str | _Unset = UNSET,
    expected_revision: int | None = None,
    request_id: str | None = None,
    timeout: float | None = None,
) -> Call[model.StoreAnswer]:
    """Change the fields that are given and answer the memory as it now stands; new content is embedded anew.

    None clears a field (``event_at=None``) or sets its default (``type``, ``importance``); tags and metadata are
    replaced as a whole. ``state`` is "active" or "archived". With ``expected_revision`` a memory that has changed
    meanwhile raises RevisionMismatchError.
    """
    given: dict[str, Any] = {
        "content": content, "type": type, "tags": tags, "metadata": metadata, "importance": importance,
        "event_at": event_at, "valid_until": valid_until, "private": private, "source": source, "state": state,
    }  # fmt: skip
    given = {name: value for name, value in given.items() if value is not UNSET}
    if not given:
        raise InvalidArgumentError.field("update_mask", "names no field; give at least one field to change")
    identity = fresh_request_id(request_id)
    request = pb.UpdateRequest(
        scope=scope.message(),
        id=values.text("id", id),
        update_mask=FieldMask(paths=list(given)),
        memory=_patch(given),
        expected_revision=expected_revision,
        request_id=identity,
    )
    return Call(MEMORY_SERVICE + "Update", request, pb.UpdateResponse, convert.updated, timeout, bool(identity))


def _patch(given: Mapping[str, Any]) -> pb.MemoryPatch:
    """The new values; what is None stays absent, which clears."""
    ready: dict[str, Any] = {}
    for name, value in given.items():
        path = f"memory.{name}"
        if value is None:
            continue
        if name in {"content", "source"}:
            value = values.text(path, value)
        elif name in {"event_at", "valid_until"}:
            value = values.timestamp(path, value)
        elif name == "tags":
            value = values.texts(path, value)
        elif name == "metadata":
            value = values.json_object(path, value)
        elif name == "type":
            value = values.number(path, MemoryType, value)
        elif name == "state":
            value = values.number(path, State, value)
        ready[name] = value
    return pb.MemoryPatch(**ready)


def delete(scope: Bound, id: str, *, request_id: str | None = None, timeout: float | None = None) -> Call[int]:
    """Erase one memory with its vectors, history and links; answers the revision. Raises MemoryNotFoundError."""
    identity = fresh_request_id(request_id)
    request = pb.DeleteRequest(scope=scope.message(), id=values.text("id", id), request_id=identity)
    return Call(
        MEMORY_SERVICE + "Delete", request, pb.DeleteResponse, lambda a: int(a.revision), timeout, bool(identity)
    )


def delete_many(
    scope: Bound,
    filter: Filter | None = None,
    *,
    dry_run: bool = False,
    request_id: str | None = None,
    timeout: float | None = None,
) -> Call[int]:
    """Erase every memory of the scope that the filter selects, in every state; answers how many.

    The client must be bound to a scope with both parts named (``client.scope(agent_id=..., user_id=...)``); no filter
    means the whole scope. ``dry_run`` only counts.
    """
    identity = fresh_request_id(request_id)
    bound = scope.message() if scope.agent_id is not None or scope.user_id is not None else None
    request = pb.DeleteManyRequest(
        scope=bound, filter=values.filter_message(filter), dry_run=dry_run, request_id=identity
    )
    return Call(
        MEMORY_SERVICE + "DeleteMany", request, pb.DeleteManyResponse, lambda a: int(a.deleted_count), timeout,
        dry_run or bool(identity),
    )  # fmt: skip


def count(
    scope: Bound,
    filter: Filter | None = None,
    *,
    as_of: When | None = None,
    include_superseded: bool = False,
    timeout: float | None = None,
) -> Call[int]:
    """How many memories there are; without a filter the active, unexpired ones."""
    request = pb.CountRequest(
        scope=scope.message(),
        filter=values.filter_message(filter),
        as_of=values.maybe_timestamp("as_of", as_of),
        include_superseded=include_superseded,
    )
    return Call(MEMORY_SERVICE + "Count", request, pb.CountResponse, lambda answer: int(answer.count), timeout)
