"""A judge's score corrected by human labels of some of its rows: right whatever the judge's errors are.

| verdicts                      | labels drawn                     | correction                                   |
|-------------------------------|----------------------------------|----------------------------------------------|
| right or wrong, votes, pairs  | at random, or by known chances   | post-stratified by verdict                   |
| graded                        | at random, or by known chances   | PPI++ (`correct_graded`)                     |
| right or wrong                | balanced on the human label      | Rogan and Gladen (`correct_balanced`)        |

Post-stratified: the mean of the labels within each verdict, weighted by how many rows have that verdict. Which rows
were labelled may depend on the verdict in any way, and otherwise on known chances alone. With labels drawn at random
it is the efficient estimate (Chen et al. 2026, arXiv 2601.05420), and PPI++ with a saturated model (Angelopoulos et
al. 2023, arXiv 2311.01453); stratified: Fisch et al. 2024, arXiv 2406.04291. The verdicts' limits are combined by
MOVER (Zou and Donner 2008), with the variance of the mix of verdicts, of which another draw of rows would have had
another.

The limits within a verdict are the wider, at each end, of Wilson's and Jeffreys'; where all labels agree, the other
end is the exact one-sided limit, 0.05^(1/n). Wilson's alone, combined so, hold in 92 to 93 % where a verdict has few
labels and hardly any errors (docs/judging.md). Of a difference of two models they are Agresti and Min's (2005,
Statistics in Medicine 24): with half a label more of each outcome. Tango's are a third wider here, where verdicts
with few labels hardly ever differ.

Grades are corrected by PPI++ (Angelopoulos et al. 2023, arXiv 2311.01453):

    mean of slope x grade over all rows + weighted mean of (label - slope x grade) over the labelled rows

The slope is that of a regression of the labels on the grades; a label's own slope is estimated from the other fifths
of the labels (cross-fitting, as Zrnic and Candes 2024, PNAS, do), so that no label chooses the slope that suits it.
Rows that were drawn with unequal chances are weighted by 1 / chance (active inference: Zrnic and Candes 2024, arXiv
2403.03208), with the weights' sum for their number (Hajek). Student's t. The labelled rows are rows too: with all of
them labelled, this is the mean of the labels and its interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from helm_ext.errors import count
from helm_ext.scoring.statistics.intervals import (
    LEVEL,
    Interval,
    are_clusters,
    find_freedom,
    find_groups,
    normal_quantile,
    number_clusters,
    t_around,
    t_quantile,
    wilson_limits,
    wilson_share,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from helm_ext.scoring.statistics.intervals import Floats

FEWEST_LABELS = 20
"""Labels, or labelled clusters, below which nothing is corrected."""
FEWEST_IN_CELL = 3
"""Labels of a verdict below which it tells nothing, unless all of its rows are labelled."""
_LEAST_YOUDEN = 0.1
"""Sensitivity + specificity - 1 below which a judge knows too little to divide by."""

_FOLDS = 5
_WANTED = 0.03
"""Half the length of an interval that is short enough."""
_ROUNDING = 1e-12
"""Weighted means of ones are off by less."""


class Cell(NamedTuple):
    """Rows of one verdict."""

    verdict: Hashable
    rows: int
    labels: int
    mean: float
    """Of the labels."""


class Corrected(NamedTuple):
    """A corrected mean. `interval.method`: `post-stratified`, `PPI++` or `Rogan-Gladen`; its `count` is all rows."""

    interval: Interval
    labels: int
    cells: tuple[Cell, ...] = ()
    effect: float = 1.0
    """The design effect of clusters: so many labels tell as much as one by itself."""


class Refused(NamedTuple):
    """Why labels cannot correct a score: half a sentence, without a full stop."""

    reason: str


def correct_by_verdict(
    verdicts: Sequence[Hashable],
    gold: ArrayLike,
    *,
    sides: Sequence[Hashable] | None = None,
    chances: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
    rater_variance: float = 0.0,
    is_difference: bool = False,
    level: float = LEVEL,
) -> Corrected | Refused:
    """Return the mean of `gold` over all rows, only some of which have one.

    `verdicts`: what the judge said of each row (of a jury the number of votes; of two models both verdicts). `gold`:
    labels of 0 to 1, of -1 to 1 for a difference of two models (`is_difference`), NaN where a row has none. `sides`:
    the binary verdict of each row, within which verdicts of too few labels are pooled; without it none are.
    `chances`: with which a row was drawn for a label, read where it has one; without it, all rows of one verdict had
    one chance. `clusters` as in `intervals.find_groups`. `rater_variance`: `agreement.rater_variance`. Raises
    ValueError for sequences of unequal length and for chances that are none.
    """
    labels = np.asarray(gold, dtype=np.float64)
    if not len(verdicts) == len(labels) == len(sides or verdicts):
        raise ValueError(f"{len(verdicts)} verdicts, labels of {len(labels)} rows: expected one of each for a row")
    taken = _take(labels, chances, clusters)
    if isinstance(taken, Refused):
        return taken
    drawn, weights, groups, units = taken
    pooled = _pool(verdicts, sides, groups, drawn, is_one_rate=chances is None)
    if isinstance(pooled, Refused):
        return pooled
    cells, counts, signs = [], np.empty(len(pooled)), np.empty((len(pooled), 2))
    influence = np.empty(len(labels))
    for number, (verdict, inside) in enumerate(pooled.items()):
        values, own = labels[inside & drawn], weights[inside & drawn]
        mean = float(own @ values) / float(own @ np.ones(len(own)))  # 1 where all labels are, to the last bit
        own = own / own.sum()
        influence[inside] = mean
        influence[inside & drawn] += inside.sum() * own * (values - mean)
        cells.append(Cell(verdict, int(inside.sum()), len(values), mean))
        counts[number] = _effective_labels(values, own, mean)
        signs[number] = own @ np.maximum(values, 0), own @ np.maximum(-values, 0)
    quantile, effect, is_clustered = normal_quantile(level), 1.0, are_clusters(groups)
    if is_clustered:
        error, freedom = _influence_error(influence, groups, drawn)
        alone = float(influence.std()) / math.sqrt(len(influence))
        quantile, effect = t_quantile(level, freedom), _design_effect(error, alone, drawn.sum() / units)
        counts /= effect
    sizes, means = np.array([cell.rows for cell in cells], dtype=float), np.array([cell.mean for cell in cells])
    if is_difference:
        lows, highs = difference_limits(signs[:, 0], signs[:, 1], counts, quantile)
    else:
        lows, highs = share_limits(means, counts, quantile)
    mean, low, high = map(
        float, combine_cells(sizes, means, lows, highs, quantile, effect=effect, variance=rater_variance)
    )
    interval = Interval(mean, low, high, len(labels), "post-stratified", units if is_clustered else None, level)
    return Corrected(interval, int(drawn.sum()), tuple(cells), effect)


def _pool(
    verdicts: Sequence[Hashable],
    sides: Sequence[Hashable] | None,
    groups: NDArray[np.intp],
    drawn: NDArray[np.bool_],
    *,
    is_one_rate: bool,
) -> dict[Hashable, NDArray[np.bool_]] | Refused:
    """Return which rows each cell holds: one verdict, or all of a side where one of them has too few labels.

    A verdict without any label can be part of a side only where all rows had one chance: then the others speak for it.
    """
    numbers = number_clusters(verdicts)
    cells = {verdict: numbers == number for number, verdict in enumerate(dict.fromkeys(verdicts))}
    side_of = dict(zip(verdicts, sides or verdicts, strict=True))
    is_thin = {verdict: _count_thin(inside, groups, drawn) is not None for verdict, inside in cells.items()}
    thin_sides = {side_of[verdict] for verdict, thin in is_thin.items() if thin}
    pooled: dict[Hashable, NDArray[np.bool_]] = {}
    for verdict, inside in cells.items():
        side = side_of[verdict]
        if side not in thin_sides:
            pooled[verdict] = inside
            continue
        if not is_one_rate and not (inside & drawn).any():
            return Refused(f"none of the {inside.sum():,} rows with the verdict {verdict} has a label")
        pooled[side] = pooled.get(side, False) | inside
    for verdict, inside in pooled.items():
        few = _count_thin(inside, groups, drawn)
        if few is not None:
            return Refused(
                f"{few} of the {inside.sum():,} rows with the verdict {verdict} have a label; "
                f"at least {FEWEST_IN_CELL} are needed"
            )
    return pooled


def _count_thin(inside: NDArray[np.bool_], groups: NDArray[np.intp], drawn: NDArray[np.bool_]) -> int | None:
    """Return how many labels, or labelled clusters, a cell has where they are too few; None where they are enough."""
    few = len(np.unique(groups[inside & drawn]))
    return few if few < FEWEST_IN_CELL and (drawn & inside).sum() < inside.sum() else None


def _effective_labels(values: Floats, own: Floats, mean: float) -> float:
    """Return as how many labels that were drawn at one rate these tell, `own` being their weights, of a sum of 1.

    1 / the sum of squares (Kish 1965), and fewer where the labels of great weight are those that differ.
    """
    spread, noise = float(own @ (values - mean) ** 2), float(own**2 @ (values - mean) ** 2)
    by_weight = 1 / float(own @ own)
    return min(by_weight, spread / noise) if noise else by_weight


def combine_cells(
    sizes: Floats,
    means: Floats,
    lows: Floats,
    highs: Floats,
    quantile: float,
    *,
    effect: float = 1.0,
    variance: float = 0.0,
) -> tuple[Floats, ...]:
    """Return the weighted mean of cells (the last axis) and its limits by MOVER.

    `effect` is the design effect of clusters on the mix of cells, `variance` what else makes the mean uncertain.
    """
    rows = sizes.sum(axis=-1, keepdims=True)
    shares = sizes / rows
    mean = (sizes * means).sum(axis=-1) / rows[..., 0]
    mixed = effect * (shares * (means - mean[..., None]) ** 2).sum(axis=-1) / rows[..., 0] + variance
    below, above = (
        np.sqrt((shares**2 * (means - ends) ** 2).sum(axis=-1) + quantile**2 * mixed) for ends in (lows, highs)
    )
    return mean, mean - below, mean + above


def share_limits(shares: Floats, counts: Floats, quantile: float) -> tuple[Floats, Floats]:
    """Return the limits of shares of so many labels, which may be fractions: the rule of this module's docstring."""
    from scipy.special import betaincinv

    tail = 1 - NormalDist().cdf(quantile)
    low, high = wilson_limits(shares, counts, quantile)
    right, wrong = shares * counts + 0.5, (1 - shares) * counts + 0.5
    low, high = np.minimum(low, betaincinv(right, wrong, tail)), np.maximum(high, betaincinv(right, wrong, 1 - tail))
    agreed = (2 * tail) ** (1 / counts)
    none, every = shares <= _ROUNDING, shares >= 1 - _ROUNDING
    low = np.where(none, 0.0, np.where(every, agreed, np.maximum(low, 0.0)))
    high = np.where(every, 1.0, np.where(none, 1 - agreed, np.minimum(high, 1.0)))
    return low, high


