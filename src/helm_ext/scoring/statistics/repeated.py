"""Rows that were answered several times: how sure a mean is on exactly these rows.

Two intervals answer two questions (NIST AI 800-3, "Expanding the AI Evaluation Toolbox with Statistical Models"):

| question                                         | what is chance          | interval                               |
|--------------------------------------------------|-------------------------|----------------------------------------|
| what does the model score on *these questions*?  | its answers             | `answers_interval`, `trials_interval`  |
| what does it score on *questions like these*?    | the questions as well   | `intervals.mean_interval` of row means |

The second is never shorter in the long run: rows that were drawn differ, and that is part of their means.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from helm_ext.scoring.statistics.intervals import Interval, t_interval, t_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def answers_interval(values: ArrayLike, noise: ArrayLike, answers: ArrayLike, *, level: float = 0.95) -> Interval:
    """Return the interval of the mean of `values` over these rows, with other answers to the same rows.

    `noise`: of each row the variance of its value, NaN where that is not known (`reducers.find_noise`); `answers`: how
    many answers its value is made of. The rows' variances add up; Student's t has Satterthwaite's degrees of freedom.
    Where the noise of one row is not known, or all rows' answers agree, nothing is known: `method` is `none`.
    Raises ValueError for no rows, and for sequences of unequal length.
    """
    array, variances, numbers = (np.asarray(given, dtype=np.float64) for given in (values, noise, answers))
    if not len(array) or not array.shape == variances.shape == numbers.shape:
        raise ValueError(f"expected three numbers a row, got {array.shape}, {variances.shape} and {numbers.shape}")
    count, mean = len(array), float(array.mean())
    total = float(variances.sum())
    if not (math.isfinite(total) and total > 0 and numbers.min() > 1):
        return Interval(mean, -math.inf, math.inf, count, "none", level=level)
    freedom = total**2 / float((variances**2 / (numbers - 1)).sum())
    half = t_quantile(level, freedom) * math.sqrt(total) / count
    return Interval(mean, mean - half, mean + half, count, "answers", level=level)


def trials_interval(means: ArrayLike, count: int, *, level: float = 0.95) -> Interval:
    """Return the interval of a mean over these `count` rows, given the mean of each trial over all of them.

    A trial draws its demonstrations once for all rows, so that its rows err together: the trials are what was drawn.
    """
    found = t_interval(means, level=level)
    return replace(found, count=count, method="none" if found.method == "none" else "trials")
