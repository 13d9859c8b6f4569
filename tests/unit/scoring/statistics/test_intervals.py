"""Intervals are those of statsmodels where it has the same estimator, and cover the truth as often as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import DescrStatsW

from helm_ext.scoring.statistics.intervals import clustered_interval, mean_interval, t_interval, wilson_interval


@pytest.mark.parametrize(("successes", "count"), [(0, 1), (1, 1), (0, 30), (3, 30), (15, 30), (30, 30), (776, 1000)])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_wilson_is_that_of_statsmodels(successes, count, level):
    low, high = proportion_confint(successes, count, alpha=1 - level, method="wilson")
    found = wilson_interval(successes, count, level=level)
    assert found.low == pytest.approx(low, abs=1e-9)
    assert found.high == pytest.approx(high, abs=1e-9)


@pytest.mark.parametrize("count", [2, 3, 40])
def test_t_is_that_of_statsmodels(count):
    values = np.random.default_rng(count).normal(size=count)
    low, high = DescrStatsW(values).tconfint_mean()
    found = t_interval(values)
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-9), pytest.approx(high, abs=1e-9))


def test_forty_clusters_are_those_of_statsmodels():
    generator = np.random.default_rng(0)
    groups = generator.integers(0, 60, 400)
    values = generator.normal(size=400) + generator.normal(size=60)[groups]
    fitted = OLS(values, np.ones(400)).fit(
        cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False}, use_t=True
    )
    number = len(set(groups))
    error = fitted.bse[0] * math.sqrt(number / (number - 1))
    found = clustered_interval(values, groups)
    assert found.method == "clusters"
    assert found.half_width == pytest.approx(error * 2.000_995_378, rel=1e-6)  # t of 59 degrees of freedom, 97.5 %


def test_few_clusters_of_one_size_are_means_of_clusters():
    """With equal clusters CR2 and its degrees of freedom are Student's t of the clusters' means."""
    generator = np.random.default_rng(1)
    values = generator.normal(size=(12, 5)) + generator.normal(size=(12, 1))
    found = clustered_interval(values.ravel(), np.repeat(np.arange(12), 5))
    plain = t_interval(values.mean(axis=1))
    assert found.method == "few clusters"
    assert (found.low, found.high) == (pytest.approx(plain.low), pytest.approx(plain.high))


@pytest.mark.long
@pytest.mark.parametrize("number", [12, 40, 100])
def test_clusters_cover(number):
    """Clusters of 1 to 9 rows that agree within: 4,000 runs."""
    generator = np.random.default_rng(number)
    sizes = np.arange(number) % 9 + 1
    groups = np.repeat(np.arange(number), sizes)
    hit = plain = 0
    for _ in range(4_000):
        values = generator.normal(size=len(groups)) + generator.normal(size=number)[groups]
        hit += _covers(clustered_interval(values, groups), 0.0)
        plain += _covers(t_interval(values), 0.0)
    assert 0.935 < hit / 4_000 < 0.965
    assert plain / 4_000 < 0.85  # what is said if the clusters are not


def test_the_rule_is_chosen_by_the_rows():
    assert mean_interval([0, 1, 1]).method == "wilson"
    assert mean_interval([0, 0.5, 1]).method == "t"
    assert mean_interval([0.5]).method == "none"
    assert mean_interval([0, 1, 1], ["a", "b", "c"]).method == "wilson"
    assert mean_interval([0, 1, 1], ["a", "b", "b"]).method == "few clusters"
    assert mean_interval([1, 1, 1], ["a", "a", "a"]).method == "none"


def test_rows_that_are_all_right_are_not_sure():
    alone = wilson_interval(3, 3)
    found = mean_interval([1.0] * 9, ["a"] * 3 + ["b"] * 3 + ["c"] * 3)
    assert (found.low, found.high, found.clusters) == (pytest.approx(alone.low), 1.0, 3)


def test_right_and_wrong_rows_in_clusters_count_as_rows_in_effect():
    """By hand: of 6 clusters of 4 rows one has 4 right, one has 1. The mean is 5/24."""
    values, groups = [1] * 5 + [0] * 19, [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4 + [4] * 4 + [5] * 4
    mean = 5 / 24
    squares = [(4 - 4 * mean) ** 2, (1 - 4 * mean) ** 2, *[(4 * mean) ** 2] * 4]
    variance = sum(squares) * 6 / 5 / 24**2  # CR2 of equal clusters: 1 / (1 - 1/6)
    effect = variance / (mean * (1 - mean) / 24)
    rows = 24 / (effect**2 * 4) ** (1 / 3)  # two clusters hold a right row; rows that are all alike: 4
    freedom = 2 * 6 / (6 * sum(one**2 for one in squares) / sum(squares) ** 2 - 1)
    assert freedom < 5
    z = t.ppf(0.975, freedom)
    middle, half = (mean + z * z / 2 / rows), z * math.sqrt(mean * (1 - mean) / rows + (z / 2 / rows) ** 2)
    found = clustered_interval(values, groups)
    assert found.low == pytest.approx((middle - half) / (1 + z * z / rows))
    assert found.high == pytest.approx((middle + half) / (1 + z * z / rows))
    assert (found.method, found.count, found.clusters) == ("few clusters", 24, 6)


def test_clusters_that_all_have_one_mean_are_no_surer_than_their_rows():
    found = mean_interval([1, 0, 0, 1, 1, 0, 0, 1], ["a", "a", "b", "b", "c", "c", "d", "d"])
    rows = wilson_interval(4, 8)
    assert found.low < rows.low
    assert found.high > rows.high


@pytest.mark.long
@pytest.mark.parametrize("number", [40, 100])
@pytest.mark.parametrize("share", [0.01, 0.02, 0.05, 0.95])
def test_clusters_of_a_rare_value_cover(number, share):
    """20 rows in each, that correlate by 0.2: 3,000 runs. With Student's t of the clusters' sums 79 to 92 % did."""
    generator = np.random.default_rng([number, round(100 * share)])
    groups, hit = np.repeat(np.arange(number), 20), 0
    for _ in range(3_000):
        shares = generator.beta(4 * share, 4 * (1 - share), number)
        hit += _covers(
            clustered_interval((generator.random(len(groups)) < shares[groups]).astype(float), groups), share
        )
    assert hit / 3_000 > 0.92


@pytest.mark.parametrize("clusters", [None, ["a", "a", "b"]])
def test_equal_rows_do_not_tell_how_sure_they_are(clusters):
    found = mean_interval([0.3, 0.3, 0.3], clusters)
    assert (found.method, found.low, found.high) == ("none", -math.inf, math.inf)


@pytest.mark.parametrize(("values", "clusters"), [([], None), ([1.0, math.nan], None), ([1.0, 0.0], ["a"])])
def test_what_has_no_mean_is_refused(values, clusters):
    with pytest.raises(ValueError, match="."):
        mean_interval(values, clusters)


def _covers(interval, truth):
    return interval.low <= truth <= interval.high
