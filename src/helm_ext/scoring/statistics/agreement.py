"""How far raters agree, beyond chance; and where a judge errs: each number with a 95 % interval.

| number                                  | source                                                                     |
|-----------------------------------------|----------------------------------------------------------------------------|
| Cohen's kappa                           | Cohen 1960                                                                 |
| Gwet's AC1, which rare values leave be  | Gwet 2008, British Journal of Mathematical and Statistical Psychology 61   |
| Krippendorff's alpha                    | Krippendorff 2019, Content Analysis, chapter 12; values may be missing     |

Intervals of right and wrong are made of those within each verdict (`Verdicts`). Of other values, and of several raters,
they are the jackknife's over rows, or over clusters of rows (Efron and Stein 1981), with Student's t. Where
nothing was ever disagreed on, or all rows disagree alike, it has nothing to go by: the ends are Wilson's limits then.
Rows that were drawn for labels with unequal chances are weighted, so that the numbers are those of all rows.

Alpha is 1 - observed / expected squared distance of two values of a row, and of any two values: of their names as
unit vectors (nominal), of the values (interval), or of the mid-ranks (ordinal, which is Krippendorff's own metric
said shortly).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from helm_ext.scoring.statistics.corrected import mean_error, share_of
from helm_ext.scoring.statistics.intervals import (
    LEVEL,
    Interval,
    find_groups,
    is_binary,
    normal_quantile,
    number_clusters,
    t_around,
    wilson_interval,
    wilson_share,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from helm_ext.scoring.statistics.intervals import Floats

Scale = Literal["nominal", "ordinal", "interval"]
_ROUNDING = 1e-12
_STEP = 1e-4
"""By which the share of a verdict is moved to see what depends on it."""


class Agreement(NamedTuple):
    """Two raters of the same rows. None: all values are equal, so that no agreement beyond chance can be told."""

    observed: float
    """The share of rows on which both say the same."""
    kappa: Interval | None
    ac1: Interval | None
    alpha: Interval | None


class Swapped(NamedTuple):
    """A judge who was asked which of two answers is better, in both orders."""

    consistency: Interval
    """The share of rows with one verdict in both orders."""
    win_rate: Interval
    """Of the first answer. The interval takes each row that was judged both ways for either."""


class Verdicts:
    """Right and wrong by a judge and by people, of the same rows: what is made of it has an interval over verdicts.

    Labels are often drawn by verdict, or verdicts are rare: then a verdict of much weight may have a few labels without
    an error, of which the jackknife takes it to have none. So the share that people call right within each verdict has
    Wilson's limits; a number is measured again with one share at a time at its limits, and the distances are combined
    by MOVER (Zou and Donner 2008), with the variance of the mix of verdicts. Intervals held in 91 to 99 % where the
    jackknife's did in 48 to 99 % (100 labels of 1,000 rows, half or three quarters of them of what the judge failed).
    """

    def __init__(
        self, judge: Floats, people: Floats, weights: ArrayLike | None, clusters: Sequence[Hashable] | None
    ) -> None:
        """Both are 1 or 0. `weights`: 1 / the chance of a label. Raises ValueError for no rows."""
        self.count = len(judge)
        own, groups, is_clustered = _prepare(judge[:, None], weights, clusters)
        self._clusters = int(groups.max()) + 1 if is_clustered else None
        self._passed = float(own @ judge) / self.count
        rows = self.count if weights is None else float(np.sum(weights))
        self._rows = rows * (self._clusters or self.count) / self.count
        self._shares = [
            share_of(people[has], own[has], groups[has].tolist()) if has.any() else None
            for has in (judge == 0, judge == 1)
        ]

    def measure(self, number: Callable[[Floats], float]) -> Interval | None:
        """Return the interval of a number that is made of a table: shares of rows, a line a verdict, a column a label.

        None where the number is NaN.
        """
        shares = [0.0 if one is None else one.mean for one in self._shares]

        def compute(passed: float, shares: Sequence[float]) -> float:
            table = np.array([[1 - right, right] for right in shares]) * [[1 - passed], [passed]]
            with np.errstate(invalid="ignore", divide="ignore"):
                return float(number(table))

        mean = compute(self._passed, shares)
        if math.isnan(mean):
            return None
        slope = compute(min(1.0, self._passed + _STEP), shares) - compute(max(0.0, self._passed - _STEP), shares)
        slope /= min(1.0, self._passed + _STEP) - max(0.0, self._passed - _STEP)
        mix = normal_quantile(LEVEL) * slope * math.sqrt(self._passed * (1 - self._passed) / self._rows)
        below = above = 0.0 if math.isnan(mix) else mix
        for place, one in enumerate(self._shares):
            moved = [] if one is None else [[*shares[:place], end, *shares[place + 1 :]] for end in (one.low, one.high)]
            away = [0.0, *(compute(self._passed, others) - mean for others in moved)]
            below, above = math.hypot(below, np.nanmin(away)), math.hypot(above, np.nanmax(away))
        low, high = max(-1.0, mean - below), min(1.0, mean + above)
        return Interval(mean, low, high, self.count, "MOVER", self._clusters)


def sensitivity(table: Floats) -> float:
    """Of the rows that people call right, the share that the judge passes."""
    return float(table[1, 1] / table[:, 1].sum())


def specificity(table: Floats) -> float:
    """Of the rows that people call wrong, the share that the judge fails."""
    return float(table[0, 0] / table[:, 0].sum())


def agree(
    first: ArrayLike,
    second: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
    scale: Scale = "nominal",
) -> Agreement:
    """Return how far two raters agree; `scale` is alpha's. Raises ValueError for no rows and unequal lengths.

    Of right and wrong, `first` is the judge, whose verdicts the rows may be drawn by (`weights`: 1 / chance).
    """
    pair = np.array([first, second], dtype=np.float64).T
    own, groups, is_clustered = _prepare(pair, weights, clusters)
    apart = (pair[:, 0] != pair[:, 1]).astype(float)
    share = 1 - float(own @ apart / own.sum())
    if is_binary(pair):
        verdicts, values = Verdicts(pair[:, 0], pair[:, 1], weights, clusters), 2 * len(pair)

        def beyond(expected: Callable[[float, float], float]) -> Interval | None:
            return verdicts.measure(lambda t: 1 - (t[0, 1] + t[1, 0]) / expected(t[1].sum(), t[:, 1].sum()))

        if len(np.unique(pair)) < 2:
            return Agreement(share, None, None, None)
        return Agreement(
            share,
            beyond(lambda one, other: one + other - 2 * one * other),
            beyond(lambda one, other: 1 - (one + other) / 2 * (2 - one - other)),
            beyond(lambda one, other: (one + other) / 2 * (2 - one - other) * values / (values - 1)),
        )
    names, codes = np.unique(pair, return_inverse=True)
    unit, k = np.eye(len(names))[codes.reshape(pair.shape)], len(names)
    parts = _sum_groups(np.column_stack([own, own * apart, *(own[:, None] * unit[:, one] for one in (0, 1))]), groups)

    def kappa(totals: Floats) -> tuple[Floats, Floats]:
        one, other = (totals[..., 2 + n * k : 2 + (n + 1) * k] / totals[..., :1] for n in (0, 1))
        return totals[..., 1] / totals[..., 0], 1 - (one * other).sum(axis=-1)

    def ac1(totals: Floats) -> tuple[Floats, Floats]:
        mean = (totals[..., 2 : 2 + k] + totals[..., 2 + k :]) / (2 * totals[..., :1])
        return totals[..., 1] / totals[..., 0], 1 - (mean * (1 - mean)).sum(axis=-1) / max(1, k - 1)

    kappas, ac1s = (_measure_beyond_chance(parts, one, len(pair), is_clustered) for one in (kappa, ac1))
    return Agreement(share, kappas, ac1s, alpha(pair, weights=weights, clusters=clusters, scale=scale))


def alpha(
    ratings: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
    scale: Scale = "nominal",
) -> Interval | None:
    """Return Krippendorff's alpha: a line a row, a column a rater, NaN where one said nothing.

    Rows of fewer than two values tell nothing and are left out. None where no row has two, or all values are equal.
    """
    given = np.asarray(ratings, dtype=np.float64)
    own, groups, is_clustered = _prepare(given, weights, clusters)
    known = ~np.isnan(given)
    kept = known.sum(axis=1) >= 2
    if not kept.any():
        return None
    given, known, own = given[kept], known[kept], own[kept] / own[kept].mean()
    groups = number_clusters(groups[kept])
    names, codes = np.unique(given[known], return_inverse=True)
    places = names[:, None] - names.mean()
    if scale == "nominal":
        places = np.eye(len(names))
    elif scale == "ordinal":
        held = np.bincount(codes, weights=np.broadcast_to(own[:, None], known.shape)[known])
        places = (held.cumsum() - held / 2)[:, None]
    at = np.zeros((*given.shape, places.shape[1]))
    at[known] = places[codes]
    numbers, squares, sums = known.sum(axis=1), (at**2).sum(axis=(1, 2)), at.sum(axis=1)
    apart = 2 * (numbers * squares - (sums**2).sum(axis=1)) / (numbers - 1)
    columns = [own * numbers, own * apart, own * squares, own[:, None] * sums]
    parts = _sum_groups(np.column_stack(columns), groups)

    def distances(totals: Floats) -> tuple[Floats, Floats]:
        values, apart, squares = totals[..., 0], totals[..., 1], totals[..., 2]
        expected = 2 * (values * squares - (totals[..., 3:] ** 2).sum(axis=-1)) / (values * (values - 1))
        return apart / values, expected

    farthest = 2.0 if scale == "nominal" else float(np.ptp(places)) ** 2
    return _measure_beyond_chance(parts, distances, int(kept.sum()), is_clustered, farthest)


def rater_variance(ratings: ArrayLike) -> float:
    """Return the variance of the mean label that is due to who the raters were: some are stricter than others.

    Of the rows that all raters of a pair have labelled, the mean difference of both, less what differences that go
    either way make of themselves; halved it is the variance of a rater, and over the raters' number that of their
    mean. 0 for one rater, and where no row has two.
    """
    given = np.asarray(ratings, dtype=np.float64)
    found = []
    for one in range(given.shape[1]):
        for other in range(one):
            apart = given[:, one] - given[:, other]
            apart = apart[~np.isnan(apart)]
            if len(apart) > 1:
                found.append(float(apart.mean() ** 2 - apart.var(ddof=1) / len(apart)) / 2)
    return max(0.0, float(np.mean(found))) / given.shape[1] if found else 0.0


def compare_halves(
    values: ArrayLike,
    lengths: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
    are_grades: bool = False,
) -> Interval | None:
    """Return the mean of the values of the longer half of the rows less that of the shorter; None where none is longer.

    Of a judge's errors (verdict - label): above 0 it is kinder to long answers. The limits of both halves are combined
    by MOVER.
    """
    given, long = np.asarray(values, dtype=np.float64), np.asarray(lengths, dtype=np.float64)
    own, groups, _ = _prepare(given[:, None], weights, clusters)
    is_long = long > np.median(long)
    if not is_long.any():
        return None
    longer, rest = (
        mean_error(given[half], own[half], groups[half].tolist(), are_grades=are_grades) for half in (is_long, ~is_long)
    )
    return longer.minus(rest)


def compare_orders(first: ArrayLike, second: ArrayLike) -> Swapped:
    """Return how consistent a judge is, and the first answer's win rate: 1 where preferred, 0 where not, 0.5 tied.

    `first` is the verdict where that answer stood first, `second` where it stood second. Raises ValueError for no rows.
    """
    pair = np.array([first, second], dtype=np.float64)
    rows, same = pair.shape[1], int((pair[0] == pair[1]).sum())
    worst, best = (
        wilson_share(float(ends.mean()), rows, normal_quantile(LEVEL)) for ends in (pair.min(0), pair.max(0))
    )
    win = replace(worst, mean=float(pair.mean()), high=best.high)
    return Swapped(wilson_interval(same, rows), win)


def _prepare(
    values: Floats, weights: ArrayLike | None, clusters: Sequence[Hashable] | None
) -> tuple[Floats, NDArray[np.intp], bool]:
    """Return weights of a mean of 1, the number of each row's cluster, and if there are any. Raises ValueError."""
    rows = len(values)
    own = np.ones(rows) if weights is None else np.asarray(weights, dtype=np.float64)
    if not rows or len(own) != rows:
        raise ValueError(f"{rows} rows, {len(own)} weights: expected at least one row, and one of each for a row")
    groups = find_groups(clusters, rows)
    return own / own.mean(), np.arange(rows) if groups is None else groups, groups is not None