class _Weighed(NamedTuple):
    """Rows of unequal weights, and as how many rows of one weight they tell."""

    own: Floats
    """The weights, of a sum of 1."""
    mean: float
    told: float
    freedom: float
    """Of Student's t; infinite where the rows are none of clusters, or nothing was estimated of these."""
    clusters: int | None


def _weigh(values: Floats, weights: Floats, groups: NDArray[np.intp]) -> _Weighed:
    mean, own = float(weights @ values) / float(weights @ np.ones(len(weights))), weights / weights.sum()
    told, groups = _effective_labels(values, own, mean), number_clusters(groups)
    if not are_clusters(groups):
        return _Weighed(own, mean, told, math.inf, None)
    parts, number = len(values) * own * (values - mean), int(groups.max()) + 1
    error, freedom = _influence_error(parts, groups, np.ones(len(values), dtype=bool))
    told /= _design_effect(error, float(np.hypot.reduce(parts)) / len(values), len(values) / number)
    return _Weighed(own, mean, told, freedom if error else math.inf, number)


def share_of(values: Floats, weights: Floats, groups: NDArray[np.intp]) -> Interval:
    """Return the share of ones among rows of these weights, and Wilson's 95 % interval of as many rows as they tell.

    `groups` are the rows' clusters.
    """
    found = _weigh(values, weights, groups)
    interval = wilson_share(found.mean, found.told, t_quantile(LEVEL, found.freedom))
    return replace(interval, count=len(values), clusters=found.clusters)


