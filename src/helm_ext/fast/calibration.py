"""HELM's calibration stats of a run, from two numbers a row, in arrays.

Restates `compute_calibration_metrics` of helm/benchmark/metrics/basic_metrics.py and the two functions of the package
`calibration` (uncertainty-calibration) that make lists of pairs of all rows: 230 bytes a row, where arrays take 30.

Plain equivalent: HELM's function. Held equal, bit for bit, by tests/unit/fast/test_calibration.py.
"""

from __future__ import annotations

import itertools
from array import array
from typing import TYPE_CHECKING, Any

import numpy as np
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["compute_calibration"]


def compute_calibration(max_probs: array[float], exact_matches: array[float]) -> list[Stat]:
    """Return the calibration stats of rows with these probabilities and scores; none where there are no rows.

    Raises ImportError where what HELM computes them with is missing, and AssertionError for scores beyond 0 and 1.
    """
    if not max_probs:
        return []
    import calibration

    probs, matches = np.frombuffer(max_probs), np.frombuffer(exact_matches)
    assert ((matches >= 0) & (matches <= 1)).all()
    correct = matches.astype(np.int64)
    area, top = calibration.get_selective_stats(probs, correct)
    found = {
        "ece_10_bin": _compute_error(probs, correct, _find_equal_bins(probs, 10)),
        "ece_1_bin": _compute_error(probs, correct, [1.0]),
        "selective_cov_acc_area": area,
        "selective_acc@10": top,
    }
    right = int(correct.sum())
    if right in (0, len(correct)):  # Platt scaling finds nothing then
        found |= {"platt_ece_10_bin": 0.0, "platt_ece_1_bin": 0.0}
    else:
        scale, fitted = calibration.get_platt_scaler(probs, correct, get_clf=True)
        scaled = scale(probs)
        found |= {
            "platt_coef": fitted.coef_[0][0],
            "platt_intercept": fitted.intercept_[0],
            "platt_ece_10_bin": _compute_error(scaled, correct, _find_equal_bins(scaled, 10)),
            "platt_ece_1_bin": _compute_error(scaled, correct, [1.0]),
        }
    return [Stat(MetricName(name)).add(value) for name, value in found.items()]


def _find_equal_bins(probs: NDArray[Any], number: int) -> list[float]:
    """Restate `calibration.utils.get_equal_bins`: the upper ends of bins of about as many rows each."""
    pieces = np.array_split(np.sort(probs), min(number, len(probs)))
    ends = {float((one[-1] + other[0]) / 2.0) for one, other in itertools.pairwise(pieces)}
    return sorted(ends | {1.0})


def _compute_error(probs: NDArray[Any], correct: NDArray[Any], bins: list[float]) -> float:
    """Restate `calibration.utils.plugin_ce` with power 1, of the rows sorted into bins by `fast_bin`."""
    places = np.searchsorted(bins, probs)
    order = np.argsort(places)
    ends = np.searchsorted(places, list(range(1, len(bins))), sorter=order)
    shares, errors = [], []
    for rows in np.split(order, ends):  # of one bin at a time, so that no second copy of all pairs is made
        shares.append(len(rows) * 1.0 / len(probs))
        errors.append(abs(np.mean(probs[rows]) - np.mean(correct[rows].astype(float))) if len(rows) else 0.0)
    return float(np.dot(shares, errors))
