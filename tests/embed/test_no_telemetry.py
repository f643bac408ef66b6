"""onnxruntime collects telemetry unless told otherwise before it loads; memxd uses no network and leaves no trace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, sys, time
from pathlib import Path
from memxd.embed import EmbedSettings, open_embedder
embedder = open_embedder(EmbedSettings(), Path(sys.argv[1]))
embedder.embed_query("does anybody listen")
time.sleep(1.0)  # the first event used to be written after a moment
embedder.close()
assert os.environ["ORT_DISABLE_TELEMETRY"] == "1"
"""


@pytest.mark.model
def test_the_model_writes_nothing_but_its_own_files(tmp_path: Path) -> None:
    home, data = tmp_path / "home", tmp_path / "data"
    home.mkdir()
    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(data)],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[2])},
        check=True,
        timeout=120,
    )
    assert list(home.rglob("*")) == []
    assert {p.name for p in tmp_path.iterdir()} == {"home", "data"}
