"""Opens the embedder that the settings ask for.

Owns the choice of backend only. The daemon calls ``open_embedder`` once and closes what it gets.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from memxd.embed.base import Embedder
from memxd.embed.hashing import HashingEmbedder
from memxd.embed.settings import Backend, EmbedSettings
from memxd.errors import ConfigError


def import_backend(backend: Backend) -> None:
    """Import what ``open_embedder`` will need, and nothing else: a daemon loads the one library it needs."""
    if backend == "onnx":
        import_module("memxd.embed.models")
        import_module("memxd.embed.onnx")
    elif backend == "openai":
        import_module("memxd.embed.openai")


def open_embedder(settings: EmbedSettings, data_dir: Path) -> Embedder:
    """The opened embedder; the caller closes it.

    ModelFileError when a local model's files lack or are damaged, ConfigError for settings that make no sense. An
    HTTP embedder is not contacted here: whether it answers shows with the first text.
    """
    if settings.threads < 0 or settings.query_cache < 0:
        raise ConfigError("embed threads and query cache must not be negative")
    # Imported here, so that a daemon loads the one library it needs: onnxruntime or httpx.
    if settings.backend == "onnx":
        from memxd.embed.models import open_model
        from memxd.embed.onnx import OnnxEmbedder

        model, message = open_model(data_dir, settings.model)
        return OnnxEmbedder(model, threads=settings.threads, query_cache=settings.query_cache, message=message)
    if settings.backend == "openai":
        from memxd.embed.openai import OpenAIEmbedder

        return OpenAIEmbedder.from_settings(settings)
    return HashingEmbedder(settings.hashing_dimension, query_cache=settings.query_cache)
