"""The ends of the main metric's interval, as stats."""

from __future__ import annotations

import math

import pytest
from helm.benchmark.metrics.metric_name import MetricName

from helm_ext.scoring.uncertainty import to_interval_stats


def test_both_ends_are_stats():
    low, high = to_interval_stats(MetricName("exact_match", split="test"), {"a": 1.0, "b": 0.0}, {})
    assert (low.name.name, high.name.name) == ("exact_match@ci_low", "exact_match@ci_high")
    assert low.mean == pytest.approx(0.0945, abs=1e-4)  # Wilson's of 1 of 2
    assert high.mean == pytest.approx(0.9055, abs=1e-4)


@pytest.mark.parametrize("values", [{"a": 1.0, "b": math.inf}, {"a": math.nan}, {"a": 0.5}, {"a": 0.3, "b": 0.3}])
def test_where_the_rows_do_not_tell_there_is_none(values):
    assert list(to_interval_stats(MetricName("perplexity", split="test"), values, {})) == []
