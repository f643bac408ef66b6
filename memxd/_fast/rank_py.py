"""Ranking kernels in plain Python: fusion, the four factors, the score, its normalisation, top-k and deduplication.

The twin of ``_rank.pyx``: the oracle of its tests, and what runs without a compiler. Both do the same floating-point
operations in the same order with the C library's functions, so that their results are equal bit for bit. The loops
are plain on purpose. Candidates are arrays of one length n; arrays called "by rid" hold one value for each dense
internal id (rid). Arrays must be one-dimensional, C-contiguous and of exactly the named dtype (else ValueError);
what they hold is not checked, rids that index by-rid arrays excepted. ``engine/`` calls this through ``Kernels``.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
#: Weights of semantic, recency, frequency and importance.
Weights = tuple[float, float, float, float]


class RankKernel(Protocol):
    """What ``memxd._fast._rank`` and this module both offer; each function is documented below."""

    def fuse_rrf(
        self, vector_rids: I32, keyword_rids: I32, k: int, vector_weight: float, keyword_weight: float
    ) -> tuple[I32, F64, I32, I32]: ...

    def factors(
        self, rids: I32, reference: I64, retrieval: U32, access: U32, importance: F32, now: int, half_life: int
    ) -> tuple[F64, F64, F64]: ...

    def combine(self, semantic: F64, recency: F64, frequency: F64, importance: F64, weights: Weights) -> F64: ...

    def normalise(self, raw: F64) -> tuple[F64, F64]: ...

    def top_k(self, score: F64, rids: I32, k: int) -> I32: ...

    def dedup(
        self,
        order: I32,
        rids: I32,
        type: U8,
        content_hash: U64,
        fold_hash: U64,
        tag_hash: U64,
        mode: int,
        limit: int,
    ) -> tuple[I32, I32]: ...

    def rank_all(
        self,
        mask: U8,
        semantic: F64 | None,
        reference: I64,
        retrieval: U32,
        access: U32,
        importance: F32,
        now: int,
        half_life: int,
        weights: Weights,
        k: int,
    ) -> tuple[I32, F64, F64, F64, int]: ...
