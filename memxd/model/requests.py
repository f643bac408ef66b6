"""What the verbs are asked: a memory to store, a change, a question.

Frozen shapes without logic; None means the documented default, which ``engine/`` fills in. Made by the doors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from memxd.model.base import Json, Micros
from memxd.model.enums import Dedup, MemoryType, Mode, Profile, State
from memxd.model.nouns import NO_FILTER, Filter, Scope

#: Numbers of a vector: a tuple, or the memory of a float32 array (its ``data``), which costs a hundredth.
Vector: TypeAlias = tuple[float, ...] | memoryview


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to be stored. ``vector`` is float32 of the model's dimension, any length but 0, or None."""

    content: str
    type: MemoryType | None = None
    tags: tuple[str, ...] = ()
    metadata: Json = field(default_factory=dict)
    importance: float | None = None
    event_at: Micros | None = None
    valid_until: Micros | None = None
    private: bool = False
    source: str = ""
    supersedes: tuple[str, ...] = ()
    allow_duplicate: bool = False
    vector: Vector | None = None
    model_id: str = ""


@dataclass(frozen=True, slots=True)
class Patch:
    """New values for an Update. ``mask`` names the fields that change; the others are not read."""

    mask: frozenset[str]
    content: str = ""
    type: MemoryType | None = None
    tags: tuple[str, ...] = ()
    metadata: Json = field(default_factory=dict)
    importance: float | None = None
    event_at: Micros | None = None
    valid_until: Micros | None = None
    private: bool = False
    source: str = ""
    state: State | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """How candidates are ranked; None means the profile's own choice."""

    profile: Profile | None = None
    semantic: float | None = None
    recency: float | None = None
    frequency: float | None = None
    importance: float | None = None
    alpha: float | None = None
    half_life: Micros | None = None
    rrf_k: int | None = None
    vector_weight: float | None = None
    keyword_weight: float | None = None
    dedup: Dedup | None = None
    reject: bool | None = None
    tau: float | None = None


#: No wishes: the profile's own choice throughout.
AS_THE_PROFILE = Ranking()


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A question. Field meanings: ``SearchRequest`` in the proto; None means the documented default."""

    scope: Scope
    query: str
    k: int | None = None
    filter: Filter = NO_FILTER
    mode: Mode | None = None
    ranking: Ranking = AS_THE_PROFILE
    min_relevance: float | None = None
    explain: bool = False
    record_retrieval: bool = True
    asked_at: Micros | None = None
    as_of: Micros | None = None
    time_zone: str = ""
    include_superseded: bool = False
    exact: bool = False
    vector: Vector | None = None
    model_id: str = ""
    expand_links: int = 0
    timings: bool = False
