"""What is remembered, whose it is, and how some of it is selected.

Frozen shapes without logic; field meanings are the proto's. Used by every layer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from memxd.model.base import Json, Micros
from memxd.model.enums import LinkType, MemoryType, State


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memory it is. Both parts NFC, 1..128 printable characters."""

    agent_id: str = "default"
    user_id: str = "default"


@dataclass(frozen=True, slots=True)
class Memory:
    """One thing remembered, as callers see it. Field meanings: ``proto/memxd/v1/memory.proto``."""

    id: str
    scope: Scope
    content: str
    type: MemoryType
    tags: tuple[str, ...]
    metadata: Json
    importance: float
    created_at: Micros
    updated_at: Micros
    event_at: Micros | None
    valid_until: Micros | None
    state: State
    private: bool
    source: str
    revision: int
    access_count: int = 0
    last_accessed_at: Micros | None = None
    retrieval_count: int = 0
    last_retrieved_at: Micros | None = None
    vector_pending: bool = False
    superseded_by: str = ""
    content_truncated: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A typed edge between two memories of one scope."""

    id: str
    scope: Scope
    source_id: str
    target_id: str
    type: LinkType
    strength: float
    bidirectional: bool
    metadata: Json
    created_at: Micros


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Half-open: ``start <= t < end``; None is open-ended."""

    start: Micros | None = None
    end: Micros | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Selects memories within one scope; every condition that is set must hold."""

    types: frozenset[MemoryType] = frozenset()
    tags_any: frozenset[str] = frozenset()
    tags_all: frozenset[str] = frozenset()
    tags_none: frozenset[str] = frozenset()
    created: TimeRange | None = None
    event: TimeRange | None = None
    importance_min: float | None = None
    metadata: Json = field(default_factory=dict)
    states: frozenset[State] = frozenset()
    ids: frozenset[str] = frozenset()
    importance_below: float | None = None
    unused_since: Micros | None = None
    valid_until: TimeRange | None = None

    @property
    def needs_store(self) -> bool:
        """Whether the store must be asked: the columns know neither ids nor metadata, nor what cleaning up asks for."""
        return bool(self.ids or self.metadata) or self.for_cleaning

    @property
    def for_cleaning(self) -> bool:
        """Whether one of the conditions is set that ask what may go: little importance, long unused, ending."""
        return self.importance_below is not None or self.unused_since is not None or self.valid_until is not None


#: Lets everything through that the view shows.
NO_FILTER = Filter()


@dataclass(frozen=True, slots=True)
class View:
    """Which memories of a scope are visible to a call: a filter seen at a moment.

    ``now`` decides expiry. With ``as_of`` the validity interval decides instead of state and expiry (archived stay
    hidden). ``every_state`` (DeleteMany) shows all unless ``filter.states`` says otherwise.
    """

    filter: Filter
    now: Micros
    as_of: Micros | None = None
    include_superseded: bool = False
    every_state: bool = False
