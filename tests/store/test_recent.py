"""Rows that are kept in memory are what SQLite would answer."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from typing import Any

import pytest

from memxd.errors import MemoryNotFoundError, MemxdError
from memxd.model import LinkType, Scope, State
from memxd.store.counters import Counts
from memxd.store.recent import Recent


def row(rid: int, counts: tuple[Any, ...] = (0, None, 0, None)) -> list[Any]:
    values: list[Any] = [rid] + [None] * 23
    values[16:20] = counts
    return values


def test_what_was_read_is_found_again() -> None:
    recent = Recent()
    found, revision, ticket = recent.get([1, 2])
    assert (found, revision) == ({}, 0)
    recent.put([row(1)], 100, ticket)
    assert recent.get([1, 2])[0] == {1: row(1)}


def test_what_was_read_before_a_commit_is_not_taken_in() -> None:
    recent = Recent()
    ticket = recent.get([1])[2]
    recent.changing([])
    recent.put([row(1)], 100, ticket)
    assert not recent.is_valid(ticket)
    during = recent.get([1])[2]
    recent.put([row(1)], 100, during)
    assert not recent.is_valid(during)
    recent.changed(7, {})
    recent.put([row(1)], 100, ticket)
    recent.put([row(1)], 100, during)
    assert recent.get([1])[:2] == ({}, 7)


def test_rows_leave_before_their_commit_and_counts_come_after_it() -> None:
    recent = Recent()
    recent.put([row(1), row(2)], 100, recent.get([])[2])
    recent.changing([1])
    assert recent.get([1, 2])[0] == {2: row(2)}
    recent.changed(3, {2: Counts(4, 5, 6, 7), 9: Counts(1, 1, 1, 1)})
    assert recent.get([2, 9])[0] == {2: row(2, (4, 5, 6, 7))}


def test_the_oldest_leave_when_there_are_too_many() -> None:
    recent = Recent(budget=200_000)
    for rid in range(200):
        recent.put([row(rid)], 500, recent.get([])[2])
    assert sorted(recent.get(range(200))[0]) == list(range(100, 200))
    recent.put([row(500)], 100_000, recent.get([])[2])  # one that would push out half of the others
    assert recent.get([500])[0] == {}


def test_after_every_kind_of_write_memory_and_database_agree(bench: Any) -> None:
    """A long random walk through what can happen to rows, with every row looked at after each step."""
    luck = random.Random(11)
    rows = [bench.put(f"text {n}") for n in range(6)]

    def one() -> Any:
        return luck.choice(rows)

    def insert(txn: Any) -> None:
        rows.append(txn.insert(Scope(), content=f"new {luck.random()}", type=rows[0].memory.type, tags=("t",)))

    def fail(txn: Any) -> None:
        txn.update(one().rid, {"content": "never seen"})
        raise KeyError("undone")

    steps: list[Any] = [
        insert,
        fail,
        lambda txn: txn.update(one().rid, {"content": f"c{luck.random()}", "metadata": {"n": [1]}}),
        lambda txn: txn.update(one().rid, {"state": luck.choice([State.ACTIVE, State.ARCHIVED])}),
        lambda txn: txn.supersede([one().rid], one().rid),
        lambda txn: txn.insert_link(one().rid, one().rid, luck.choice(list(LinkType))),
        lambda txn: txn.delete([one().rid]),
        lambda txn: txn.set_vectors(one().rid, ((0, 1, b"\0\x3c"),)),
    ]
    for _ in range(150):
        step = luck.randrange(len(steps) + 3)
        bench.clock.tick()
        if step < len(steps):
            with suppress(MemxdError, KeyError):  # an impossible step must have left nothing behind
                bench.store.write(steps[step])
        elif step == len(steps):
            bench.store.count_retrievals([one().rid, one().rid])
            bench.store.count_access(one().rid)
        elif step == len(steps) + 1:
            bench.store.flush_counters()
        rids = [r.rid for r in rows]
        with bench.store.read() as txn:
            expected, revision = {r.rid: r for r in txn.fetch(Scope(), rids)}, txn.revision()
        assert bench.store.survivors(1, rids) == (expected, revision)
        assert bench.store.survivors(1, rids[:2])[0] == {rid: r for rid, r in expected.items() if rid in rids[:2]}


def test_readers_never_go_back_while_rows_change(bench: Any) -> None:
    """Each row's text counts up; a reader that saw n must not see less afterwards, and an answer names its revision."""
    rows = [bench.put("0") for _ in range(3)]
    rids = [r.rid for r in rows]
    stop, wrong = threading.Event(), []

    def read() -> None:
        seen = dict.fromkeys(rids, 0)
        while not stop.is_set():
            found, revision = bench.store.survivors(1, rids)
            for rid, each in found.items():
                if int(each.memory.content) < seen[rid] or each.memory.revision > revision:
                    wrong.append((rid, each.memory, revision))
                seen[rid] = int(each.memory.content)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for n in range(1, 151):
        rid = rids[n % 3]
        bench.store.write(lambda txn, rid=rid, n=n: txn.update(rid, {"content": str(n)}))
        assert bench.store.survivors(1, [rid])[0][rid].memory.content == str(n)
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []


def test_a_row_that_is_gone_is_not_found_in_memory(bench: Any) -> None:
    kept = bench.put("x")
    assert bench.store.survivors(1, [kept.rid])[0] == {kept.rid: kept}
    bench.store.write(lambda txn: txn.delete([kept.rid]))
    assert bench.store.survivors(1, [kept.rid])[0] == {}
    with pytest.raises(MemoryNotFoundError):
        bench.store.write(lambda txn: txn.update(kept.rid, {"content": "y"}))
