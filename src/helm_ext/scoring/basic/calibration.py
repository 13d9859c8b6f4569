"""HELM's calibration stats of a run, from two numbers a row, in arrays.

Restates `compute_calibration_metrics` of helm/benchmark/metrics/basic_metrics.py, and what it calls of the packages
uncertainty-calibration and scikit-learn (LogisticRegression, C=1e10): they are not in a light installation, take half a
second to import, and make lists of pairs of all rows: 230 bytes a row, where arrays take 30.

Plain equivalent: HELM's function. Held equal by tests/unit/scoring/test_calibration.py.
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAST = 1e-12
"""Probabilities of 0 and 1 have no odds: `calibration.utils.get_platt_scaler`."""

_FEW = 10_000
"""Up to here, exponentials are those of the C library, as scikit-learn's: where all probabilities are alike, the
search goes where the last bit sends it. numpy's own differ in one of 50, and take less time and memory."""


def _of_libm(function: Callable[[float], float]) -> Callable[[NDArray[Any]], NDArray[Any]]:
    return lambda values: np.fromiter(map(function, values.tolist()), np.float64, len(values))


_exp, _log1p = _of_libm(math.exp), _of_libm(math.log1p)


def compute_calibration(max_probs: array[float], exact_matches: array[float]) -> list[Stat]:
    """Return the calibration stats of rows with these probabilities and scores; none where there are no rows.

    Raises ImportError where scipy's library cannot be loaded, and AssertionError for scores beyond 0 and 1.
    """
    if not max_probs:
        return []
    probs, matches = np.frombuffer(max_probs), np.frombuffer(exact_matches)
    assert ((matches >= 0) & (matches <= 1)).all()
    correct = matches.astype(np.int64)
    accuracies = np.cumsum(correct[np.argsort(-probs)]) / np.arange(1, len(correct) + 1)
    found = {
        "ece_10_bin": _compute_error(probs, correct, _find_equal_bins(probs, 10)),
        "ece_1_bin": _compute_error(probs, correct, [1.0]),
        "selective_cov_acc_area": np.mean(accuracies),
        "selective_acc@10": accuracies[int(0.1 * len(correct))],
    }
    right = int(correct.sum())
    if right in (0, len(correct)):  # Platt scaling finds nothing then
        found |= {"platt_ece_10_bin": 0.0, "platt_ece_1_bin": 0.0}
    else:
        clipped = np.clip(probs, _LEAST, 1 - _LEAST)
        odds = np.log(clipped / (1 - clipped))
        coefficient, intercept = _fit_platt(odds, correct)
        with np.errstate(over="ignore"):  # 1 / (1 + infinity) is the 0 that is meant
            scaled = 1 / (1 + np.exp(-(odds * coefficient + intercept)))
        found |= {
            "platt_coef": coefficient,
            "platt_intercept": intercept,
            "platt_ece_10_bin": _compute_error(scaled, correct, _find_equal_bins(scaled, 10)),
            "platt_ece_1_bin": _compute_error(scaled, correct, [1.0]),
        }
    return [Stat(MetricName(name)).add(value) for name, value in found.items()]


def _fit_platt(odds: NDArray[Any], correct: NDArray[Any]) -> tuple[float, float]:
    """Return coefficient and intercept as scikit-learn's LogisticRegression(C=1e10) finds them.

    The objective is the mean of HalfBinomialLoss plus the ridge penalty, the solver scipy's L-BFGS-B from zero, with
    scikit-learn's options: where it stops is part of the result, so neither is free to choose.
    """
    from scipy.optimize import minimize

    exp, log1p = (_exp, _log1p) if len(odds) <= _FEW else (np.exp, np.log1p)
    rows, column, target = len(odds), odds[:, np.newaxis], correct.astype(np.float64)
    penalty = 1.0 / (1e10 * rows)

    def loss_and_gradient(at: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        raw = column @ at[:1] + at[1]
        low = raw <= -2  # where scikit-learn has it: neither side overflows
        power = exp(np.where(low, raw, -raw))
        far = (raw <= -37) | (raw > 18)
        loss = np.where(far, power, log1p(power)) + np.where(low, -target, 1 - target) * raw
        slope = np.where(low, (1 - target) * power - target, (1 - target) - target * power) / (1 + power) / rows
        gradient = np.array([(column.T @ slope)[0] + penalty * at[0], slope.sum()])
        return float(loss.sum() / rows + 0.5 * penalty * at[0] ** 2), gradient

    options = {"maxiter": 100, "maxls": 50, "gtol": 1e-4, "ftol": 64 * np.finfo(float).eps}
    found = minimize(loss_and_gradient, np.zeros(2), method="L-BFGS-B", jac=True, options=options).x
    return float(found[0]), float(found[1])


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
