"""Opens the model that a store's vectors are of, when the settings name another one: by its id, on this machine only.

Owns the search: the default model's variants, the added models, the hashing stand-in. A remote model is not looked for
(its endpoint's settings are gone), nor one that was chosen by a folder's path. Called by the daemon at a change of
model; the caller closes what it gets.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path

from memxd.embed.base import Embedder
from memxd.embed.hashing import HashingEmbedder
from memxd.embed.settings import EmbedSettings
from memxd.errors import ModelFileError

_log = logging.getLogger("memxd.embed")
_HASHING = re.compile(r"hashing-(\d{1,5})-1")


def open_former(model_id: str, settings: EmbedSettings, data_dir: Path) -> Embedder | None:
    """The local model of this id with the settings' threads and cache; None when it is not here or not sound."""
    found = _HASHING.fullmatch(model_id)
    if found:
        return HashingEmbedder(int(found[1]), query_cache=settings.query_cache)
    # Imported here: a daemon whose models are the same needs none of it.
    from memxd.embed.models import open_by_id
    from memxd.embed.onnx import OnnxEmbedder

    try:
        opened = open_by_id(data_dir, model_id)
    except ModelFileError as error:
        _log.warning("the former model %s cannot be opened: %s", model_id, error.message)
        return None
    if opened is None:
        _log.info("the former model %s is not on this machine", model_id)
        return None
    return OnnxEmbedder(
        opened, threads=settings.threads, query_cache=settings.query_cache, message=f"former model {model_id}"
    )
