"""Backup and restore with the real daemon and the real commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commandkit import memx

from memxd.client import Client
from memxd.errors import InvalidArgumentError


def test_what_was_backed_up_comes_back(daemon: Any, start_daemon: Any, environ: dict[str, str], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with Client(daemon.socket) as client:
        kept = client.store("Ada drinks her coffee black.", tags=["coffee"]).memory
        *_, last = client.backup(copy)
        assert (last.finished, last.memories, last.revision) == (True, 1, 1)
        assert last.done == last.total == (copy / "memxd.db").stat().st_size
        with pytest.raises(InvalidArgumentError, match="empty"):
            list(client.backup(copy))
        client.delete(kept.id)
        client.store("Ada drinks tea.")
    environ = environ | {"MEMXD_DATA_DIR": str(daemon.data_dir)}
    busy = memx(None, environ, "restore", str(copy), "--move-aside")
    assert busy.returncode == 4
    assert "holds the data directory" in busy.stderr
    assert daemon.stop() == 0
    refused = memx(None, environ, "restore", str(copy))
    assert (refused.returncode, "--move-aside" in refused.stderr) == (5, True)
    assert memx(None, environ, "restore", str(copy), "--verify").stdout.startswith("sound: 1 memories")
    both = memx(None, environ, "restore", str(copy), "--verify", "--move-aside")
    assert (both.returncode, "restores nothing" in both.stderr) == (2, True)
    done = memx(None, environ, "restore", str(copy), "--move-aside", "--json")
    assert done.returncode == 0, done.stderr
    assert Path(json.loads(done.stdout)["aside"]).is_dir()
    with Client(start_daemon().socket) as client:
        assert [hit.memory.id for hit in client.search("black coffee").hits] == [kept.id]
        assert client.get(kept.id, record_access=False).tags == ("coffee",)
        assert client.count() == 1


def test_the_command_line_backs_up(daemon: Any, environ: dict[str, str], tmp_path: Path) -> None:
    with Client(daemon.socket) as client:
        client.store("Ada drinks her coffee black.")
    done = memx(None, environ, "backup", str(tmp_path / "copy"), "--socket", str(daemon.socket), "--no-start")
    assert (done.returncode, done.stdout.splitlines()[0].startswith("1 memories and 0 links")) == (0, True), done.stderr
    again = memx(None, environ, "backup", str(tmp_path / "copy"), "--socket", str(daemon.socket), "--json")
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
