"""Which model the store's vectors are of, and whether the embedder at hand may add to them or be compared with them.

Owns the note of the model in the store and the rule that two vector spaces never meet: while the embedder's model is
not the store's, nothing is embedded and nothing compared; new memories wait for their vectors and words answer. Which
space holds may change while the daemon runs (reembedding.py): whoever embeds takes ``current`` once, and looks at its
``over`` before what it made is stored or answered. Called by the engine's face at start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from memxd.embed import Embedder
from memxd.model import Degradation, DegradedCause, ModelStatus
from memxd.store import ReadTxn, Store, WriteTxn

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Space:
    """One vector space: an embedder, and the model that the store's vectors are of. ``over``: another took its place;
    set on the writer thread, between two commits."""

    embedder: Embedder
    stored_model: str
    stored_dimension: int
    over: bool = False

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
            f"{self.difference}; answered by words alone until the memories are embedded again, which is under way",
        )

    def status(self) -> ModelStatus:
        """The model that answers, for Status."""
        info = self.embedder.info
        return ModelStatus(
            id=info.id,
            dimension=info.dimension,
            window_tokens=info.window_tokens,
            backend=info.backend,
            variant=info.variant,
            remote=info.remote,
            available=self.embedder.available,
            message=self.embedder.message,
            tau=info.tau,
        )


class Vectors:
    """The space that holds now; one reference is one moment."""

    def __init__(self, space: Space) -> None:
        self.current = space

    @property
    def embedder(self) -> Embedder:
        """The embedder of the present space."""
        return self.current.embedder

    @property
    def matched(self) -> bool:
        """As ``Space.matched``, of the present one."""
        return self.current.matched


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


def open_vectors(store: Store, embedder: Embedder, former: Callable[[str], Embedder | None]) -> Vectors:
    """Read which model the store is of; a store without memories takes the embedder's.

    ``former`` opens the store's own model, None where it is not on this machine any more: it answers until the memories
    are embedded again.
    """
    info = embedder.info

    def note(txn: WriteTxn) -> tuple[str, int]:
        noted = _noted(txn)
        if noted is None:
            txn.meta_set("model_id", info.id)
            txn.meta_set("model_dimension", str(info.dimension))
            txn.meta_set("model_passage_prefix", info.passage_prefix)
        return noted or (info.id, info.dimension)

    space = Space(embedder, *store.write(note))
    if space.matched:
        return Vectors(space)
    log.warning("%s: every memory is embedded again", space.difference)
    old = former(space.stored_model)
    if old is not None and model_of(old) == (space.stored_model, space.stored_dimension):
        space = Space(old, space.stored_model, space.stored_dimension)
    return Vectors(space)