def share_within(values: Floats, weights: Floats, groups: NDArray[np.intp]) -> Interval:
    """Return the same with the limits of this module's docstring, which hold when they are combined with others."""
    found = _weigh(values, weights, groups)
    quantile = t_quantile(LEVEL, found.freedom)
    (low,), (high,) = share_limits(np.array([found.mean]), np.array([found.told]), quantile)
    return Interval(found.mean, float(low), float(high), len(values), "share", found.clusters)


def mean_error(errors: Floats, weights: Floats, groups: NDArray[np.intp], *, are_grades: bool) -> Interval:
    """Return the mean of a judge's errors on rows of these weights and clusters, and its 95 % interval.

    Of grades Student's t; where they are all equal, nothing is known. Of right and wrong, errors of -1 to 1, the limits
    are those of Agresti and Min, which few rows without an error leave wide.
    """
    found = _weigh(errors, weights, groups)
    if are_grades:
        freedom = found.told - 1
        error = math.sqrt(float(found.own @ (errors - found.mean) ** 2) / freedom) if freedom > 0 else math.inf
        freedom = freedom if found.clusters is None else found.freedom
        return t_around(found.mean, error, freedom, len(errors), "t", found.clusters, LEVEL)
    more, less = (np.array([found.own @ np.maximum(sign * errors, 0)]) for sign in (1, -1))
    (low,), (high,) = difference_limits(more, less, np.array([found.told]), t_quantile(LEVEL, found.freedom))
    return Interval(found.mean, float(low), float(high), len(errors), "Agresti-Min", found.clusters)


