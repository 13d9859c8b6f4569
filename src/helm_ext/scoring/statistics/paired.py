"""Which of two models is better, judged on the same rows: the difference, how sure it is, and what could be seen.

Both models answered the same questions, so each row is its own control: rows that both got right or both got wrong say
nothing of a difference. What is compared is the rows' differences, `b - a`.

| rows         | test                                                  | interval of the difference            |
|--------------|-------------------------------------------------------|---------------------------------------|
| 0 or 1 each  | McNemar, exact: a sign test of the rows that differ   | Tango (1998), by the score test       |
| any numbers  | sign flips of the rows' differences                   | Student's t                           |
| in clusters  | sign flips of the clusters' sums                      | cluster-robust, as `intervals` has it |

Sign flips: were both models alike, each difference could as well have the other sign. Up to 2^14 ways are all looked
at, beyond that 20,000 are drawn with a fixed seed, so that the same rows give the same p, which is 1 of 20,001 at
least. Of more than 2,000 differences the sum is normally distributed, and none are drawn.

Whether b is worse than a by more than a margin is another question, with a one-sided test of its own: the interval's
(`judge_margin`). At its edge it may disagree with McNemar's exact test, which is two-sided and about no difference.

Tango (1998), "Equivalence test and confidence interval for the difference in proportions for the paired-sample design",
Statistics in Medicine 17, 891-908. Of `count` rows, `greater` are right for b alone, `less` for a alone. Were the true
difference d, the variance of the observed one would be (2 q + d (1 - d)) / count, where q is the share of rows that a
alone has right; its most likely value at d is the root of a quadratic equation. The limits are the differences that the
test does not refuse, so that test and interval never disagree. Counts may be fractions: rows in effect.

How many rows it takes (`rows_needed`): Connor (1987) for McNemar's test, with Yates' correction, because `mcnemar` is
exact. Only rows that one of two models gets right count (discordant rows), so the answer depends on their share: two
models that mostly agree need fewer rows for the same difference than two that guess on their own.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from helm_ext.scoring.statistics.intervals import (
    LEVEL,
    Interval,
    are_clusters,
    clustered_error,
    find_groups,
    is_binary,
    name_method,
    normal_quantile,
    standard_error,
    t_around,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from helm_ext.scoring.statistics.intervals import Floats

_ALL_FLIPS = 14
"""Differences of which all combinations of signs are looked at."""
_DRAWS = 20_000
_DRAWN_AT_ONCE = 500
_MANY = 2_000
"""Differences whose sum under random signs is as good as normally distributed."""
_SEED = 0
_POWER = 0.8
_TINY = 1e-12
_STANDARD = NormalDist()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Model b against model a on the same rows."""

    mean_a: float
    mean_b: float
    difference: Interval
    """Of `b - a`: positive where b has the greater mean."""
    p: float
    """Chance of a difference this large, either way, were both models alike."""
    test: str
    """`mcnemar` or `sign flips`."""
    greater: int
    """Rows with a greater value for b."""
    less: int
    detectable: float
    """The smallest difference that these rows would have told with 80 % power at the level of `difference`;
    infinite where the rows do not tell it."""


