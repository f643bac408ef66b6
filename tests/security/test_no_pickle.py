"""Pickles run code when they are read. Whoosh keeps one in the index folder, which only the daemon writes: none comes
with a backup, an import or another database's files.
"""

from __future__ import annotations

import ast
import os
import pickle
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from whoosh.filedb.filestore import FileStorage
from whoosh.index import TOC

import casekit
import house
from memxd.client import Client
from memxd.index.lexical.codec import INDEX_NAME, schema
from memxd.index.lexical.files import read_manifest, write_manifest
from memxd.store import restoring

_RUNS_CODE = ("pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib")


class Bomb:
    """Makes a folder when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.mark),)


def bomb(mark: Path) -> bytes:
    """A pickle that makes ``mark`` when it is read, by what every Python has."""
    return b"cos\nmkdir\n(V" + str(mark).encode() + b"\ntR."


@pytest.fixture
def place() -> Iterator[casekit.World]:
    with casekit.world() as made:
        yield made


def test_the_bomb_works(tmp_path: Path) -> None:
    """As plain bytes, and where Whoosh itself reads a table of contents."""
    pickle.loads(bomb(tmp_path / "mark"))
    assert (tmp_path / "mark").exists()
    storage = FileStorage(str(tmp_path))
    TOC(schema(), [Bomb(tmp_path / "other")], 1).write(storage, INDEX_NAME)
    TOC.read(storage, INDEX_NAME, gen=1, schema=schema())
    assert (tmp_path / "other").exists()


def test_no_module_of_ours_reads_pickles() -> None:
    wrong = [
        f"{name} imports {imported}"
        for name in house.modules()
        for imported in house.imports(name)
        if imported.partition(".")[0] in _RUNS_CODE
    ]
    wrong += [
        f"{name}:{node.lineno}"
        for name in house.modules()
        for node in ast.walk(house.tree(name))
        if isinstance(node, ast.Call)
        if (isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec"))
        or any(keyword.arg == "allow_pickle" for keyword in node.keywords)
    ]
    assert not wrong


def spoiled_index(source: Path, mark: Path) -> None:
    """Make the keyword index's table of contents a whole one whose list of segments is a bomb, with sums that fit: as
    an attacker would."""
    folder = source / "keyword" / "current"
    manifest = read_manifest(folder)
    assert manifest is not None
    [toc] = folder.glob("*.toc")
    toc.unlink()
    TOC(schema(), [Bomb(mark)], manifest.generation).write(FileStorage(str(folder)), INDEX_NAME)
    write_manifest(folder, replace(manifest, toc_size=toc.stat().st_size, toc_crc=zlib.crc32(toc.read_bytes())))


def stored(place: casekit.World, tmp_path: Path) -> Path:
    """A stopped daemon's data, and a backup of it."""
    daemon = place.start().daemon
    with Client(daemon.socket) as client:
        for n in range(50):
            client.store(f"Ada likes tea number {n}.")
        client.flush()
        list(client.rebuild("keyword"))
        list(client.backup(tmp_path / "copy"))
    assert daemon.stop() == 0
    return tmp_path / "copy"


def test_an_index_that_lies_in_a_backup_is_not_restored(place: casekit.World, tmp_path: Path) -> None:
    backup = stored(place, tmp_path)
    mark = tmp_path / "mark"
    shutil.copytree(place.data_dir / "index", backup / "index")
    spoiled_index(backup / "index", mark)
    fresh = place.folder / "fresh"
    fresh.mkdir(mode=0o700)
    restoring.restore(backup, fresh, 1_700_000_000_000_000, move_aside=False)
    assert sorted(path.name for path in fresh.iterdir()) == ["memxd.db"]
    daemon = place.start(data_dir=fresh).daemon
    with Client(daemon.socket) as client:
        assert client.search("tea number 7").hits
    assert not mark.exists()


def test_an_index_of_another_database_is_not_read(place: casekit.World, tmp_path: Path) -> None:
    """Put into the data directory after a restore, by hand: it names the identity of the database it was made for."""
    backup = stored(place, tmp_path)
    mark = tmp_path / "mark"
    fresh = place.folder / "fresh"
    fresh.mkdir(mode=0o700)
    restoring.restore(backup, fresh, 1_700_000_000_000_000, move_aside=False)
    shutil.copytree(place.data_dir / "index", fresh / "index")
    spoiled_index(fresh / "index", mark)
    daemon = place.start(data_dir=fresh).daemon
    with Client(daemon.socket) as client:
        assert client.search("tea number 7").hits
        assert client.status().engine.indexes
    assert not mark.exists()


def test_a_damaged_table_of_contents_is_not_read(place: casekit.World, tmp_path: Path) -> None:
    stored(place, tmp_path)
    mark = tmp_path / "mark"
    folder = place.data_dir / "index" / "keyword" / "current"
    manifest = read_manifest(folder)
    spoiled_index(place.data_dir / "index", mark)
    assert manifest is not None
    write_manifest(folder, manifest)  # the manifest has another sum
    daemon = place.start().daemon
    with Client(daemon.socket) as client:
        assert client.search("tea number 7").hits
    assert not mark.exists()


def test_an_import_reads_lines_of_json_and_nothing_else(place: casekit.World, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    daemon = place.start().daemon
    with Client(daemon.socket) as client:
        lines = [bomb(mark).replace(b"\n", b" "), pickle.dumps({"a": 1}, 0).replace(b"\n", b" ")]
        [*_, last] = client.import_lines(lines)
        assert (last.refused, last.added) == (2, 0)
    assert not mark.exists()