def _sum_groups(columns: Floats, groups: NDArray[np.intp]) -> Floats:
    sums = np.zeros((int(groups.max()) + 1, columns.shape[1]))
    np.add.at(sums, groups, columns)
    return sums


def _measure_beyond_chance(
    parts: Floats,
    disagree: Callable[[Floats], tuple[Floats, Floats]],
    rows: int,
    is_clustered: bool,
    farthest: float = 1.0,
) -> Interval | None:
    """Return 1 - observed / expected disagreement of the sum of the parts; None where chance alone would agree always.

    Its error is the jackknife's: how much it depends on each of the parts. `farthest` is the greatest disagreement of a
    row: where all rows disagree alike, or none does, Wilson's limits say how many others may not.
    """

    def measure(totals: Floats) -> Floats:
        observed, expected = disagree(totals)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(expected > _ROUNDING * farthest, 1 - observed / expected, np.nan)

    total, number = parts.sum(axis=0), len(parts)
    value, without = float(measure(total)), measure(total - parts)
    if math.isnan(value):
        return None
    error = math.sqrt((number - 1) / number * float(((without - without.mean()) ** 2).sum()))  # NaN: not defined
    told = error if number > 1 and error > _ROUNDING else math.inf
    found = t_around(value, told, number - 1, rows, "jackknife", number if is_clustered else None, LEVEL)
    observed, expected = map(float, disagree(total))
    low, high, method, share = found.low, found.high, found.method, min(1.0, observed / farthest)
    if share < _ROUNDING or (number > 1 and error <= _ROUNDING):
        perhaps = wilson_share(share if share > _ROUNDING else 0.0, number, normal_quantile(LEVEL))
        low, high = (1 - end * farthest / expected for end in (perhaps.high, perhaps.low))
        method = "wilson"
    return replace(found, low=max(low, -1.0), high=min(high, 1.0), method=method)
