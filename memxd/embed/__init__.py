"""Texts into vectors: the default ONNX model, any ONNX sentence model, an HTTP service, a hashing stand-in for tests.

``open_embedder(EmbedSettings(...), data_dir)`` opens one; ``Embedder`` says what it does, ``ModelInfo`` what it is.
``memxd.embed.models`` lists, adds and verifies installed models. Imported by the engine and the daemon; imports only
``memxd.errors`` and ``memxd.model``.
"""

from __future__ import annotations

from memxd.embed.base import Embedder, Matrix, ModelInfo, Span, Vector
from memxd.embed.factory import import_backend, open_embedder
from memxd.embed.former import open_former
from memxd.embed.hashing import HashingEmbedder
from memxd.embed.settings import EmbedSettings

__all__ = [
    "EmbedSettings",
    "Embedder",
    "HashingEmbedder",
    "Matrix",
    "ModelInfo",
    "Span",
    "Vector",
    "import_backend",
    "open_embedder",
    "open_former",
]
