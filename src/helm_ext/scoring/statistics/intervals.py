"""How sure a mean is: 95 % confidence intervals of a score over rows.

| rows                                    | interval                                                                   |
|-----------------------------------------|----------------------------------------------------------------------------|
| 0 or 1 each                             | Wilson's score interval (Wilson 1927)                                      |
| any numbers                             | Student's t                                                                |
| in clusters, 40 or more                 | cluster-robust standard error (CR1), t with G - 1 degrees of freedom       |
| in clusters, fewer than 40              | CR2 and the degrees of freedom of Bell and McCaffrey (2002)                |
| 0 or 1, in clusters                     | Wilson's of so many rows as the clusters are worth (`_effective_rows`)     |

Rows are clustered where one draw of chance made several of them: questions about one passage, turns of a conversation,
perturbations of one row, trials. Leaving that out makes an interval too short. What is not known from the rows
(a standard error where all of them are equal) is said by `Interval.method`, never made up.

Rows that were answered several times have two intervals, which answer two questions (NIST AI 800-3, "Expanding the AI
Evaluation Toolbox with Statistical Models"):

| question                                         | what is chance          | interval                               |
|--------------------------------------------------|-------------------------|----------------------------------------|
| what does the model score on *these questions*?  | its answers             | `answers_interval`, `trials_interval`  |
| what does it score on *questions like these*?    | the questions as well   | `mean_interval` of row means           |

The second is never shorter in the long run: rows that were drawn differ, and that is part of their means.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

LEVEL = 0.95
"""The confidence of intervals, where nobody asks for another; reports say "95 %"."""

FEW_CLUSTERS = 40
"""Below this number the usual cluster-robust standard error is too small (Cameron and Miller 2015, section VI)."""

_ROUNDING = 1e-13
"""A standard error that is no larger, in the unit of the largest value, is none."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and what it may be as well. In the unit of the score."""

    mean: float
    low: float
    high: float
    count: int
    """Rows."""
    method: str
    """`wilson`, `t`, `clusters`, `few clusters`; `none` where the rows do not tell (one row or one cluster, or
    all of them equal and not 0 or 1)."""
    clusters: int | None = None
    """Groups of rows, where they count instead of the rows."""
    level: float = LEVEL

    @property
    def half_width(self) -> float:
        """Half the distance between both ends."""
        return (self.high - self.low) / 2

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """Both ends; None for one that is not known."""
        low, high = (end if math.isfinite(end) else None for end in (self.low, self.high))
        return low, high

    def to_json(self) -> dict[str, float | None]:
        """Return `mean`, `low` and `high`; None for an end that is not known."""
        low, high = self.ends
        return {"mean": self.mean, "low": low, "high": high}

    def show(self, spec: str) -> str:
        """Return mean and ends for people: `0.50 (0.40 to 0.60)`; the mean alone where the ends are not known."""
        return f"{self.mean:{spec}}" + ("" if None in self.ends else f" ({self.show_ends(spec)})")

    def show_ends(self, spec: str) -> str:
        """Return both ends for people, `0.40 to 0.60`; `not known` where they are not."""
        return "not known" if None in self.ends else f"{self.low:{spec}} to {self.high:{spec}}"

    def __neg__(self) -> Interval:
        """Return the same of what is as far on the other side of 0."""
        return replace(self, mean=-self.mean, low=-self.high, high=-self.low)

    def within(self, bounds: tuple[float, float]) -> Interval:
        """Return the interval with its ends, where they are known, at most at these."""
        if self.method == "none":
            return self
        return replace(self, low=max(self.low, bounds[0]), high=min(self.high, bounds[1]))

    def minus(self, other: Interval, wider: float = 1.0) -> Interval:
        """Return the difference of two independent means, its limits by MOVER (Zou and Donner 2008), so much wider."""
        apart = self.mean - other.mean
        low = apart - wider * math.hypot(self.mean - self.low, other.high - other.mean)
        high = apart + wider * math.hypot(self.high - self.mean, other.mean - other.low)
        return Interval(apart, low, high, self.count + other.count, "MOVER", level=self.level)


def mean_interval(values: ArrayLike, clusters: Sequence[Hashable] | None = None, *, level: float = LEVEL) -> Interval:
    """Return the interval of the mean of `values` (one number a row), by the rule of this module's table.

    `clusters` as in `find_groups`. Raises ValueError for no rows, for numbers that are not finite, and for clusters of
    another length.
    """
    array = _to_array(values)
    groups = find_groups(clusters, len(array))
    if are_clusters(groups):
        return clustered_interval(array, groups, level=level)
    if is_binary(array):
        return wilson_interval(int(array.sum()), len(array), level=level)
    return t_interval(array, level=level)


def wilson_interval(successes: int, count: int, *, level: float = LEVEL) -> Interval:
    """Return Wilson's score interval of a share. Defined for 0 and for all successes too. Raises ValueError."""
    if not 0 <= successes <= count or count < 1:
        raise ValueError(f"{successes} of {count}: expected a part of at least one row")
    return replace(wilson_share(successes / count, count, normal_quantile(level)), level=level)


