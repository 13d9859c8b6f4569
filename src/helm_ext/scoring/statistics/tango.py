"""The score test of a difference between two shares of the same rows, and its limits.

Tango (1998), "Equivalence test and confidence interval for the difference in proportions for the paired-sample design",
Statistics in Medicine 17, 891-908. Of `count` rows, `greater` are right for b alone, `less` for a alone. Were the true
difference d, the variance of the observed one would be (2 q + d (1 - d)) / count, where q is the share of rows that a
alone has right; its most likely value at d is the root of a quadratic equation. The limits are the differences that the
test does not refuse, so that test and interval never disagree. Counts may be fractions: rows in effect.
"""

from __future__ import annotations

import math

_STEPS = 60
"""Halvings of the range -1 to 1: below the resolution of a float."""


def tango_score(greater: float, less: float, count: float, difference: float) -> float:
    """Return how many standard errors the observed difference is above `difference`; between -1 and 1."""
    d = difference
    linear = (2 * count - greater + less) * d - greater - less
    free = -less * d * (1 - d)
    root = math.sqrt(max(0.0, linear * linear - 8 * count * free))
    # Of the two ways to write the root of a quadratic equation, the one that subtracts no equal numbers.
    q = (root - linear) / (4 * count) if linear <= 0 else -2 * free / (root + linear)
    variance = max(0.0, count * (2 * q + d * (1 - d)))
    above = greater - less - count * d
    if variance <= 1e-15 * count:
        return 0.0 if abs(above) <= 1e-12 * count else math.copysign(math.inf, above)
    return above / math.sqrt(variance)


def tango_limits(greater: float, less: float, count: float, quantile: float) -> tuple[float, float]:
    """Return the least and the greatest difference whose score is within `quantile` standard errors."""
    return _limit(greater, less, count, quantile), -_limit(less, greater, count, quantile)


def _limit(greater: float, less: float, count: float, quantile: float) -> float:
    low, high = -1.0, (greater - less) / count
    if tango_score(greater, less, count, low) <= quantile:
        return low
    for _ in range(_STEPS):  # the score falls as the difference grows
        middle = (low + high) / 2
        low, high = (middle, high) if tango_score(greater, less, count, middle) > quantile else (low, middle)
    return high
