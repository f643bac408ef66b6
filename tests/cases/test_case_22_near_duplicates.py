"""Case 22: texts that differ in what they say are two memories and two answers; the same text twice is one."""

from __future__ import annotations

from typing import Any

import pytest

from casekit import MODES, Case, Refusal, at_once, fresh_scope
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb
from memxd.v1 import search_pb2

#: Each pair says two things; both must be kept and both returned, in every mode that folds by default.
DISTINCT = [
    ("The report is due Oct 15", "The report is due Oct 16"),
    ("Anna likes tea", "Anna does not like tea"),
    ("Anna likes tea", "Anna never likes tea"),
    ("The dose is 1.5 mg", "The dose is 15 mg"),
    ("The balance is 100 euro", "The balance is -100 euro"),
    ("The balance is 1,000 euro", "The balance is 1,001 euro"),
    ("Anna owes Ben ten euro", "Ben owes Anna ten euro"),
    ("The shop opens at 8:00", "The shop opens at 8:30"),
    ("The meeting is on 2024-05-01", "The meeting is on 2024-01-05"),
    ("He is able to drive", "He is unable to drive"),
    ("Growth was 5 %", "Growth was 5"),
    ("She writes C", "She writes C#"),
    ("She writes C#", "She writes C++"),
    ("Version 2.3 is broken", "Version 23 is broken"),
    ("The area is 10 m²", "The area is 10 m2 5"),
    ("他喜欢喝茶", "他不喜欢喝茶"),
    ("会议在下周三", "会议在下周四"),
    ("彼はコーヒーが好きだ", "彼はコーヒーが好きではない"),
    ("Er mag Tee", "Er mag keinen Tee"),
    ("It is a notable case", "It is a not able case"),
    ("Room 12 is free", "Room 1 2 is free"),
    ("The code is A1B2", "The code is A1B3"),
    ("rated 4/5 by all", "rated 45 by all"),
    ("x > 3 holds", "x < 3 holds"),
    ("the temperature is +5", "the temperature is -5"),
    ("resume the work", "résumé the work"),
]
#: The same words in another dress: two rows, since what was stored is kept to the letter; one answer.
FOLDED = [
    ("Anna likes green tea", "anna likes green tea."),
    ("Anna likes green tea", "  Anna   likes   green   TEA!! "),
    ("Ben's bike is red", "Ben’s bike is red"),
    ("the number is 7", "The number is 7."),
    ("用户喜欢喝茶", "用户喜欢喝茶。"),
    ("ＷＩＤＥ text", "wide text"),
]


@pytest.mark.parametrize(("one", "two"), DISTINCT, ids=[two for _, two in DISTINCT])
def test_distinct_facts_are_kept_and_returned(hashing: Case, scope: mem.Scope, one: str, two: str) -> None:
    first, second = hashing.store(scope, one), hashing.store(scope, two)
    assert first.id != second.id
    for mode in MODES:
        for profile in (search_pb2.RANKING_PROFILE_BALANCED, search_pb2.RANKING_PROFILE_MEMX):
            ranking = search_pb2.Ranking(profile=profile, reject=False)
            for query in (one, two):
                answer = hashing.search(scope, query, mode=MODES[mode], ranking=ranking, record_retrieval=False)
                assert answer.folded == 0, (mode, query)
                found = {h.memory.id for h in answer.hits}
                if mode == "hybrid":
                    assert found == {first.id, second.id}, (mode, query)
                # By one leg alone the other may share no word (Chinese without spaces does, C and C# may not).
                assert found & {first.id, second.id}


@pytest.mark.model
def test_with_the_real_model_too(real: Case) -> None:
    for one, two in DISTINCT:
        scope = fresh_scope()
        ids = {real.store(scope, one).id, real.store(scope, two).id}
        answer = real.search(scope, one, ranking={"reject": False})
        assert {h.memory.id for h in answer.hits} == ids, (one, two)


@pytest.mark.parametrize(("one", "two"), FOLDED, ids=[two for _, two in FOLDED])
def test_another_dress_is_two_rows_and_one_answer(hashing: Case, scope: mem.Scope, one: str, two: str) -> None:
    ids = {hashing.store(scope, one).id, hashing.store(scope, two).id}
    assert len(ids) == 2
    answer = hashing.search(scope, one, ranking={"reject": False}, explain=True)
    assert len(answer.hits) == 1
    assert answer.folded == 1
    explanation = answer.hits[0].explanation
    assert explanation.folded == 1
    assert {answer.hits[0].memory.id, *explanation.folded_ids} == ids
    unfolded = hashing.search(scope, one, ranking={"reject": False, "dedup": search_pb2.DEDUP_MODE_OFF})
    assert {h.memory.id for h in unfolded.hits} == ids


