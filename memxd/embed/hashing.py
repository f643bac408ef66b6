"""A deterministic embedder without a model, for tests: feature hashing of words and CJK bigrams.

Owns the hashing; uses the same chunking and cache as the real backends. Weinberger et al. 2009, "Feature Hashing for
Large Scale Multitask Learning": each feature adds +-1 (its damped count) to one slot. Texts that share words have a
higher cosine; there is no meaning in it beyond that, so nobody should search real memories with it.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np

from memxd.embed.base import Matrix, ModelInfo, Span, Vector, frozen, unit
from memxd.embed.cache import QueryCache
from memxd.embed.chunking import ChunkRule, split_text
from memxd.errors import EmbedderUnavailableError
from memxd.model import NO_DEADLINE, Deadline

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f"
_TOKEN = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+")
_WINDOW = 512


def _tokens(text: str) -> list[str]:
    """Words, and single CJK, kana, hangul and Thai characters, case-folded."""
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())


def _features(text: str) -> Counter[str]:
    """Tokens, plus pairs of neighbouring CJK characters."""
    tokens = _tokens(text)
    wide = [len(t) == 1 and re.match(rf"[{_CJK}]", t) is not None for t in tokens]
    pairs = (a + b for a, b, x, y in zip(tokens, tokens[1:], wide, wide[1:], strict=False) if x and y)
    return Counter([*tokens, *pairs])


class HashingEmbedder:
    """``Embedder`` by feature hashing into ``dimension`` slots. Never fails, never changes between runs."""

    def __init__(self, dimension: int = 384, *, query_cache: int = 0) -> None:
        if dimension < 2:
            raise ValueError(f"dimension must be at least 2, not {dimension}")
        self.info = ModelInfo(
            id=f"hashing-{dimension}-1",
            dimension=dimension,
            window_tokens=_WINDOW,
            backend="hashing",
            variant="",
            remote=False,
            tau=0.1,
            cosine_low=0.0,
            cosine_high=0.6,
            query_prefix="",
            passage_prefix="",
        )
        self._cache = QueryCache(query_cache)
        self._rule = ChunkRule.for_window(_WINDOW)
        self._closed = False

    @property
    def available(self) -> bool:
        """True until closed."""
        return not self._closed

    @property
    def message(self) -> str:
        """Says that this is no real model."""
        return "closed" if self._closed else "hashing embedder: shared words only, for tests"

    def embed_query(self, text: str, deadline: Deadline = NO_DEADLINE) -> Vector:
        """The text's vector, shape (dimension,), unit length, read-only."""
        self._check(deadline)
        found = self._cache.get(text)
        if found is None:
            found = frozen(self._embed(text))
            self._cache.put(text, found)
        return found

    def embed_passages(self, texts: Sequence[str], deadline: Deadline = NO_DEADLINE) -> Matrix:
        """One row per text, shape (n, dimension)."""
        rows = np.zeros((len(texts), self.info.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            self._check(deadline)
            row[:] = self._embed(text)
        return rows

    def split(self, text: str) -> list[Span]:
        """Spans as of ``Embedder.split``; a token is a word or one CJK character."""
        return split_text(text, lambda texts: [len(_tokens(t)) for t in texts], self._rule)

    def close(self) -> None:
        """Refuse further calls."""
        self._closed = True
        self._cache.clear()

    def _check(self, deadline: Deadline) -> None:
        if self._closed:
            raise EmbedderUnavailableError("the embedder is closed")
        deadline.check()

    def _embed(self, text: str) -> Vector:
        slots = np.zeros(self.info.dimension, dtype=np.float64)
        for feature, times in _features(text).items():
            digest = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            number = int.from_bytes(digest, "little")
            slots[(number >> 1) % self.info.dimension] += (1.0 if number & 1 else -1.0) * (1.0 + np.log(times))
        if not slots.any():
            # Punctuation only, or features that cancel out: any fixed direction will do.
            slots[0] = 1.0
        return unit(slots)
