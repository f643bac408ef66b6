"""What each kernel module offers, as protocols: the types behind ``Kernels``.

Owns the signatures that the callers of kernels may rely on; each twin documents its functions. A protocol is
fulfilled by a module, compiled or not: mypy checks the twins against it, tests/fast the compiled ones. Adding a kernel
module adds its protocol here.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memxd._fast.arrays import F32, F64, I32, I64, U8, U32, U64

#: Weights of semantic, recency, frequency and importance.
Weights = tuple[float, float, float, float]


class RankKernel(Protocol):
    """Implemented by ``_rank`` and ``rank_py``; the latter documents each function."""

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


class ChooseKernel(Protocol):
    """Implemented by ``_choose`` and ``choose_py``; the latter documents each function."""

    def choose(
        self,
        rids: I32,
        state: U8,
        type: U8,
        valid_until: I64,
        created: I64,
        event: I64,
        importance: F64,
        tag_set: I32,
        rule: int,
        now: int,
        states: U8 | None,
        types: U8 | None,
        tags: U8 | None,
        created_span: tuple[int, int] | None,
        event_span: tuple[int, int] | None,
        importance_min: float | None,
    ) -> tuple[I32, int, int]: ...

    def group(self, scope: I32, state: U8) -> tuple[I32, I32]: ...


class DotKernel(Protocol):
    """Implemented by ``_dot`` and ``dot_py``; the latter documents each function."""

    def dot_rows(self, query: F32, matrix: NDArray[np.float16], rows: I32, /) -> F32: ...

    def best_by_rid(
        self, query: F32, matrix: NDArray[np.float16], head: I32, after: I32, rids: I32, /
    ) -> tuple[F32, I32]: ...

    def search_rids(
        self, query: F32, matrix: NDArray[np.float16], head: I32, after: I32, rids: I32, k: int, /
    ) -> tuple[I32, F32, I32]: ...
