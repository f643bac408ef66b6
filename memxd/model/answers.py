"""What the verbs answer.

Frozen shapes without logic; field meanings are the proto's. Made by ``engine/``, turned into messages by the doors,
and made again from messages by the client.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from memxd.model.enums import DegradedCause, RejectReason
from memxd.model.nouns import Link, Memory


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor's part in a score: ``contribution = value * weight``; value in 0..1."""

    value: float
    weight: float

    @property
    def contribution(self) -> float:
        return self.value * self.weight


@dataclass(frozen=True, slots=True)
class TermMatch:
    """One query term's part in the BM25 score."""

    term: str
    idf: float
    frequency: int
    score: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a hit stands where it stands; field meanings as in the proto."""

    semantic: Factor
    recency: Factor
    frequency: Factor
    importance: Factor
    raw_score: float
    z_score: float
    rrf: float
    cosine: float | None = None
    vector_rank: int | None = None
    keyword_score: float | None = None
    keyword_rank: int | None = None
    terms: tuple[TermMatch, ...] = ()
    chunk: int | None = None
    notes: tuple[str, ...] = ()
    folded: int = 0
    folded_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """One answer to a question."""

    memory: Memory
    rank: int
    score: float
    relevance: float
    explanation: Explanation | None = None
    expanded: bool = False
    expanded_from: str = ""


@dataclass(frozen=True, slots=True)
class Degradation:
    """One way in which an answer is less than it should be."""

    cause: DegradedCause
    message: str


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """What a question found."""

    hits: tuple[Hit, ...]
    revision: int
    rejected: bool = False
    reject_reason: RejectReason | None = None
    best_relevance: float = 0.0
    candidates: int = 0
    folded: int = 0
    below_min_relevance: int = 0
    degraded: tuple[Degradation, ...] = ()
    timings: tuple[tuple[str, int], ...] = ()
    plan: str = ""
    #: Microseconds by stage, for the log: measured whether the caller wants ``timings`` or not.
    stages: tuple[tuple[str, int], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class StoreAnswer:
    """What Store and Update answer."""

    memory: Memory
    revision: int
    deduplicated: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a List."""

    memories: tuple[Memory, ...]
    next_page_token: str
    revision: int


@dataclass(frozen=True, slots=True)
class LinkPage:
    """One page of a ListLinks."""

    links: tuple[Link, ...]
    next_page_token: str
    total: int
    revision: int


@dataclass(frozen=True, slots=True)
class Traversed:
    """A memory reached by walking links."""

    memory: Memory
    depth: int
    path_strength: float
    link_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Traversal:
    """What a walk reached."""

    memories: tuple[Traversed, ...]
    links: tuple[Link, ...]
    truncated: bool
    revision: int
