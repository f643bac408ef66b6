"""The nouns of memxd as frozen dataclasses, and the limits they obey.

Owns the shapes that every layer below the wire passes around, their defaults and their bounds. Does not validate
(``engine/validate.py`` does, once), does not know SQL, arrays or protobuf. Everybody imports it; it imports only the
standard library.

Instants are ``Micros``: whole microseconds since the Unix epoch in UTC, as int. Enum numbers equal the proto's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias

from memxd.errors import CancelledError, DeadlineExceededError

Micros: TypeAlias = int
#: Returns the present instant; injected everywhere, so that tests own time.
Clock: TypeAlias = Callable[[], Micros]
#: Makes a new UUIDv7 in lower case for an instant; injected everywhere.
IdFactory: TypeAlias = Callable[[Micros], str]
#: JSON object as Python values.
Json: TypeAlias = Mapping[str, Any]


def _never() -> bool:
    return False


SECOND: Micros = 1_000_000
DAY: Micros = 86_400 * SECOND


class Limits:
    """Bounds of the contract; docs/API.md and the proto's comments state the same numbers."""

    SCOPE_PART = 128
    CONTENT = 65_536
    QUERY = 2_000
    TAGS = 32
    TAG = 64
    METADATA_BYTES = 16_384
    METADATA_DEPTH = 32
    SOURCE = 256
    REQUEST_ID = 64
    SUPERSEDES = 32
    K = 200
    K_DEFAULT = 10
    PAGE = 500
    PAGE_DEFAULT = 50
    FILTER_TAGS = 32
    FILTER_IDS = 1_000
    FILTER_METADATA_KEYS = 16
    SEARCHES = 32
    EXPAND_LINKS = 3
    TRAVERSE_DEPTH = 6
    TRAVERSE_NODES = 500
    WEIGHT = 1_000.0
    RRF_K = 10_000
    HALF_LIFE_MIN: Micros = SECOND
    HALF_LIFE_MAX: Micros = 36_525 * DAY
    ANSWER_BYTES = 3_670_016  # 3.5 MiB
    MESSAGE_BYTES = 4 * 1024 * 1024
    REQUEST_ID_TTL: Micros = DAY
    #: Timestamps outside 0001..9999 are not RFC 3339.
    TIME_MIN: Micros = -62_135_596_800 * SECOND
    TIME_MAX: Micros = 253_402_300_800 * SECOND - 1


class MemoryType(IntEnum):
    """What kind of knowledge a memory is."""

    EPISODIC = 1
    SEMANTIC = 2
    PROCEDURAL = 3
    EMOTIONAL = 4
    REFLECTIVE = 5


class State(IntEnum):
    """Where a memory stands in its life; "expired" is derived from ``valid_until``."""

    ACTIVE = 1
    SUPERSEDED = 2
    ARCHIVED = 3


class LinkType(IntEnum):
    """How a link's source relates to its target."""

    SIMILAR = 1
    RELATED = 2
    CONTRADICTS = 3
    EXTENDS = 4
    SUPERSEDES = 5
    CAUSED_BY = 6
    TEMPORAL = 7


class Direction(IntEnum):
    """Which way links are followed."""

    OUTGOING = 1
    INCOMING = 2
    BOTH = 3


class Mode(IntEnum):
    """Which legs look for candidates."""

    HYBRID = 1
    VECTOR = 2
    KEYWORD = 3


class Profile(IntEnum):
    """A named set of ranking choices (docs/RETRIEVAL.md)."""

    BALANCED = 1
    MEMX = 2
    MEMEX = 3


class Dedup(IntEnum):
    """Which hits count as repetitions of a better one."""

    OFF = 1
    CONTENT = 2
    TAGS = 3
    ADAPTIVE = 4


class Order(IntEnum):
    """What a list is ordered by; ties by id in the same direction."""

    CREATED_AT_DESC = 1
    CREATED_AT_ASC = 2
    EVENT_AT_DESC = 3
    EVENT_AT_ASC = 4
    IMPORTANCE_DESC = 5
    IMPORTANCE_ASC = 6


class RejectReason(IntEnum):
    """Why a question found nothing."""

    EMPTY = 1
    NO_MATCH = 2
    LOW_RELEVANCE = 3


class DegradedCause(IntEnum):
    """Why an answer is less than it should be."""

    EMBEDDER_UNAVAILABLE = 1
    VECTOR_INDEX_UNAVAILABLE = 2
    KEYWORD_INDEX_UNAVAILABLE = 3
    MODEL_MISMATCH = 4
    VECTORS_PENDING = 5


