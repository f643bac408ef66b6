"""Whatever lies in the folder, the index opens; what it cannot trust it sets aside and says so."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memxd.index.lexical import files
from memxd.index.lexical.index import LexicalIndex
from memxd.model import IndexState


@pytest.fixture(scope="module")
def sound(open_bench: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two segments and a deletion."""
    bench = open_bench(tmp_path_factory.mktemp("sound") / "lexical")
    for rid in range(8):
        bench.put(rid, f"common word{rid}")
    bench.index.flush()
    bench.put(20, "common late")
    bench.remove(3)
    bench.index.close()
    return Path(bench.directory)


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for at in (len(data) // 3, len(data) // 2, len(data) - 1):
        data[at] ^= 0xFF
    path.write_bytes(data)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


DAMAGE: dict[str, Callable[[Path], None]] = {
    "truncate": _truncate,
    "flip": _flip,
    "empty": _empty,
    "remove": Path.unlink,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
@pytest.mark.parametrize("pattern", ["manifest.json", "*.toc", "*.trm", "*.pst", "*.doc"])
def test_a_damaged_file_means_an_empty_index_that_says_why(
    sound: Path, tmp_path: Path, kernel: Any, pattern: str, damage: Callable[[Path], None]
) -> None:
    folder = shutil.copytree(sound, tmp_path / "lexical")
    damage(next(folder.glob(f"current/{pattern}")))
    index = LexicalIndex.open(folder, kernel=kernel)
    status = index.status()
    index.close()
    assert (status.watermark, status.durable_watermark, status.entries) == (0, 0, 0)
    assert "set aside" in status.message
    assert status.state is IndexState.READY
    assert (folder / "broken").is_dir()


def test_after_damage_it_fills_again(sound: Path, tmp_path: Path, kernel: Any, open_bench: Any) -> None:
    folder = shutil.copytree(sound, tmp_path / "lexical")
    _flip(next(folder.glob("current/*.toc")))
    bench = open_bench(folder)
    bench.index.rebuild(iter([bench.change(9, 1, "common again")]), 1)
    assert bench.find("common") == [1]
    assert bench.index.status().message == ""
    assert bench.reopen().durable_watermark == 9
    assert bench.find("again") == [1]
    bench.index.close()


def test_another_versions_files_are_set_aside(sound: Path, tmp_path: Path, kernel: Any) -> None:
    folder = shutil.copytree(sound, tmp_path / "lexical")
    manifest = files.read_manifest(folder / "current")
    assert manifest is not None
    older = files.Manifest("format-0", manifest.watermark, manifest.generation, manifest.toc_size, manifest.toc_crc)
    files.write_manifest(folder / "current", older)
    index = LexicalIndex.open(folder, kernel=kernel)
    message = index.status().message
    index.close()
    assert "another version (format-0" in message


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"manifest": {}, "crc": 0}', "\x00" * 50, "not json"])
def test_a_foreign_manifest_is_set_aside(tmp_path: Path, kernel: Any, text: str) -> None:
    folder = tmp_path / "lexical" / "current"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(text)
    index = LexicalIndex.open(folder.parent, kernel=kernel)
    message = index.status().message
    index.close()
    assert "manifest" in message


def test_foreign_files_do_no_harm(sound: Path, tmp_path: Path, open_bench: Any) -> None:
    folder = shutil.copytree(sound, tmp_path / "lexical")
    (folder / "current" / "notes.txt").write_text("mine")
    (folder / "current" / "_MAIN_99.toc").write_text("a commit that never was")
    (folder / "current" / "MAIN_0000000000000000.pst").write_text("half a segment")
    (folder / "new").mkdir()
    bench = open_bench(folder)
    assert bench.find("late") == [20]
    bench.revision = 100
    bench.put(21, "more")
    bench.index.flush()
    assert bench.find("more") == [21]
    assert not list(folder.glob("current/*_99.toc"))
    assert not list(folder.glob("current/MAIN_0000000000000000.*"))
    assert (folder / "current" / "notes.txt").read_text() == "mine"
    bench.index.close()


def test_deletions_and_rows_survive_a_reopening(sound: Path, tmp_path: Path, open_bench: Any) -> None:
    bench = open_bench(shutil.copytree(sound, tmp_path / "lexical"))
    assert sorted(bench.find("common")) == [0, 1, 2, 4, 5, 6, 7, 20]
    assert bench.find("3") == []
    assert bench.index.durable_watermark == 10
    bench.index.close()


def test_the_folder_is_private(sound: Path) -> None:
    assert (sound / "current").stat().st_mode & 0o777 == 0o700
    assert json.loads((sound / "current" / "manifest.json").read_text())["manifest"]["watermark"] == 10


def test_files_of_another_database_are_set_aside(tmp_path: Path, kernel: Any, open_bench: Any) -> None:
    bench = open_bench(tmp_path)
    bench.put(1, "tea")
    bench.index.close()
    other = bench.open(database_id="another")
    assert other.watermark == 0
    assert "for another database" in other.status().message
    assert bench.find("tea") == []
    other.close()
