"""Words of deleted and replaced texts leave the files: within minutes, and at a stop."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from memxd.index.lexical import folding

WORD = b"quetzalcoatl"


def on_disk(directory: Path) -> bool:
    return any(WORD in path.read_bytes() for path in directory.rglob("*") if path.is_file())


def fill(bench: Any) -> None:
    for rid in range(20):
        bench.put(rid, f"ordinary remark {rid}")
    bench.put(20, WORD.decode())
    bench.index.flush()
    assert on_disk(bench.directory)


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_deleted_words_leave_the_disk_after_a_while(bench: Any, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    fill(bench)
    monkeypatch.setattr(folding, "_ERASE_SECONDS", 0.0)
    monkeypatch.setattr(folding, "_ERASE_SHARE", 0.0)
    if how == "removed":
        bench.remove(20)
    else:
        bench.put(20, "another text")
    bench.index.flush()
    end = time.monotonic() + 20
    while on_disk(bench.directory):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert len(bench.find("ordinary")) == 20


def test_deleted_words_leave_the_disk_at_a_stop(bench: Any) -> None:
    fill(bench)
    bench.remove(20)
    bench.index.close()
    assert not on_disk(bench.directory)
    bench.open()
    assert bench.index.watermark == bench.revision
    assert (bench.index.status().entries, bench.index.status().dead_entries) == (20, 0)


def test_what_an_earlier_run_left_is_erased_too(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(bench)
    monkeypatch.setattr(folding, "_ERASE_AT_STOP", 0)
    bench.remove(20)
    bench.index.close()
    assert on_disk(bench.directory)
    monkeypatch.setattr(folding, "_ERASE_SECONDS", 0.0)
    bench.open()
    end = time.monotonic() + 20
    while on_disk(bench.directory):
        assert time.monotonic() < end
        time.sleep(0.05)
