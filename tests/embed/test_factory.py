"""The settings choose the backend."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memxd.embed import EmbedSettings, open_embedder
from memxd.errors import ConfigError, ModelFileError


def test_hashing(tmp_path: Path) -> None:
    embedder = open_embedder(EmbedSettings("hashing", hashing_dimension=32), tmp_path)
    assert (embedder.info.backend, embedder.info.dimension) == ("hashing", 32)


def test_openai(tmp_path: Path) -> None:
    embedder = open_embedder(EmbedSettings("openai", openai_preset="ollama"), tmp_path)
    assert (embedder.info.backend, embedder.info.remote) == ("openai", False)
    embedder.close()


def test_an_unknown_model_and_negative_numbers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="there is no model nothing"):
        open_embedder(EmbedSettings(model="nothing"), tmp_path)
    with pytest.raises(ConfigError):
        open_embedder(EmbedSettings(threads=-1), tmp_path)


@pytest.mark.parametrize(("backend", "loaded"), [("onnx", ["onnxruntime"]), ("openai", ["httpx"]), ("hashing", [])])
def test_each_backend_loads_its_own_library_and_no_other(backend: str, loaded: list[str]) -> None:
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from memxd.embed import import_backend; import_backend(sys.argv[1]);"
            "print([name for name in ('onnxruntime', 'httpx') if name in sys.modules])",
            backend,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == str(loaded)