def compare_rows(
    a: ArrayLike, b: ArrayLike, clusters: Sequence[Hashable] | None = None, *, level: float = LEVEL
) -> Comparison:
    """Compare two models' scores of the same rows, in the same order: one number a row each.

    `clusters` as in `intervals.find_groups`. Raises ValueError for sequences of unequal length, no rows, and numbers
    that are not finite.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    found, groups = _estimate(first, second, clusters)
    differences = second - first
    greater, less = int((differences > 0).sum()), int((differences < 0).sum())
    if found.method == "tango":
        p, test = mcnemar(greater, less), "mcnemar"
    else:
        p, test = _flip_signs(np.bincount(groups, weights=differences).astype(float)), "sign flips"
    # Where all rows differ alike they tell nothing of it.
    detectable = (normal_quantile(level) + _STANDARD.inv_cdf(_POWER)) * found.error if found.error else math.inf
    return Comparison(
        float(first.mean()), float(second.mean()), found.interval(level), p, test, greater, less, detectable
    )


def find_detectable(difference: Interval) -> float:
    """Return the smallest difference that is told with 80 % power where this is the interval of one."""
    quantile = normal_quantile(difference.level)
    return (1 + _STANDARD.inv_cdf(_POWER) / quantile) * difference.half_width


@dataclass(frozen=True, slots=True)
class MarginTest:
    """Whether b is worse than a by more than a margin, where a greater value is better."""

    margin: float
    gain: float
    """Mean of b - a."""
    p_worse: float | None
    """One-sided: the chance of a gain this low or lower, were the true one -margin. Below 5 %: worse for certain; above
    95 %: not worse. None where the rows do not tell how sure they are."""
    low: float
    """The gain is at least this, at the level that was asked for, one-sided."""
    high: float
    rows_needed: int | None
    """Rows of this kind that would tell in 8 of 10 cases, see `assumed`; None where none does or is known."""
    assumed: float
    """The true gain that `rows_needed` is of: 0, or what was seen where that is greater or below -margin."""


def judge_margin(
    a: ArrayLike,
    b: ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    *,
    margin: float,
    level: float = LEVEL,
    span: float = math.inf,
) -> MarginTest:
    """Test whether b is worse than a by more than `margin`, and whether it is not; a greater value is better.

    Tango's score test of 0 and 1, else t or cluster-robust; the limits are those that the test does not refuse, so that
    `p_worse < 1 - level` and `high < -margin` are one thing. `span`: by how much two values can differ at most, which
    is what graded rows need that are equal in both. Raises ValueError as `compare_rows`, and for a margin below 0.
    """
    if not margin >= 0:
        raise ValueError(f"margin {margin}: expected 0 or more")
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    found, _ = _estimate(first, second, clusters)
    if not found.error and not (second - first).any() and math.isfinite(span):
        found = replace(found, shares=(0, 0, found.clusters or found.count), span=span)
    limits = found.interval(2 * level - 1)
    assumed = found.mean if found.mean < -margin else max(0.0, found.mean)
    needed = _rows_to_tell(found, assumed + margin, level)
    return MarginTest(margin, found.mean, found.p_below(-margin), limits.low, limits.high, needed, assumed)


@dataclass(frozen=True, slots=True)
class _Difference:
    """The mean difference of the rows, and how it is distributed."""

    mean: float
    count: int
    method: str
    error: float
    """Standard error: 0.0 where all rows or clusters differ by the same, infinite where there is one alone."""
    freedom: float = math.inf
    clusters: int | None = None
    shares: tuple[float, float, float] | None = None
    """Of rows that are right or wrong: right for b alone, for a alone, and all; each cluster is a row where the error
    is 0. None where the error tells."""
    is_binary: bool = False
    span: float = 1.0
    """By how much two values differ where `shares` counts a row."""

    def interval(self, level: float) -> Interval:
        if self.shares is not None:
            low, high = (self.span * end for end in tango_limits(*self.shares, normal_quantile(level)))
            return Interval(self.mean, low, high, self.count, self.method, self.clusters, level)
        found = t_around(self.mean, self.error, self.freedom, self.count, self.method, self.clusters, level)
        return found.within((-1.0, 1.0)) if self.is_binary else found

    def p_below(self, bound: float) -> float | None:
        """Return the chance of a mean this low or lower, were `bound` the true one; None where it is not known."""
        from scipy.special import ndtr, stdtr

        if self.shares is not None:
            return float(ndtr(tango_score(*self.shares, max(-1.0, bound / self.span))))
        if 0 < self.error < math.inf:
            return float(stdtr(self.freedom, (self.mean - bound) / self.error))
        return None


def _estimate(
    first: Floats, second: Floats, clusters: Sequence[Hashable] | None
) -> tuple[_Difference, NDArray[np.intp]]:
    """Return the difference, and the rows' clusters. Raises ValueError."""
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"the rows must be the same: {first.shape} and {second.shape}")
    differences = second - first
    if not len(differences) or not np.isfinite(differences).all():
        raise ValueError("at least one row, and finite numbers, are needed")
    groups = find_groups(clusters, len(differences))
    count, mean = len(differences), float(differences.mean())
    binary = is_binary(first) and is_binary(second)
    if are_clusters(groups):
        number = int(groups.max()) + 1
        error, freedom = clustered_error(differences, groups)
        alike = binary and error == 0
        shares = (max(0.0, mean) * number, max(0.0, -mean) * number, float(number)) if alike else None
        return _Difference(mean, count, name_method(number), error, freedom, number, shares, binary), groups
    error = standard_error(differences)
    if binary:
        shares = (float((differences > 0).sum()), float((differences < 0).sum()), float(count))
        return _Difference(mean, count, "tango", error, shares=shares, is_binary=True), groups
    return _Difference(mean, count, "t", error, count - 1), groups


