"""The variance of an estimate of which each row has a part: its influence. Rows may come in clusters, labels too."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def to_weights(labels: NDArray[np.float64], chances: ArrayLike | None) -> NDArray[np.float64]:
    """Return 1 / chance of each labelled row, 1 without chances. Raises ValueError for chances outside 0 to 1."""
    if chances is None:
        return np.ones(len(labels))
    given = np.asarray(chances, dtype=np.float64)
    if given.shape != labels.shape:
        raise ValueError(f"{len(given)} chances, and labels of {len(labels)} rows")
    drawn = ~np.isnan(labels)
    if not ((given[drawn] > 0) & (given[drawn] <= 1)).all():
        raise ValueError("the chance of a labelled row must be above 0 and at most 1")
    return 1 / np.where(drawn, given, 1.0)


def influence_error(
    influence: NDArray[np.float64], groups: NDArray[np.intp], drawn: NDArray[np.bool_]
) -> tuple[float, float]:
    """Return the standard error of the mean of `influence`, and its degrees of freedom.

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
    kurtosis = len(sums) * float((squares**2).sum()) / total**2
    freedom = 2 * len(sums) / (kurtosis - 1) if kurtosis > 1 else math.inf
    return math.sqrt(total) / len(influence), max(1.0, min(labelled - 1, freedom))
