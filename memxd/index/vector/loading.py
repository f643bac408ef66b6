"""What a directory holds at a start: the index that was saved, one of another model, a damaged one, or nothing.

Owns that decision and its words for Status. Never raises for what lies there. Used by ``VectorIndex.open``.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from memxd.index.vector.files import free_number, is_new, remove_others
from memxd.index.vector.generation import Generation
from memxd.index.vector.manifest import ManifestError, read_manifest
from memxd.index.vector.tuning import VectorTuning
from memxd.model import IndexState

__all__ = ["Loaded", "load"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The generation to go on with, and what to say of it. ``watermark`` 0 = rebuild."""

    generation: Generation
    watermark: int
    state: IndexState
    message: str


def load(directory: Path, model_id: str, dimension: int, tuning: VectorTuning) -> Loaded:
    """Read and check everything in ``directory``; files that are not used stay where they are."""
    message = ""
    watermark, state = 0, IndexState.READY
    generation: Generation | None = None
    try:
        manifest, alive, blocks = read_manifest(directory)
        if (manifest.model_id, manifest.dimension) == (model_id, dimension):
            generation, message = Generation.load(directory, manifest, alive, blocks, tuning)
            remove_others(directory, manifest.generation)
        else:
            state = IndexState.MISMATCHED
            has = f"{manifest.model_id} ({manifest.dimension} dimensions)"
            message = f"the vectors are of model {has}, not {model_id} ({dimension})"
        watermark = manifest.watermark
    except (ManifestError, OSError) as error:
        if not (isinstance(error, FileNotFoundError) and is_new(directory)):
            text = str(error) if isinstance(error, ManifestError) else "a file is missing or cannot be read"
            message = f"the vector index is not usable and will be rebuilt: {text}"
    if message:
        _log.warning("%s", message)
    if generation is None:
        generation = Generation.begin(directory, free_number(directory), dimension)
    return Loaded(generation, watermark, state, message)
