"""Which of two models is better, judged on the same rows: the difference, how sure it is, and what could be seen.

Both models answered the same questions, so each row is its own control: rows that both got right or both got wrong say
nothing of a difference. What is compared is the rows' differences, `b - a`.

| rows         | test                                                  | interval of the difference            |
|--------------|-------------------------------------------------------|---------------------------------------|
| 0 or 1 each  | McNemar, exact: a sign test of the rows that differ   | Bonett and Price (2012)               |
| any numbers  | sign flips of the rows' differences                   | Student's t                           |
| in clusters  | sign flips of the clusters' sums                      | cluster-robust, as `intervals` has it |

Sign flips: were both models alike, each difference could as well have the other sign. Up to 2^14 ways are all looked
at, beyond that 20,000 are drawn with a fixed seed, so that the same rows give the same p. Where none of the
drawn is as uneven, p is at most 3.178 times that of a normal distribution, whatever the differences are (Bentkus and
Dzindzalieta 2015, "A tight Gaussian bound for weighted sums of Rademacher random variables"): the smaller of this bound
and 1 of 20,001 is given. Of more than 2,000 differences the sum is normally distributed, and
none are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from helm_ext.scoring.statistics.intervals import (
    Interval,
    clustered_error,
    clustered_half_width,
    is_binary,
    name_method,
    number_clusters,
    t_interval,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Comparison", "compare_rows", "holm", "mcnemar"]

_ALL_FLIPS = 14
"""Differences of which all combinations of signs are looked at."""
_DRAWS = 20_000
_DRAWN_AT_ONCE = 500
_MANY = 2_000
"""Differences whose sum under random signs is as good as normally distributed."""
_GAUSSIAN_BOUND = 3.1787
"""1 / (4 P(Z >= sqrt 2)), rounded up."""
_SEED = 0
_POWER = 0.8
_TINY = 1e-12


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
    a: ArrayLike, b: ArrayLike, clusters: Sequence[Hashable] | None = None, *, level: float = 0.95
) -> Comparison:
    """Compare two models' scores of the same rows, in the same order: one number a row each.

    `clusters` as in `intervals.mean_interval`. Raises ValueError for sequences of unequal length, no rows, and numbers
    that are not finite.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"the rows must be the same: {first.shape} and {second.shape}")
    differences = second - first
    if not len(differences) or not np.isfinite(differences).all():
        raise ValueError("at least one row, and finite numbers, are needed")
    greater, less = int((differences > 0).sum()), int((differences < 0).sum())
    binary = is_binary(first) and is_binary(second)
    groups = None if clusters is None else number_clusters(clusters)
    if groups is not None and len(groups) != len(differences):
        raise ValueError(f"{len(differences)} rows, and clusters of {len(groups)}")
    if groups is not None and groups.max() + 1 < len(groups):
        interval = _clustered(differences, groups, level, binary=binary)
        p, test = _flip_signs(np.bincount(groups, weights=differences).astype(np.float64)), "sign flips"
        error = clustered_error(differences, groups)[0] if interval.clusters != 1 else math.inf
    elif binary:
        interval = _bonett_price(greater, less, len(differences), level)
        p, test = mcnemar(greater, less), "mcnemar"
        error = _standard_error(differences)
    else:
        interval = t_interval(differences, level=level)
        p, test = _flip_signs(differences), "sign flips"
        error = _standard_error(differences)
    return Comparison(
        float(first.mean()), float(second.mean()), interval, p, test, greater, less, _detectable(error, level)
    )


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


def _bonett_price(greater: float, less: float, count: int, level: float) -> Interval:
    """Return the adjusted Wald interval of a difference of paired shares: one row more each way, two in all.

    The estimate that is shown is that of the rows; the interval's middle is drawn a little towards 0.
    """
    from scipy.special import ndtri

    up, down = (greater + 1) / (count + 2), (less + 1) / (count + 2)
    half = float(ndtri((1 + level) / 2)) * math.sqrt((up + down - (up - down) ** 2) / (count + 2))
    middle = up - down
    mean = (greater - less) / count
    return Interval(mean, max(-1.0, middle - half), min(1.0, middle + half), count, "bonett-price", level=level)


def _clustered(differences: NDArray[np.float64], groups: NDArray[np.intp], level: float, *, binary: bool) -> Interval:
    """Return the interval of the mean difference of rows in clusters, of shares between -1 and 1.

    Where all clusters differ by the same, each counts as one row; of other numbers than shares nothing is known then.
    """
    count, number, mean = len(differences), int(groups.max()) + 1, float(differences.mean())
    half = clustered_half_width(differences, groups, level) if number > 1 else 0.0
    low, high = (mean - half, mean + half) if half else (-math.inf, math.inf)
    if binary and number > 1:
        each = _bonett_price(max(0.0, mean) * number, max(0.0, -mean) * number, number, level)
        low, high = (max(-1.0, low), min(1.0, high)) if half else (each.low, each.high)
    method = name_method(number) if math.isfinite(low) else "none"
    return Interval(mean, low, high, count, method, number, level)


def _flip_signs(differences: NDArray[np.float64]) -> float:
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
    normal = 2 * float(ndtr(-abs(nonzero.sum()) / math.sqrt((nonzero**2).sum())))
    if number > _MANY:
        return normal
    generator = np.random.default_rng(_SEED)
    # The rows' order and which model is `a` are no part of the draw; a part of it at a time keeps memory small.
    sizes, reached = np.sort(np.abs(nonzero)), 0
    for _ in range(_DRAWS // _DRAWN_AT_ONCE):
        drawn = generator.integers(0, 2, (_DRAWN_AT_ONCE, number), dtype=np.int8)
        reached += int((np.abs((1 - 2 * drawn) @ sizes) >= seen).sum())
    drawn_p = (reached + 1) / (_DRAWS + 1)
    return drawn_p if reached else min(drawn_p, _GAUSSIAN_BOUND * normal)


def _standard_error(differences: NDArray[np.float64]) -> float:
    count = len(differences)
    return float(differences.std(ddof=1)) / math.sqrt(count) if count > 1 else math.inf


def _detectable(error: float, level: float) -> float:
    """Return the smallest difference that is told; infinite where all rows differ alike, which tells nothing of it."""
    from scipy.special import ndtri

    if not error:
        return math.inf
    return float(ndtri((1 + level) / 2) + ndtri(_POWER)) * error
