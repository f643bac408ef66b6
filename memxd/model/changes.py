"""What the store tells the indexes after a commit, and what an index is rebuilt from.

Frozen shapes without logic. Made by ``store/``, read by ``index/``; nobody else should care.
"""

from __future__ import annotations

from dataclasses import dataclass

from memxd.model.base import Micros


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
    cjk: int = 0  # ``text.cjk_share``: 0 = none, 1 = some, 2 = most of it is CJK


@dataclass(frozen=True, slots=True)
class Change:
    """One row's newest state at ``revision``, for every index; idempotent, the last one wins.

    ``features`` None = the row is gone. ``text`` None = the indexed text did not change. ``chunks`` None = the vectors
    did not change; ``()`` = it has none (pending). ``dead_vids`` are vectors that no longer count. ``terms``: what the
    keyword index makes of the public part of ``text`` (term -> how often, length), when that was done beforehand.
    """

    revision: int
    rid: int
    features: RowFeatures | None
    text: str | None = None
    chunks: tuple[Chunk, ...] | None = None
    dead_vids: tuple[int, ...] = ()
    terms: tuple[dict[str, int], int] | None = None