def wilson_share(share: float, count: float, z: float) -> Interval:
    """Return Wilson's interval, `z` standard errors wide, of a share of so many rows; neither need be whole."""
    low, high = map(float, wilson_limits(np.float64(share), np.float64(count), z))
    # Rounding must not move an end off its boundary.
    low, high = 0.0 if share == 0 else max(0.0, low), 1.0 if share == 1 else min(1.0, high)
    return Interval(share, low, high, round(count), "wilson")


def wilson_limits(shares: Floats, counts: Floats, z: float) -> tuple[Floats, Floats]:
    """Return Wilson's limits of shares of so many rows, `z` standard errors away."""
    squared = z * z / counts
    middle = (shares + squared / 2) / (1 + squared)
    half = z / (1 + squared) * np.sqrt(shares * (1 - shares) / counts + squared / (4 * counts))
    return middle - half, middle + half


def t_around(
    mean: float, error: float, freedom: float, count: int, method: str, clusters: int | None, level: float
) -> Interval:
    """Return Student's t interval of a mean of this standard error.

    Where the error is 0 or infinite, nothing is known of it: `none`, and the ends are infinite.
    """
    is_known = 0 < error < math.inf
    half = t_quantile(level, freedom) * error if is_known else math.inf
    return Interval(mean, mean - half, mean + half, count, method if is_known else "none", clusters, level)


