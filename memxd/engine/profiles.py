"""The named ranking profiles, and the plan that a search follows.

Owns every number that decides an order: weights, half-life, k of the fusion, how many candidates each leg brings, when
nothing is known. ``resolve`` turns a request's wishes into a complete, frozen, printable plan or refuses it. Called by
search.py only.

``memx`` restates arXiv 2603.16171, ``memex`` its service's formula; ``balanced`` is memxd's own (docs/RETRIEVAL.md has
the measurements).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from memxd.engine.validate import fail, number
from memxd.model import DAY, Dedup, Limits, Micros, Mode, Profile, Ranking


class Fusion(Enum):
    """How the two legs become one semantic factor."""

    SCORES = "scores"  # weighted mean of the calibrated cosine and the word match
    RRF = "rrf"  # reciprocal rank fusion, divided by its largest possible value
    COSINE = "cosine"  # the cosine alone


class Reference(Enum):
    """From which moment the recency of a memory is counted."""

    USED_OR_HAPPENED = "used-or-happened"  # last_retrieved_at, else event_at, else created_at
    USED_OR_CREATED = "used-or-created"  # last_retrieved_at, else created_at
    CREATED = "created"


@dataclass(frozen=True, slots=True)
class RankingDefaults:
    """What an operator may set for profile ``balanced``; weights 0..1,000, half-life in microseconds."""

    semantic: float = 0.84
    recency: float = 0.05
    frequency: float = 0.01
    importance: float = 0.10
    half_life: Micros = 30 * DAY
    rrf_k: int = 60
    vector_weight: float = 0.6
    keyword_weight: float = 0.4
    reject_below: float = 0.20


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that decides an order, complete. Weights are (semantic, recency, frequency, importance)."""

    profile: Profile
    mode: Mode
    k: int
    fusion: Fusion
    reference: Reference
    weights: tuple[float, float, float, float]
    half_life: Micros
    rrf_k: int
    vector_weight: float
    keyword_weight: float
    candidates: int
    cosine_floor: float
    normalise: bool
    dedup: Dedup
    reject: bool
    tau: float
    reject_below: float
    whole_scope: bool
    exact: bool

    def __str__(self) -> str:
        s, r, f, i = self.weights
        return (
            f"profile={self.profile.name.lower()} mode={self.mode.name.lower()} k={self.k} "
            f"fusion={self.fusion.value} (vector {self.vector_weight:g}, keyword {self.keyword_weight:g}, "
            f"rrf_k {self.rrf_k}) weights: semantic {s:g}, recency {r:g}, frequency {f:g}, importance {i:g} "
            f"half_life={self.half_life / DAY:g}d since {self.reference.value} candidates={self.candidates}/leg "
            f"dedup={self.dedup.name.lower()} reject={'on' if self.reject else 'off'} tau={self.tau:g} "
            f"reject_below={self.reject_below:g}{' whole-scope' if self.whole_scope else ''}"
            f"{' exact' if self.exact else ''}"
        )


@lru_cache(maxsize=256)
def resolve(
    ranking: Ranking,
    *,
    mode: Mode | None,
    k: int,
    exact: bool,
    model_tau: float,
    defaults: RankingDefaults,
) -> Plan:
    """The complete plan for one search; raises InvalidArgumentError for a wish that makes no sense.

    Plans are remembered, since most searches wish the same.
    """
    _check(ranking)
    profile = ranking.profile or Profile.BALANCED
    if profile is Profile.MEMEX and mode not in (None, Mode.VECTOR):
        raise fail("mode", "profile memex looks by meaning only; leave mode out or use another profile")
    base = _base(profile, mode or Mode.HYBRID, k, model_tau, defaults)
    weights = _weights(ranking, base)
    vector_weight = _or(ranking.vector_weight, base.vector_weight)
    keyword_weight = _or(ranking.keyword_weight, base.keyword_weight)
    if vector_weight == 0.0 and keyword_weight == 0.0:
        raise fail("ranking.vector_weight", "not both legs may weigh 0")
    return Plan(
        profile=base.profile,
        mode=base.mode,
        k=k,
        fusion=base.fusion,
        reference=base.reference,
        weights=weights,
        half_life=ranking.half_life or base.half_life,
        rrf_k=ranking.rrf_k or base.rrf_k,
        vector_weight=vector_weight,
        keyword_weight=keyword_weight,
        candidates=base.candidates,
        cosine_floor=base.cosine_floor,
        normalise=base.normalise,
        dedup=ranking.dedup or base.dedup,
        reject=base.reject if ranking.reject is None else ranking.reject,
        tau=_or(ranking.tau, base.tau),
        reject_below=base.reject_below,
        whole_scope=weights[0] == 0.0,
        exact=exact,
    )


