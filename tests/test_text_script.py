"""How much of a text is CJK, which decides how its cosines are read."""

import pytest

from memxd.engine.relevance import Band
from memxd.text import cjk_share


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("", 0),
        ("plain English", 0),
        ("Grüße aus Köln", 0),
        ("🦊 and 12:30", 0),
        ("用户对花生过敏。", 2),
        ("しりとり", 2),
        ("끝말잇기", 2),
        ("配置项 TIDE_CACHE_DAYS 默认三十天", 2),
        ("Su Man 苏蔓 sent a pair of prototype headphones (型号 SM-7 Pro)", 1),
    ],
)
def test_share_of_cjk(text: str, share: int) -> None:
    assert cjk_share(text) == share


def test_cosines_are_levelled_by_the_pair_of_scripts() -> None:
    band = Band(0.78, 0.92, 0.045, -0.035)
    assert band.shifts(0) == (0.0, 0.0, -0.035)
    assert band.shifts(1) == (0.0, 0.0, 0.0)
    assert band.shifts(2) == (-0.035, 0.0, 0.045)
