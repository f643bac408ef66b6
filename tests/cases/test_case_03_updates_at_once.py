"""Case 3: after an update, a deletion or a replacement neither leg finds the old text, at once and for ever."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from casekit import MODES, Case, World, flush, fresh_scope, rebuild, word
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb

OLD, NEW = "Tom works at Kranebitter since spring", "Tom joined Quellwasser last autumn"


def asked(case: Case, scope: mem.Scope, query: str, mode: str, **fields: Any) -> list[mem.Memory]:
    answer = case.search(scope, query, mode=MODES[mode], ranking={"reject": False}, **fields)
    assert not answer.degraded
    return [hit.memory for hit in answer.hits]


def replace_by_update(case: Case, scope: mem.Scope, old: mem.Memory) -> None:
    with case.client(scope) as client:
        client.update(old.id, content=NEW)


def replace_by_superseding(case: Case, scope: mem.Scope, old: mem.Memory) -> None:
    case.store(scope, NEW, supersedes=[old.id])


def replace_by_link(case: Case, scope: mem.Scope, old: mem.Memory) -> None:
    new = case.store(scope, NEW)
    case.memory.CreateLink(
        pb.CreateLinkRequest(scope=scope, source_id=new.id, target_id=old.id, type=mem.LINK_TYPE_SUPERSEDES), timeout=20
    )


def replace_by_deleting(case: Case, scope: mem.Scope, old: mem.Memory) -> None:
    case.memory.Delete(pb.DeleteRequest(scope=scope, id=old.id), timeout=20)
    case.store(scope, NEW)


def replace_by_filter(case: Case, scope: mem.Scope, old: mem.Memory) -> None:
    case.memory.DeleteMany(pb.DeleteManyRequest(scope=scope, filter=mem.Filter(ids=[old.id])), timeout=20)
    case.store(scope, NEW)


def replace_by_archiving(case: Case, scope: mem.Scope, old: mem.Memory) -> None:
    with case.client(scope) as client:
        client.update(old.id, state="archived")
    case.store(scope, NEW)


def replace_by_expiry(case: Case, scope: mem.Scope, old: mem.Memory) -> None:
    with case.client(scope) as client:
        client.update(old.id, valid_until=1_000_000)
    case.store(scope, NEW)


WAYS: list[Callable[[Case, mem.Scope, mem.Memory], None]] = [
    replace_by_update,
    replace_by_superseding,
    replace_by_link,
    replace_by_deleting,
    replace_by_filter,
    replace_by_archiving,
    replace_by_expiry,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("settled", [False, True], ids=["fresh", "flushed"])
def test_only_the_new_text_answers(
    hashing: Case, scope: mem.Scope, way: Callable[[Case, mem.Scope, mem.Memory], None], settled: bool
) -> None:
    old = hashing.store(scope, OLD)
    if settled:
        flush(hashing)
    way(hashing, scope, old)
    for mode, exact in itertools.product(MODES, (False, True)):
        for query in (OLD, NEW, "Tom", "Kranebitter"):
            contents = [m.content for m in asked(hashing, scope, query, mode, exact=exact)]
            assert OLD not in contents, (mode, query)
            assert contents == [NEW] or (mode, query) == ("keyword", "Kranebitter"), (mode, query)
    assert asked(hashing, scope, "Kranebitter", "keyword") == []
    assert [m.content for m in asked(hashing, scope, "Quellwasser", "keyword")] == [NEW]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_it_stays_so_after_flush_rebuild_and_restart(
    world: World, way: Callable[[Case, mem.Scope, mem.Memory], None]
) -> None:
    scope = fresh_scope()
    case = world.start()
    way(case, scope, case.store(scope, OLD))

    def check(case: Case) -> None:
        for mode in MODES:
            assert OLD not in [m.content for m in asked(case, scope, OLD, mode)], mode
        assert [m.content for m in asked(case, scope, "Quellwasser", "keyword")] == [NEW]

    flush(case)
    check(case)
    rebuild(case)
    check(case)
    assert case.daemon.stop() == 0
    case = world.start()
    check(case)


@pytest.mark.model
def test_the_vector_after_an_update_is_that_of_the_new_text(real: Case) -> None:
    scope, control = fresh_scope(), fresh_scope()
    memory = real.store(scope, "The patient is of age 41")
    real.store(control, "The patient is of age 43")
    with real.client(scope) as client:
        client.update(memory.id, content="The patient is of age 43")

    def cosine(where: mem.Scope, query: str) -> float:
        answer = real.search(where, query, mode=MODES["vector"], explain=True, exact=True, ranking={"reject": False})
        (hit,) = answer.hits
        assert hit.memory.content == "The patient is of age 43"
        return float(hit.explanation.cosine)

    for query in ("age 41", "age 43", "how old is the patient"):
        assert cosine(scope, query) == cosine(control, query)
    assert real.found(scope, "age 43") == ["The patient is of age 43"]


def test_the_last_of_many_updates_wins_for_both_legs(hashing: Case, scope: mem.Scope) -> None:
    words = [word(n) for n in range(30)]
    memory = hashing.store(scope, f"code is {words[0]}")
    with hashing.client(scope) as client:
        for each in words[1:]:
            client.update(memory.id, content=f"code is {each}")
    for mode in MODES:
        assert [m.content for m in asked(hashing, scope, "code is", mode)] == [f"code is {words[-1]}"]
    for each in words[:-1]:
        assert asked(hashing, scope, each, "keyword") == []


def test_a_change_of_attributes_keeps_the_text_findable(hashing: Case, scope: mem.Scope) -> None:
    memory = hashing.store(scope, OLD)
    with hashing.client(scope) as client:
        client.update(memory.id, tags=["work"], importance=0.9, metadata={"a": 1}, source="chat", type="episodic")
    for mode in MODES:
        (found,) = asked(hashing, scope, OLD, mode, filter=mem.Filter(tags_all=["work"], importance_min=0.9, types=[1]))
        assert (found.content, found.importance, found.source) == (OLD, 0.9, "chat")
        assert asked(hashing, scope, OLD, mode, filter=mem.Filter(types=[2])) == []


def test_going_back_to_the_old_text_finds_the_old_text(hashing: Case, scope: mem.Scope) -> None:
    memory = hashing.store(scope, OLD)
    with hashing.client(scope) as client:
        client.update(memory.id, content=NEW)
        client.update(memory.id, content=OLD)
        assert asked(hashing, scope, "Quellwasser", "keyword") == []
        client.update(memory.id, state="archived")
        assert asked(hashing, scope, "Kranebitter", "keyword") == []
        client.update(memory.id, state="active")
    for mode in MODES:
        assert [m.content for m in asked(hashing, scope, "Kranebitter", mode)] == [OLD]


def test_updates_during_rebuilds_are_seen_at_once_and_kept(world: World) -> None:
    case, scope = world.start(), fresh_scope()
    case.store_all(scope, [pb.NewMemory(content=f"filler number {n} of the archive") for n in range(2_000)])
    memory = case.store(scope, f"state is {word(0)}")
    stop = threading.Event()

    def rebuilding() -> None:
        while not stop.is_set():
            rebuild(case)

    thread = threading.Thread(target=rebuilding)
    thread.start()
    last = 0
    try:
        with case.client(scope) as client:
            for last in range(1, 120):
                client.update(memory.id, content=f"state is {word(last)}")
                assert [m.content for m in asked(case, scope, word(last), "keyword")] == [f"state is {word(last)}"]
                assert asked(case, scope, word(last - 1), "keyword") == []
                filter = mem.Filter(ids=[memory.id])
                assert [m.content for m in asked(case, scope, "state", "vector", filter=filter)] == [
                    f"state is {word(last)}"
                ]
    finally:
        stop.set()
        thread.join()
    assert [m.content for m in asked(case, scope, word(last), "keyword")] == [f"state is {word(last)}"]
    for n in range(last):
        assert asked(case, scope, word(n), "keyword") == []


def test_what_is_erased_is_gone_from_the_files(world: World) -> None:
    """Rows, vectors, postings and history; index files at the latest after a rebuild."""
    case, scope = world.start(), fresh_scope()
    secrets = [f"zqsecret{n}word" for n in range(4)]
    one = case.store(scope, f"{secrets[0]} first", tags=[secrets[1]], metadata={secrets[2]: 1}, source=secrets[3])
    with case.client(scope) as client:
        client.update(one.id, content=f"{secrets[0]} second")
        client.delete(one.id)
    flush(case)
    rebuild(case)
    flush(case)
    assert case.daemon.stop() == 0
    for path in case.daemon.data_dir.rglob("*"):
        if path.is_file():
            raw = path.read_bytes()
            assert not [s for s in secrets if s.encode() in raw], path