def _weights(ranking: Ranking, base: Plan) -> tuple[float, float, float, float]:
    """The four factors' weights: the profile's, with the wishes put in."""
    alpha = ranking.alpha
    if alpha is not None:
        if base.profile is not Profile.MEMEX:
            raise fail("ranking.alpha", "belongs to profile memex; other profiles take ranking.weights")
        number("ranking.alpha", alpha, 0.0, 1.0)
        return alpha, 1.0 - alpha, 0.0, 0.0
    s, r, f, i = base.weights
    weights = (
        _or(ranking.semantic, s),
        _or(ranking.recency, r),
        _or(ranking.frequency, f),
        _or(ranking.importance, i),
    )
    if not any(weights):
        raise fail("ranking.weights", "at least one weight must be above 0")
    return weights


def _or(wish: float | None, default: float) -> float:
    return default if wish is None else wish


def _check(ranking: Ranking) -> None:
    for name in ("semantic", "recency", "frequency", "importance"):
        value = getattr(ranking, name)
        if value is not None:
            number(f"ranking.weights.{name}", value, 0.0, Limits.WEIGHT)
    for name in ("vector_weight", "keyword_weight"):
        value = getattr(ranking, name)
        if value is not None:
            number(f"ranking.{name}", value, 0.0, Limits.WEIGHT)
    if ranking.tau is not None:
        number("ranking.tau", ranking.tau, -1.0, 1.0)
    if ranking.rrf_k is not None and not 1 <= ranking.rrf_k <= Limits.RRF_K:
        raise fail("ranking.rrf_k", f"must be within 1..{Limits.RRF_K:,}")
    half_life = ranking.half_life
    if half_life is not None and not Limits.HALF_LIFE_MIN <= half_life <= Limits.HALF_LIFE_MAX:
        raise fail("ranking.half_life", "must be within 1 second..100 years")


def _base(profile: Profile, mode: Mode, k: int, model_tau: float, defaults: RankingDefaults) -> Plan:
    """The profile as it stands without wishes."""
    if profile is Profile.MEMX:
        return Plan(
            profile, mode, k, Fusion.RRF, Reference.USED_OR_CREATED, (0.45, 0.25, 0.05, 0.10),
            30 * DAY, 60, 1.0, 1.0, 3 * k, 0.3, True, Dedup.TAGS, True, 0.50, 0.0, False, False,
        )  # fmt: skip
    if profile is Profile.MEMEX:
        return Plan(
            profile, Mode.VECTOR, k, Fusion.COSINE, Reference.CREATED, (0.7, 0.3, 0.0, 0.0),
            30 * DAY, 60, 1.0, 0.0, min(3 * k, 150), -1.0, False, Dedup.OFF, False, -1.0, 0.0, False, False,
        )  # fmt: skip
    d = defaults
    return Plan(
        profile, mode, k, Fusion.SCORES, Reference.USED_OR_HAPPENED,
        (d.semantic, d.recency, d.frequency, d.importance), d.half_life, d.rrf_k,
        d.vector_weight, d.keyword_weight, max(50, 3 * k), -1.0, True, Dedup.ADAPTIVE, True,
        model_tau, d.reject_below, False, False,
    )  # fmt: skip
