"""The arithmetic of the ranking kernels, one value at a time: powers of two, frequency, sigmoid, mean and deviation.

Owns the operations and their order, which rank_loops.h repeats so that both give the same bits. Checks nothing and
knows no arrays of memories. Called by ``rank_py`` only.
"""

from __future__ import annotations

import math

from memxd._fast.protocols import Weights

#: Sums are taken in this many interleaved lanes, so that the compiled loop can run in vector registers.
_LANES = 8
_LOG2_E = 1.4426950408889634

#: 2^f on -.5..+.5 as a polynomial in f, lowest power first (Chebyshev nodes); relative error below 2e-16.
_EXP2 = (
    1.0,
    0.6931471805599453,
    0.24022650695910097,
    0.0555041086648216,
    0.009618129107606888,
    0.0013333558146416936,
    0.0001540353044173605,
    1.525273382983612e-05,
    1.321544258792169e-06,
    1.0178062445845774e-07,
    7.072585949269223e-09,
    4.4549605981865186e-10,
)

#: (shift, mean of the distances from it, their deviation, smallest, largest finite value); deviation 0 = no spread.
Moments = tuple[float, float, float, float, float]
_NO_SPREAD: Moments = (0.0, 0.0, 0.0, 0.0, 0.0)


def exp2(x: float) -> float:
    """2^x for x <= 0, exact for whole x; x below -1000 (and NaN) counts as -1000. Not math.exp2, because this one runs
    in vector registers when compiled."""
    x = x if x > -1000.0 else -1000.0
    k = round(x)
    f = x - k
    f2 = f * f
    f4 = f2 * f2
    a, b, c, d, e, g = (low + high * f for low, high in zip(_EXP2[::2], _EXP2[1::2], strict=True))
    return math.ldexp((a + b * f2) + ((c + d * f2) + (e + g * f2) * f4) * f4, k)


def recency(reference: int, now: int, half_life: int) -> float:
    """2^(-age / half-life), the age never negative; microseconds."""
    age = max(float(now) - float(reference), 0.0)
    return exp2(-(age * (1.0 / float(half_life))))


def frequency(count: int) -> float:
    """min(1, ln(count + 1) / 10)."""
    return min(1.0, math.log(count + 1.0) / 10.0)


def weighted(semantic: float, recency: float, frequency: float, importance: float, weights: Weights) -> float:
    """The weighted sum of the four factors, from left to right."""
    s, r, f, i = weights
    return ((s * semantic + r * recency) + f * frequency) + i * importance


def sigmoid(x: float) -> float:
    """1 / (1 + e^-x), from 2^-1000 upward; relative error below 1e-14 for x in -40..40."""
    e = exp2(-(abs(x) * _LOG2_E))
    return (1.0 if x >= 0.0 else e) / (1.0 + e)


def clamp(value: float, low: float, high: float) -> float:
    """NaN compares false and so counts as low."""
    value = value if value > low else low
    return value if value < high else high


def moments(values: list[float]) -> Moments:
    """Mean and population deviation in one pass over the distances from the first value (Chan, Golub, LeVeque 1983).

    The shift is one of the values, so no more than a factor of n is lost to cancellation.
    """
    finite = [v for v in values if math.isfinite(v)]
    if not finite:
        return _NO_SPREAD
    low, high, n = min(finite), max(finite), float(len(values))
    shift = clamp(values[0], low, high)
    distances = [clamp(v, low, high) - shift for v in values]
    mean = _lane_sum(distances) / n
    variance = _lane_sum([d * d for d in distances]) / n - mean * mean
    deviation = math.sqrt(variance) if 0.0 < variance < math.inf else 0.0
    return shift, mean, deviation, low, high


def z_score(value: float, of: Moments) -> float:
    """(value - mean) / deviation; 0 without spread."""
    shift, mean, deviation, low, high = of
    return (clamp(value, low, high) - shift - mean) / deviation if deviation > 0.0 else 0.0


def _lane_sum(values: list[float]) -> float:
    lanes = [0.0] * _LANES
    for i, value in enumerate(values):
        lanes[i % _LANES] += value
    a, b, c, d, e, f, g, h = lanes
    return ((a + b) + (c + d)) + ((e + f) + (g + h))