def _rows_to_tell(found: _Difference, gap: float, level: float) -> int | None:
    """Return at how many such rows a true gain, that is `gap` from the margin, is told with 80 % power."""
    beta, alpha = _STANDARD.inv_cdf(_POWER), _STANDARD.inv_cdf(level)
    if gap == 0:
        return None
    if 0 < found.error < math.inf:
        return math.ceil(found.count * ((alpha + beta) * found.error / gap) ** 2)
    if found.shares is None or found.mean:
        return None
    # No row differs: at n rows, Tango's limit is z^2 / (n + z^2).
    rows = alpha**2 * max(0.0, found.span / gap - 1)
    return math.floor(rows * found.count / found.shares[2]) + 1


def mcnemar(greater: int, less: int) -> float:
    """Return the exact two-sided p of McNemar's test: `greater` and `less` rows that only one model got right.

    The chance of a split as uneven or more, were both ways equally likely; 1.0 where no row differs.
    """
    from scipy.special import bdtr

    number = greater + less
    return 1.0 if number == 0 else min(1.0, 2 * float(bdtr(min(greater, less), number, 0.5)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number (Holm 1979), in their order: each may be compared with one level."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, largest = [1.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def _flip_signs(differences: Floats) -> float:
    """Return the two-sided p of the sum of the differences under random signs; 1.0 where all are 0."""
    from scipy.special import ndtr

    nonzero = differences[np.abs(differences) > _TINY]
    number = len(nonzero)
    if not number:
        return 1.0
    seen = abs(nonzero.sum()) * (1 - _TINY) - _TINY
    if number <= _ALL_FLIPS:
        signs = 1 - 2.0 * ((np.arange(2**number)[:, None] >> np.arange(number)) & 1)
        return float((np.abs(signs @ nonzero) >= seen).mean())
    if number > _MANY:
        return 2 * float(ndtr(-abs(nonzero.sum()) / math.sqrt((nonzero**2).sum())))
    generator = np.random.default_rng(_SEED)
    # The rows' order and which model is `a` are no part of the draw; a part of it at a time keeps memory small.
    sizes, reached = np.sort(np.abs(nonzero)), 0
    for _ in range(_DRAWS // _DRAWN_AT_ONCE):
        drawn = generator.integers(0, 2, (_DRAWN_AT_ONCE, number), dtype=np.int8)
        reached += int((np.abs((1 - 2 * drawn) @ sizes) >= seen).sum())
    return (reached + 1) / (_DRAWS + 1)


# ---- The score test of a difference between two shares of the same rows

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


# ---- How many rows it takes to tell two models apart


def rows_needed(difference: float, discordant: float, *, power: float = 0.8, level: float = LEVEL) -> int:
    """Return the rows at which a true `difference` of two shares is told with this power, at this level, two-sided.

    `discordant` is the share of rows that exactly one model gets right; it is at least the difference.
    Raises ValueError for shares that cannot be.
    """
    d = abs(difference)
    if not 0 < d <= discordant <= 1 or not 0 < power < 1 or not 0 < level < 1:
        raise ValueError(
            f"difference {difference}, discordant {discordant}, power {power}, level {level}: expected "
            "0 < |difference| <= discordant <= 1, and power and level between 0 and 1"
        )
    alpha, beta = normal_quantile(level), _STANDARD.inv_cdf(power)
    root = alpha * math.sqrt(discordant) + beta * math.sqrt(discordant - d * d)
    # The exact test asks for one row more than the normal distribution: n d - 1 >= root sqrt(n), Yates' correction.
    return math.ceil(((root + math.sqrt(root**2 + 4 * d)) / (2 * d)) ** 2)


def rows_to_narrow(difference: float, half: float, rows: int, *, power: float = 0.8, level: float = LEVEL) -> int:
    """Return the rows at which a true `difference` is told, where `rows` gave an interval of twice `half`.

    Of any rows, clusters and corrections that grow alike: intervals narrow with the root of their number. Raises
    ValueError for no difference.
    """
    if not difference or not 0 < power < 1:
        raise ValueError(f"difference {difference}, power {power}: expected one that is not 0, and 0 < power < 1")
    error = half / normal_quantile(level)
    return math.ceil(rows * ((normal_quantile(level) + _STANDARD.inv_cdf(power)) * error / difference) ** 2)


def discordant_share(base_rate: float, difference: float) -> float:
    """Return the share of discordant rows of two models that err independently: the worst case but for spite.

    The first gets `base_rate` of the rows right, the second `base_rate + difference`. Raises ValueError.
    """
    other = base_rate + difference
    if not 0 <= base_rate <= 1 or not 0 <= other <= 1:
        raise ValueError(f"base rate {base_rate} and difference {difference}: both models' shares must lie in 0 to 1")
    return base_rate * (1 - other) + other * (1 - base_rate)
