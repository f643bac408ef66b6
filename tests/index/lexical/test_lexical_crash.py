"""Processes that die: the child while it writes, the daemon at any moment. Nothing that was durable is lost."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from memxd.errors import IndexUnavailableError, StorageFailedError, StorageFullError
from memxd.index.lexical import files
from memxd.model import NO_DEADLINE, Deadline, IndexState

ROOT = Path(__file__).parents[3]
#: Puts rows for ever, rows of each hundred updated, and says after each flush what is durable.
STORER = """
import sys
import time
from pathlib import Path
from memxd._fast import load_kernels
from memxd.index.lexical.index import LexicalIndex
from memxd.model import Change, RowFeatures

index = LexicalIndex.open(Path(sys.argv[1]), kernel=load_kernels("c").bm25, fold_rows=40, fold_seconds=0.05)
revision = index.durable_watermark
while True:
    revision += 1
    rid = revision % 97
    features = RowFeatures(rid, 1, str(rid), 2, 1, 0.5, 0, None, None, 0, 0, None, 0, 0, (), False)
    text = None if revision % 7 == 0 else f"row{rid} revision{revision} common"
    index.apply(Change(revision, rid, None if revision % 11 == 0 else features, text))
    time.sleep(0.0005)
    if revision % 50 == 0:
        print(index.durable_watermark, flush=True)
"""


def _expected(revision: int) -> dict[int, str]:
    rows: dict[int, str] = {}
    for number in range(1, revision + 1):
        rid = number % 97
        if number % 11 == 0:
            rows.pop(rid, None)
        elif number % 7:
            rows[rid] = f"revision{number}"
    return rows


def test_killed_at_random_moments_the_durable_state_is_whole(tmp_path: Path, open_bench: Any) -> None:
    rng = random.Random(3)
    durable = 0
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", STORER, str(tmp_path / "lexical")], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        while int(process.stdout.readline()) <= durable:
            pass
        time.sleep(rng.uniform(0.0, 0.6))
        process.send_signal(signal.SIGKILL)
        told = [int(line) for line in process.communicate()[0].split()]
        bench = open_bench(tmp_path / "lexical")
        status = bench.index.status()
        assert status.message == ""
        assert status.durable_watermark >= max([durable, *told])
        durable = status.durable_watermark
        rows = _expected(durable)
        found = bench.find("common", rids=range(97), k=97)
        # rows changed after the watermark may be missing already (they are applied again), never wrong
        later = {number % 97 for number in range(durable + 1, durable + 20_000)}
        assert set(rows) - later <= set(found) <= set(rows)
        for rid in found:
            assert rid in bench.find(rows[rid], rids=range(97))
        bench.index.close()
    assert durable > 0


def _child(bench: Any) -> int:
    return int(bench.index._folding._child.pid)


def test_a_killed_child_is_replaced_and_nothing_is_missed(bench: Any) -> None:
    bench.put(0, "first text")
    bench.index.flush()
    with bench.index._folding._busy:  # not while it looks for something to merge
        os.kill(_child(bench), signal.SIGKILL)
    bench.put(1, "second text")
    assert bench.find("text") == [0, 1]
    with pytest.raises(IndexUnavailableError, match="died"):
        bench.index.flush()
    assert "died" in bench.index.status().message
    assert bench.find("text") == [0, 1]
    bench.put(2, "third text")
    bench.remove(1)
    bench.index.flush(Deadline(time.monotonic() + 30))
    bench.index.flush(Deadline(time.monotonic() + 30))
    assert bench.index.status().message == ""
    assert bench.find("text") == [0, 2]
    bench.reopen()
    assert bench.find("text") == [0, 2]


def test_the_child_dies_with_its_parent(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STORER, str(tmp_path / "lexical")], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    while int(process.stdout.readline()) == 0:
        pass
    process.kill()
    process.communicate()
    end = time.monotonic() + 5.0
    while (held := files.lock(tmp_path / "lexical" / "current")) is None:
        assert time.monotonic() < end
        time.sleep(0.02)
    os.close(held)


def test_two_writers_do_not_meet(bench: Any) -> None:
    folder = bench.directory / "current"
    held = files.lock(folder)
    assert held is not None
    bench.put(0, "text")
    with pytest.raises(IndexUnavailableError, match="another process"):
        bench.index.flush()
    os.close(held)
    bench.index.flush(Deadline(time.monotonic() + 30))
    assert bench.index.durable_watermark == 1


def test_a_full_or_readonly_folder_keeps_the_tail_in_memory(bench: Any) -> None:
    bench.put(0, "text")
    folder = bench.directory / "current"
    (folder / "manifest.json.new").mkdir()  # the manifest cannot be written
    with pytest.raises(StorageFailedError):
        bench.index.flush()
    assert bench.find("text") == [0]
    assert bench.index.status().message
    (folder / "manifest.json.new").rmdir()
    bench.index.flush(Deadline(time.monotonic() + 30))
    assert bench.find("text") == [0]


def test_a_full_disk_is_called_so_and_the_next_try_heals(bench: Any) -> None:
    bench.put(0, "first text")
    bench.index.flush()
    with bench.index._folding._busy:
        resource.prlimit(_child(bench), resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))  # EFBIG, as from a quota
    bench.put(1, "second text")
    with pytest.raises(StorageFullError, match="disk is full: the keyword index"):
        bench.index.flush()
    assert "the disk is full" in bench.index.status().message
    assert "Errno" not in bench.index.status().message
    bench.index.flush(Deadline(time.monotonic() + 30))
    assert (bench.index.durable_watermark, bench.index.status().message) == (2, "")


@pytest.mark.parametrize("pattern", ["manifest.json", "*.toc", "*"])
def test_files_damaged_while_running_call_for_a_rebuild(bench: Any, pattern: str) -> None:
    bench.put(0, "first text")
    bench.index.flush()
    with bench.index._folding.paused(NO_DEADLINE):
        for path in (bench.directory / "current").glob(pattern):
            os.truncate(path, 0)
    bench.put(1, "second text")
    with pytest.raises(IndexUnavailableError):
        bench.index.flush()
    assert bench.index.status().state is IndexState.FAILED
    bench.index.rebuild(iter([bench.change(2, 0, "first text"), bench.change(2, 1, "second text")]), 2, revision=2)
    bench.put(2, "third text")
    bench.index.flush()
    assert bench.index.status().state is IndexState.READY
    bench.reopen()
    assert bench.find("text") == [0, 1, 2]
