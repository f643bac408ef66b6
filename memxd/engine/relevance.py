"""How likely a hit answers the question: one number that can be compared between questions.

Owns the mapping from evidence to ``relevance`` in 0..1 and the rule for "nothing known". The evidence is the cosine,
read within the band that the model's unrelated and related texts occupy (``ModelInfo``), and the word match: which
share of the question's informative words the memory holds. Called by search.py.

First mapping, documented and monotone in both: relevance = sigmoid(B0 + B1 x + B2 w), x = (cosine - low) / (high - low)
cut to -1..2, w the word match; docs/RETRIEVAL.md tells how the constants were found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memxd.engine.profiles import Plan
from memxd.model import Mode, RejectReason

#: Intercept and slopes of the mapping.
BIAS = -3.2
COSINE_SLOPE = 4.2
WORD_SLOPE = 2.6


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

    def level(self, cosine: NDArray[np.float64], query_cjk: int, cjk: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Cosines [n] as they would be had question and text one alphabetic script.

        ``query_cjk`` and ``cjk`` [n]: ``text.cjk_share``. A text or question of mixed script is taken as it is.
        """
        shift = np.zeros(cosine.shape[0])
        if query_cjk == 2:
            shift[cjk == 2] = self.shift_cjk
            shift[cjk == 0] = self.shift_cross
        elif query_cjk == 0:
            shift[cjk == 2] = self.shift_cross
        return cosine - shift

    def place(self, cosine: NDArray[np.float64]) -> NDArray[np.float64]:
        """Levelled cosines [n] -> where they lie in the band, 0 at low and 1 at high, cut to -1..2; NaN -> 0."""
        x = (cosine - self.low) / (self.high - self.low)
        return np.where(np.isnan(x), 0.0, np.clip(x, -1.0, 2.0))


def relevance(place: NDArray[np.float64], word_match: NDArray[np.float64]) -> NDArray[np.float64]:
    """Places in the band [n] and word matches [n] in 0..1 -> relevance [n] in 0..1."""
    return 1.0 / (1.0 + np.exp(-(BIAS + COSINE_SLOPE * place + WORD_SLOPE * word_match)))


def words_alone(word_match: NDArray[np.float64]) -> NDArray[np.float64]:
    """Relevance when only words were compared (keyword mode, embedder down): the place in the band is taken from
    the words themselves, so that a full match is likely and a lone common word is not."""
    return relevance(word_match, word_match)


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
