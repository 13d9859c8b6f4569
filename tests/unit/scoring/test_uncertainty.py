"""An interval holds nothing that its score cannot be."""

from __future__ import annotations

import math

import pytest
from helm.benchmark.metrics.metric_name import MetricName

from helm_ext.scoring.breakdown import to_interval_stats
from helm_ext.scoring.registry import find_bounds


@pytest.mark.parametrize(
    ("stat", "bounds"),
    [
        ("f1_score", (0, 1)), ("f1_score@subject=law", (0, 1)), ("exact_match@5", (0, 1)), ("wer_score", (0, math.inf)),
        ("ultraeval_bleu", (0, 100)), ("brier_score", (0, 2)), ("inspect_fluency", (-math.inf, math.inf)),
    ],
)  # fmt: skip
def test_bounds_are_known_by_name(stat, bounds):
    assert find_bounds(stat) == bounds


def test_ends_stay_within_the_bounds():
    """Two rows, 0.5 and 0.9: Student's t goes from -1.84 to 3.24."""
    low, high = (stat.mean for stat in to_interval_stats(MetricName("f1_score"), [0.5, 0.9], None))
    assert (low, high) == (0, 1)
    low, high = (stat.mean for stat in to_interval_stats(MetricName("judge"), [0.5, 0.9], None))
    assert low == pytest.approx(0.7 - 12.7062 * 0.2, abs=1e-3)


def test_nothing_is_known_of_another_packages_score(monkeypatch):
    """A grade from 0 to 10: an interval that ends at 1 would not hold its own mean."""
    from helm_ext.scoring import registry
    from helm_ext.scoring.score import Score

    grade = Score("grade", lambda gold, prediction: 7.0)
    tables = registry._tables()
    monkeypatch.setattr(registry, "_tables", lambda: tuple({**table, "grade": grade} for table in tables))
    assert "grade" in registry.get_scores()
    low, high = (stat.mean for stat in to_interval_stats(MetricName("grade"), [6.0, 8.0, 7.5], None))
    assert low < 7 < high


def test_one_row_has_no_interval():
    assert not list(to_interval_stats(MetricName("f1_score"), [0.5], None))


@pytest.mark.parametrize("values", [[1.0, math.inf], [math.nan], [0.3, 0.3]])
def test_where_the_rows_do_not_tell_there_is_none(values):
    assert list(to_interval_stats(MetricName("perplexity", split="test"), values, None)) == []
