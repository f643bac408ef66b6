"""Which share of a question's informative words a memory holds: the keyword evidence behind ``relevance``.

Owns how informative a word is: its inverse document frequency in the scope, smoothed by a prior, so that in a scope of
three memories "the" still says little and an absent name much. BM25 (the keyword leg's score) orders; this number is
comparable between questions. Called by search.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memxd.index.lexical.hits import QueryTerms
from memxd.model import TermMatch

#: The prior is worth so many memories; in them a function word stands in 40 %, any other word in 0.1 %.
PRIOR_ROWS = 1_000
PRIOR_FUNCTION = 400
PRIOR_OTHER = 1

#: Words that carry a question rather than its subject, as the analyzer writes them (folded and stemmed).
_ENGLISH = frozenset(
    "a about after again all am an and ani any anyth are as at be becaus been befor being between both but by can could "
    "did do doe doing don't done dure each ever everi everyth few for from get give go had has have he her here him his "
    "how i i'm i've if in into is it it's its just know let like list may me mention might more most much must my name "
    "need no nor not of off often on one onli or other our out over own pleas rememb remind said say she should show so "
    "some someth such take tell than that the their them then there these they thing think this those through to too "
    "under until up us use used usual veri want was we were what what's when where which while who whom whose whi why "
    "will with would you your".split()
)
_CHINESE = frozenset(
    "的 了 是 在 我 你 他 她 它 们 吗 呢 吧 啊 和 与 及 或 有 没 不 也 都 就 还 要 会 能 可 以 这 那 哪 谁 几 什 么 怎 样 多 少 何 时 候 里 "
    "我们 你们 他们 她们 什么 怎么 怎样 哪里 哪儿 哪个 哪些 哪天 哪家 哪一 为什 多少 多久 多大 几点 几个 是谁 是什 是不 不是 有没 没有 有什 "
    "么时 时候 是否 如何 可以 能不 请问 请告 告诉 诉我 关于 一下 一个 这个 那个 我的 你的 他的 她的 的是 是多 是哪 在哪 叫什 么名 名字 "
    "么样 么地 地方 用什 会不 要不 记得 知道 还记".split()
)
FUNCTION_WORDS = _ENGLISH | _CHINESE


@dataclass(frozen=True, slots=True)
class Informativeness:
    """How much each query term says, in nats; ``total`` is their weighted sum over the question."""

    by_term: Mapping[str, float]
    total: float

    @classmethod
    def of(
        cls, terms: QueryTerms, rows: int, document_frequency: Mapping[str, int]
    ) -> Informativeness:
        """From the question's terms, the number of selected rows and the rows each term occurs in (0 when absent)."""
        values: dict[str, float] = {}
        for term, weight in zip(terms.terms, terms.weights, strict=True):
            prior = PRIOR_FUNCTION if term in FUNCTION_WORDS else PRIOR_OTHER
            df = document_frequency.get(term, 0) + prior
            values[term] = weight * math.log1p((rows + PRIOR_ROWS - df + 0.5) / (df + 0.5))
        return cls(values, sum(values.values()))

    def match(self, found: Sequence[TermMatch]) -> float:
        """The share of the question that the matching terms make up, 0..1."""
        if self.total <= 0.0:
            return 0.0
        return min(1.0, sum(self.by_term[m.term] for m in found if m.term in self.by_term) / self.total)
