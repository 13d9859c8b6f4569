"""Agreement against truescore and krippendorff, and what a lazy and a perfect judge must come to."""

import math

import numpy as np
import pytest
from scipy.stats import t
from statsmodels.stats.proportion import proportion_confint

from helm_ext.scoring.statistics.agreement import (
    Rated,
    agree,
    alpha,
    compare_halves,
    compare_orders,
    find_sides,
    rater_variance,
)
from helm_ext.scoring.statistics.intervals import find_groups

Z2 = 1.959964**2


def rated(judge, people, weights=None, clusters=None):
    weights = None if weights is None else np.array(weights, float)
    return Rated(np.array(judge, float), np.array(people, float), find_groups(clusters, len(judge)), weights)


def halves(errors, lengths, **kind):
    return compare_halves(rated(errors, np.zeros(len(errors))), lengths, **kind)


def test_coefficients_are_those_of_other_libraries():
    import krippendorff
    import truescore

    generator = np.random.default_rng(1)
    for _ in range(300):
        rows, kinds = int(generator.integers(10, 80)), int(generator.integers(2, 5))
        first = generator.integers(0, kinds, rows)
        second = np.where(generator.random(rows) < 0.6, first, generator.integers(0, kinds, rows))
        found = agree(rated(first, second))
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
        assert alpha(ratings, np.arange(40), scale=scale).mean == pytest.approx(theirs, abs=1e-10)


def test_intervals_are_the_jackknife_over_rows_or_clusters():
    generator = np.random.default_rng(3)
    first = generator.integers(0, 3, 60)
    second = np.where(generator.random(60) < 0.8, first, 2 - first)
    groups = np.arange(60) // 4
    for clusters in (None, groups.tolist()):
        labels = np.arange(60) if clusters is None else groups
        found = agree(rated(first, second, clusters=clusters)).kappa
        left = [by_hand(first[labels != g], second[labels != g], "kappa") for g in np.unique(labels)]
        number = len(left)
        error = math.sqrt((number - 1) / number * ((np.array(left) - np.mean(left)) ** 2).sum())
        assert found.high - found.mean == pytest.approx(t.ppf(0.975, number - 1) * error)


def test_a_weight_is_as_many_rows():
    first, second, weights = [1, 1, 0, 0, 1], [1, 0, 0, 1, 1], [3, 1, 2, 1, 1]
    repeated = agree(rated(np.repeat(first, weights), np.repeat(second, weights)))
    weighted = agree(rated(first, second, weights))
    assert weighted.kappa.mean == pytest.approx(repeated.kappa.mean)
    assert weighted.ac1.mean == pytest.approx(repeated.ac1.mean)
    assert weighted.observed == pytest.approx(repeated.observed)


def test_a_perfect_judge_agrees_as_far_as_so_few_rows_can_tell():
    found = agree(rated([1] * 40 + [0] * 10, [1] * 40 + [0] * 10))
    assert (found.observed, found.kappa.mean, found.ac1.mean, found.alpha.mean) == (1, 1, 1, 1)
    # The exact limits of one side: of 40 that pass, and of 10 that fail.
    ends = [kappa_of(0.8, 0.05 ** (1 / 40), 0), kappa_of(0.8, 1, 1 - 0.05 ** (1 / 10))]
    assert found.kappa.low == pytest.approx(1 - math.hypot(*(1 - end for end in ends)), abs=1e-4)
    assert found.kappa.high == 1
    assert agree(rated([1] * 50, [1] * 50)).kappa is None
    # A weighted mean of ones may be more than one, and of equal grades other than they are, in the last digit.
    weights = np.random.default_rng(2).uniform(1, 20, 1000)
    assert agree(rated([1] * 999 + [1], [1] * 999 + [0], weights)).kappa.mean == pytest.approx(0, abs=1e-9)
    assert alpha(np.full((97, 2), 3.7), np.arange(97), weights[:97], "interval") is None


def test_a_judge_who_always_says_the_first_knows_nothing():
    lazy = compare_orders([1] * 80, [0] * 80)
    assert lazy.consistency.mean == 0
    assert (lazy.win_rate.mean, lazy.win_rate.low, lazy.win_rate.high) == (0.5, 0, 1)
    perfect = compare_orders([1] * 80, [1] * 80)
    assert (perfect.consistency.mean, perfect.win_rate.mean, perfect.win_rate.high) == (1, 1, 1)
    assert perfect.win_rate.low == pytest.approx(80 / (80 + 1.96**2), abs=1e-4)


def test_kinder_to_long_answers():
    found = halves([0, 0, 1, 0] * 10 + [1, 0, 1, 1] * 10, [5] * 40 + [50] * 40)
    assert found.mean == pytest.approx(0.75 - 0.25)
    # Half a label more of each outcome: 10.5 and 0.5 of 42, 30.5 and 0.5; distances of both ends add by their squares.
    below = 30 / 42 - 1.96 * math.sqrt((31 / 42 - (30 / 42) ** 2) / 42)
    above = 10 / 42 + 1.96 * math.sqrt((11 / 42 - (10 / 42) ** 2) / 42)
    assert found.low == pytest.approx(0.5 - math.hypot(0.75 - below, above - 0.25), abs=1e-4)
    assert halves([0, 1], [3, 3]) is None
    grades = halves([0.0, 0.2, -0.2, 0.4] * 5, [5, 9] * 10, are_grades=True)
    # Ten errors in each half, of a deviation of 0.1: t of 9 is 2.2622.
    half = math.hypot(2.2622 * 0.1 / 3, 2.2622 * 0.1 / 3)
    assert (grades.mean, grades.half_width) == pytest.approx((0.3 + 0.1, half), abs=1e-4)


