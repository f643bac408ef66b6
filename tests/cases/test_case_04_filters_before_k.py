"""Case 4: a filter must not starve the answer: the k nearest among what it lets through, not what it leaves of k."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from casekit import MODES, Case, flush, fresh_scope
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb
from memxd.v1 import search_pb2

NOTE = "the red bicycle in the cellar"
NEAR = [pb.NewMemory(content=f"{NOTE}, note {n}", tags=["near"], event_at={"seconds": 1_000}) for n in range(1_000)]


def struct(**values: Any) -> Struct:
    made = Struct()
    made.update(values)
    return made


#: The five that the filter lets through are farther from the question than the thousand it does not.
RARE: dict[str, tuple[dict[str, Any], mem.Filter]] = {
    "type": ({"type": mem.MEMORY_TYPE_EMOTIONAL}, mem.Filter(types=[mem.MEMORY_TYPE_EMOTIONAL])),
    "tags_any": ({"tags": ["rare"]}, mem.Filter(tags_any=["rare", "absent"])),
    "tags_all": ({"tags": ["rare", "near"]}, mem.Filter(tags_all=["rare", "near"])),
    "tags_none": ({"tags": ["other"]}, mem.Filter(tags_none=["near"])),
    "event": (
        {"event_at": Timestamp(seconds=9_000)},
        mem.Filter(event={"start": {"seconds": 9_000}, "end": {"seconds": 9_001}}),
    ),
    "importance": ({"importance": 0.95}, mem.Filter(importance_min=0.9)),
    "metadata": ({"metadata": struct(room="attic", n=1)}, mem.Filter(metadata=struct(room="attic"))),
    "several": (
        {"tags": ["rare"], "type": mem.MEMORY_TYPE_EPISODIC, "importance": 0.7},
        mem.Filter(tags_any=["rare"], types=[mem.MEMORY_TYPE_EPISODIC], importance_min=0.7),
    ),
}


def ask(case: Case, scope: mem.Scope, mode: str, filter: mem.Filter | None, **fields: Any) -> set[str]:
    answer = case.search(scope, NOTE, k=5, mode=MODES[mode], filter=filter, **fields)
    return {hit.memory.id for hit in answer.hits}


@pytest.fixture(scope="module")
def crowded(hashing: Case) -> tuple[mem.Scope, dict[str, set[str]]]:
    """A thousand near rows, and five far ones for each kind of filter."""
    scope = fresh_scope("crowded")
    hashing.store_all(scope, NEAR)
    rare = {}
    for name, (fields, _) in RARE.items():
        news = [pb.NewMemory(content=f"a bicycle of kind {name} {n}", **fields) for n in range(5)]
        rare[name] = {m.id for m in hashing.store_all(scope, news)}
    return scope, rare


@pytest.mark.parametrize("name", RARE)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("exact", [False, True])
def test_five_rare_rows_are_all_found(
    hashing: Case, crowded: tuple[mem.Scope, dict[str, set[str]]], name: str, mode: str, exact: bool
) -> None:
    scope, rare = crowded
    found = ask(hashing, scope, mode, RARE[name][1], exact=exact, ranking={"reject": False})
    if name in ("type", "tags_any", "importance", "tags_none"):  # other kinds may carry these as well
        count = hashing.count(scope, filter=RARE[name][1])
        assert len(found) == min(5, count)
        whole = hashing.search(scope, NOTE, k=200, mode=MODES[mode], filter=RARE[name][1], ranking={"reject": False})
        assert rare[name] <= {h.memory.id for h in whole.hits}
        return
    assert found == rare[name]


@pytest.mark.parametrize("mode", MODES)
def test_by_ids(hashing: Case, crowded: tuple[mem.Scope, dict[str, set[str]]], mode: str) -> None:
    scope, rare = crowded
    ids = rare["event"]
    assert ask(hashing, scope, mode, mem.Filter(ids=sorted(ids)), ranking={"reject": False}) == ids


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("profile", [1, 2, 3])
def test_in_every_profile(
    hashing: Case, crowded: tuple[mem.Scope, dict[str, set[str]]], mode: str, profile: int
) -> None:
    if profile == 3 and mode != "vector":
        pytest.skip("memex looks by meaning only")
    scope, rare = crowded
    ranking = search_pb2.Ranking(profile=profile, reject=False, dedup=search_pb2.DEDUP_MODE_OFF)  # type: ignore[arg-type]
    found = ask(hashing, scope, mode, RARE["metadata"][1], ranking=ranking)
    if profile == 2 and mode == "vector":
        assert found <= rare["metadata"], "memx drops cosines below its floor"
    else:
        assert found == rare["metadata"]


@pytest.mark.parametrize("mode", MODES)
def test_a_thousand_rows_of_another_scope_do_not_matter(hashing: Case, mode: str) -> None:
    crowd, few = fresh_scope("crowd"), fresh_scope("few")
    hashing.store_all(crowd, NEAR)
    ids = {hashing.store(few, f"red bicycle number {n}").id for n in range(5)}
    assert ask(hashing, few, mode, None) == ids


@pytest.mark.parametrize("mode", MODES)
def test_states_and_expiry_do_not_starve_either(hashing: Case, mode: str) -> None:
    scope = fresh_scope()
    expired = [pb.NewMemory(content=f"{NOTE}, note {n}", valid_until={"seconds": 5}) for n in range(300)]
    hashing.store_all(scope, expired)
    ids = {hashing.store(scope, f"red bicycle number {n}").id for n in range(5)}
    assert ask(hashing, scope, mode, None) == ids
    past = ask(hashing, scope, mode, mem.Filter(states=[mem.MEMORY_STATE_ACTIVE]))
    assert len(past) == 5, "naming states shows expired ones too"
    assert not past & ids


def test_near_repetitions_do_not_starve_the_answer(hashing: Case) -> None:
    """Folding happens before k is cut."""
    scope = fresh_scope()
    hashing.store_all(scope, [pb.NewMemory(content=NOTE, allow_duplicate=True) for _ in range(150)])
    others = {hashing.store(scope, f"red bicycle number {n}").id for n in range(4)}
    found = ask(hashing, scope, "hybrid", None, ranking={"reject": False})
    assert len(found) == 5
    assert others < found


@pytest.mark.slow
def test_above_the_size_of_exact_scans(hashing: Case) -> None:
    """30,000 rows are searched through the graph; the filter still gives its five, and the whole scope its k."""
    scope = fresh_scope("large")
    hashing.store_all(
        scope,
        [pb.NewMemory(content=f"{NOTE}, note {n}", tags=[f"g{n % 3}"]) for n in range(30_000)]
        + [pb.NewMemory(content=f"a bicycle so rare {n}", tags=["rare"]) for n in range(5)],
    )
    flush(hashing)
    for mode in MODES:
        for exact in (False, True):
            assert (
                len(ask(hashing, scope, mode, mem.Filter(tags_any=["rare"]), exact=exact, ranking={"reject": False}))
                == 5
            )
            for filter in (None, mem.Filter(tags_any=["g1"]), mem.Filter(tags_none=["g1", "g2"])):
                assert len(ask(hashing, scope, mode, filter, exact=exact)) == 5, (mode, exact)
