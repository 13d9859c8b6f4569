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
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from helm_ext.scoring.statistics.corrected import mean_error, share_of, share_within
from helm_ext.scoring.statistics.intervals import (
    LEVEL,
    Interval,
    are_clusters,
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


class Rated(NamedTuple):
    """Rows, at least one, that both a judge and people have judged."""

    judge: Floats
    people: Floats
    groups: NDArray[np.intp]
    """The cluster of each (`intervals.find_groups`)."""
    weights: Floats | None = None
    """1 / the chance of a label; None: one for all."""

    @property
    def own(self) -> Floats:
        """Weights of a mean of 1."""
        return np.ones(len(self.judge)) if self.weights is None else self.weights / self.weights.mean()

    def pick(self, rows: NDArray[np.bool_]) -> Rated:
        """Return some of the rows."""
        judge, people, groups = self.judge[rows], self.people[rows], self.groups[rows]
        return Rated(judge, people, groups, None if self.weights is None else self.weights[rows])


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


def _measure_table(rated: Rated, number: Callable[[Floats], float]) -> Interval | None:
    """Return the interval of a number that is made of a table: shares of rows, a line a verdict, a column a label.

    Labels are often drawn by verdict, or verdicts are rare: then a verdict of much weight may have a few labels without
    an error, of which the jackknife takes it to have none. So the share that people call right within each verdict has
    the limits of `corrected`; a number is measured again with one share at a time at its limits, and the distances are
    combined by MOVER (Zou and Donner 2008), with the variance of the mix of verdicts. Intervals held in 92 % or more
    where the jackknife's did in 48 to 99 % (100 labels of 1,000 rows, half or three quarters of what the judge failed).
    None where the number is NaN.
    """
    count, own = len(rated.judge), rated.own
    clusters = int(rated.groups.max()) + 1 if are_clusters(rated.groups) else None
    passed = min(1.0, float(own @ rated.judge) / count)  # a mean of ones may be rounded up
    rows = (count if rated.weights is None else float(rated.weights.sum())) * (clusters or count) / count
    found = [
        share_within(rated.people[has], own[has], rated.groups[has]) if has.any() else None
        for has in (rated.judge == 0, rated.judge == 1)
    ]
    shares = [0.0 if one is None else one.mean for one in found]

    def compute(passed: float, shares: Sequence[float]) -> float:
        table = np.array([[1 - right, right] for right in shares]) * [[1 - passed], [passed]]
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(number(table))

    mean = compute(passed, shares)
    if math.isnan(mean):
        return None
    more, less = min(1.0, passed + _STEP), max(0.0, passed - _STEP)
    slope = (compute(more, shares) - compute(less, shares)) / (more - less)
    mix = normal_quantile(LEVEL) * slope * math.sqrt(passed * (1 - passed) / rows)
    below = above = 0.0 if math.isnan(mix) else mix
    for place, one in enumerate(found):
        moved = [] if one is None else [[*shares[:place], end, *shares[place + 1 :]] for end in (one.low, one.high)]
        away = [0.0, *(compute(passed, others) - mean for others in moved)]
        below, above = math.hypot(below, np.nanmin(away)), math.hypot(above, np.nanmax(away))
    return Interval(mean, max(-1.0, mean - below), min(1.0, mean + above), count, "MOVER", clusters)


def find_sides(rated: Rated, *, by_verdict: bool) -> tuple[Interval | None, Interval | None]:
    """Return the share of what people call right that the judge passes, and of what they call wrong that it fails.

    `by_verdict`: the rows' weights are those of two verdicts; where all rows have one of them, nothing is known.
    """
    if by_verdict:
        if len(np.unique(rated.judge)) < 2:
            return None, None
        of_right = _measure_table(rated, lambda table: table[1, 1] / table[:, 1].sum())
        of_wrong = _measure_table(rated, lambda table: table[0, 0] / table[:, 0].sum())
        return of_right and of_right.within((0.0, 1.0)), of_wrong and of_wrong.within((0.0, 1.0))
    called = [rated.pick(rated.people == value) for value in (1, 0)]
    right, wrong = (
        share_of((one.judge == one.people).astype(float), np.ones(len(one.judge)), one.groups)
        if len(one.judge)
        else None
        for one in called
    )
    return right, wrong


def agree(rated: Rated, scale: Scale = "nominal") -> Agreement:
    """Return how far a judge and people agree; `scale` is alpha's."""
    pair, own = np.column_stack([rated.judge, rated.people]), rated.own
    apart = (pair[:, 0] != pair[:, 1]).astype(float)
    share = 1 - float(own @ apart / own.sum())
    if is_binary(pair):
        if len(np.unique(pair)) < 2:
            return Agreement(share, None, None, None)
        values = 2 * len(pair)

        def beyond(expected: Callable[[float, float], float]) -> Interval | None:
            return _measure_table(rated, lambda t: 1 - (t[0, 1] + t[1, 0]) / expected(t[1].sum(), t[:, 1].sum()))

        return Agreement(
            share,
            beyond(lambda one, other: one + other - 2 * one * other),
            beyond(lambda one, other: 1 - (one + other) / 2 * (2 - one - other)),
            beyond(lambda one, other: (one + other) / 2 * (2 - one - other) * values / (values - 1)),
        )
    names, codes = np.unique(pair, return_inverse=True)
    unit, k = np.eye(len(names))[codes.reshape(pair.shape)], len(names)
    columns = [own, own * apart, *(own[:, None] * unit[:, one] for one in (0, 1))]
    parts = _sum_groups(np.column_stack(columns), rated.groups)

    def kappa(totals: Floats) -> tuple[Floats, Floats]:
        one, other = (totals[..., 2 + n * k : 2 + (n + 1) * k] / totals[..., :1] for n in (0, 1))
        return totals[..., 1] / totals[..., 0], 1 - (one * other).sum(axis=-1)

    def ac1(totals: Floats) -> tuple[Floats, Floats]:
        mean = (totals[..., 2 : 2 + k] + totals[..., 2 + k :]) / (2 * totals[..., :1])
        return totals[..., 1] / totals[..., 0], 1 - (mean * (1 - mean)).sum(axis=-1) / max(1, k - 1)

    kappas, ac1s = (_measure_beyond_chance(parts, one, len(pair)) for one in (kappa, ac1))
    return Agreement(share, kappas, ac1s, alpha(pair, rated.groups, own, scale))


def alpha(
    ratings: Floats, groups: NDArray[np.intp], own: Floats | None = None, scale: Scale = "nominal"
) -> Interval | None:
    """Return Krippendorff's alpha: a line a row, a column a rater, NaN where one said nothing.

    `groups` are the rows' clusters, `own` their weights. Rows of fewer than two values tell nothing and are left out.
    None where no row has two, or all values are equal.
    """
    known = ~np.isnan(ratings)
    kept = known.sum(axis=1) >= 2
    given, known, own = ratings[kept], known[kept], np.ones(kept.sum()) if own is None else own[kept]
    names, codes = np.unique(given[known], return_inverse=True)
    if len(names) < 2:
        return None
    own = own / own.mean()
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
    parts = _sum_groups(np.column_stack(columns), number_clusters(groups[kept]))

    def distances(totals: Floats) -> tuple[Floats, Floats]:
        values, apart, squares = totals[..., 0], totals[..., 1], totals[..., 2]
        expected = 2 * (values * squares - (totals[..., 3:] ** 2).sum(axis=-1)) / (values * (values - 1))
        return apart / values, expected

    farthest = 2.0 if scale == "nominal" else float(np.ptp(places)) ** 2
    return _measure_beyond_chance(parts, distances, len(given), farthest)


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


def compare_halves(rated: Rated, lengths: ArrayLike, *, are_grades: bool = False) -> Interval | None:
    """Return by how much more the judge overrates the longer half of the rows than the rest; None where none is longer.

    The limits of the mean error (verdict - label) of both halves are combined by MOVER.
    """
    long = np.asarray(lengths, dtype=np.float64)
    is_long = long > np.median(long)
    if not is_long.any():
        return None
    longer, rest = (
        mean_error(half.judge - half.people, half.own, half.groups, are_grades=are_grades)
        for half in (rated.pick(is_long), rated.pick(~is_long))
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


def _sum_groups(columns: Floats, groups: NDArray[np.intp]) -> Floats:
    sums = np.zeros((int(groups.max()) + 1, columns.shape[1]))
    np.add.at(sums, groups, columns)
    return sums


def _measure_beyond_chance(
    parts: Floats,
    disagree: Callable[[Floats], tuple[Floats, Floats]],
    rows: int,
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
    found = t_around(value, told, number - 1, rows, "jackknife", number if number < rows else None, LEVEL)
    observed, expected = map(float, disagree(total))
    low, high, method, share = found.low, found.high, found.method, min(1.0, observed / farthest)
    if share < _ROUNDING or (number > 1 and error <= _ROUNDING):
        perhaps = wilson_share(share if share > _ROUNDING else 0.0, number, normal_quantile(LEVEL))
        low, high = (1 - end * farthest / expected for end in (perhaps.high, perhaps.low))
        method = "wilson"
    return replace(found, low=max(low, -1.0), high=min(high, 1.0), method=method)