def test_labels_that_all_agree_with_the_judge_leave_its_bias_open():
    """Four labels without an error: of two in each half, up to 0.25 +- 1.96 sqrt(0.25) / 2 of those of four."""
    found = halves([0, 0, 0, 0], [1, 2, 3, 4])
    assert (found.mean, found.low, found.high) == pytest.approx((0, -0.693, 0.693), abs=1e-3)
    nothing = halves([0, 0, 0, 0], [1, 2, 3, 4], are_grades=True)
    assert (nothing.low, nothing.high) == (-math.inf, math.inf)


def test_a_judge_that_is_always_wrong_is_as_sure_as_so_few_rows_can_tell():
    found = agree(rated([1, 0] * 25, [0, 1] * 25)).kappa
    assert (found.mean, found.low) == (-1, -1)
    # Of 25 that pass, by the exact limit of one side, so many may be right, and of those that fail wrong.
    away = kappa_of(0.5, 1 - 0.05 ** (1 / 25), 1) + 1
    assert found.high == pytest.approx(-1 + math.hypot(away, away), abs=1e-4)
    grades = agree(rated([0, 1, 2] * 20, [1, 2, 0] * 20)).kappa
    # Wilson's limit of 60 of 60 disagreements; chance disagrees on two thirds.
    assert (grades.mean, grades.low) == pytest.approx((-0.5, -0.5))
    assert grades.high == pytest.approx(1 - 60 / (60 + Z2) / (2 / 3), abs=1e-4)


def test_intervals_hold_of_labels_that_were_drawn_by_verdict():
    """900 of 1,000 answers are right; the judge passes 98 % of them, and 20 % of the wrong ones. Of 100 labels 75 are of
    what it failed, so that one of 25 stands for 36: the jackknife's intervals of kappa and AC1 hold in half of cases."""
    truth, generator = (kappa_of(0.902, 0.882 / 0.902, 0.018 / 0.098), 0.8), np.random.default_rng(6)
    held = np.zeros(2)
    for _ in range(300):
        right = generator.random(1000) < 0.9
        passed = np.where(right, generator.random(1000) < 0.98, generator.random(1000) < 0.2)
        sides = [generator.permutation(np.flatnonzero(passed == side))[:n] for side, n in ((False, 75), (True, 25))]
        sizes = [(passed == side).sum() / len(one) for side, one in zip((False, True), sides, strict=True)]
        drawn, weights = np.concatenate(sides), np.repeat(sizes, [len(one) for one in sides])
        judge, people = passed[drawn].astype(float), right[drawn].astype(float)
        found = (
            agree(rated(judge, people, weights)).kappa,
            find_sides(rated(judge, people, weights), by_verdict=True)[1],
        )
        held += [one.low <= true <= one.high for one, true in zip(found, truth, strict=True)]
    assert min(held) >= 0.91 * 300


def test_a_number_of_verdicts_by_hand():
    """Of 300 passed answers 18 of 20 labels are right, of 100 failed ones 2 of 10: 80 of 110 wrong ones are failed."""
    judge, people = np.repeat([1.0, 0.0], [20, 10]), np.array([1.0] * 18 + [0.0] * 2 + [1.0] * 2 + [0.0] * 8)
    weights = np.where(judge == 1, 15.0, 10.0)
    found = find_sides(rated(judge, people, weights), by_verdict=True)[1]
    both = [[proportion_confint(n, of, method=how) for how in ("wilson", "jeffreys")] for n, of in ((2, 20), (8, 10))]
    (fewest, most), (least, greatest) = (
        (min(lows), max(highs)) for lows, highs in (zip(*of, strict=True) for of in both)
    )
    slope = 8 / 10 * 2 / 20 / (110 / 400) ** 2  # of failed / (failed + passed) by the share of passed ones
    mix, mean = 1.96 * slope * math.sqrt(0.75 * 0.25 / 400), 80 / 110
    low = math.hypot(mean - 80 / (80 + 300 * most), mean - 100 * least / (100 * least + 30), mix)
    high = math.hypot(80 / (80 + 300 * fewest) - mean, 100 * greatest / (100 * greatest + 30) - mean, mix)
    assert (found.mean, found.low, found.high) == pytest.approx((mean, mean - low, mean + high), abs=1e-4)
    copies = [np.repeat(one, 3) for one in (judge, people, weights / 3)]  # which tell as much, but for t
    clustered = find_sides(rated(*copies, np.repeat(np.arange(30), 3).tolist()), by_verdict=True)[1]
    assert found.half_width < clustered.half_width < 1.3 * found.half_width


def kappa_of(passed, right_of_passed, right_of_failed):
    observed = passed * right_of_passed + (1 - passed) * (1 - right_of_failed)
    right = passed * right_of_passed + (1 - passed) * right_of_failed
    chance = passed * right + (1 - passed) * (1 - right)
    return (observed - chance) / (1 - chance)


def test_raters_who_differ_in_strictness_make_the_mean_less_sure():
    generator, found = np.random.default_rng(4), []
    for _ in range(400):  # three raters, whose strictness has a deviation of 0.2
        rows = generator.random(200)[:, None] + generator.normal(0, 0.2, 3) + generator.normal(0, 0.1, (200, 3))
        found.append(rater_variance(rows))
    assert np.mean(found) == pytest.approx(0.2**2 / 3, rel=0.1)
    assert rater_variance(np.array([[1.0], [0.0]])) == 0
    assert rater_variance([[1, math.nan], [math.nan, 0]]) == 0