def store(case: Case, scope: mem.Scope, content: str, **fields: Any) -> pb.StoreResponse:
    return case.memory.Store(pb.StoreRequest(scope=scope, memory=pb.NewMemory(content=content, **fields)), timeout=20)


@pytest.mark.parametrize(
    "again",
    ["café at noon", "cafe\u0301 at noon", "  café at noon\n", "\u200bcafé at noon\ufeff"],
    ids=ascii,
)
def test_the_same_text_is_one_row(hashing: Case, scope: mem.Scope, again: str) -> None:
    first = store(hashing, scope, "café at noon", tags=["a"])
    assert not first.deduplicated
    second = store(hashing, scope, again, tags=["b"])
    assert second.deduplicated
    assert second.memory.id == first.memory.id
    assert second.memory.tags == ["a", "b"], "new tags are merged in"
    items = (pb.StoreManyRequest(scope=scope, memory=pb.NewMemory(content=again)) for _ in range(3))
    answers = list(hashing.memory.StoreMany(items, timeout=20))
    assert [(a.stored.deduplicated, a.stored.memory.id) for a in answers] == [(True, first.memory.id)] * 3
    assert hashing.count(scope) == 1


def test_the_same_text_twice_in_one_group_of_a_stream_is_one_row(hashing: Case, scope: mem.Scope) -> None:
    items = (pb.StoreManyRequest(scope=scope, memory=pb.NewMemory(content="twice")) for _ in range(64))
    answers = list(hashing.memory.StoreMany(items, timeout=20))
    assert [a.stored.deduplicated for a in answers] == [False] + [True] * 63
    assert len({a.stored.memory.id for a in answers}) == 1


def test_the_same_text_from_many_at_once_is_one_row(hashing: Case, scope: mem.Scope) -> None:
    answers = at_once([lambda: store(hashing, scope, "all at once")] * 32)
    assert sum(not a.deduplicated for a in answers) == 1
    assert len({a.memory.id for a in answers}) == 1
    assert hashing.count(scope) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"type": mem.MEMORY_TYPE_EPISODIC},
        {"event_at": {"seconds": 5}},
        {"source": "chat"},
        {"allow_duplicate": True},
    ],
    ids=str,
)
def test_what_differs_in_kind_time_or_origin_is_another_row(
    hashing: Case, scope: mem.Scope, fields: dict[str, Any]
) -> None:
    first = store(hashing, scope, "the same words")
    second = store(hashing, scope, "the same words", **fields)
    assert not second.deduplicated
    assert second.memory.id != first.memory.id


def test_what_is_no_longer_active_is_not_the_same(hashing: Case, scope: mem.Scope) -> None:
    first = store(hashing, scope, "set aside")
    with hashing.client(scope) as client:
        client.update(first.memory.id, state="archived")
    second = store(hashing, scope, "set aside")
    assert not second.deduplicated
    with hashing.client(scope) as client:
        client.delete(second.memory.id)
    assert not store(hashing, scope, "set aside").deduplicated


def test_an_update_into_an_equal_one_is_refused_with_its_id(hashing: Case, scope: mem.Scope) -> None:
    first, second = store(hashing, scope, "one"), store(hashing, scope, "two")
    request = pb.UpdateRequest(scope=scope, id=second.memory.id, memory=pb.MemoryPatch(content=" one "))
    request.update_mask.paths.append("content")
    answer = hashing.call("Update", request)
    assert isinstance(answer, Refusal)
    assert (answer.code.name, answer.reason) == ("ALREADY_EXISTS", "MEMORY_ALREADY_EXISTS")
    assert answer.metadata["id"] == first.memory.id
    assert hashing.found(scope, "two", ranking={"reject": False, "tau": -1.0})[0] == "two"


def test_two_scopes_do_not_share_rows(hashing: Case, scope: mem.Scope) -> None:
    first = store(hashing, scope, "shared words")
    second = store(hashing, fresh_scope(), "shared words")
    assert not second.deduplicated
    assert second.memory.id != first.memory.id