def difference_limits(more: Floats, less: Floats, counts: Floats, quantile: float) -> tuple[Floats, Floats]:
    """Return the limits of differences, of the shares of labels that are greater for one model or the other."""
    rows = counts + 2
    greater, lesser = (more * counts + 0.5) / rows, (less * counts + 0.5) / rows
    middle = greater - lesser
    half = quantile * np.sqrt((greater + lesser - middle**2) / rows)
    return np.maximum(np.minimum(middle - half, more - less), -1), np.minimum(np.maximum(middle + half, more - less), 1)


def correct_balanced(verdicts: ArrayLike, gold: ArrayLike, *, level: float = LEVEL) -> Corrected | Refused:
    """Return the share of right rows from labels drawn by the human's own verdict: so many right, so many wrong.

    Rogan and Gladen (1978): the judge's share is turned back by its sensitivity and specificity, which such labels
    still tell; interval of Lee et al. 2026 (arXiv 2511.21140). Of no other design is this the better estimate.
    """
    judged, labels = np.asarray(verdicts, dtype=np.float64), np.asarray(gold, dtype=np.float64)
    drawn = ~np.isnan(labels)
    right, wrong = (judged[drawn & (labels == value)] for value in (1, 0))
    if len(right) + len(wrong) < drawn.sum() or not ((judged == 0) | (judged == 1)).all():
        return Refused("labels that were balanced on the human label correct right and wrong alone, no grades")
    if drawn.sum() < FEWEST_LABELS or min(len(right), len(wrong)) < FEWEST_IN_CELL:
        return Refused(
            f"{len(right)} labels are right and {len(wrong)} wrong; at least {FEWEST_LABELS} are needed, "
            f"and {FEWEST_IN_CELL} of each"
        )
    z = normal_quantile(level)
    rows, passed = len(judged), float(judged.mean())
    if right.mean() - wrong.mean() < _LEAST_YOUDEN:
        return Refused(
            f"the judge passes {right.mean():.0%} of the right and {wrong.mean():.0%} of the wrong answers: "
            "it can hardly tell them apart"
        )
    mean = (passed - wrong.mean()) / (right.mean() - wrong.mean())
    n, n1, n0 = rows + z * z, len(right) + 2, len(wrong) + 2
    p = (passed * rows + z * z / 2) / n
    sensitivity, specificity = (right.sum() + 1) / n1, (len(wrong) - wrong.sum() + 1) / n0
    youden = sensitivity + specificity - 1
    middle = (p + specificity - 1) / youden
    noise1, noise0 = sensitivity * (1 - sensitivity) / n1, specificity * (1 - specificity) / n0
    shift = 2 * z * z * (middle * noise1 - (1 - middle) * noise0)
    half = z * math.sqrt(p * (1 - p) / n + (1 - middle) ** 2 * noise0 + middle**2 * noise1) / youden
    low, high = (min(1.0, max(0.0, middle + shift + sign * half)) for sign in (-1, 1))
    return Corrected(Interval(min(1.0, max(0.0, mean)), low, high, rows, "Rogan-Gladen", level=level), int(drawn.sum()))


