"""The settings an embedder is opened with: one frozen dataclass.

Owns their names, defaults and units within this package; ``memxd/config.py`` owns files, flags and environment, and
the daemon copies values over. Imports only the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Backend: TypeAlias = Literal["onnx", "openai", "hashing"]


@dataclass(frozen=True, slots=True)
class EmbedSettings:
    """How to embed. ``repr`` hides the key.

    ``model``: "" = the default model, else the name of an installed one or the path of a folder (onnx only).
    ``threads``: texts embedded at once, 0 = one per core. ``query_cache``: questions remembered, 0 = none.
    For the OpenAI-compatible backend "" and 0 mean the preset's own value; ``openai_timeout`` is seconds per try.
    """

    backend: Backend = "onnx"
    model: str = ""
    threads: int = 0
    query_cache: int = 4096
    openai_preset: str = ""
    openai_base_url: str = ""
    openai_model: str = ""
    openai_key: str = field(default="", repr=False)
    openai_dimension: int = 0
    openai_batch: int = 0
    openai_window: int = 0
    openai_timeout: float = 10.0
    hashing_dimension: int = 384
