"""Calibration stats of arrays are HELM's of rows."""

import math
import random
from array import array

import pytest
from helm.benchmark.metrics.basic_metrics import compute_calibration_metrics
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.scenarios.scenario import Input, Instance

from helm_ext.scoring.basic.calibration import compute_calibration


def by_helm(probs, matches):
    rows = {}
    for number, (prob, match) in enumerate(zip(probs, matches, strict=True)):
        stats = [("logprob", -1.0), ("max_prob", prob), ("exact_match", match)]
        rows[Instance(Input(""), [], id=str(number))] = [Stat(MetricName(name)).add(value) for name, value in stats]
    return compute_calibration_metrics(rows)


# A few hundred draws
@pytest.mark.parametrize("count", [*range(1, 8), 9, 10, 11, 19, 20, 21, 44, 500, 10_500])
@pytest.mark.parametrize("kind", ["spread", "sure", "parted", "certain", "same", "ends", "all right", "all wrong"])
@pytest.mark.long
def test_as_helm(count, kind):
    draw = random.Random(f"{count} {kind}")
    probs = {
        "same": lambda: 0.5,
        "certain": lambda: draw.choice([1.0, 1.0, 0.61]),  # the search stops where the last bit sends it
        "ends": lambda: draw.choice([0.0, 1.0, 1e-300]),
        "sure": lambda: math.exp(-draw.expovariate(10)),
    }.get(kind, draw.random)
    right = {
        "all right": lambda _: 1.0,
        "all wrong": lambda _: 0.0,
        "parted": lambda prob: float(prob > 0.3),  # by the probability alone: the coefficient has no bound
        "sure": lambda prob: float(draw.random() < prob),
    }.get(kind, lambda _: float(draw.random() < 0.6))
    rows = [(prob, right(prob)) for prob in (probs() for _ in range(count))]
    ours = compute_calibration(*(array("d", column) for column in zip(*rows, strict=True)))
    helms = by_helm(*zip(*rows, strict=True))
    assert [stat.name for stat in ours] == [stat.name for stat in helms]
    assert [stat.mean for stat in ours] == pytest.approx([stat.mean for stat in helms], rel=1e-12, abs=1e-12)


def test_no_rows_have_none():
    assert compute_calibration(array("d"), array("d")) == []
