"""The index folder is derived: losing it, or a disk that refuses it, costs nothing that was stored."""

from __future__ import annotations

import shutil
from typing import Any

import grpc
import pytest

from memxd.v1 import admin_service_pb2 as admin
from memxd.v1 import memory_service_pb2 as pb
from memxd.v1 import search_pb2

SearchMode = search_pb2.SearchMode
MODES = (SearchMode.SEARCH_MODE_HYBRID, SearchMode.SEARCH_MODE_VECTOR, SearchMode.SEARCH_MODE_KEYWORD)


def _store(daemon: Any, text: str) -> None:
    daemon.memory.Store(pb.StoreRequest(memory=pb.NewMemory(content=text)), timeout=20)


def _hits(daemon: Any, mode: int) -> int:
    ranking = search_pb2.Ranking(reject=False)
    return len(daemon.memory.Search(pb.SearchRequest(query="tea", mode=mode, ranking=ranking), timeout=20).hits)


def test_a_removed_index_folder_is_made_again_by_a_rebuild(daemon: Any, start_daemon: Any) -> None:
    for number in range(5):
        _store(daemon, f"tea number {number}")
    daemon.admin.Flush(admin.FlushRequest(), timeout=30)
    shutil.rmtree(daemon.data_dir / "index")
    _store(daemon, "tea without a folder")
    assert daemon.admin.Status(admin.StatusRequest(), timeout=20).memories == 6
    assert list(daemon.admin.Rebuild(admin.RebuildRequest(), timeout=60))[-1].finished
    assert [_hits(daemon, mode) for mode in MODES] == [6, 6, 6]
    daemon.admin.Flush(admin.FlushRequest(), timeout=30)
    assert {path.name for path in (daemon.data_dir / "index").iterdir()} == {"columns", "vector", "keyword"}
    assert daemon.stop() == 0
    again = start_daemon()
    assert [_hits(again, mode) for mode in MODES] == [6, 6, 6]


@pytest.mark.parametrize("name", ["keyword", "vector"])
def test_what_cannot_be_written_without_its_folder_says_how_to_get_it_back(daemon: Any, name: str) -> None:
    _store(daemon, "tea before")
    daemon.admin.Flush(admin.FlushRequest(), timeout=30)
    shutil.rmtree(daemon.data_dir / "index" / name)
    _store(daemon, "tea after")
    for ask in (
        lambda: daemon.admin.Flush(admin.FlushRequest(), timeout=30),
        lambda: list(daemon.admin.Compact(admin.CompactRequest(), timeout=30)),
    ):
        with pytest.raises(grpc.RpcError, match=f"{name} index was removed: memx rebuild"):
            ask()
    list(daemon.admin.Rebuild(admin.RebuildRequest(), timeout=60))
    list(daemon.admin.Compact(admin.CompactRequest(), timeout=60))


@pytest.mark.parametrize("blocked", [False, True], ids=["removed", "cannot be made"])
def test_indexes_that_cannot_be_written_do_not_spoil_the_stop(daemon: Any, start_daemon: Any, blocked: bool) -> None:
    _store(daemon, "tea before")
    folder = daemon.data_dir / "index"
    shutil.rmtree(folder)
    if blocked:
        folder.write_text("in the way")
    _store(daemon, "tea after")
    daemon.signal()
    assert daemon.wait(60) == 0, daemon.log
    assert "Traceback" not in daemon.log
    assert any("next start" in line["message"] for line in daemon.log_lines) or not blocked
    folder.unlink() if folder.is_file() else None
    again = start_daemon()
    assert [_hits(again, mode) for mode in MODES] == [2, 2, 2]
