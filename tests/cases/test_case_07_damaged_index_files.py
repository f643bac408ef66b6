"""Case 7: a damaged index file never stops a start; it is told, the index is built anew, and nothing is lost."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from casekit import MODES, TIMEOUT, Case, World, flush, fresh_scope, rebuild, word
from memxd.v1 import admin_service_pb2 as admin_pb
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb

KINDS = ("vector", "keyword", "columns")
RECORDS = 60
#: One more than is built anew before the daemon serves.
MANY = 20_001


def halve(path: Path) -> None:
    """To half at most; the vector file is mostly a hole, and what counts of it stands at its beginning."""
    os.truncate(path, min(path.stat().st_size // 2, 4_000))


def flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[::7] = bytes(b ^ 0xFF for b in raw[::7])
    path.write_bytes(raw)


def files(world: World, kind: str) -> list[Path]:
    """What an index has on disk, but for locks."""
    folder = world.data_dir / "index" / kind
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.stat().st_size and "broken" not in p.parts)


def stocked(world: World) -> tuple[Case, mem.Scope, dict[str, str]]:
    """A daemon whose indexes are all on disk, and what it holds: content by word."""
    case, scope = world.start(), fresh_scope()
    facts = {word(n): f"fact about {word(n)} number {n}" for n in range(RECORDS)}
    case.store_all(scope, [pb.NewMemory(content=content, tags=["kept"]) for content in facts.values()])
    rebuild(case)
    flush(case)
    return case, scope, facts


def warnings(case: Case) -> list[str]:
    return [str(line["message"]) for line in case.daemon.log_lines if line["level"] == "warning"]


def nothing_is_lost(case: Case, scope: mem.Scope, facts: dict[str, str]) -> None:
    assert case.count(scope) == len(facts)
    assert case.count(scope, filter=mem.Filter(tags_any=["kept"])) == len(facts)
    for name, content in facts.items():
        for leg, query in (("keyword", name), ("vector", content)):
            answer = case.search(scope, query, mode=MODES[leg], k=5)
            assert content in [hit.memory.content for hit in answer.hits], (leg, name)
            assert not answer.degraded
    *_, last = case.admin.Verify(admin_pb.VerifyRequest(), timeout=TIMEOUT)
    assert not last.problems


@pytest.mark.slow
@pytest.mark.parametrize("damage", [halve, flip])
def test_each_file_of_each_index_may_be_damaged(world: World, damage: Callable[[Path], None]) -> None:
    case, scope, facts = stocked(world)
    most = max(len(files(world, kind)) for kind in KINDS)
    for number in range(most):
        assert case.daemon.stop() == 0
        hurt = {kind: found[number] for kind in KINDS if len(found := files(world, kind)) > number}
        for path in hurt.values():
            damage(path)
        case = world.start()
        for kind, path in hurt.items():
            assert [w for w in warnings(case) if kind in w], f"{path.name} was believed"
        nothing_is_lost(case, scope, facts)
        flush(case)


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_that_is_gone_altogether_comes_back(world: World, kind: str) -> None:
    case, scope, facts = stocked(world)
    case.daemon.stop()
    for path in files(world, kind):
        path.unlink()
    again = world.start()
    nothing_is_lost(again, scope, facts)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_of_many_memories_the_other_leg_answers_meanwhile_and_says_so(world: World) -> None:
    case, scope = world.start(), fresh_scope()
    content = "the ferryman of Tampere keeps seven grey geese"
    case.store(scope, content)
    pour(case, scope, MANY)
    case.daemon.stop()
    toc = next((world.data_dir / "index" / "keyword").rglob("*.toc"))
    halve(toc)
    with closing(sqlite3.connect(world.data_dir / "memxd.db")) as database:  # as it is pruned after a week
        database.execute("DELETE FROM changes WHERE revision < (SELECT max(revision) FROM changes)")
        database.commit()
    again = world.start()
    meanwhile = again.search(scope, content, k=3)
    assert meanwhile.hits[0].memory.content == content
    assert [d.cause for d in meanwhile.degraded] == [pb.DEGRADED_CAUSE_KEYWORD_INDEX_UNAVAILABLE]
    while again.search(scope, content, k=3).degraded:
        states = {i.state for i in again.admin.Status(admin_pb.StatusRequest(), timeout=TIMEOUT).indexes}
        assert admin_pb.INDEX_STATE_FAILED not in states
    whole = again.search(scope, "ferryman geese", mode=MODES["keyword"], k=3)
    assert [hit.memory.content for hit in whole.hits] == [content]
    assert again.count(scope) == MANY + 1


def pour(case: Case, scope: mem.Scope, count: int) -> None:
    """Store so many over one stream, many to a message."""

    def messages() -> object:
        for begin in range(0, count, 64):
            items = [
                pb.StoreManyRequest(scope=scope, memory=pb.NewMemory(content=f"fact about {word(n)}"))
                for n in range(begin, min(begin + 64, count))
            ]
            items[0].more.extend(items[1:])
            yield items[0]

    stored = 0
    for answer in case.memory.StoreMany(messages(), timeout=4 * TIMEOUT):
        stored += sum(a.HasField("stored") for a in (answer, *answer.more))
    assert stored == count