class IndexKind(IntEnum):
    """A derived index."""

    VECTOR = 1
    KEYWORD = 2
    COLUMNS = 3


class IndexState(IntEnum):
    """How an index is."""

    READY = 1
    REBUILDING = 2
    FAILED = 3
    MISMATCHED = 4


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


# -- requests and answers of the engine ----------------------------------------------------------------------------


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
    vector: tuple[float, ...] | None = None
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


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A question. Field meanings: ``SearchRequest`` in the proto; None means the documented default."""

    scope: Scope
    query: str
    k: int | None = None
    filter: Filter = field(default_factory=Filter)
    mode: Mode | None = None
    ranking: Ranking = field(default_factory=Ranking)
    min_relevance: float | None = None
    explain: bool = False
    record_retrieval: bool = True
    asked_at: Micros | None = None
    as_of: Micros | None = None
    time_zone: str = ""
    include_superseded: bool = False
    exact: bool = False
    vector: tuple[float, ...] | None = None
    model_id: str = ""
    expand_links: int = 0
    timings: bool = False


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


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """How one index is; field meanings as in the proto."""

    kind: IndexKind
    state: IndexState
    watermark: int
    durable_watermark: int
    entries: int
    tail_entries: int
    dead_entries: int
    size_bytes: int
    stamp: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """The embedding model in use."""

    id: str
    dimension: int
    window_tokens: int
    backend: str
    variant: str
    remote: bool
    available: bool
    message: str
    tau: float


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """How the engine is; the service adds process facts."""

    revision: int
    memories: int
    links: int
    vectors_pending: int
    indexes: tuple[IndexStatus, ...]
    model: ModelStatus
    kernels: str
    scopes: tuple[tuple[Scope, int, int], ...]
    scope_count: int
    database_bytes: int
    wal_bytes: int
    index_bytes: int
    free_bytes: int
    schema_version: int
    ranking: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a rebuild."""

    kind: IndexKind
    done: int
    total: int
    finished: bool = False
    watermark: int = 0


# -- what the store tells the indexes ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chunk:
    """One embedded piece of a memory: dense vector id, position, and half-open span in the content's characters."""

    vid: int
    number: int
    start: int
    end: int
    vector: bytes  # little-endian float16, unit length, dimension * 2 bytes


@dataclass(frozen=True, slots=True)
class RowFeatures:
    """Rank and filter features of one row; what ``index/columns`` keeps in arrays."""

    rid: int
    scope_no: int
    id: str
    type: int
    state: int
    importance: float
    created_at: Micros
    event_at: Micros | None
    valid_until: Micros | None
    access_count: int
    retrieval_count: int
    last_retrieved_at: Micros | None
    content_hash: int  # unsigned 64 bit of the NFC, trimmed content
    fold_hash: int  # unsigned 64 bit of the content without case, punctuation and spacing (adaptive dedup)
    tags: tuple[str, ...]
    private: bool
    vector_pending: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """One row's newest state at ``revision``, for every index; idempotent, the last one wins.

    ``features`` None = the row is gone. ``text`` None = the indexed text did not change. ``chunks`` None = the vectors
    did not change; ``()`` = it has none (pending). ``dead_vids`` are vectors that no longer count.
    """

    revision: int
    rid: int
    features: RowFeatures | None
    text: str | None = None
    chunks: tuple[Chunk, ...] | None = None
    dead_vids: tuple[int, ...] = ()


@dataclass(slots=True)
class Deadline:
    """When a call must be done, on the monotonic clock in seconds; ``at`` None = never.

    ``is_cancelled`` tells whether the caller went away meanwhile. Loops and waits below the wire call ``check``.
    """

    at: float | None = None
    monotonic: Callable[[], float] = time.monotonic
    is_cancelled: Callable[[], bool] = _never

    def remaining(self) -> float | None:
        """Seconds left, never negative; None = no deadline."""
        return None if self.at is None else max(0.0, self.at - self.monotonic())

    def check(self) -> None:
        """Raise DeadlineExceededError or CancelledError when there is no use in going on."""
        if self.is_cancelled():
            raise CancelledError("the caller cancelled the call")
        if self.at is not None and self.monotonic() >= self.at:
            raise DeadlineExceededError("the deadline passed before the work was done; nothing was changed")


#: For calls without a deadline.
NO_DEADLINE = Deadline()
