"""The closed sets of the contract.

Numbers equal the proto's; its UNSPECIFIED is None here. Owns no meaning beyond a line each: the proto's comments and
docs/RETRIEVAL.md have it.
"""

from __future__ import annotations

from enum import IntEnum


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


class ChangePhase(IntEnum):
    """How far a change of the embedding model is."""

    EMBEDDING = 1
    INDEXING = 2


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
