"""What a directory holds at a start: the index that was saved, a foreign one, a damaged one, or nothing.

Owns that decision and its words for Status. Foreign files are of another model or of another database than the store
is now: nothing in them is of use. Never raises for what lies there. Used by ``VectorIndex.open``.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from memxd.index.vector.files import free_number, is_new, remove_others
from memxd.index.vector.generation import Generation
from memxd.index.vector.manifest import Identity, ManifestError, read_manifest

__all__ = ["Loaded", "load", "made_for"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The generation to go on with, and what to say of it. ``watermark`` 0 = rebuild."""

    generation: Generation
    watermark: int
    message: str


def load(directory: Path, identity: Identity) -> Loaded:
    """Read and check everything in ``directory``; files that are not used go with the first save."""
    message = ""
    watermark = 0
    generation: Generation | None = None
    try:
        manifest, alive, blocks = read_manifest(directory)
        check_identity(manifest.identity, identity)
        generation, message = Generation.load(directory, manifest, alive, blocks)
        remove_others(directory, manifest.generation, generation.graph_names())
        watermark = manifest.watermark
    except (ManifestError, OSError) as error:
        if not (isinstance(error, FileNotFoundError) and is_new(directory)):
            text = str(error) if isinstance(error, ManifestError) else "a file is missing or cannot be read"
            message = f"the vector index is not usable and will be rebuilt: {text}"
    if message:
        _log.warning("%s", message)
    if generation is None:
        generation = Generation.begin(directory, free_number(directory), identity.dimension)
    return Loaded(generation, watermark, message)


def made_for(directory: Path, model_id: str, dimension: int, database_id: str) -> bool:
    """Whether the directory holds an index of this model and database, sound as far as its manifest tells."""
    try:
        manifest, _, _ = read_manifest(directory)
        check_identity(manifest.identity, Identity(model_id, dimension, database_id))
    except (ManifestError, OSError):
        return False
    return True


def check_identity(found: Identity, wanted: Identity) -> None:
    """Raise ManifestError for foreign files."""
    if (found.model_id, found.dimension) != (wanted.model_id, wanted.dimension):
        raise ManifestError(f"its vectors are of model {found.words()}, the store's of {wanted.words()}")
    if found.database_id != wanted.database_id:
        raise ManifestError("it was made for another database")