def find_p(correct: Callable[[float], Corrected], value: float = 0.0) -> float:
    """Return the two-sided p of a true mean of `value`: 1 - the level at which the interval just holds it.

    At least 1e-6. `correct` makes the interval of a level.
    """
    low, high = 0.0, 1 - 1e-6
    for _ in range(40):
        level = (low + high) / 2
        interval = correct(level).interval
        low, high = (low, level) if interval.low <= value <= interval.high else (level, high)
    return 1 - low


def labels_needed(corrected: Corrected) -> dict[Hashable, int] | None:
    """Return how many more labels of each verdict make a 95 % interval of +- 0.03; None where no number does.

    Neyman's allocation: in proportion to the rows of a verdict times the deviation of their labels, which is taken at
    the middle of Wilson's interval, so that a verdict whose labels all agree is not done with. Labels that are there
    count; no verdict gets more labels than it has rows. With too few rows even all labels are not enough. What this
    variance does not know (limits that are not normal, few clusters, raters) counts as far as it makes the present
    interval longer or shorter.
    """
    cells, effect, wanted_error = corrected.cells, corrected.effect, _WANTED / (z := normal_quantile(LEVEL))
    rows, labels, means = (np.array(column, dtype=float) for column in list(zip(*cells, strict=True))[1:])
    rows, labels, total = rows / effect, labels / effect, rows.sum() / effect
    guess = (means * labels + z * z / 2) / (labels + z * z)
    spread, share = np.sqrt(guess * (1 - guess)), rows / total
    mixed = float((share * (means - share @ means) ** 2).sum()) / total
    now = float((share**2 * spread**2 / labels).sum()) + mixed
    is_there, all_labelled = corrected.interval.half_width <= _WANTED, float((share**2 * spread**2 / rows).sum())
    if not is_there and wanted_error**2 < all_labelled + mixed:
        return None
    allowed = max(all_labelled, now * (_WANTED / corrected.interval.half_width) ** 2 - mixed)
    low, high = 0.0, float((rows / (share * spread)).max())
    for _ in range(60):  # the variance falls as labels are added in this proportion
        middle = (low + high) / 2
        wanted = np.clip(middle * share * spread, labels, rows)
        low, high = (middle, high) if float((share**2 * spread**2 / wanted).sum()) > allowed else (low, middle)
    wanted = np.clip(high * share * spread, labels, rows)
    more = np.ceil((wanted - labels) * effect - 1e-6)
    if not is_there and not more.any():
        return None
    return {cell.verdict: int(number) for cell, number in zip(cells, more, strict=True)}


