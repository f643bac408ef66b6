"""The words that flags take, as typer wants them: one enum for each choice.

The same words as the enums of ``memxd.model`` (a test compares), which would cost a start-up much more to import.
"""

from __future__ import annotations

from enum import StrEnum


class TypeWord(StrEnum):
    """What kind of knowledge a memory is."""

    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"
    EMOTIONAL = "emotional"
    REFLECTIVE = "reflective"


class StateWord(StrEnum):
    """Where a memory stands in its life."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"


class LinkWord(StrEnum):
    """How a link's source relates to its target."""

    SIMILAR = "similar"
    RELATED = "related"
    CONTRADICTS = "contradicts"
    EXTENDS = "extends"
    SUPERSEDES = "supersedes"
    CAUSED_BY = "caused_by"
    TEMPORAL = "temporal"


class DirectionWord(StrEnum):
    """Which way links are followed."""

    BOTH = "both"
    OUTGOING = "outgoing"
    INCOMING = "incoming"


class OrderWord(StrEnum):
    """What a list is ordered by."""

    CREATED_AT_DESC = "created_at_desc"
    CREATED_AT_ASC = "created_at_asc"
    EVENT_AT_DESC = "event_at_desc"
    EVENT_AT_ASC = "event_at_asc"
    IMPORTANCE_DESC = "importance_desc"
    IMPORTANCE_ASC = "importance_asc"


class ModeWord(StrEnum):
    """Which legs look for candidates."""

    HYBRID = "hybrid"
    VECTOR = "vector"
    KEYWORD = "keyword"


class ProfileWord(StrEnum):
    """A named set of ranking choices."""

    BALANCED = "balanced"
    MEMX = "memx"
    MEMEX = "memex"


class DedupWord(StrEnum):
    """Which hits count as repetitions."""

    OFF = "off"
    CONTENT = "content"
    TAGS = "tags"
    ADAPTIVE = "adaptive"


class IndexWord(StrEnum):
    """A derived index."""

    VECTOR = "vector"
    KEYWORD = "keyword"
    COLUMNS = "columns"


class ShellWord(StrEnum):
    """A shell that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


class Clearable(StrEnum):
    """A field that edit can empty."""

    TAGS = "tags"
    METADATA = "metadata"
    EVENT_AT = "event_at"
    VALID_UNTIL = "valid_until"
    SOURCE = "source"
    TYPE = "type"
    IMPORTANCE = "importance"


class ConflictWord(StrEnum):
    """What import does with an id that is taken by something else."""

    REFUSE = "refuse"
    KEEP = "keep"
    REPLACE = "replace"


class SystemWord(StrEnum):
    """Whose file is imported."""

    MEMX = "memx"
    MEMEX = "memex"
    MCP_MEMORY = "mcp-memory"
    MEM0 = "mem0"
