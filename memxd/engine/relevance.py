"""How likely a hit answers the question: one number that can be compared between questions.

Owns the mapping from evidence to ``relevance`` in 0..1 and the rule for "nothing known". The evidence is the cosine,
read within the band that the model's unrelated and related texts occupy (``ModelInfo``), and the word match: which
share of the question's informative words the memory holds. Called by search.py.

First mapping, documented and monotone in both: relevance = sigmoid(B0 + B1 x + B2 w), x = (cosine - low) / (high - low)
cut to -1..2, w the word match; docs/RETRIEVAL.md tells how the constants were found.
"""

from __future__ import annotations

from dataclasses import dataclass

from memxd.engine.profiles import Plan
from memxd.model import Mode, RejectReason

#: Intercept and slopes of the mapping: of the place in the band, of the word match.
RELEVANCE = (-3.2, 4.2, 2.6)


@dataclass(frozen=True, slots=True)
class Band:
    """Cosines of a model: ``low`` is usual between unrelated texts, ``high`` between a question and its answer.

    A multilingual model's cosines lie at other heights for other pairs of scripts: ``shift_cjk`` higher when both are
    Chinese, Japanese or Korean, ``shift_cross`` higher (usually lower: negative) when only one is.
    """

    low: float
    high: float
    shift_cjk: float
    shift_cross: float

    @property
    def edges(self) -> tuple[float, float]:
        """``low`` and ``high``."""
        return self.low, self.high

    def shifts(self, query_script: int) -> tuple[float, float, float]:
        """What to take off the cosine of a text of script 0, 1, 2, so that it is as it would be had question and text
        one alphabetic script. Scripts as ``text.cjk_share`` tells them; a mixed one (1) is taken as it is."""
        if query_script == 2:
            return self.shift_cross, 0.0, self.shift_cjk
        return (0.0, 0.0, self.shift_cross) if query_script == 0 else (0.0, 0.0, 0.0)


def rejection(
    plan: Plan, *, best_cosine: float, keyword_hits: int, candidates: int, best_relevance: float
) -> RejectReason | None:
    """Why the honest answer is "nothing known"; None when there is something to show.

    MemX's rule (no keyword hit and best cosine below tau) holds for every profile; profile balanced adds that the best
    relevance must reach ``plan.reject_below``, which a single common word in common cannot do. By words alone every
    match is shown: there the caller asked for words.
    """
    if candidates == 0:
        return RejectReason.NO_MATCH
    if not plan.reject:
        return None
    if plan.mode is not Mode.KEYWORD and keyword_hits == 0 and not best_cosine >= plan.tau:
        return RejectReason.NO_MATCH
    if plan.mode is not Mode.KEYWORD and best_relevance < plan.reject_below:
        return RejectReason.LOW_RELEVANCE
    return None
