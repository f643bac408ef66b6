"""Case 12: words are found whatever script they are written in, glued to other scripts, accented, wide or drawn."""

from __future__ import annotations

import unicodedata

import pytest

from casekit import MODES, Case, flush, fresh_scope, rebuild
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb

#: (stored, asked)
PAIRS = [
    ("用户喜欢喝咖啡", "咖啡"),
    ("用户喜欢喝咖啡", "喜欢"),
    ("用户喜欢喝咖啡", "啡"),
    ("用户喜欢喝咖啡", "咖 啡"),
    ("子供たちはしりとりで遊んだ", "しりとり"),
    ("子供たちはしりとりで遊んだ", "とり"),
    ("週末にコンピューターを買った", "コンピューター"),
    ("週末にコンピューターを買った", "ｺﾝﾋﾟｭｰﾀｰ"),
    ("아이들이 끝말잇기를 했다", "끝말잇기"),
    ("아이들이 끝말잇기를 했다", "말잇"),
    ("그는 김치찌개를 좋아한다", "김치"),
    ("wir sahen einen 🦊 im Garten", "🦊"),
    ("heute ❤️ bekommen", "❤"),
    ("heute ❤ bekommen und nochmal", "❤️"),
    ("die Familie 👨‍👩‍👧‍👦 kommt", "👨‍👩‍👧‍👦"),
    ("urlaub in 🇩🇪 gebucht", "🇩🇪"),
    ("👍🏽 bekommen", "👍🏽"),
    ("das neue café am Markt", "cafe"),
    ("das neue cafe am Hafen", "café"),
    ("das dritte cafe\u0301 am Ring", "café"),
    ("Straße nach Süden gesperrt", "strasse"),
    ("STRASSE nach Norden gesperrt", "straße"),
    ("die Übung fällt aus", "ubung"),
    ("naïve façade with piñata", "pinata"),
    ("Łódź leży w Polsce", "lodz"),
    ("Đà Nẵng có biển đẹp", "da nang"),
    ("İstanbul çok güzel", "istanbul"),
    ("ﬁnal ﬂight was late", "final"),
    ("ＷＩＤＥ letters ＡＢＣ１２３", "abc123"),
    ("ＷＩＤＥ letters ＡＢＣ１２３", "wide"),
    ("他在学习Python编程", "python"),
    ("他在学习Python编程", "编程"),
    ("新しいiPhone15を買った", "iphone15"),
    ("把文件放在Dropbox里", "Dropbox"),
    ("订单号AB1234已发货", "AB1234"),
    ("会议在3号楼举行", "3号楼"),
    ("она пьёт чай", "пьет"),
    ("Ёлка стоит в углу", "елка"),
    ("το σπίτι είναι μεγάλο", "ΣΠΊΤΙ"),
    ("ο Οδυσσέας γύρισε", "οδυσσεας"),
    ("كِتَابٌ جديد على الطاولة", "كتاب"),
    ("שָׁלוֹם לכולם", "שלום"),
    ("ברוך השם", "בָּרוּךְ"),
    ("سافر إلى أحمد", "احمد"),
    ("الكتــــاب الأزرق", "الكتاب"),
    ("เขาชอบดื่มกาแฟร้อน", "กาแฟ"),
    ("उसे हिन्दी गाने पसंद हैं", "हिन्दी"),
    ("তিনি বাংলা বলেন", "বাংলা"),
    ("அவர் தமிழ் பேசுகிறார்", "தமிழ்"),
    ("նա խոսում է հայերեն", "ՀԱՅԵՐԵՆ"),
    ("ის ქართულად ლაპარაკობს", "ქართულად"),
    ("𠮷野家で牛丼を食べた", "𠮷野家"),
    ("𠮷野家で牛丼を食べた", "牛丼"),
    ("formula 𝑬 = mc²", "e"),
    ("the temperature is ４２ degrees", "42"),
    ("សៀវភៅនេះល្អ", "សៀវភៅ"),
    ("ຂ້ອຍມັກກາເຟ", "ກາເຟ"),
    ("ကော်ဖီကြိုက်တယ်", "ကော်ဖီ"),
    ("ticket JIRA-4711 at 5 GB/s with v2.3", "JIRA-4711"),
    ("soft\u00adhyphen inside", "softhyphen"),
]


@pytest.fixture(scope="module")
def stocked(hashing: Case) -> mem.Scope:
    scope = fresh_scope("scripts")
    contents = list(dict.fromkeys(stored for stored, _ in PAIRS))
    hashing.store_all(scope, [pb.NewMemory(content=text) for text in contents])
    return scope


@pytest.mark.parametrize(("stored", "asked"), PAIRS, ids=[f"{asked}" for _, asked in PAIRS])
def test_found_by_words_alone(hashing: Case, stocked: mem.Scope, stored: str, asked: str) -> None:
    found = hashing.found(stocked, asked, mode=MODES["keyword"], k=5)
    assert unicodedata.normalize("NFC", stored) in found


def test_found_by_words_after_a_flush_and_a_rebuild_too(hashing: Case, stocked: mem.Scope) -> None:
    """The text on disk is analysed as the tail in memory was."""
    before = [hashing.found(stocked, asked, mode=MODES["keyword"], k=5) for _, asked in PAIRS]
    for step in (flush, rebuild):
        step(hashing)
        found = [hashing.found(stocked, asked, mode=MODES["keyword"], k=5) for _, asked in PAIRS]
        assert [set(f) for f in found] == [set(b) for b in before]


def test_a_word_inside_is_not_found_across_a_gap(hashing: Case, scope: mem.Scope) -> None:
    hashing.store(scope, "他先喝咖，再说啡")
    hashing.store(scope, "用户喜欢喝咖啡")
    assert hashing.found(scope, "咖啡", mode=MODES["keyword"], k=1) == ["用户喜欢喝咖啡"]


@pytest.mark.model
@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_with_the_real_model(real: Case, mode: str) -> None:
    scope = fresh_scope()
    real.store_all(scope, [pb.NewMemory(content=text) for text in dict.fromkeys(stored for stored, _ in PAIRS)])
    missing = []
    for stored, asked in PAIRS:
        if stored.startswith("das dritte"):
            continue
        if stored not in real.found(scope, asked, mode=MODES[mode], k=5):
            missing.append(asked)
    assert missing == []


@pytest.mark.model
@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("用户喜欢喝咖啡", "他爱喝什么饮料？"),
        ("The user likes drinking coffee", "用户喜欢喝什么？"),
        ("用户对花生过敏", "What is the user allergic to?"),
    ],
)
def test_meaning_crosses_languages(real: Case, scope: mem.Scope, stored: str, asked: str) -> None:
    real.store_all(
        scope, [pb.NewMemory(content=t) for t in (stored, "会议在三号楼举行", "The train leaves at nine", "猫在睡觉")]
    )
    assert real.found(scope, asked, k=1, ranking={"reject": False}) == [stored]
