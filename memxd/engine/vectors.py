"""Which model the store's vectors are of, and whether the embedder at hand may add to them or be compared with them.

Owns the note of the model in the store and the rule that two vector spaces never meet: while the embedder's model is
not the store's, nothing is embedded and nothing compared; new memories wait for their vectors and words answer. Called
by the engine's face at start; ``Vectors`` is handed to every verb that embeds.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from memxd.embed import Embedder
from memxd.model import Degradation, DegradedCause
from memxd.store import ReadTxn, Store, WriteTxn

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Vectors:
    """The embedder, and the model that the store's vectors are of."""

    embedder: Embedder
    stored_model: str
    stored_dimension: int

    @property
    def matched(self) -> bool:
        """True when the embedder's vectors may be stored and compared."""
        return self.stored_model == self.embedder.info.id

    def may_embed(self, private: bool) -> bool:
        """False when this memory's text must not or cannot get a vector now."""
        return self.matched and not (private and self.embedder.info.remote)

    @property
    def difference(self) -> str:
        """Which two models do not meet, for people."""
        return f"the stored vectors are of model {self.stored_model!r}, the daemon runs {self.embedder.info.id!r}"

    def mismatch(self) -> Degradation:
        """What to tell a search while the models differ."""
        return Degradation(
            DegradedCause.MODEL_MISMATCH,
            f"{self.difference}; answered by words alone until that model is back or the memories are embedded again",
        )


def model_of(embedder: Embedder) -> tuple[str, int]:
    """The embedder's model and its dimension."""
    return embedder.info.id, embedder.info.dimension


def stored_model(store: Store) -> tuple[str, int] | None:
    """The model that the store's vectors are of and its dimension; None while it holds no memories."""
    with store.read() as read:
        return _noted(read)


def _noted(read: ReadTxn) -> tuple[str, int] | None:
    model, dimension = read.meta_get("model_id"), read.meta_get("model_dimension")
    if model is None or dimension is None or read.is_empty():
        return None
    return model, int(dimension)


def open_vectors(store: Store, embedder: Embedder) -> Vectors:
    """Read which model the store is of; a store without memories takes the embedder's."""
    info = embedder.info

    def note(txn: WriteTxn) -> Vectors:
        noted = _noted(txn)
        if noted is None:
            txn.meta_set("model_id", info.id)
            txn.meta_set("model_dimension", str(info.dimension))
            txn.meta_set("model_passage_prefix", info.passage_prefix)
            return Vectors(embedder, info.id, info.dimension)
        return Vectors(embedder, *noted)

    vectors = store.write(note)
    if not vectors.matched:
        log.warning("%s", vectors.mismatch().message)
    return vectors
