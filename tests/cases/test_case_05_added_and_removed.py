"""Case 5: 5,000 memories are added, all of them erased, others added, three times: all are found, memory is bounded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from casekit import MODES, TIMEOUT, Case, World, flush, fresh_scope, word
from memxd.client import Client
from memxd.model import Filter
from memxd.v1 import admin_service_pb2 as admin_pb
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb
from memxd.v1 import search_pb2

PLAIN = search_pb2.Ranking(reject=False, dedup=search_pb2.DEDUP_MODE_OFF)
MANY, ROUNDS, AT_ONCE = 5_000, 3, 32
#: What the interpreter, SQLite and the allocator may still come to keep after the first round.
SLACK = 60 << 20


def text(number: int, n: int) -> str:
    """The same words come again in each round, so that what was erased would be in the way."""
    return f"{word(n)} {word(10_000 + n)} {word(20_000 + n // 7)} told in round {word(200_000 + number)}"


def resident(pid: int) -> int:
    """Bytes that the process and the children that it owns have to themselves, shared ones by their share."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    rolls = [Path(f"/proc/{each}/smaps_rollup") for each in (str(pid), *children)]
    return sum(1024 * int(re.findall(r"^Pss:\s+(\d+)", roll.read_text(), re.MULTILINE)[0]) for roll in rolls)


def lacking(case: Case, scope: mem.Scope, number: int, mode: str, every: int = 1) -> list[str]:
    """Those of a round's texts that are not among the best answers to themselves. (Several may be equally good:
    the hashing embedder gives different words one direction now and then.)"""
    lost: list[str] = []
    asked = range(0, MANY, every)
    for at in range(0, len(asked), AT_ONCE):
        texts = [text(number, n) for n in asked[at : at + AT_ONCE]]
        queries = [
            pb.SearchRequest(scope=scope, query=each, k=10, mode=MODES[mode], ranking=PLAIN, record_retrieval=False)
            for each in texts
        ]
        answer = case.memory.SearchMany(pb.SearchManyRequest(searches=queries), timeout=TIMEOUT)
        for each, result in zip(texts, answer.results, strict=True):
            assert not result.response.degraded
            found = [hit.memory.content for hit in result.response.hits]
            lost += [each] * (each not in found)
    return lost


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_all_are_found_each_time_and_memory_is_bounded(world: World) -> None:
    case, scope = world.start(), fresh_scope()
    sizes: list[int] = []
    for number in range(ROUNDS):
        with Client(case.daemon.socket, agent_id=scope.agent_id, user_id=scope.user_id, timeout=300) as client:
            answers = list(client.store_many(text(number, n) for n in range(MANY)))
            assert all(hasattr(answer, "memory") for answer in answers)
            assert lacking(case, scope, number, "vector") == []
            assert lacking(case, scope, number, "keyword", every=9) == []
            assert case.count(scope) == MANY
            if number < ROUNDS - 1:
                assert client.delete_many(Filter()) == MANY
                assert case.found(scope, text(number, 0)) == []
        flush(case)
        sizes.append(resident(case.daemon.pid))
    assert sizes[-1] < sizes[0] + SLACK, sizes
    status = case.admin.Status(admin_pb.StatusRequest(), timeout=TIMEOUT)
    assert {index.entries for index in status.indexes} == {MANY}
    again = world.start() if case.daemon.stop() == 0 else case
    for mode in ("vector", "keyword"):
        assert lacking(again, scope, ROUNDS - 1, mode, every=7) == []
