"""Case 16: a crash loses nothing; a damaged database is told, kept as it is, and never deleted by anything.

memxd starts on no damaged database: it ends with an exit code that a service manager does not retry, names the file and
what to do, and the doctor says the same. What can be read is saved by the way that it names.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct

from casekit import MODES, Case, World, fresh_scope, word
from memxd.operation.systemd import FINAL_CODES
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb
from memxd.v1 import search_pb2

MANY = 400
PAGE = 4096
PLAIN = search_pb2.Ranking(reject=False, dedup=search_pb2.DEDUP_MODE_OFF)
WEIGHT = ParseDict({"weight": "x" * 300}, Struct())


def fact(n: int) -> str:
    return " ".join(word(n + 1_000 * k) for k in range(6))


def filled(case: Case, scope: mem.Scope) -> None:
    case.store_all(scope, [pb.NewMemory(content=fact(n), metadata=WEIGHT) for n in range(MANY)])


def memx(world: World, *words: str) -> subprocess.CompletedProcess[str]:
    """``memx`` for this world's settings."""
    extra = {"MEMXD_DATA_DIR": str(world.data_dir), "MEMXD_SOCKET": str(world.socket), "MEMXD_EMBEDDER": "hashing"}
    command = [sys.executable, "-m", "memxd.cli", *words]
    return subprocess.run(command, env=world.environ | extra, capture_output=True, text=True, timeout=60, check=False)


def contents(folder: Path) -> dict[str, str]:
    """Every file of the database, by its hash."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("memxd.db*")}


def all_found(case: Case, scope: mem.Scope) -> None:
    assert case.count(scope) == MANY
    for n in (0, MANY // 2, MANY - 1):
        for mode in ("vector", "keyword"):
            answer = case.search(scope, fact(n), k=5, mode=MODES[mode], ranking=PLAIN)
            assert fact(n) in [hit.memory.content for hit in answer.hits]
            assert not answer.degraded


@pytest.mark.parametrize("shared_memory", ["kept", "lost", "garbled"])
def test_what_stands_only_in_a_leftover_log_is_recovered(world: World, shared_memory: str) -> None:
    scope, case = fresh_scope(), world.start()
    filled(case, scope)
    case.daemon.signal(signal.SIGKILL)
    case.daemon.wait()
    log, shared = world.data_dir / "memxd.db-wal", world.data_dir / "memxd.db-shm"
    assert log.stat().st_size > 0
    if shared_memory == "lost":
        shared.unlink()
    elif shared_memory == "garbled":
        shared.write_bytes(b"\xa5" * shared.stat().st_size)
    all_found(world.start(), scope)


def test_a_log_that_was_torn_by_a_power_cut_gives_back_what_was_whole_in_it(world: World) -> None:
    """The end of the log that the disk had not taken yet is nobody's answer; what stands before it is all there."""
    scope, case = fresh_scope(), world.start()
    filled(case, scope)
    case.daemon.signal(signal.SIGKILL)
    case.daemon.wait()
    with (world.data_dir / "memxd.db-wal").open("r+b") as log:
        log.seek(0, 2)
        log.write(b"\x5a" * 5_000)  # half a commit that was never acknowledged
    all_found(world.start(), scope)


def damage(path: Path, page: int) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(b"\xa5" * PAGE)


@pytest.mark.parametrize("page", [1, 3, "middle"])
def test_a_broken_page_is_told_with_what_to_do_and_nothing_is_deleted(world: World, page: Any) -> None:
    scope, case = fresh_scope(), world.start()
    filled(case, scope)
    with case.client(scope) as client:
        backup = world.folder / "backup"
        assert [step.finished for step in client.backup(backup)][-1]
    assert case.daemon.stop() == 0
    path = world.data_dir / "memxd.db"
    damage(path, path.stat().st_size // PAGE // 2 if page == "middle" else page)
    before, names = contents(world.data_dir), sorted(p.name for p in world.data_dir.iterdir())

    for _ in range(2):  # nor is it any other the second time
        refused = world.start(wait=False)
        assert refused.daemon.wait() == 65
        assert 65 in FINAL_CODES  # so that a service does not start it over and over
        (said,) = [line for line in refused.daemon.log.splitlines() if line.startswith("memxd: ")]
        for part in (str(path), "is damaged", "left as it is", "memx restore", ".recover"):
            assert part in said
        assert contents(world.data_dir) == before
    assert sorted(p.name for p in world.data_dir.iterdir()) == names

    for fix in ((), ("--fix",)):
        doctor = memx(world, "doctor", "--json", *fix)
        assert doctor.returncode == 5
        [found] = [finding for finding in json.loads(doctor.stdout)["findings"] if finding["check"] == "schema"]
        assert found["state"] == "problem"
        assert "is damaged" in found["text"]
        assert "memx restore" in found["command"]
        assert contents(world.data_dir) == before

    restored = memx(world, "restore", str(backup), "--move-aside")
    assert restored.returncode == 0, restored.stderr
    [aside] = world.data_dir.glob("before-restore-*")
    assert contents(aside)["memxd.db"] == before["memxd.db"]
    all_found(world.start(), scope)


def recovers() -> bool:
    """Whether this machine's sqlite3 program has .recover: some distributions leave it out."""
    return (
        shutil.which("sqlite3") is not None
        and b"error"
        not in subprocess.run(
            ["sqlite3", ":memory:", "CREATE TABLE a(b)", ".recover"], capture_output=True, check=False
        ).stderr
    )


@pytest.mark.skipif(not recovers(), reason="needs a sqlite3 program with .recover")
def test_what_can_be_read_is_saved_by_the_command_that_the_message_names(world: World) -> None:
    scope, case = fresh_scope(), world.start()
    filled(case, scope)
    assert case.daemon.stop() == 0
    path = world.data_dir / "memxd.db"
    damage(path, path.stat().st_size // PAGE // 2)
    saved = world.folder / "recovered.db"
    done = subprocess.run(f'sqlite3 "{path}" .recover | sqlite3 "{saved}"', shell=True, capture_output=True, timeout=60)
    assert done.returncode == 0
    raw = sqlite3.connect(saved)
    [count] = raw.execute("SELECT count(*) FROM memories").fetchone()
    raw.close()
    assert count > MANY // 2


def test_a_page_that_breaks_while_the_daemon_runs_is_an_error_and_never_an_empty_answer(world: World) -> None:
    scope, case = fresh_scope(), world.start()
    filled(case, scope)
    assert case.daemon.stop() == 0
    path = world.data_dir / "memxd.db"
    case = world.start()
    pages = path.stat().st_size // PAGE
    for page in range(3, pages + 1):
        damage(path, page)
    answer = case.call("List", pb.ListRequest(scope=scope, page_size=500))
    assert answer.reason == "STORAGE_FAILED"
    assert "damaged" in answer.message
    assert path.stat().st_size == pages * PAGE
