"""Agreement against truescore and krippendorff, and what a lazy and a perfect judge must come to."""

import math

import numpy as np
import pytest
from scipy.stats import t

from helm_ext.scoring.statistics.agreement import agree, alpha, compare_halves, compare_orders, rater_variance


def test_coefficients_are_those_of_other_libraries():
    import krippendorff
    import truescore

    generator = np.random.default_rng(1)
    for _ in range(300):
        rows, kinds = int(generator.integers(10, 80)), int(generator.integers(2, 5))
        first = generator.integers(0, kinds, rows)
        second = np.where(generator.random(rows) < 0.6, first, generator.integers(0, kinds, rows))
        found = agree(first, second)
        assert found.observed == pytest.approx((first == second).mean())
        assert found.alpha.mean == pytest.approx(
            krippendorff.alpha([first, second], level_of_measurement="nominal"), abs=1e-12
        )
        assert found.kappa.mean == pytest.approx(by_hand(first, second, "kappa"), abs=1e-12)
        assert found.ac1.mean == pytest.approx(by_hand(first, second, "ac1"), abs=1e-12)
        if kinds == 2:
            assert found.kappa.mean == pytest.approx(truescore.cohen_kappa(first, second), abs=1e-12)
            assert found.ac1.mean == pytest.approx(truescore.gwet_ac1(first, second), abs=1e-12)


def by_hand(first, second, which):
    values = sorted({*first, *second})
    observed = (first == second).mean()
    if which == "kappa":
        chance = sum((first == v).mean() * (second == v).mean() for v in values)
    else:
        means = [((first == v).mean() + (second == v).mean()) / 2 for v in values]
        chance = sum(p * (1 - p) for p in means) / (len(values) - 1)
    return (observed - chance) / (1 - chance)


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
def test_alpha_of_several_raters_who_left_rows_out(scale):
    import krippendorff

    generator = np.random.default_rng(2)
    for _ in range(100):
        truth = generator.integers(1, 6, 40)
        ratings = np.clip(truth[:, None] + generator.integers(-1, 2, (40, 4)), 1, 5).astype(float)
        ratings[generator.random(ratings.shape) < 0.4] = math.nan
        theirs = krippendorff.alpha(ratings.T, level_of_measurement=scale)
        assert alpha(ratings, scale=scale).mean == pytest.approx(theirs, abs=1e-10)


def test_intervals_are_the_jackknife_over_rows_or_clusters():
    generator = np.random.default_rng(3)
    first = generator.integers(0, 2, 60)
    second = np.where(generator.random(60) < 0.8, first, 1 - first)
    groups = np.arange(60) // 4
    for clusters in (None, groups.tolist()):
        labels = np.arange(60) if clusters is None else groups
        found = agree(first, second, clusters=clusters).kappa
        left = [by_hand(first[labels != g], second[labels != g], "kappa") for g in np.unique(labels)]
        number = len(left)
        error = math.sqrt((number - 1) / number * ((np.array(left) - np.mean(left)) ** 2).sum())
        assert found.high - found.mean == pytest.approx(t.ppf(0.975, number - 1) * error)


def test_a_weight_is_as_many_rows():
    first, second, weights = [1, 1, 0, 0, 1], [1, 0, 0, 1, 1], [3, 1, 2, 1, 1]
    repeated = agree(np.repeat(first, weights), np.repeat(second, weights))
    weighted = agree(first, second, weights=weights)
    assert weighted.kappa.mean == pytest.approx(repeated.kappa.mean)
    assert weighted.ac1.mean == pytest.approx(repeated.ac1.mean)
    assert weighted.observed == pytest.approx(repeated.observed)


def test_a_perfect_judge_agrees_as_far_as_so_few_rows_can_tell():
    found = agree([1] * 40 + [0] * 10, [1] * 40 + [0] * 10)
    assert (found.observed, found.kappa.mean, found.ac1.mean, found.alpha.mean) == (1, 1, 1, 1)
    # Wilson's limit of 50 of 50 is 0.9287; chance agrees on 0.8^2 + 0.2^2.
    assert found.kappa.low == pytest.approx(1 - (1 - 50 / (50 + 1.96**2)) / 0.32, abs=1e-4)
    assert found.kappa.high == 1
    assert agree([1] * 50, [1] * 50).kappa is None


def test_a_judge_who_always_says_the_first_knows_nothing():
    lazy = compare_orders([1] * 80, [0] * 80)
    assert lazy.consistency.mean == 0
    assert (lazy.win_rate.mean, lazy.win_rate.low, lazy.win_rate.high) == (0.5, 0, 1)
    perfect = compare_orders([1] * 80, [1] * 80)
    assert (perfect.consistency.mean, perfect.win_rate.mean, perfect.win_rate.high) == (1, 1, 1)
    assert perfect.win_rate.low == pytest.approx(80 / (80 + 1.96**2), abs=1e-4)


def test_kinder_to_long_answers():
    found = compare_halves([0, 0, 1, 0] * 10 + [1, 0, 1, 1] * 10, [5] * 40 + [50] * 40)
    assert found.mean == pytest.approx(0.75 - 0.25)
    # Half a label more of each outcome: 10.5 and 0.5 of 42, 30.5 and 0.5; distances of both ends add by their squares.
    below = 30 / 42 - 1.96 * math.sqrt((31 / 42 - (30 / 42) ** 2) / 42)
    above = 10 / 42 + 1.96 * math.sqrt((11 / 42 - (10 / 42) ** 2) / 42)
    assert found.low == pytest.approx(0.5 - math.hypot(0.75 - below, above - 0.25), abs=1e-4)
    assert compare_halves([0, 1], [3, 3]) is None
    grades = compare_halves([0.0, 0.2, -0.2, 0.4] * 5, [5, 9] * 10, is_binary=False)
    assert grades.mean == pytest.approx(0.3 + 0.1)


def test_labels_that_all_agree_with_the_judge_leave_its_bias_open():
    """Four labels without an error: of two in each half, up to 0.25 +- 1.96 sqrt(0.25) / 2 of those of four."""
    found = compare_halves([0, 0, 0, 0], [1, 2, 3, 4])
    assert (found.mean, found.low, found.high) == pytest.approx((0, -0.693, 0.693), abs=1e-3)
    nothing = compare_halves([0, 0, 0, 0], [1, 2, 3, 4], is_binary=False)
    assert (nothing.low, nothing.high) == (-math.inf, math.inf)


def test_a_judge_that_is_always_wrong_is_as_sure_as_so_few_rows_can_tell():
    found = agree([1, 0] * 25, [0, 1] * 25).kappa
    # Wilson's limit of 50 of 50 disagreements is 0.9287; chance disagrees on half.
    assert (found.mean, found.low) == (-1, -1)
    assert found.high == pytest.approx(1 - 50 / (50 + 1.96**2) / 0.5, abs=1e-4)


def test_raters_who_differ_in_strictness_make_the_mean_less_sure():
    generator, found = np.random.default_rng(4), []
    for _ in range(400):  # three raters, whose strictness has a deviation of 0.2
        rows = generator.random(200)[:, None] + generator.normal(0, 0.2, 3) + generator.normal(0, 0.1, (200, 3))
        found.append(rater_variance(rows))
    assert np.mean(found) == pytest.approx(0.2**2 / 3, rel=0.1)
    assert rater_variance(np.array([[1.0], [0.0]])) == 0
    assert rater_variance([[1, math.nan], [math.nan, 0]]) == 0
