"""What every embedder is: the ``Embedder`` protocol, ``ModelInfo``, and array helpers they share.

Owns the vocabulary between embedders and the engine. Knows no model, no file and no network. The engine and the
daemon import it; every backend of this package implements it.

A vector is float32 of shape (dimension,) with length 1 (within 1e-3), so that a dot product is a cosine in -1..1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memxd.errors import EmbedderUnavailableError
from memxd.model import NO_DEADLINE, Deadline

#: float32, shape (dimension,), unit length.
Vector: TypeAlias = NDArray[np.float32]
#: float32, shape (texts, dimension), rows of unit length.
Matrix: TypeAlias = NDArray[np.float32]
#: Half-open range of characters (code points) in a text.
Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a model is; stored with its vectors, so that vectors of two models never meet.

    ``cosine_low`` and ``cosine_high`` bound the band in which the model's cosines tell something
    (engine/relevance.py); ``tau`` is the best cosine below which a question counts as unanswerable by meaning alone.
    All in -1..1. ``cosine_shift_cjk`` and ``cosine_shift_cross``: how much higher the model's cosines lie when question
    and text are both Chinese, Japanese or Korean, and when only one of them is.
    """

    id: str
    dimension: int
    window_tokens: int
    backend: str
    variant: str
    remote: bool
    tau: float
    cosine_low: float
    cosine_high: float
    query_prefix: str
    passage_prefix: str
    cosine_shift_cjk: float = 0.0
    cosine_shift_cross: float = 0.0


class Embedder(Protocol):
    """Turns texts into vectors. Safe to call from many threads.

    Every method that embeds raises EmbedderUnavailableError (retryable) when the model does not answer,
    DeadlineExceededError or CancelledError when the caller no longer waits.
    """

    @property
    def info(self) -> ModelInfo:
        """The model; never changes while the embedder is open."""
        ...

    @property
    def available(self) -> bool:
        """False when the last call failed or the embedder is closed."""
        ...

    @property
    def message(self) -> str:
        """Why it is not available, or why this variant was chosen; for people. Never holds a text."""
        ...

    def embed_query(self, text: str, deadline: Deadline = NO_DEADLINE) -> Vector:
        """A question's vector. Longer than the window: windows averaged. The array is shared and read-only."""
        ...

    def embed_passages(self, texts: Sequence[str], deadline: Deadline = NO_DEADLINE) -> Matrix:
        """One row per text, in their order; (0, dimension) for no texts."""
        ...

    def split(self, text: str) -> list[Span]:
        """Overlapping spans that cover the whole text, each within the window, cut at sentence ends if possible."""
        ...

    def close(self) -> None:
        """Free threads, sessions and connections. Idempotent; calls afterwards raise EmbedderUnavailableError."""
        ...


def unit(vector: NDArray[np.floating]) -> Vector:
    """The vector at length 1, shape (d,).

    EmbedderUnavailableError when it has no direction (zero, NaN or infinite): such a vector would match nothing
    or poison every comparison.
    """
    return measured(vector)[1]


def measured(vector: NDArray[np.floating]) -> tuple[float, Vector]:
    """The length that the vector had, and ``unit`` of it. Raises as that."""
    wide = np.asarray(vector, dtype=np.float64)
    length = math.sqrt(wide.dot(wide))
    if not math.isfinite(length) or length == 0.0:
        raise EmbedderUnavailableError("the embedding model gave a vector without direction")
    return length, (wide / length).astype(np.float32)


def mean_unit(vectors: Sequence[Vector]) -> Vector:
    """The average of unit vectors, at length 1 again; a single one comes back unchanged."""
    if len(vectors) == 1:
        return vectors[0]
    return unit(np.mean(np.stack(vectors).astype(np.float64), axis=0))


def frozen(vector: Vector) -> Vector:
    """The same array, read-only, so that it can be shared by a cache and its readers."""
    vector.flags.writeable = False
    return vector
