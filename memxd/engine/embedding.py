"""From a memory's text to the vectors that stand for it.

Owns which part of a text may reach the embedder (private spans may not), the cutting into chunks and the stored form of
a vector (little-endian float16 of unit length). Raises EmbedderUnavailableError when the embedder does not answer; what
to do then is the caller's decision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memxd.embed import Embedder
from memxd.engine.content import is_blank, public_text
from memxd.engine.validate import fail
from memxd.engine.vectors import Space
from memxd.errors import ModelMismatchError
from memxd.failpoints import reach
from memxd.model import Deadline

#: A chunk as the store takes it: half-open character span and float16 bytes.
NewChunk = tuple[int, int, bytes]


@dataclass(frozen=True, slots=True)
class Embedding:
    """The chunks of one content, made in ``space``. ``pending`` = the vectors are still to be made."""

    chunks: tuple[NewChunk, ...]
    pending: bool = False
    space: Space | None = None

    @property
    def to_store(self) -> tuple[NewChunk, ...] | None:
        """What the transaction stores, None = pending: also what was made of a model that is over. Ask within it."""
        over = self.space is not None and self.space.over
        return None if self.pending or over else self.chunks


def to_bytes(vector: NDArray[np.float32]) -> bytes:
    """Unit vector float32 [d] -> its stored form."""
    return vector.astype("<f2").tobytes()


def chunk_spans(embedder: Embedder, content: str) -> list[tuple[int, int]]:
    """Half-open spans of the chunks of ``content``; spans with nothing visible (blanked-out secrets) are left out."""
    text = public_text(content)
    if is_blank(text):
        return []
    return [(a, b) for a, b in embedder.split(text) if not is_blank(text[a:b])]


def embed_contents(embedder: Embedder, contents: Sequence[str], deadline: Deadline) -> list[tuple[NewChunk, ...]]:
    """The chunks of each content, all texts in one pass so that the embedder can use every core."""
    spans = [chunk_spans(embedder, c) for c in contents]
    texts = [public_text(content)[a:b] for content, cuts in zip(contents, spans, strict=True) for a, b in cuts]
    if not texts:
        return [() for _ in contents]
    vectors = embedder.embed_passages(texts, deadline)
    reach("embedded")
    rows = iter(vectors)
    return [tuple((a, b, to_bytes(next(rows))) for a, b in cuts) for cuts in spans]


def own_vector(space: Space, field: str, vector: Sequence[float] | memoryview, model_id: str) -> NDArray[np.float32]:
    """A caller's vector, checked and brought to unit length: float32 [dimension].

    Raises InvalidArgumentError for a wrong length, numbers that are not finite, or length zero, and ModelMismatchError
    when it is of another model.
    """
    info = space.embedder.info
    if not space.matched:
        raise ModelMismatchError(
            f"{field} cannot be compared: the stored vectors are of another model than the daemon's",
            metadata={"model_id": space.stored_model, "dimension": str(space.stored_dimension)},
        )
    if model_id != info.id:
        raise ModelMismatchError(
            f"{field} is {'of another model' if model_id else 'of no named model'}, this daemon uses {info.id!r}; "
            "leave the vector out and the daemon embeds the text",
            metadata={"model_id": info.id, "dimension": str(info.dimension)},
        )
    if len(vector) != info.dimension:
        raise fail(field, f"must have {info.dimension} numbers, this has {len(vector)}")
    array = np.asarray(vector, dtype=np.float64)
    norm = math.sqrt(np.add.reduce(array * array))  # ``dot`` would let go of the interpreter's lock, and wait for it
    if not math.isfinite(norm) or norm == 0.0:
        raise fail(field, "must hold finite numbers, not all zero")
    return (array / norm).astype(np.float32)
