"""Case 11: a question in plain words is not an AND of them: the words in common answer it, by the keyword leg alone."""

from __future__ import annotations

import pytest

from casekit import MODES, Case, fresh_scope
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb
from memxd.v1 import search_pb2

#: (stored, asked). Each question has at least one informative word (or stem) in common with what is stored.
PAIRS = [
    ("notice period 2 months", "how long is the notice period"),
    ("notice period 2 months", "What is the notice period in my contract with the landlord, please?"),
    ("notice period 2 months", "tell me about notice periods"),
    ("The dentist appointment is on May 3", "when do I have to go to the dentist?"),
    ("Anna is allergic to peanuts", "does Anna have any allergies we should know about before dinner"),
    ("Anna is allergic to peanuts", "peanuts?"),
    ("The backup runs at 03:00 on server kuna", "at what time does the nightly backup run"),
    ("The WiFi password is on the fridge", "wifi"),
    ("Die Kündigungsfrist beträgt zwei Monate", "Wie lang ist die Kündigungsfrist?"),
    ("Oma backt sonntags Apfelkuchen", "Wann gibt es denn mal wieder Apfelkuchen bei Oma?"),
    ("Le préavis est de deux mois", "quelle est la durée du préavis"),
    ("El plazo de preaviso es de dos meses", "¿cuánto dura el plazo de preaviso?"),
    ("Срок уведомления составляет два месяца", "какой срок уведомления в договоре"),
    ("通知期为两个月", "通知期有多长？"),
    ("会议改到下周三下午三点", "会议是什么时候？"),
    ("解約の予告期間は二か月です", "予告期間はどのくらいですか"),
    ("해지 통보 기간은 두 달입니다", "통보 기간이 얼마나 됩니까?"),
    ("فترة الإشعار شهران", "كم مدة فترة الإشعار"),
    ("תקופת ההודעה חודשיים", "מהי תקופת ההודעה"),
    ("ระยะเวลาแจ้งล่วงหน้าคือสองเดือน", "ต้องแจ้งล่วงหน้ากี่เดือน"),
    ("नोटिस अवधि दो महीने है", "नोटिस अवधि कितनी है"),
]
REMARKS = [
    "The weather was mild and rainy",
    "Ben repaired his old motorbike",
    "A recipe with lentils and carrots",
    "The train leaves from platform nine",
    "Das Auto steht in der Garage",
    "他昨天去了图书馆看书",
    "犬の散歩に行きました",
    "고양이가 창문 옆에서 잔다",
]


@pytest.fixture(scope="module")
def stocked(hashing: Case) -> mem.Scope:
    scope = fresh_scope("questions")
    contents = [*dict.fromkeys(stored for stored, _ in PAIRS), *REMARKS]
    hashing.store_all(scope, [pb.NewMemory(content=text) for text in contents])
    return scope


@pytest.mark.parametrize(("stored", "asked"), PAIRS, ids=[asked for _, asked in PAIRS])
def test_the_words_in_common_answer(hashing: Case, stocked: mem.Scope, stored: str, asked: str) -> None:
    answer = hashing.search(stocked, asked, mode=MODES["keyword"], k=3, explain=True)
    assert not answer.rejected
    assert answer.hits[0].memory.content == stored
    explanation = answer.hits[0].explanation
    assert 1 <= explanation.keyword_rank <= 3
    assert explanation.terms
    assert not explanation.HasField("vector_rank")


@pytest.mark.parametrize(("stored", "asked"), PAIRS[:4], ids=[asked for _, asked in PAIRS[:4]])
def test_in_a_scope_that_holds_nothing_else(hashing: Case, scope: mem.Scope, stored: str, asked: str) -> None:
    """With one memory every word occurs in all of them; it must still answer."""
    hashing.store(scope, stored)
    assert hashing.found(scope, asked, mode=MODES["keyword"]) == [stored]


@pytest.mark.parametrize("profile", [search_pb2.RANKING_PROFILE_BALANCED, search_pb2.RANKING_PROFILE_MEMX])
def test_in_every_profile_that_has_a_keyword_leg(hashing: Case, stocked: mem.Scope, profile: int) -> None:
    for stored, asked in PAIRS[:8]:
        answer = hashing.search(stocked, asked, mode=MODES["keyword"], ranking={"profile": profile}, k=3)
        assert stored in [h.memory.content for h in answer.hits], asked


def test_a_long_question_with_one_word_in_common(hashing: Case, stocked: mem.Scope) -> None:
    padding = " ".join(f"filler{'abcdefghij'[n % 10]}{'klmnopqrst'[n // 10 % 10]}" for n in range(150))
    found = hashing.found(stocked, f"{padding} dentist", mode=MODES["keyword"], ranking={"reject": False}, k=1)
    assert found == ["The dentist appointment is on May 3"]


def test_more_words_in_common_rank_higher(hashing: Case, scope: mem.Scope) -> None:
    hashing.store(scope, "the blue boat")
    hashing.store(scope, "the blue boat has a hole")
    hashing.store(scope, "the blue sky")
    found = hashing.found(scope, "has the blue boat a hole?", mode=MODES["keyword"], ranking={"reject": False})
    assert found[0] == "the blue boat has a hole"
    assert set(found) >= {"the blue boat", "the blue boat has a hole"}


def test_no_word_in_common_is_told_as_such(hashing: Case, stocked: mem.Scope) -> None:
    answer = hashing.search(stocked, "xylophone quartz", mode=MODES["keyword"])
    assert answer.rejected
    assert not answer.hits
    assert answer.reject_reason == pb.REJECT_REASON_NO_MATCH


@pytest.mark.model
@pytest.mark.parametrize("mode", MODES)
def test_with_the_real_model_in_every_mode(real: Case, mode: str) -> None:
    scope = fresh_scope()
    real.store_all(scope, [pb.NewMemory(content=text) for text in [*dict(PAIRS), *REMARKS]])
    for stored, asked in PAIRS:
        k = 10 if mode == "vector" else 5  # a single word says little to a sentence model
        found = real.found(scope, asked, mode=MODES[mode], k=k, ranking={"reject": False})
        assert stored in found, (mode, asked, found)