def t_interval(values: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Return Student's t interval of a mean. Of one row, or of equal ones, nothing is known: its ends are infinite."""
    array = _to_array(values)
    count = len(array)
    return t_around(float(array.mean()), standard_error(array), count - 1, count, "t", None, level)


def standard_error(values: Floats) -> float:
    """Return the standard error of the mean of rows: 0 where they are equal, infinite of one alone."""
    if len(values) < 2:
        return math.inf
    return float(values.std(ddof=1)) / math.sqrt(len(values)) if values.min() < values.max() else 0.0


def clustered_interval(
    values: ArrayLike, clusters: Sequence[Hashable] | NDArray[Any], *, level: float = LEVEL
) -> Interval:
    """Return the interval of a mean of rows that come in clusters; the mean is that over rows.

    Of other numbers than 0 and 1 nothing is known where all clusters have one mean: there is nothing to estimate a
    deviation from.
    """
    array, groups = _to_array(values), number_clusters(clusters)
    number, count, mean = int(groups.max()) + 1, len(array), float(array.mean())
    error, freedom = clustered_error(array, groups)
    if number > 1 and is_binary(array):
        rows, freedom = _effective_rows(array, groups, error, freedom)
        found = wilson_share(mean, rows, t_quantile(level, freedom))
        return replace(found, count=count, method=name_method(number), clusters=number, level=level)
    return t_around(mean, error, freedom, count, name_method(number), number, level)


def _effective_rows(values: Floats, groups: NDArray[np.intp], error: float, freedom: float) -> tuple[float, float]:
    """Return how many independent rows tell as much as these right and wrong ones, and the degrees of freedom.

    Rows over the design effect, which is the variance of the mean over that of as many independent rows, at least 1.
    Near 0 and 1 few clusters hold the rarer value, and a variance of few squares is mostly too small. So the estimate,
    which k such clusters make, is averaged (by logarithms, weights k and 1) with that of clusters whose rows are all
    alike, the sum of squared sizes over the rows (Kish 1965); and the degrees of freedom are at most those that the
    kurtosis of the clusters' residuals leaves to their squares (Satterthwaite 1946: 2 G / (kurtosis - 1)). The table of
    docs/uncertainty.md says how often this holds.
    """
    count, sizes, sums = len(values), np.bincount(groups), np.bincount(groups, weights=values)
    mean = float(values.mean())
    worst = float((sizes.astype(float) ** 2).sum()) / count
    holders = int(min((sums > 0).sum(), (sums < sizes).sum()))
    if not holders:
        return count / worst, math.inf  # nothing was estimated
    effect = max(1.0, error**2 * count / (mean * (1 - mean)))
    effect = math.exp((holders * math.log(effect) + math.log(worst)) / (holders + 1))
    return count / effect, min(freedom, max(1.0, find_freedom((sums - sizes * mean) ** 2))) if error else freedom


def find_freedom(squares: Floats) -> float:
    """Return the degrees of freedom of a sum of squares by Satterthwaite: few where some of them are much of it."""
    kurtosis = len(squares) * float((squares**2).sum()) / float(squares.sum()) ** 2
    return 2 * len(squares) / (kurtosis - 1) if kurtosis > 1 else math.inf


def clustered_error(values: Floats, groups: NDArray[np.intp]) -> tuple[float, float]:
    """Return the standard error of the mean of clustered rows, and its degrees of freedom.

    0.0 where all clusters have one mean, infinite where there is but one.
    `groups` numbers the clusters from 0. A regression on a constant alone, so sums over each cluster are enough.
    CR1: factor G / (G - 1), as in statsmodels (`cov_type="cluster"`) and Stata. CR2: each cluster's residual is divided
    by sqrt(1 - n_g / N); Bell and McCaffrey's degrees of freedom, for equal and independent errors.
    """
    count, number = len(values), int(groups.max()) + 1
    if number < 2:
        return math.inf, 0.0
    sums = np.bincount(groups, weights=values - values.mean())
    if number >= FEW_CLUSTERS:
        variance = number / (number - 1) * float((sums**2).sum()) / count**2
        return _above_rounding(math.sqrt(variance), values), number - 1
    sizes = np.bincount(groups).astype(float)
    weights = 1 / (1 - sizes / count)
    variance = float((weights * sums**2).sum()) / count**2
    squares = weights * sizes**2
    cross = float(squares.sum() ** 2 - (squares**2).sum())
    freedom = 1 / (float((sizes**2).sum()) / count**2 + cross / count**4)
    return _above_rounding(math.sqrt(variance), values), freedom


def _above_rounding(error: float, values: Floats) -> float:
    return error if error > _ROUNDING * float(np.abs(values).max()) else 0.0


def name_method(clusters: int) -> str:
    """Return `Interval.method` for this number of clusters."""
    return "clusters" if clusters >= FEW_CLUSTERS else "few clusters"


def _to_array(values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise ValueError(f"expected one number a row and at least one row, got the shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("a value is NaN or infinite: rows without a score are no part of a mean")
    return array


def find_groups(clusters: Sequence[Hashable] | None, rows: int) -> NDArray[np.intp]:
    """Return the clusters of rows as numbers: rows that are not independent have one.

    `clusters`: of each row what it belongs to, None where that is nothing. Raises ValueError for another length.
    """
    if clusters is None or (len(clusters) == rows and list(clusters).count(None) == rows):
        return np.arange(rows)
    if len(clusters) != rows:
        raise ValueError(f"{rows} rows, and clusters of {len(clusters)}: expected one for each")
    return number_clusters(clusters)


def are_clusters(groups: NDArray[np.intp]) -> bool:
    """Whether some rows are in one cluster: else each row is alone."""
    return int(groups.max(initial=-1)) + 1 < len(groups)


def number_clusters(clusters: Sequence[Hashable] | NDArray[Any]) -> NDArray[np.intp]:
    """Return the clusters as numbers from 0, in the order in which they first occur; None is one of its own."""
    numbers: dict[Hashable, int] = {}
    named = (object() if cluster is None else cluster for cluster in clusters)
    return np.array([numbers.setdefault(cluster, len(numbers)) for cluster in named], dtype=np.intp)


def is_binary(array: Floats) -> bool:
    """Whether each value is 0 or 1."""
    return bool(((array == 0) | (array == 1)).all())


def normal_quantile(level: float) -> float:
    """Return how many standard errors the ends of a normal interval are from its middle."""
    return NormalDist().inv_cdf((1 + level) / 2)  # as scipy.special.ndtri, which takes as long to import as numpy


def t_quantile(level: float, freedom: float) -> float:
    """Return how many standard errors the ends of Student's t interval are from its middle."""
    from scipy.special import stdtrit  # scipy.stats takes half a second to import

    return float(stdtrit(freedom, (1 + level) / 2))


# ---- Rows that were answered several times


def answers_interval(values: ArrayLike, noise: ArrayLike, answers: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Return the interval of the mean of `values` over these rows, with other answers to the same rows.

    `noise`: of each row the variance of its value, NaN where that is not known (`reducers.find_noise`); `answers`: how
    many answers its value is made of. The rows' variances add up; Student's t has Satterthwaite's degrees of freedom.
    Where the noise of one row is not known, or all rows' answers agree, nothing is known: `method` is `none`.
    Raises ValueError for no rows, and for sequences of unequal length.
    """
    array, variances, numbers = (np.asarray(given, dtype=np.float64) for given in (values, noise, answers))
    if not len(array) or not array.shape == variances.shape == numbers.shape:
        raise ValueError(f"expected three numbers a row, got {array.shape}, {variances.shape} and {numbers.shape}")
    total, error, freedom = float(variances.sum()), math.inf, 0.0
    if total > 0 and numbers.min() > 1:
        error, freedom = math.sqrt(total) / len(array), total**2 / float((variances**2 / (numbers - 1)).sum())
    return t_around(float(array.mean()), error, freedom, len(array), "answers", None, level)


def trials_interval(means: ArrayLike, count: int, *, level: float = LEVEL) -> Interval:
    """Return the interval of a mean over these `count` rows, given the mean of each trial over all of them.

    A trial draws its demonstrations once for all rows, so that its rows err together: the trials are what was drawn.
    """
    found = t_interval(means, level=level)
    return replace(found, count=count, method="none" if found.method == "none" else "trials")
