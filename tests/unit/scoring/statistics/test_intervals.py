"""Intervals of means, also of rows that were answered several times, against other implementations."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import t
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import DescrStatsW

from helm_ext.scoring.reducers import find_noise, find_reducer
from helm_ext.scoring.statistics import answers_interval, trials_interval
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


@pytest.mark.parametrize("clusters", [None, ["a", "a", "b"]])
def test_equal_rows_do_not_tell_how_sure_they_are(clusters):
    found = mean_interval([0.3, 0.3, 0.3], clusters)
    assert (found.method, found.low, found.high) == ("none", -math.inf, math.inf)


@pytest.mark.parametrize(("values", "clusters"), [([], None), ([1.0, math.nan], None), ([1.0, 0.0], ["a"])])
def test_what_has_no_mean_is_refused(values, clusters):
    with pytest.raises(ValueError, match="."):
        mean_interval(values, clusters)


# Several answers to a row: two intervals, of these rows and of rows like these


@pytest.mark.parametrize(("name", "k", "n", "unbiased"), [
    ("mean", 1, 2, True), ("pass_at_2", 2, 4, True), ("pass_k_2", 2, 5, True), ("pass_at_3", 3, 5, False),
])  # fmt: skip
@pytest.mark.parametrize("right", [0.1, 0.5, 0.8])
def test_a_rows_noise_is_the_variance_of_its_score_over_all_answers_it_could_have_had(name, k, n, unbiased, right):
    """Counted: all 2^n answers, each with its chance. With fewer than 2 k answers the noise is too large, never less."""
    reduce, noise = find_reducer(name), find_noise(name)
    outcomes = list(itertools.product((0.0, 1.0), repeat=n))
    chances = [right ** sum(one) * (1 - right) ** (n - sum(one)) for one in outcomes]
    scores = [reduce(one) for one in outcomes]
    mean = math.fsum(c * s for c, s in zip(chances, scores, strict=True))
    expected = 1 - (1 - right) ** k if "at" in name else right**k
    assert mean == pytest.approx(expected)
    variance = math.fsum(c * (s - mean) ** 2 for c, s in zip(chances, scores, strict=True))
    said = math.fsum(c * noise(one) for c, one in zip(chances, outcomes, strict=True))
    assert said == pytest.approx(variance) if unbiased else said >= variance


@pytest.mark.parametrize(
    ("name", "scores"), [("mean", [1.0]), ("pass_at_2", [1.0, 0.0]), ("pass_k_3", [1.0, 1.0, 0.0]),
                         ("first", [1.0, 0.0]), ("max", [1.0, 0.0]), ("at_least_1", [1.0, 0.0])],
)  # fmt: skip
def test_noise_that_nobody_knows_is_not_known(name, scores):
    assert find_noise(name)(scores) is None


@pytest.mark.parametrize(("noise", "answers"), [([0.1, math.nan], [2, 1]), ([0.0, 0.0], [5, 5]), ([0.1, 0.1], [2, 1])])
def test_an_interval_that_is_not_known_has_no_ends(noise, answers):
    found = answers_interval([0.5, 1.0], noise, answers)
    assert (found.method, found.low, found.high) == ("none", -math.inf, math.inf)


def test_trials_are_what_was_drawn():
    """Three trials' means 0.4, 0.5, 0.6: 0.5 +/- 4.302653 x 0.1 / sqrt 3."""
    found = trials_interval([0.4, 0.5, 0.6], 200)
    assert (found.count, found.method) == (200, "trials")
    assert found.half_width == pytest.approx(4.302653 * 0.1 / math.sqrt(3), rel=1e-6)


def test_both_intervals_are_those_of_a_mixed_model():
    """statsmodels' MixedLM, linear, REML: 400 rows of 5 answers; within 0.1 of its standard errors."""
    from scipy.special import stdtrit
    from statsmodels.regression.mixed_linear_model import MixedLM

    generator = np.random.default_rng(16)
    right = (generator.random((400, 5)) < generator.beta(1.2, 0.8, (400, 1))).astype(float)
    fitted = MixedLM(right.ravel(), np.ones(2000), groups=np.repeat(np.arange(400), 5)).fit(reml=True)
    error_like_these, error_these = float(fitted.bse_fe[0]), math.sqrt(float(fitted.scale) / 2000)
    values = right.mean(axis=1)
    like_these = mean_interval(values)
    these = answers_interval(values, [find_noise("mean")(list(row)) for row in right], [5] * 400)
    assert these.mean == pytest.approx(float(fitted.fe_params[0]))
    assert like_these.half_width / stdtrit(399, 0.975) == pytest.approx(error_like_these, abs=0.1 * error_like_these)
    assert these.half_width / 1.9606 == pytest.approx(error_these, abs=0.1 * error_these)
    assert error_these < 0.6 * error_like_these
