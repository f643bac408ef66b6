"""Words by rank: real ones first, then pronounceable ones without end.

Owns the small lists (function words, everyday words, Chinese words, names) and how a rank becomes a word. ``texts``
draws the ranks. The lists are ordinary vocabulary written down for this purpose, no data set.
"""

# ruff: noqa: SIM905
from __future__ import annotations

import functools

FUNCTION = (
    "the to of and a in is for on that with was it at my we by from as i be this are not have has will you he she they"
    " but or an about after before our when her his their all who into what which there"
).split()
EVERYDAY = (
    "meeting project coffee morning server team weekend report dinner phone deadline garden music flight hotel"
    " budget train doctor kitchen release database window customer birthday invoice running school laptop"
    " password ticket library summer salad bicycle appointment camera contract daughter brother manager engineer"
    " review branch backup cluster network storage memory search query index cache token model python rust kernel"
    " socket monday tuesday wednesday thursday friday saturday sunday january march june october december prefers"
    " likes dislikes bought sold moved started finished changed called visited planned asked told found lost"
    " wants needs uses works lives speaks reads plays cooks drives allergic vegetarian early late cheap large"
    " small blue green red new old best first second last next every never always often office river mountain"
    " harbor market bridge station airport museum theatre bank bakery pharmacy tea bread rice cheese apple lemon"
    " pepper chicken fish soup cake piano guitar violin chess tennis football marathon yoga novel poem letter"
    " photo painting video podcast lecture exam degree salary bonus tax rent loan insurance passport visa"
    " suitcase umbrella jacket shoes glasses watch ring key wallet battery charger screen"
).split()
NAMES = (
    "Alice Berit Chandra Daniel Elena Farid Greta Hiroshi Ines Jamal Katrin Liang Maria Nadia Oskar Priya Quentin Rosa"
    " Samuel Tomoko Ulrich Vera Wei Ximena Yusuf Zofia Lisbon Oslo Kyoto Nairobi Quito Hanoi Tallinn Porto Berlin Lima"
).split()
CHINESE = (
    "会议 项目 咖啡 早上 服务器 团队 周末 报告 晚饭 手机 截止 花园 音乐 航班 酒店 预算 火车 医生 厨房 发布"
    " 数据库 窗口 客户 生日 发票 跑步 学校 电脑 密码 车票 图书馆 夏天 沙拉 自行车 预约 相机 合同 女儿 哥哥 经理"
    " 工程师 评审 分支 备份 集群 网络 存储 记忆 搜索 索引 缓存 模型 内核 星期一 星期五 一月 六月 十月 喜欢 讨厌"
    " 买了 卖了 搬到 开始 完成 改变 打电话 参观 计划 询问 告诉 找到 丢失 想要 需要 使用 工作 住在 会说 阅读 演奏"
    " 烹饪 开车 过敏 素食 早 晚 便宜 很大 很小 蓝色 绿色 红色 新的 旧的 最好 第一 第二 最后 下次 每天 从不 总是"
    " 经常 办公室 河边 山上 港口 市场 大桥 车站 机场 博物馆 剧院 银行 面包店 药店 茶 面包 米饭 奶酪 苹果 柠檬"
    " 辣椒 鸡肉 鱼 汤 蛋糕 钢琴 吉他"
).split()
CHINESE_FUNCTION = "的 了 在 是 我 和 有 他 她 我们 也 都 就 不 要 去 到 说 很 给".split()

_FIRST = tuple("b br ch d f g gr h j k kl l m n p pl qu r s sh st t tr v w z -".replace("-", "").split(" "))
_VOWELS = tuple("a e i o u ai ea io ou".split())
_LAST = tuple("n r l s t m k nd rt st ck".split())
_SYLLABLES = len(_FIRST) * len(_VOWELS)
#: Spreads neighbouring ranks over the syllables, so that words of like frequency do not look alike.
_STRIDE = 7_919


@functools.lru_cache(maxsize=400_000)
def word(rank: int) -> str:
    """The word of a rank (0 = most frequent); hardly ever the same one for two ranks."""
    common = len(FUNCTION) + len(EVERYDAY)
    if rank < len(FUNCTION):
        return FUNCTION[rank]
    if rank < common:
        return EVERYDAY[rank - len(FUNCTION)]
    return _made(rank - common)


def _made(number: int) -> str:
    """A pronounceable word of two syllables or more."""
    number, end = divmod(number, len(_LAST))
    block, place = divmod(number, _SYLLABLES * _SYLLABLES)
    place = place * _STRIDE % (_SYLLABLES * _SYLLABLES)
    parts = [_syllable(place // _SYLLABLES), _syllable(place % _SYLLABLES)]
    while block:
        block, place = divmod(block - 1, _SYLLABLES)
        parts.append(_syllable(place))
    return "".join(parts) + _LAST[end]


def _syllable(place: int) -> str:
    first, vowel = divmod(place, len(_VOWELS))
    return _FIRST[first] + _VOWELS[vowel]
