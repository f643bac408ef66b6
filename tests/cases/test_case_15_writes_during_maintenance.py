"""Case 15: eight clients write while all is backed up, flushed and rebuilt; every write succeeds and is found."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from casekit import MODES, Case, World, at_once, flush, fresh_scope, rebuild, word
from memxd.store import restoring
from memxd.v1 import admin_service_pb2 as admin_pb
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb

CLIENTS, LINES = 8, 25


def single_calls(case: Case, scope: mem.Scope, n: int) -> None:
    with case.client(scope) as client:
        for i in range(LINES):
            client.store(f"client {word(n)} line {word(i)}")


def a_stream(case: Case, scope: mem.Scope, n: int) -> None:
    with case.client(scope) as client:
        answers = list(client.store_many(f"client {word(n)} line {word(i)}" for i in range(LINES)))
    assert all(hasattr(a, "memory") for a in answers), answers


def stores_and_changes(case: Case, scope: mem.Scope, n: int) -> None:
    with case.client(scope) as client:
        for i in range(LINES):
            made = client.store(f"draft {word(n)} line {word(i)}").memory
            client.update(made.id, content=f"client {word(n)} line {word(i)}")
            gone = client.store(f"scratch {word(n)} line {word(i)}").memory
            client.delete(gone.id)


@pytest.mark.parametrize("write", [single_calls, a_stream, stores_and_changes], ids=lambda w: w.__name__)
def test_all_succeed_and_all_is_found(world: World, write: Callable[[Case, mem.Scope, int], None]) -> None:
    case, scope = world.start(), fresh_scope()
    case.store_all(fresh_scope("filler"), [pb.NewMemory(content=f"filler {word(n)}") for n in range(1_000)])
    done = threading.Event()
    troubles: list[BaseException] = []

    def keep(step: Callable[[Case], None]) -> None:
        while not done.is_set():
            try:
                step(case)
            except BaseException as error:
                troubles.append(error)
                return

    copies: list[Path] = []

    def back_up(case: Case) -> None:
        copies.append(world.folder / f"copy-{len(copies)}")
        with case.client(scope) as client:
            list(client.backup(copies[-1]))

    keepers = [threading.Thread(target=keep, args=(step,)) for step in (flush, rebuild, rebuild, back_up)]
    for keeper in keepers:
        keeper.start()
    try:
        at_once([lambda n=n: write(case, scope, n) for n in range(CLIENTS)])  # type: ignore[misc]
    finally:
        done.set()
        for keeper in keepers:
            keeper.join()
    assert troubles == []
    check(case, scope)
    assert copies
    for copy in copies:
        whole_moment(copy)
    rebuild(case)
    check(case, scope)
    assert case.daemon.stop() == 0
    assert not [line for line in case.daemon.log_lines if line["level"] in ("error", "critical")]
    check(world.start(), scope)


def whole_moment(copy: Path) -> None:
    """A backup that was made meanwhile is sound, and holds a memory with all that belongs to it or not at all."""
    manifest = restoring.verify(copy)
    raw = sqlite3.connect(copy / "memxd.db")
    assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
    assert raw.execute("SELECT count(*) FROM memories").fetchone() == (manifest.memories,)
    assert raw.execute("SELECT max(revision) FROM changes").fetchone() == (manifest.revision,)
    assert raw.execute("SELECT count(*) FROM memories WHERE rid NOT IN (SELECT rid FROM chunks)").fetchone() == (0,)
    raw.close()


def check(case: Case, scope: mem.Scope) -> None:
    assert case.count(scope) == CLIENTS * LINES
    status = case.admin.Status(admin_pb.StatusRequest(), timeout=20)
    assert {i.watermark for i in status.indexes} == {status.revision}
    for n in range(CLIENTS):
        for i in (0, LINES // 2, LINES - 1):
            wanted = f"client {word(n)} line {word(i)}"
            for mode in MODES:
                answer = case.search(scope, wanted, k=3, mode=MODES[mode])
                assert not answer.degraded
                assert wanted in [h.memory.content for h in answer.hits], (mode, wanted)
        assert case.found(scope, f"scratch {word(n)}", mode=MODES["keyword"], k=5).count(f"scratch {word(n)}") == 0


def test_searches_answer_whole_while_an_index_is_rebuilt(world: World) -> None:
    """A rebuild is made beside; until it is swapped in, the old one answers."""
    case, scope = world.start(), fresh_scope()
    case.store_all(scope, [pb.NewMemory(content=f"fact about {word(n)}") for n in range(3_000)])
    progress = case.admin.Rebuild(admin_pb.RebuildRequest(), timeout=60)
    seen: list[Any] = []
    reader = threading.Thread(target=lambda: seen.extend(progress))
    reader.start()
    asked = 0
    while reader.is_alive() or asked < 5:
        answer = case.search(scope, f"fact about {word(asked % 3_000)}", k=3)
        assert not answer.degraded
        assert answer.hits[0].memory.content == f"fact about {word(asked % 3_000)}"
        asked += 1
    reader.join()
    assert {p.kind for p in seen if p.finished} == {1, 2, 3}