def _take(
    labels: Floats, chances: ArrayLike | None, clusters: Sequence[Hashable] | None
) -> tuple[NDArray[np.bool_], Floats, NDArray[np.intp], int] | Refused:
    """Return which rows are labelled, 1 / chance of each, the rows' clusters, and how many of these have labels.

    Without chances the weights are 1, without clusters each row is one. Raises ValueError for what is no chance.
    """
    drawn, weights = ~np.isnan(labels), np.ones(len(labels))
    if chances is not None:
        given = np.asarray(chances, dtype=np.float64)
        if given.shape != labels.shape:
            raise ValueError(f"{len(given)} chances, and labels of {len(labels)} rows")
        if not ((given[drawn] > 0) & (given[drawn] <= 1)).all():
            raise ValueError("the chance of a labelled row must be above 0 and at most 1")
        weights = 1 / np.where(drawn, given, 1.0)
    groups = find_groups(clusters, len(labels))
    units, unit = len(np.unique(groups[drawn])), "labelled cluster" if are_clusters(groups) else "label"
    if units < FEWEST_LABELS:
        return Refused(f"{count(units, unit)}; at least {FEWEST_LABELS} are needed")
    return drawn, weights, groups, units


def _design_effect(error: float, alone: float, rows: float) -> float:
    """Return the square of a clustered error over that of rows by themselves, at least 1.

    Where all labels agree there is neither, and a cluster tells as much as one of its rows: the worst case.
    """
    return max(1.0, (error / alone) ** 2) if alone > _ROUNDING else rows


def _influence_error(influence: Floats, groups: NDArray[np.intp], drawn: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the standard error of the mean of `influence`, each row's part in an estimate, and its degrees of freedom.

    `groups` numbers the clusters from 0; without clusters each row is its own. What makes the error is the clusters
    with labels (`drawn`): each is divided by 1 - its share of the labels, as CR2 does (Bell and McCaffrey 2002), and
    they less 1 are the most degrees of freedom; fewer where some of them weigh much (Satterthwaite, by the kurtosis
    of the sums).
    """
    sums = np.bincount(groups, weights=influence - influence.mean())
    part = np.bincount(groups, weights=drawn) / drawn.sum()
    squares = sums**2 / np.maximum(1 - part, 0.5 / len(sums))
    labelled = int((part > 0).sum())
    total = float(squares.sum())
    if not total:
        return 0.0, max(1.0, labelled - 1)
    return math.sqrt(total) / len(influence), max(1.0, min(labelled - 1, find_freedom(squares)))


def correct_graded(
    grades: ArrayLike,
    gold: ArrayLike,
    *,
    chances: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
    rater_variance: float = 0.0,
    level: float = LEVEL,
) -> Corrected | Refused:
    """Return the mean of `gold` over all rows, of which only some have one (NaN: none), by the grades of all.

    The arguments are those of `correct_by_verdict`; of two models, grades and labels are the differences.
    Raises ValueError for sequences of unequal length, and for chances that are none.
    """
    judged, labels = np.asarray(grades, dtype=np.float64), np.asarray(gold, dtype=np.float64)
    if len(judged) != len(labels):
        raise ValueError(f"{len(judged)} grades, labels of {len(labels)} rows: expected one of each for a row")
    taken = _take(labels, chances, clusters)
    if isinstance(taken, Refused):
        return taken
    drawn, weights, groups, units = taken
    _, place = np.unique(groups[drawn], return_inverse=True)
    x, y, own = judged[drawn], labels[drawn], weights[drawn] / weights[drawn].sum()
    fold = np.random.default_rng(0).permutation(units)[place] % _FOLDS
    slopes = np.array([_slope(x[fold != k], y[fold != k], own[fold != k]) for k in range(_FOLDS)])[fold]
    slope, rest = float(own @ slopes), y - slopes * x
    constant = float(own @ rest)
    mean = slope * float(judged.mean()) + constant
    influence = slope * judged + constant
    influence[drawn] += len(labels) * own * (rest - constant)
    error, freedom = _influence_error(influence, groups, drawn)
    if not error:
        return Refused("all labels and all grades agree with one line, which tells nothing of an error")
    error, number = math.hypot(error, math.sqrt(rater_variance)), units if are_clusters(groups) else None
    return Corrected(t_around(mean, error, freedom, len(labels), "PPI++", number, level), int(drawn.sum()))


def _slope(x: Floats, y: Floats, own: Floats) -> float:
    """Return the slope of the weighted regression of y on x; 0 where all x are equal."""
    own = own / own.sum()
    away = x - own @ x
    spread = float(own @ away**2)
    return float((own * away) @ y) / spread if spread > 1e-12 * float(np.abs(x).max()) ** 2 else 0.0
