"""A judge's grades corrected by human labels: PPI++ (Angelopoulos et al. 2023, arXiv 2311.01453).

    mean of slope x grade over all rows + weighted mean of (label - slope x grade) over the labelled rows

The slope is that of a regression of the labels on the grades; a label's own slope is estimated from the other fifths
of the labels (cross-fitting, as Zrnic and Candes 2024, PNAS, do), so that no label chooses the slope that suits it.
Rows that were drawn with unequal chances are weighted by 1 / chance (active inference: Zrnic and Candes 2024, arXiv
2403.03208), with the weights' sum for their number (Hajek). Student's t. The labelled rows are rows too: with all of
them labelled, this is the mean of the labels and its interval.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from helm_ext.scoring.statistics.corrected import FEWEST_LABELS, Corrected, Refused
from helm_ext.scoring.statistics.influence import influence_error, to_weights
from helm_ext.scoring.statistics.intervals import Interval, number_clusters, t_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_FOLDS = 5


def correct_graded(
    grades: ArrayLike,
    gold: ArrayLike,
    *,
    chances: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
    rater_variance: float = 0.0,
    level: float = 0.95,
) -> Corrected | Refused:
    """Return the mean of `gold` over all rows, of which only some have one (NaN: none), by the grades of all.

    The arguments are those of `corrected.correct_by_verdict`; of two models, grades and labels are the differences.
    Raises ValueError for sequences of unequal length, and for chances that are none.
    """
    judged, labels = np.asarray(grades, dtype=np.float64), np.asarray(gold, dtype=np.float64)
    if not len(judged) == len(labels) == len(clusters or labels):
        raise ValueError(f"{len(judged)} grades, labels of {len(labels)} rows: expected one of each for a row")
    drawn, weights = ~np.isnan(labels), to_weights(labels, chances)
    groups = np.arange(len(labels)) if clusters is None else number_clusters(clusters)
    units, place = np.unique(groups[drawn], return_inverse=True)
    if len(units) < FEWEST_LABELS:
        unit = "label" if clusters is None else "labelled cluster"
        return Refused(f"{len(units)} {unit}{'' if len(units) == 1 else 's'}; at least {FEWEST_LABELS} are needed")
    x, y, own = judged[drawn], labels[drawn], weights[drawn] / weights[drawn].sum()
    fold = np.random.default_rng(0).permutation(len(units))[place] % _FOLDS
    slopes = np.array([_slope(x[fold != k], y[fold != k], own[fold != k]) for k in range(_FOLDS)])[fold]
    slope, rest = float(own @ slopes), y - slopes * x
    constant = float(own @ rest)
    mean = slope * float(judged.mean()) + constant
    influence = slope * judged + constant
    influence[drawn] += len(labels) * own * (rest - constant)
    error, freedom = influence_error(influence, groups, drawn)
    if not error:
        return Refused("all labels and all grades agree with one line, which tells nothing of an error")
    half = t_quantile(level, freedom) * float(np.hypot(error, np.sqrt(rater_variance)))
    number = None if clusters is None else len(units)
    return Corrected(Interval(mean, mean - half, mean + half, len(labels), "PPI++", number, level), int(drawn.sum()))


def _slope(x: NDArray[np.float64], y: NDArray[np.float64], own: NDArray[np.float64]) -> float:
    """Return the slope of the weighted regression of y on x; 0 where all x are equal."""
    own = own / own.sum()
    away = x - own @ x
    spread = float(own @ away**2)
    return float((own * away) @ y) / spread if spread > 1e-12 * float(np.abs(x).max()) ** 2 else 0.0
