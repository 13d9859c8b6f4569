"""Calibration stats of arrays are HELM's of rows, bit for bit."""

from __future__ import annotations

import random
from array import array

import pytest
from helm.benchmark.metrics.basic_metrics import compute_calibration_metrics
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.scenarios.scenario import Input, Instance

from helm_ext.fast.calibration import compute_calibration


def by_helm(probs, matches):
    rows = {}
    for number, (prob, match) in enumerate(zip(probs, matches, strict=True)):
        stats = [("logprob", -1.0), ("max_prob", prob), ("exact_match", match)]
        rows[Instance(Input(""), [], id=str(number))] = [Stat(MetricName(name)).add(value) for name, value in stats]
    return compute_calibration_metrics(rows)


@pytest.mark.parametrize("count", [1, 2, 7, 10, 11, 500, 3_000])
@pytest.mark.parametrize("kind", ["spread", "same", "ends", "all right", "all wrong"])
def test_as_helm(count, kind):
    draw = random.Random(f"{count} {kind}")
    probs = {
        "same": lambda: 0.5,
        "ends": lambda: draw.choice([0.0, 1.0, 1e-300]),
    }.get(kind, draw.random)
    right = {"all right": lambda: 1.0, "all wrong": lambda: 0.0}.get(kind, lambda: float(draw.random() < 0.6))
    rows = [(probs(), right()) for _ in range(count)]
    ours = compute_calibration(*(array("d", column) for column in zip(*rows, strict=True)))
    assert ours == by_helm(*zip(*rows, strict=True))  # equal floats, to the last bit


def test_no_rows_have_none():
    assert compute_calibration(array("d"), array("d")) == []
