"""Links: how one is asked for and answered, and what a walk along them reached.

Owns the filling of Link and TraversedMemory and the reading of link types. Which links may exist is the engine's to
say. Called by ``memory_servicer.py``.
"""

from __future__ import annotations

from memxd.model import Link, LinkType, Traversed
from memxd.service.convert import values
from memxd.service.convert.memory import fill_memory
from memxd.v1 import memory_pb2, memory_service_pb2


def link_types(numbers: object) -> frozenset[LinkType]:
    """The ``types`` of ListLinks and Traverse; empty = every type."""
    return values.enum_set(LinkType, numbers, "types")  # type: ignore[arg-type]  # a repeated enum field


def fill_link(message: memory_pb2.Link, link: Link) -> None:
    """Write a link into an empty message."""
    message.id = link.id
    values.fill_scope(message.scope, link.scope)
    message.source_id = link.source_id
    message.target_id = link.target_id
    message.type = values.wire(link.type)
    message.strength = link.strength
    message.bidirectional = link.bidirectional
    if link.metadata:
        values.fill_struct(message.metadata, link.metadata)
    values.fill_instant(message.created_at, link.created_at)


def fill_traversed(message: memory_service_pb2.TraversedMemory, reached: Traversed) -> None:
    """Write one memory that a walk reached into an empty message."""
    fill_memory(message.memory, reached.memory)
    message.depth = reached.depth
    message.path_strength = reached.path_strength
    message.link_ids.extend(reached.link_ids)
