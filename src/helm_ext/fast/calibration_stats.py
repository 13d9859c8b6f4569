"""HELM's calibration stats: how far the probabilities of a model's answers can be trusted.

`compute_calibration_metrics` of helm/benchmark/metrics/basic_metrics.py, restated, because it looks through each row
for its two stats; tests/contract/test_runner_sources.py fails when HELM changes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

import calibration as cal
import numpy as np
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat

__all__ = ["calibration_stats"]

_get_name = attrgetter("name.name")


def calibration_stats(rows: Iterable[Sequence[Stat]]) -> list[Stat]:
    """Return the calibration stats of one context's rows; those without `max_prob` or `exact_match` do not count."""
    max_probs, correct = _find_pairs(rows)
    if not max_probs:
        return []
    coverage_accuracy_area, accuracy_of_top_tenth = cal.get_selective_stats(max_probs, correct)
    values = {
        "ece_10_bin": cal.get_ece_em(max_probs, correct, num_bins=10),
        "ece_1_bin": cal.get_ece(max_probs, correct, num_bins=1),
        "selective_cov_acc_area": coverage_accuracy_area,
        "selective_acc@10": accuracy_of_top_tenth,
        **_after_platt_scaling(max_probs, correct),
    }
    return [Stat(MetricName(name)).add(value) for name, value in values.items()]


def _after_platt_scaling(max_probs: list[float], correct: list[int]) -> dict[str, float]:
    if sum(correct) in (0, len(correct)):  # nothing to fit
        return {"platt_ece_10_bin": 0.0, "platt_ece_1_bin": 0.0}
    scale, fitted = cal.get_platt_scaler(np.array(max_probs), np.array(correct), get_clf=True)
    scaled = scale(np.array(max_probs))
    return {
        "platt_coef": fitted.coef_[0][0],
        "platt_intercept": fitted.intercept_[0],
        "platt_ece_10_bin": cal.get_ece_em(scaled, correct, num_bins=10),
        "platt_ece_1_bin": cal.get_ece(scaled, correct, num_bins=1),
    }


def _find_pairs(rows: Iterable[Sequence[Stat]]) -> tuple[list[float], list[int]]:
    """Return `max_prob`, and whether `exact_match` is 1, of each row that has both."""
    max_probs: list[float] = []
    correct: list[int] = []
    places: dict[int, tuple[int, int]] = {}
    for row in rows:
        # Rows of one length are nearly always alike.
        place = places.get(len(row))
        if place is None or (row[place[0]].name.name, row[place[1]].name.name) != ("max_prob", "exact_match"):
            names = list(map(_get_name, row))
            if "max_prob" not in names or "exact_match" not in names:
                continue
            place = places[len(row)] = names.index("max_prob"), names.index("exact_match")
        probability, match = row[place[0]].mean, row[place[1]].mean
        assert probability is not None
        assert match is not None
        assert 0.0 <= match <= 1.0
        max_probs.append(probability)
        correct.append(int(match))
    return max_probs, correct
